"""The columns that several metadata tables share: of a file, of its partition, of its metrics in readable form."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.utils.datetime import days_to_date, micros_to_timestamp, micros_to_timestamptz

from lakeproof.iceberg.pyiceberg_private import (
    CONTENT_OFFSET,
    CONTENT_SIZE,
    FIRST_ROW_ID,
    REFERENCED_FILE,
    file_field,
)

Row = dict[str, Any]
TIME = pa.timestamp("us", "UTC")
_COUNTS, _BOUNDS = pa.map_(pa.int32(), pa.int64()), pa.map_(pa.int32(), pa.binary())
_SIMPLE: dict[type[iceberg.IcebergType], pa.DataType] = {
    iceberg.BooleanType: pa.bool_(),
    iceberg.IntegerType: pa.int32(),
    iceberg.LongType: pa.int64(),
    iceberg.FloatType: pa.float32(),
    iceberg.DoubleType: pa.float64(),
    iceberg.DateType: pa.date32(),
    iceberg.TimestampType: pa.timestamp("us"),
    iceberg.TimestamptzType: TIME,
    iceberg.StringType: pa.string(),
    iceberg.UUIDType: pa.string(),
    iceberg.BinaryType: pa.binary(),
    iceberg.FixedType: pa.binary(),
}


def arrow_type(kind: iceberg.IcebergType) -> pa.DataType:
    """A type of Iceberg's as Arrow has it and Spark reads it."""
    if isinstance(kind, iceberg.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, iceberg.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.field_type)) for field in kind.fields])
    if isinstance(kind, iceberg.ListType):
        return pa.list_(arrow_type(kind.element_type))
    if isinstance(kind, iceberg.MapType):
        return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
    return _SIMPLE.get(type(kind), pa.string())


class PartitionColumn(NamedTuple):
    """One field of the partition column: of all specs that the table has had."""

    field_id: int
    name: str
    type: iceberg.IcebergType


class FileColumns:
    """How the files of one table are shown; a table at another snapshot has the same columns."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.partition_columns = list(_partition_columns(table))
        self.partition = pa.struct([pa.field(each.name, arrow_type(each.type)) for each in self.partition_columns])
        self.measured = sorted(_primitives(table.schema()), key=lambda each: each[0])
        self.metrics = pa.struct([pa.field(name, _metric_type(kind)) for name, _, kind in self.measured])

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of a file, without its readable metrics; an unpartitioned table has no partition column."""
        listed = [("content", pa.int32()), ("file_path", pa.string()), ("file_format", pa.string())]
        listed += [("spec_id", pa.int32())]
        listed += [("partition", self.partition)] if self.partition_columns else []
        listed += [("record_count", pa.int64()), ("file_size_in_bytes", pa.int64())]
        counts = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
        listed += [(name, _COUNTS) for name in counts]
        listed += [("lower_bounds", _BOUNDS), ("upper_bounds", _BOUNDS), ("key_metadata", pa.binary())]
        listed += [("split_offsets", pa.list_(pa.int64())), ("equality_ids", pa.list_(pa.int32()))]
        listed += [("sort_order_id", pa.int32()), ("first_row_id", pa.int64()), ("referenced_data_file", pa.string())]
        listed += [("content_offset", pa.int64()), ("content_size_in_bytes", pa.int64())]
        return [pa.field(*each) for each in listed]

    @property
    def readable(self) -> pa.Field:
        """The metrics by column name, as values."""
        return pa.field("readable_metrics", self.metrics)

    def row(self, file: DataFile, spec_id: int) -> Row:
        """One file."""
        said = {name: getattr(file, name, None) for name in _AS_THEY_ARE}
        said |= {name: file_field(file, number) for name, number in _OF_VERSION_THREE.items()}
        maps = {name: _pairs(getattr(file, name, None)) for name in _MAPS}
        return {
            **said,
            **maps,
            "content": int(file.content or 0),
            "file_format": str(getattr(file.file_format, "value", file.file_format)),
            "spec_id": spec_id,
            "partition": self.partition_row(file.partition, spec_id),
        }

    def partition_row(self, record: Any, spec_id: int) -> Row:
        """The partition of a file; fields of other specs are null."""
        spec = self.table.specs()[spec_id]
        values = {field.field_id: record[at] for at, field in enumerate(spec.fields)}
        return {each.name: shown_value(each.type, values.get(each.field_id)) for each in self.partition_columns}

    def metrics_row(self, file: DataFile) -> Row:
        """The metrics of a file, by column."""
        return {name: _metric(file, number, kind) for name, number, kind in self.measured}


