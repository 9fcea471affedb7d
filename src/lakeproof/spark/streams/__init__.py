"""Tables read and written by streams, and what their snapshots changed."""
