"""Rows on their way to data files of a managed table."""
