"""Expiry, orphan removal, manifest rewrites, and files taken into a table."""
