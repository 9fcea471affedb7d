"""Rows become data files: Spark's own Parquet writer, and of its files exactly those of committed task attempts.

Its committer writes down what each committed task reported; a folder listing would also find the files of attempts
that failed or lost a race. Partition values come from hidden columns, so that every column stays inside the files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.footers import WrittenFile, data_files_from_footers
from lakeproof.iceberg.pyiceberg_names import (
    DataFile,
    DateType,
    IntegerType,
    LongType,
    NestedField,
    PartitionField,
    PartitionSpec,
    Schema,
    Table,
)
from lakeproof.iceberg.tables.column_dependencies import Dependency, table_dependencies
from lakeproof.iceberg.tables.tables import column_path
from lakeproof.iceberg.upkeep.add_files import NAME_MAPPING
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.paths import for_spark, from_spark
from lakeproof.spark.jvm.spark_types import FIELD_ID, has_collections, to_spark_schema
from lakeproof.spark.reading.columns import named_column, quoted
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_failed
from lakeproof.spark.writing.local_write import local_files
from lakeproof.spark.writing.ordering import in_order
from lakeproof.spark.writing.parquet_settings import parquet_settings
from lakeproof.spark.writing.repetition import newest_files, unrepeated_columns
from lakeproof.spark.writing.transforms import decoded, encoded, transform_column
from lakeproof.spark.writing.worker_write import write_in_workers

_PART = "__lakeproof_"
# A task keeps this many files open before Spark sorts the rest of its rows by partition instead.
_OPEN_FILES = "spark.sql.maxConcurrentOutputFileWriters"
_MOST_OPEN_FILES = 16


class WrittenFiles(NamedTuple):
    """The data files of one write, and the folder that holds nothing else."""

    files: tuple[DataFile, ...]
    folder: str


def write_rows(gateway: Gateway, table: Table, rows: DataFrame) -> WrittenFiles:
    """The rows as data files that no snapshot names yet; after a failure nothing is left behind."""
    folder = new_folder(table)
    with removed_if_failed(gateway, folder):
        local = local_files(gateway, table, rows, folder)
        if local is not None:
            return WrittenFiles(tuple(local), folder)
        chosen = tagged(rows, table)
        names = [f"{_PART}{field.name}" for field in table.spec().fields]
        in_workers = _format(table) == "parquet" and has_collections(chosen.schema)
        with_parts = in_order(with_partition_columns(chosen, table, as_text=in_workers), table, names)
        if in_workers:
            files = write_in_workers(with_parts, names, folder, table)
        else:
            unrepeated = unrepeated_columns(table, newest_files(table))
            paths = native_paths(gateway, with_parts, names, folder, table, unrepeated=unrepeated)
            files = [_written(table, path) for path in paths]
        files = [file._replace(sort_order_id=table.sort_order().order_id) for file in files]
        return WrittenFiles(with_statistics(table, files), folder)


def _written(table: Table, path: str) -> WrittenFile:
    if _format(table) == "parquet":
        return WrittenFile(path, partition_in_path(path, table))
    with table.io.new_input(path).open() as stream:
        count = orc.ORCFile(pa.BufferReader(stream.read())).nrows
    return WrittenFile(path, partition_in_path(path, table), file_format=_format(table), record_count=count)


def new_folder(table: Table) -> str:
    """A folder for the data files of one write."""
    base = table.properties.get("write.data.path", f"{table.location().rstrip('/')}/data")
    return f"{base.rstrip('/')}/{uuid.uuid4().hex[:16]}"


def tagged(rows: DataFrame, table: Table, *, checked: bool = True, more: Sequence[str] = ()) -> DataFrame:
    """The table's columns by name, cast to its types; the rows themselves where nothing is to be done.

    Pruning trusts column dependencies: a row that breaks one would silently be missing from answers. So each
    dependent column carries a check that stops the write. The check is part of the column, not a filter: Spark could
    move a filter below a join, to rows that are never written. Rows that are only moved need not be `checked` again.
    `more` are columns that come along as they are.
    """
    schema = table.schema()
    fields = to_spark_schema(schema).fields
    kinds = {field.name: field.dataType for field in rows.schema.fields if field.name not in more}
    names = _names(kinds, fields)
    dependencies = table_dependencies(table) if checked else ()
    if not dependencies and all(kinds[names[field.name]] == field.dataType for field in fields):
        if rows.columns == [*(field.name for field in fields), *more]:
            return rows
        chosen = [f"{quoted(names[field.name])} as {quoted(field.name)}" for field in fields]
        return rows.selectExpr(*chosen, *map(quoted, more))
    columns = {field.name: _typed(names[field.name], kinds, field) for field in fields}
    if dependencies:
        rows = rows.select(*[columns[field.name].alias(field.name) for field in fields], *more)
        columns = {field.name: named_column(field.name) for field in fields}
    for dependency in dependencies:
        source = schema.find_field(dependency.source, case_sensitive=False)
        destination = schema.find_field(dependency.destination, case_sensitive=False)
        value = columns[destination.name]
        expected = _expected(dependency, source, destination)
        message = F.concat(F.lit(f"{_broken(dependency)}: "), _shown(source), F.lit(", "), _shown(destination))
        kind = _spark_type(destination)
        same = value.eqNullSafe(expected)
        columns[destination.name] = F.when(same, value).otherwise(F.raise_error(message).cast(kind))
    return rows.select(*[columns[field.name].alias(field.name) for field in fields], *more)


def _names(kinds: Mapping[str, spark.DataType], fields: Sequence[spark.StructField]) -> Mapping[str, str]:
    """The names of the table's columns as the rows spell them."""
    given = {name.lower(): name for name in kinds}
    if len(given) != len(fields) or any(field.name.lower() not in given for field in fields):
        raise InvalidInput(
            f"the rows have the columns {', '.join(kinds)}",
            hint=f"the table has {', '.join(each.name for each in fields)}",
        )
    return {field.name: given[field.name.lower()] for field in fields}


