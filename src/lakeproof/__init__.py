"""Lakeproof: run Iceberg tables from PySpark, prove what concurrent jobs can do to them, explain why."""

__version__ = "0.1.0"
