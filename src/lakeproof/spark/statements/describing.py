"""DESCRIBE, SHOW CREATE TABLE and SHOW TBLPROPERTIES of managed tables, as Spark tells them of Iceberg's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from lakeproof.iceberg.pyiceberg_names import SortField, Table
from lakeproof.iceberg.tables.column_dependencies import DEPENDENCIES_PROPERTY
from lakeproof.iceberg.tables.tables import find_column, name_parts
from lakeproof.spark.jvm.default_values import with_write_defaults
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark_types import to_spark_schema, to_spark_type
from lakeproof.spark.reading.metadata_columns import metadata_columns_of
from lakeproof.spark.statements.local_rows import local_rows, texts
from lakeproof.spark.statements.shows import transform_sql, transform_text


def describe_table(gateway: Gateway, table: Table, *, extended: bool) -> DataFrame:
    """The columns, the partition fields and, extended, what else is known, as Spark tells it of Iceberg's tables."""
    rows: list[tuple[str, str, str | None]] = []
    for field in to_spark_schema(table.schema()).fields:
        rows.append((field.name, field.dataType.simpleString(), field.metadata.get("comment")))
    if table.spec().fields:
        rows += [("# Partitioning", "", "")]
        rows += [(f"Part {n}", transform_sql(table, f), "") for n, f in enumerate(table.spec().fields)]
    if extended:
        kinds = {each.name: kind.simpleString() for each, kind in metadata_columns_of(table)}
        rows += [("", "", ""), ("# Metadata Columns", "", "")]
        rows += [(name, kinds[name], "") for name in _COLUMNS_IN_ORDER if name in kinds]
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += _details(gateway, table)
    return texts(gateway.spark, ("col_name", "data_type", "comment"), rows)


def describe_columns(session: SparkSession, schema: spark.StructType) -> DataFrame:
    """The columns of something that is no table, and has nothing else to tell."""
    rows = [(field.name, field.dataType.simpleString(), field.metadata.get("comment")) for field in schema.fields]
    return texts(session, ("col_name", "data_type", "comment"), rows)


_COLUMNS_IN_ORDER = ("_spec_id", "_partition", "_file", "_pos", "_deleted", "_row_id", "_last_updated_sequence_number")


def _details(gateway: Gateway, table: Table) -> Iterator[tuple[str, str, str | None]]:
    head = table.current_snapshot()
    said = head.summary.additional_properties if head is not None and head.summary else {}
    count = int(said.get("total-records", 0))
    row = int(gateway.java_schema(to_spark_schema(table.schema())).defaultSize())
    if comment := table.properties.get("comment"):
        yield "Comment", comment, ""
    yield "Name", _full_name(table), ""
    yield "Type", "MANAGED", ""
    yield "Location", table.location(), ""
    yield "Provider", "iceberg", ""
    yield "Owner", table.properties.get("owner", ""), ""
    yield "Table_type", "EXTERNAL", ""
    if DEPENDENCIES_PROPERTY in table.properties:
        yield "Column dependencies", table.properties[DEPENDENCIES_PROPERTY], ""
    shown = ",".join(f"{name}={value}" for name, value in sorted(properties_shown(table).items()))
    yield "Table Properties", f"[{shown}]", ""
    yield "Statistics", f"{row * count} bytes, {count} rows", None


def _full_name(table: Table) -> str:
    return f"spark_catalog.{'.'.join(table.name())}"


_HIDDEN_PROPERTIES = ("lakeproof.created-ms", "owner", "comment")


def properties_shown(table: Table) -> dict[str, str]:
    """The properties of a table, and beside them what Iceberg tells as properties: the format, the head, the order."""
    head, schema, order = table.metadata.current_snapshot_id, table.schema(), table.sort_order()
    kind = table.properties.get("write.format.default", "parquet")
    told = {
        "current-snapshot-id": "none" if head is None else str(head),
        "format": f"iceberg/{kind}",
        "format-version": str(table.format_version),
        f"write.{kind}.compression-codec": "zstd",
    }
    if order.fields:
        told["sort-order"] = ", ".join(_sorted_by(table, field) for field in order.fields)
    if schema.identifier_field_ids:
        told["identifier-fields"] = f"[{','.join(sorted(schema.identifier_field_names()))}]"
    kept = {name: value for name, value in table.properties.items() if name not in _HIDDEN_PROPERTIES}
    return {**told, **kept}


