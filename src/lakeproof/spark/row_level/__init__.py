"""UPDATE, DELETE, MERGE and rewrites of files: rows are found by position and committed by the rules of `commit/`."""