def _typed(name: str, kinds: Mapping[str, spark.DataType], field: spark.StructField) -> Column:
    column = named_column(name)
    return column if kinds[name] == field.dataType else column.cast(field.dataType)


def _expected(dependency: Dependency, source: NestedField, destination: NestedField) -> Column:
    value = transform_column(named_column(source.name), dependency.transform, source.field_type)
    if dependency.transform == "day" and isinstance(destination.field_type, DateType):
        return F.date_from_unix_date(value)
    return value.cast(_spark_type(destination))


def _broken(dependency: Dependency) -> str:
    return f"a row breaks the column dependency {dependency}"


def _shown(field: NestedField) -> Column:
    value = F.coalesce(named_column(field.name).cast("string"), F.lit("null"))
    return F.concat(F.lit(f"{field.name} = "), value)


def _spark_type(field: NestedField) -> spark.DataType:
    return to_spark_schema(Schema(field)).fields[0].dataType


def with_partition_columns(rows: DataFrame, table: Table, *, as_text: bool) -> DataFrame:
    """The rows and one hidden column per partition field; text only where `as_text` or the value needs it."""
    spec, schema = table.spec(), table.schema()
    if as_text or not all(_is_own_name(field, schema) for field in spec.fields):
        return rows.select("*", *partition_columns(spec, schema))
    sources = [(quoted(str(schema.find_column_name(f.source_id))), quoted(f"{_PART}{f.name}")) for f in spec.fields]
    return rows.selectExpr("*", *[f"{source} as {name}" for source, name in sources]) if sources else rows


def _is_own_name(field: PartitionField, schema: Schema) -> bool:
    """Whether Spark names the folder of such a value as we would; sorting or comparing text for each row is slow."""
    column = str(schema.find_column_name(field.source_id))
    plain = isinstance(schema.find_type(field.source_id), IntegerType | LongType | DateType)
    return plain and str(field.transform) == "identity" and "." not in column


def partition_columns(spec: PartitionSpec, schema: Schema) -> list[Column]:
    """One hidden text column per partition field."""
    columns = []
    for field in spec.fields:
        kind = schema.find_type(field.source_id)
        source = named_column(*column_path(schema, field.source_id))
        value = transform_column(source, str(field.transform), kind)
        columns.append(encoded(value, str(field.transform), kind).alias(f"{_PART}{field.name}"))
    return columns


def partition_in_path(path: str, table: Table) -> tuple[Any, ...]:
    """The partition values that a file's folders say."""
    spec, schema = table.spec(), table.schema()
    if not spec.fields:
        return ()
    folders = path.rsplit("/", len(spec.fields) + 1)[-len(spec.fields) - 1 : -1]
    values = []
    for field, folder in zip(spec.fields, folders, strict=True):
        text = folder.partition("=")[2]
        values.append(decoded(text, str(field.transform), schema.find_type(field.source_id)))
    return tuple(values)


