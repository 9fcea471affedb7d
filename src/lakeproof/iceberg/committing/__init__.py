"""From a change to a new head: what the protocol of `commit/` asks of a real table."""
