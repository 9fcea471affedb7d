"""What the snapshots of a table changed, one after the other: for the change feed and for streams."""