def native_paths(
    gateway: Gateway,
    rows: DataFrame,
    names: Sequence[str],
    folder: str,
    table: Table,
    *,
    unrepeated: Collection[str] = (),
) -> list[str]:
    """What Spark's own writer wrote: committed tasks report their files, and the report is all that is read.

    `unrepeated` are columns whose values hardly repeat, as far as anybody knows.
    """
    kind = _format(table)
    query = spark41.execution_of(rows)
    committer = gateway.named(spark41.MANIFEST_FILE_COMMIT_PROTOCOL)("0", for_spark(folder))
    report = f"{folder}/_spark_metadata"
    log = gateway.named(spark41.FILE_STREAM_SINK_LOG)(1, gateway.session, for_spark(report), gateway.none)
    committer.setupManifestOptions(log, 0)
    columns = _attributes(gateway, query.analyzed().output(), rows.columns, table)
    conf = gateway.session.sessionState().newHadoopConf()
    for name, value in parquet_settings(table, unrepeated).items():
        conf.set(name, value)
    writer = gateway.module(spark41.FILE_FORMAT_WRITER)
    with _open_files(gateway):
        writer.write(
            gateway.session,
            query.executedPlan(),
            gateway.named(spark41.FILE_FORMATS[kind.upper()])(),
            committer,
            gateway.named(spark41.FILE_FORMAT_WRITER_OUTPUT_SPEC)(
                for_spark(folder), gateway.scala_map({}), gateway.sequence(columns.values())
            ),
            conf,
            gateway.sequence(columns[name] for name in names),
            gateway.none,
            gateway.sequence(()),
            gateway.scala_map({"compression": table.properties.get(f"write.{kind}.compression-codec", "zstd")}),
            0,
            *spark41.defaults(writer, "write", (12,)),
        )
    with table.io.new_input(f"{report}/0").open() as stream:
        lines = stream.read().decode().splitlines()[1:]
    remove_folder(gateway, report)
    return [from_spark(json.loads(line)["path"], table.location()) for line in lines]


def _attributes(gateway: Gateway, output: Any, names: Sequence[str], table: Table) -> dict[str, Any]:
    """The columns of a plan by name, those of the table with their field ids, which the writer puts into the files."""
    ids = {field.name: field.field_id for field in table.schema().fields}
    kind = gateway.named(spark41.METADATA)
    found = {}
    for number, name in enumerate(names):
        found[name] = output.apply(number)
        if name in ids:
            text = json.dumps({FIELD_ID: ids[name]})
            found[name] = found[name].withMetadata(gateway.once(f"metadata {text}", partial(kind.fromJson, text)))
    return found


@contextmanager
def _open_files(gateway: Gateway) -> Iterator[None]:
    """Each task writes several partitions side by side instead of sorting its rows; what the user has set stays."""
    conf = gateway.spark.conf
    if int(conf.get(_OPEN_FILES, "0")) > 0:
        yield
        return
    conf.set(_OPEN_FILES, str(_MOST_OPEN_FILES))
    try:
        yield
    finally:
        conf.unset(_OPEN_FILES)


def with_statistics(table: Table, files: Sequence[WrittenFile]) -> tuple[DataFile, ...]:
    """The files with their statistics; a task without rows may still have written one, which is dropped."""
    made = data_files_from_footers(table, files)
    for empty in (file for file in made if file.record_count == 0):
        table.io.delete(empty.file_path)
    return tuple(file for file in made if file.record_count > 0)


def _format(table: Table) -> str:
    kind = table.properties.get("write.format.default", "parquet").lower()
    place, hint = (
        f"table {'.'.join(table.name())}",
        "alter table … set tblproperties ('write.format.default'='parquet')",
    )
    if kind.upper() not in spark41.FILE_FORMATS:
        raise InvalidInput(f"Spark cannot write {kind} files here", place=place, hint=hint)
    if kind != "parquet" and NAME_MAPPING not in table.properties:  # another engine made the table
        raise InvalidInput(
            f"Spark writes {kind} files without field ids, and nothing maps their columns", place=place, hint=hint
        )
    return kind
