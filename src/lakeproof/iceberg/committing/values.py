"""Real files as values of `format/`: what the checks of `commit/` look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IcebergType, NestedField, TimestampType, TimestamptzType
from pyiceberg.utils.datetime import (
    date_to_days,
    datetime_to_micros,
    days_to_date,
    micros_to_timestamp,
    micros_to_timestamptz,
)

from lakeproof.format import Bounds, DataFile, PartitionField, TableShape, Value
from lakeproof.iceberg.reading.segments import Picked, partition_tuples

Converter = Callable[[Any], Value]


def shape_of(table: Table) -> TableShape:
    """Columns, partition specs by id, and the format version."""
    schema, specs = table.schema(), table.specs()
    shapes = []
    for spec_id in range(max(specs) + 1):
        fields = specs[spec_id].fields if spec_id in specs else ()
        shapes.append(
            tuple(
                PartitionField(
                    column_name(schema, field.source_id),
                    str(field.transform),
                    str(_type_of(table, field.source_id) or ""),
                )
                for field in fields
            )
        )
    return TableShape(tuple(schema.column_names), tuple(shapes), table.format_version, case_sensitive=False)


def column_name(schema: Schema, field_id: int) -> str:
    """The column's (dotted) name; a dropped column keeps a name that no predicate has."""
    return schema.find_column_name(field_id) or f"#{field_id}"


def data_file_value(table: Table, file: IcebergFile, columns: Iterable[str] = ()) -> DataFile:
    """A file that a writer is about to add, with the bounds of these columns."""
    spec = table.specs()[file.spec_id]
    bounds = []
    for field in _fields(table.schema(), columns):
        number = field.field_id
        bounds.append(
            _bounds(
                table.schema(),
                field,
                (file.lower_bounds or {}).get(number),
                (file.upper_bounds or {}).get(number),
                (file.value_counts or {}).get(number),
                (file.null_value_counts or {}).get(number),
                (file.nan_value_counts or {}).get(number),
            )
        )
    values = [file.partition[at] for at in range(len(spec.fields))]
    return DataFile(
        path=file.file_path,
        partition=tuple(convert(value) for convert, value in zip(_converters(table, spec), values, strict=True)),
        spec_id=file.spec_id,
        record_count=file.record_count,
        bounds=tuple(bounds),
    )


def data_file_values(table: Table, picked: Iterable[Picked], columns: Sequence[str] = ()) -> list[DataFile]:
    """Files of decoded manifests, with the bounds of these columns."""
    fields = _fields(table.schema(), columns)
    found: list[DataFile] = []
    for each in picked:
        taken = pa.array(each.rows)
        paths = each.segment.column("path").take(taken).to_pylist()
        counts = each.segment.record_count[each.rows].tolist()
        seqs = each.segment.seq[each.rows].tolist()
        partitions = partition_values(table, each)
        bounds = list(zip(*(_column_bounds(table, each, field) for field in fields), strict=True)) or [()] * len(paths)
        for path, partition, seq, count, of_file in zip(paths, partitions, seqs, counts, bounds, strict=True):
            found.append(DataFile(path, partition, each.spec_id, seq, count, tuple(of_file)))
    return found


def partition_values(table: Table, picked: Picked) -> list[tuple[Value, ...]]:
    """Partition values as the checks compare them: an identity partition of a date is a date, a day is an ordinal."""
    spec = table.specs()[picked.spec_id]
    converters = _converters(table, spec)
    raw = partition_tuples(picked.segment, picked.rows, spec)
    if all(convert is _as_is for convert in converters):
        return raw
    return [tuple(convert(value) for convert, value in zip(converters, values, strict=True)) for values in raw]


def _converters(table: Table, spec: IcebergSpec) -> list[Converter]:
    made: list[Converter] = []
    for field in spec.fields:
        kind = _type_of(table, field.source_id) if isinstance(field.transform, IdentityTransform) else None
        made.append(converter(kind))
    return made


def _type_of(table: Table, field_id: int) -> IcebergType | None:
    for schema in table.schemas().values():
        if schema.find_column_name(field_id):
            return schema.find_type(field_id)
    return None


def converter(kind: IcebergType | None) -> Converter:
    """From what Iceberg stores to what a predicate says."""
    convert: Callable[[Any], Any] | None = None
    if isinstance(kind, DateType):
        convert = days_to_date
    elif isinstance(kind, TimestampType):
        convert = micros_to_timestamp
    elif isinstance(kind, TimestamptzType):
        convert = micros_to_timestamptz
    if convert is None:
        return _as_is
    return partial(_converted, convert)


def _converted(convert: Callable[[Any], Any], value: Any) -> Value:
    """The value, or the number that Iceberg stores where Python's calendar ends: nothing compares with that."""
    try:
        known: Value = convert(value) if isinstance(value, int) else value
    except (OverflowError, ValueError):
        return int(value)
    return known


def stored(value: Value) -> Any:
    """From what a predicate says to what Iceberg stores: the way back of a partition value."""
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    return date_to_days(value) if isinstance(value, date) else value


def _as_is(value: Any) -> Value:
    known: Value = value
    return known


def _fields(schema: Schema, columns: Iterable[str]) -> list[NestedField]:
    known = {name.lower(): name for name in schema.column_names}
    fields = [schema.find_field(known[name.lower()]) for name in columns if name.lower() in known]
    return [field for field in fields if field.field_type.is_primitive]


def bounds_of_columns(table: Table, picked: Picked, ids: Iterable[int]) -> dict[int, list[Bounds]]:
    """What the statistics of these files say of the columns with these ids, by id; dropped columns are left out."""
    known = (field for number in ids if (field := _field(table, number)) is not None)
    return {field.field_id: _column_bounds(table, picked, field) for field in known}


def _field(table: Table, number: int) -> NestedField | None:
    return table.schema().find_field(number) if table.schema().find_column_name(number) else None


def _column_bounds(table: Table, picked: Picked, field: NestedField) -> list[Bounds]:
    taken, schema = pa.array(picked.rows), table.schema()
    columns = []
    for kind in ("lo", "hi", "vc", "nc", "nan"):
        name = f"{kind}{field.field_id}"
        known = name in picked.segment.names
        columns.append(picked.segment.column(name).take(taken).to_pylist() if known else [None] * len(picked.rows))
    return [_bounds(schema, field, *metrics) for metrics in zip(*columns, strict=True)]


def _bounds(
    schema: Schema,
    field: NestedField,
    lower: bytes | None,
    upper: bytes | None,
    values: int | None,
    nulls: int | None,
    nans: int | None,
) -> Bounds:
    convert, kind = converter(field.field_type), field.field_type
    return Bounds(
        column=column_name(schema, field.field_id),
        lower=None if lower is None else convert(from_bytes(kind, lower)),  # type: ignore[arg-type]
        upper=None if upper is None else convert(from_bytes(kind, upper)),  # type: ignore[arg-type]
        has_nulls=nulls != 0,
        has_values=values is None or nulls is None or values == 0 or values != nulls,
        has_nans=nans != 0,
    )
