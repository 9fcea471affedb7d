"""Rows in the order that their table asks for (`WRITE ORDERED BY`), spread over tasks as it says."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.evolution import DISTRIBUTION, SortedBy, sorted_by
from lakeproof.iceberg.tables.tables import column_path, find_column
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.writing.transforms import transform_column


def sort_column(table: Table, by: SortedBy) -> Column:
    """One field of a sort order as Spark sorts by it."""
    schema = table.schema()
    field = find_column(schema, by.field.column, f"table {'.'.join(table.name())}")
    value = transform_column(named_column(*column_path(schema, field.field_id)), by.field.transform, field.field_type)
    if by.descending:
        return value.desc_nulls_first() if by.nulls_first else value.desc_nulls_last()
    return value.asc_nulls_first() if by.nulls_first else value.asc_nulls_last()


def in_order(rows: DataFrame, table: Table, partitions: Sequence[str]) -> DataFrame:
    """The rows, sorted within each task; those columns are of the partitions that tasks write side by side."""
    order = [sort_column(table, sorted_by(table, field)) for field in table.sort_order().fields]
    parts = [named_column(name) for name in partitions]
    mode = table.properties.get(DISTRIBUTION, "range" if order else "none").lower()
    if mode == "hash" and parts:
        rows = rows.repartition(*parts)
    elif mode == "range" and order:
        rows = rows.repartitionByRange(*parts, *order)
    return rows.sortWithinPartitions(*parts, *order) if order else rows
