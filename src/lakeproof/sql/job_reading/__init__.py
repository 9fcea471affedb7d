"""Parts of the reading of jobs files: names of tables, CALL, and what a statement has besides what is looked at."""
