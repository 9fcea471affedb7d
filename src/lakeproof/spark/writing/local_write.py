"""A few rows that Spark has folded into values are written where they are: no job, and one file per partition.

Spark has resolved and cast them before, so only their bytes are left to be written: the same types, field ids and
statistics as its own writer gives them. What is not plainly the same (nested types, bytes, NaN, column dependencies
that must be checked) is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.iceberg.committing.footers import WrittenFile, data_file_from_bytes
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.tables.column_dependencies import table_dependencies
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark_types import to_spark_schema
from lakeproof.spark.writing.worker_write import arrow_codec, arrow_level

MOST_ROWS = 50  # each costs a few calls to the JVM; a job costs some hundred
_SEPARATOR = "\x00\x01\x00"
_CODECS = ("zstd", "snappy", "gzip", "none")
_Row = tuple[Any, ...]


def _text(value: str) -> str:
    return value


# Printed values as Iceberg counts them: a date in days, a timestamp in microseconds.
_READ: dict[type[iceberg.IcebergType], Callable[[str], Any]] = {
    iceberg.BooleanType: lambda text: text == "true",
    iceberg.IntegerType: int,
    iceberg.LongType: int,
    iceberg.FloatType: float,
    iceberg.DoubleType: float,
    iceberg.StringType: _text,
    iceberg.DateType: int,
    iceberg.TimestampType: int,
    iceberg.TimestamptzType: int,
    iceberg.DecimalType: Decimal,
}


class _Columns(NamedTuple):
    """The table's columns, and where each stands in a row of the plan."""

    fields: tuple[iceberg.NestedField, ...]
    places: tuple[int, ...]
    readers: tuple[Callable[[str], Any], ...]


def local_files(gateway: Gateway, table: iceberg.Table, rows: DataFrame, folder: str) -> list[iceberg.DataFile] | None:
    """The rows as data files below `folder`, or `None` where Spark's own writer must write them."""
    plan = spark41.execution_of(rows).optimizedPlan()
    if plan.nodeName() != "LocalRelation" or table_dependencies(table) or table.sort_order().fields:
        return None
    columns = _columns(table, rows)
    codec = arrow_codec(table)
    if columns is None or codec not in _CODECS or table.properties.get("write.format.default", "parquet") != "parquet":
        return None
    data = plan.data()
    count = data.size()
    if count > MOST_ROWS:
        return None
    schema = plan.schema()
    found = [_values(data.apply(number).toSeq(schema), columns) for number in range(count)]
    if not all(_is_plain(row, columns.fields) for row in found):
        return None
    try:
        groups = _by_partition(table, columns.fields, found)
    except OverflowError:  # a date that Python does not have, which Spark may well count the months of
        return None
    return [
        _written(table, partition, group, f"{folder}/{number:05}.parquet", codec)
        for number, (partition, group) in enumerate(groups.items())
    ]


def _columns(table: iceberg.Table, rows: DataFrame) -> _Columns | None:
    """`None`: a column is missing, or of another type than the table's, or of one that is not printed exactly."""
    fields = table.schema().fields
    given = {field.name.lower(): (number, field.dataType) for number, field in enumerate(rows.schema.fields)}
    wanted = {field.name: field.dataType for field in to_spark_schema(table.schema()).fields}
    if len(given) != len(fields) or any(type(field.field_type) not in _READ for field in fields):
        return None
    if any(given.get(name.lower(), (0, None))[1] != kind for name, kind in wanted.items()):
        return None
    places = tuple(given[field.name.lower()][0] for field in fields)
    return _Columns(fields, places, tuple(_READ[type(field.field_type)] for field in fields))


def _values(row: Any, columns: _Columns) -> _Row:
    """The values of one row, printed together where none is null; a null would be printed like the text "null"."""
    texts = str(row.mkString(_SEPARATOR)).split(_SEPARATOR)
    if "null" in texts or len(texts) != len(columns.fields):
        given = [row.apply(number) for number in range(len(columns.fields))]
        texts = [None if value is None else _printed(value) for value in given]  # type: ignore[misc]
    return tuple(
        None if texts[place] is None else read(texts[place])
        for place, read in zip(columns.places, columns.readers, strict=True)
    )


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.toString()) if hasattr(value, "toString") else str(value)


def _is_plain(row: _Row, fields: Sequence[iceberg.NestedField]) -> bool:
    return all(
        not field.required if value is None else value == value for value, field in zip(row, fields, strict=True)
    )


def _by_partition(
    table: iceberg.Table, fields: Sequence[iceberg.NestedField], rows: Sequence[_Row]
) -> dict[_Row, list[_Row]]:
    numbers = {field.field_id: number for number, field in enumerate(fields)}
    schema = table.schema()
    transforms = [
        (numbers[field.source_id], field.transform.transform(schema.find_type(field.source_id)))
        for field in table.spec().fields
    ]
    groups: dict[_Row, list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(transform(row[number]) for number, transform in transforms), []).append(row)
    return groups


def _written(table: iceberg.Table, partition: _Row, rows: Sequence[_Row], path: str, codec: str) -> iceberg.DataFile:
    schema = table.schema().as_arrow()
    arrays = [_array([row[number] for row in rows], field.type) for number, field in enumerate(schema)]
    footers: list[pq.FileMetaData] = []
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        schema,
        compression=codec,
        compression_level=arrow_level(table),
        store_schema=False,
        store_decimal_as_integer=True,
        metadata_collector=footers,
    ) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    data = sink.getvalue()
    with translate_errors(f"file {path}"), table.io.new_output(path).create() as stream:
        stream.write(data)
    return data_file_from_bytes(table, WrittenFile(path, partition), footers[0], data.size)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(kind)
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array(values, kind)
