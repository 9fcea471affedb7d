"""SHOW of what a managed table holds: its columns and its partitions."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeproof.iceberg.pyiceberg_names import PartitionField, Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.spark.statements.local_rows import texts


def show_partitions(session: SparkSession, table: Table) -> DataFrame:
    """One row per partition that holds live files, as `field=value/field=value`."""
    found = plan(table)
    shown = set()
    for picked, values in zip(found.files["spec_id"].to_pylist(), found.partitions(), strict=True):
        fields = table.specs()[picked].fields
        pairs = [f"{f.name}={human(table, f, value)}" for f, value in zip(fields, values, strict=True)]
        shown.add("/".join(pairs))
    return texts(session, ("partition",), [(one,) for one in sorted(shown - {""})])


def human(table: Table, field: PartitionField, value: Any) -> str:
    """A partition value as people write it: a day as a date, null as null."""
    for schema in [table.schema(), *table.schemas().values()]:
        if schema.find_column_name(field.source_id):
            return str(field.transform.to_human_string(schema.find_type(field.source_id), value))
    return str(value)


def show_columns(session: SparkSession, table: Table) -> DataFrame:
    """The names of the columns."""
    return texts(session, ("col_name",), [(field.name,) for field in table.schema().fields])


def transform_sql(table: Table, field: PartitionField) -> str:
    return transform_text(str(table.schema().find_column_name(field.source_id)), str(field.transform))


def transform_text(column: str, transform: str) -> str:
    """A transform of a column as SQL writes it."""
    kind, _, argument = transform.partition("[")
    if kind == "identity":
        return column
    if argument:
        return f"{kind}({argument.rstrip(']')}, {column})"
    return f"{kind}s({column})"
