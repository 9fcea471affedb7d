"""DESCRIBE and SHOW of managed tables, in the columns that Spark's own tables have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeproof.iceberg.pyiceberg_names import PartitionField, Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.column_dependencies import DEPENDENCIES_PROPERTY
from lakeproof.spark.jvm.default_values import CURRENT, with_write_defaults
from lakeproof.spark.jvm.spark_types import to_spark_schema
from lakeproof.spark.statements.local_rows import texts


def describe_table(session: SparkSession, table: Table, *, extended: bool) -> DataFrame:
    """The columns, the partition fields and, extended, what else is known."""
    rows: list[tuple[str, str, str | None]] = []
    for field in to_spark_schema(table.schema()).fields:
        rows.append((field.name, field.dataType.simpleString(), field.metadata.get("comment")))
    if table.spec().fields:
        rows += [("# Partitioning", "", "")]
        rows += [(f"Part {n}", _transform_sql(table, f), "") for n, f in enumerate(table.spec().fields)]
    if extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(name, value, "") for name, value in _details(table)]
    return texts(session, ("col_name", "data_type", "comment"), rows)


def _details(table: Table) -> Iterator[tuple[str, str]]:
    head = table.current_snapshot()
    yield "Name", ".".join(table.name())
    yield "Provider", "iceberg"
    yield "Location", table.location()
    yield "Format version", str(table.format_version)
    yield "Current snapshot", "none" if head is None else str(head.snapshot_id)
    if DEPENDENCIES_PROPERTY in table.properties:
        yield "Column dependencies", table.properties[DEPENDENCIES_PROPERTY]
    yield "Table Properties", ", ".join(f"{name}={value}" for name, value in sorted(table.properties.items()))


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


def create_statement(session: SparkSession, table: Table) -> DataFrame:
    """The CREATE TABLE that makes such a table."""
    columns = []
    for field in with_write_defaults(table.schema()).fields:
        comment = field.metadata.get("comment")
        note = f" COMMENT {_quoted(comment)}" if comment else ""
        nullable = "" if field.nullable else " NOT NULL"
        default = f" DEFAULT {field.metadata[CURRENT]}" if CURRENT in field.metadata else ""
        columns.append(f"  `{field.name}` {field.dataType.simpleString()}{nullable}{default}{note}")
    text = f"CREATE TABLE {'.'.join(table.name())} (\n" + ",\n".join(columns) + ")\nUSING iceberg\n"
    if table.spec().fields:
        text += f"PARTITIONED BY ({', '.join(_transform_sql(table, field) for field in table.spec().fields)})\n"
    text += f"LOCATION {_quoted(table.location())}\n"
    kept = {name: value for name, value in table.properties.items() if name != DEPENDENCIES_PROPERTY}
    if DEPENDENCIES_PROPERTY in table.properties:
        text += f"OPTIONS (columnDependencies {_quoted(table.properties[DEPENDENCIES_PROPERTY])})\n"
    if kept:
        text += f"TBLPROPERTIES ({', '.join(f'{_quoted(n)} = {_quoted(v)}' for n, v in sorted(kept.items()))})\n"
    return texts(session, ("createtab_stmt",), [(text.rstrip(),)])


def show_properties(session: SparkSession, table: Table) -> DataFrame:
    """The table properties."""
    return texts(session, ("key", "value"), sorted(table.properties.items()))


def show_columns(session: SparkSession, table: Table) -> DataFrame:
    """The names of the columns."""
    return texts(session, ("col_name",), [(field.name,) for field in table.schema().fields])


def _transform_sql(table: Table, field: PartitionField) -> str:
    column = str(table.schema().find_column_name(field.source_id))
    kind, _, argument = str(field.transform).partition("[")
    if kind == "identity":
        return column
    if argument:
        return f"{kind}({argument.rstrip(']')}, {column})"
    return f"{kind}s({column})"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
