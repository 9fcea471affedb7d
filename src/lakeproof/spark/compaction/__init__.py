"""Data files and delete files rewritten, and the commit of it."""