_AS_THEY_ARE = (
    *("file_path", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets", "equality_ids"),
    "sort_order_id",
)
_OF_VERSION_THREE = {
    "first_row_id": FIRST_ROW_ID,
    "referenced_data_file": REFERENCED_FILE,
    "content_offset": CONTENT_OFFSET,
    "content_size_in_bytes": CONTENT_SIZE,
}
_MAPS = (
    *("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"),
    *("lower_bounds", "upper_bounds"),
)


def _pairs(values: Any) -> list[tuple[int, Any]] | None:
    return None if values is None else sorted(dict(values).items())


def _partition_columns(table: Table) -> Iterator[PartitionColumn]:
    """Newer specs name a field; a field that is void there keeps the type that it had."""
    found: dict[int, PartitionColumn] = {}
    for spec_id in sorted(table.specs(), reverse=True):
        for field in table.specs()[spec_id].fields:
            kind = source_type(table, field.source_id)
            void = str(field.transform) == "void"
            if kind is not None and not (void and field.field_id in found):
                name = found[field.field_id].name if field.field_id in found else field.name
                result = kind if void else field.transform.result_type(kind)
                found[field.field_id] = PartitionColumn(field.field_id, name, result)
    yield from (found[number] for number in sorted(found))


def source_type(table: Table, source_id: int) -> iceberg.IcebergType | None:
    """The type of a column that partition fields come from, in the newest schema that has it."""
    for schema in [table.schema(), *table.schemas().values()]:
        if schema.find_column_name(source_id):
            return schema.find_type(source_id)
    return None


def _primitives(schema: Schema) -> Iterator[tuple[str, int, iceberg.PrimitiveType]]:
    for number in schema.field_ids:
        kind = schema.find_type(number)
        if isinstance(kind, iceberg.PrimitiveType):
            yield str(schema.find_column_name(number)), number, kind


def _metric_type(kind: iceberg.IcebergType) -> pa.DataType:
    counts = ("column_size", "value_count", "null_value_count", "nan_value_count")
    bounds = [pa.field(name, arrow_type(kind)) for name in ("lower_bound", "upper_bound")]
    return pa.struct([*(pa.field(name, pa.int64()) for name in counts), *bounds])


def _metric(file: DataFile, number: int, kind: iceberg.PrimitiveType) -> Row:
    def of(values: Any) -> Any:
        return None if values is None else values.get(number)

    return {
        "column_size": of(file.column_sizes),
        "value_count": of(file.value_counts),
        "null_value_count": of(file.null_value_counts),
        "nan_value_count": of(file.nan_value_counts),
        "lower_bound": _bound(kind, of(file.lower_bounds)),
        "upper_bound": _bound(kind, of(file.upper_bounds)),
    }


def _bound(kind: iceberg.PrimitiveType, value: bytes | None) -> Any:
    return None if value is None else shown_value(kind, from_bytes(kind, value))


def shown_value(kind: iceberg.IcebergType, value: Any) -> Any:
    """A value as Arrow takes it: metadata counts days and microseconds."""
    if value is None:
        return None
    if isinstance(kind, iceberg.DateType) and isinstance(value, int):
        return days_to_date(value)
    if isinstance(kind, iceberg.TimestampType) and isinstance(value, int):
        return micros_to_timestamp(value)
    if isinstance(kind, iceberg.TimestamptzType) and isinstance(value, int):
        return micros_to_timestamptz(value)
    return str(value) if isinstance(kind, iceberg.UUIDType) else value


def instant(timestamp_ms: int | None) -> dt.datetime | None:
    """A time of the metadata."""
    return None if timestamp_ms is None else dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC)
