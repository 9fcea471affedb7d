"""A table's metadata as tables, under the names and columns that Apache Iceberg gives them."""
