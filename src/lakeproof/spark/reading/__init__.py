"""Managed tables as native file scans, and what Spark's conditions mean to our metadata."""
