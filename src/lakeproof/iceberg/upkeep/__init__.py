"""Expiry, orphan removal, manifest rewrites, files taken into a table, and metadata staged for another place."""