def _sorted_by(table: Table, field: SortField) -> str:
    column = str(table.schema().find_column_name(field.source_id))
    nulls, way = str(field.null_order).upper(), field.direction.value.upper()
    return f"{transform_text(column, str(field.transform))} {way} {nulls}"


def describe_column(session: SparkSession, table: Table, column: str) -> DataFrame:
    """One column: its name, its type and its comment."""
    found = find_column(table.schema(), ".".join(name_parts(column)), f"table {'.'.join(table.name())}")
    name = str(table.schema().find_column_name(found.field_id))
    rows = [
        ("col_name", name),
        ("data_type", to_spark_type(found.field_type, name).simpleString()),
        ("comment", found.doc or "NULL"),
    ]
    return texts(session, ("info_name", "info_value"), rows)


def matching_tables(session: SparkSession, tables: Sequence[Table]) -> DataFrame:
    """SHOW TABLE EXTENDED of managed tables."""
    rows = []
    for table in tables:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(properties_shown(table).items()))
        *namespace, name = table.name()
        told = {
            **{"Catalog": "spark_catalog", "Namespace": ".".join(namespace), "Table": name, "Type": "MANAGED"},
            **{"Location": table.location(), "Provider": "iceberg", "Owner": table.properties.get("owner", "")},
            **{"Table Properties": f"[{shown}]"},
        }
        tree = "\n".join(_tree(to_spark_schema(table.schema())))
        text = "\n".join(f"{key}: {value}" for key, value in told.items()) + f"\nSchema: root\n{tree}\n"
        rows.append((".".join(namespace), name, False, text))
    return local_rows(session, rows, _TABLES)


_TABLES = spark.StructType(
    [
        spark.StructField("namespace", spark.StringType()),
        spark.StructField("tableName", spark.StringType()),
        spark.StructField("isTemporary", spark.BooleanType()),
        spark.StructField("information", spark.StringType()),
    ]
)


def _tree(schema: spark.StructType) -> Iterator[str]:
    for field in schema.fields:
        yield f" |-- {field.name}: {field.dataType.simpleString()} (nullable = {str(field.nullable).lower()})"


def create_statement(gateway: Gateway, table: Table) -> DataFrame:
    """The CREATE TABLE that makes such a table, in Spark's own layout."""
    columns = [f"  {field.toDDL()}" for field in gateway.java_schema(with_write_defaults(table.schema())).fields()]
    text = f"CREATE TABLE {_full_name(table)} (\n" + ",\n".join(columns) + ")\nUSING iceberg\n"
    if DEPENDENCIES_PROPERTY in table.properties:
        text += f"OPTIONS (columnDependencies {_quoted(table.properties[DEPENDENCIES_PROPERTY])})\n"
    if table.spec().fields:
        text += f"PARTITIONED BY ({', '.join(transform_sql(table, field) for field in table.spec().fields)})\n"
    if comment := table.properties.get("comment"):
        text += f"COMMENT {_quoted(comment)}\n"
    text += f"LOCATION {_quoted(table.location())}\n"
    kept = {name: value for name, value in properties_shown(table).items() if name != DEPENDENCIES_PROPERTY}
    listed = ",\n".join(f"  {_quoted(name)} = {_quoted(value)}" for name, value in sorted(kept.items()))
    return texts(gateway.spark, ("createtab_stmt",), [(f"{text}TBLPROPERTIES (\n{listed})\n",)])


def show_properties(session: SparkSession, table: Table, wanted: str = "") -> DataFrame:
    """The table properties, or one of them."""
    known = properties_shown(table)
    if not wanted:
        return texts(session, ("key", "value"), sorted(known.items()))
    missing = f"Table {'.'.join(table.name())} does not have property: {wanted}"  # Spark's own words
    return texts(session, ("key", "value"), [(wanted, known.get(wanted, missing))])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
