"""What format version 3 adds to a table: metadata that is kept whole, row ids, deletion vectors."""
