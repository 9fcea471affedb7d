"""Managed Iceberg tables on real Spark, with no jar: sessions, native scans, writes, statements."""
