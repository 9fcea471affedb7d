"""The columns of a Parquet file, by field id, against what an entry and the table's schemas say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakeproof.iceberg.committing.footers import FooterReader
from lakeproof.iceberg.inspecting.partitions import PartitionPart, PartitionTypes, value_of
from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said

Told = tuple[str, str]
"""A kind of finding, and the reason."""
RESERVED = 2147483447
"""Field ids from here on are Iceberg's own."""
FULL = {"write.metadata.metrics.default": "full"}
EXACT = (IntegerType, LongType, DateType, TimestampType, TimestamptzType)
"""Types whose bounds have no reason to be wider than the values."""
READABLE = (
    ((BooleanType,), (pa.types.is_boolean,)),
    ((IntegerType, LongType), (pa.types.is_integer,)),
    ((FloatType, DoubleType), (pa.types.is_floating,)),
    ((StringType,), (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)),
    ((BinaryType, FixedType), (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)),
    ((DateType,), (pa.types.is_date, pa.types.is_int32)),
    ((TimestampType, TimestamptzType), (pa.types.is_timestamp, pa.types.is_int64, pa.types.is_date)),
    ((DecimalType,), (pa.types.is_decimal, pa.types.is_integer, pa.types.is_fixed_size_binary)),
)


class TableColumns:
    """The columns of a table, as its metadata file tells of them."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.partitions = PartitionTypes(words)
        self.schemas: list[Schema] = self.partitions.schemas
        self.names: dict[int, set[str]] = {}
        self.ids: dict[str, set[int]] = {}
        for schema in self.schemas:
            for number in schema.field_ids:
                name = str(schema.find_column_name(number)).lower()
                self.names.setdefault(number, set()).add(name)
                self.ids.setdefault(name, set()).add(number)

    def ids_of(self, file: pa.Schema) -> dict[str, int]:
        """The field id of each column that holds values, by its path; a file without ids goes by names."""
        own = {path: number for path, number, _ in _leaves(file)}
        if any(number >= 0 for number in own.values()):
            return {path: number for path, number in own.items() if number >= 0}
        return {path: min(self.ids[path.lower()]) for path in own if path.lower() in self.ids}

    def type_of(self, number: int) -> IcebergType | None:
        """The type of a column, by the newest schema that has it."""
        return self.partitions.column(number)

    def wide(self, numbers: set[int]) -> Schema:
        """A schema of these columns, named by their ids."""
        found = {number: self.type_of(number) for number in sorted(numbers)}
        fields = [NestedField(n, f"c{n}", kind) for n, kind in found.items() if isinstance(kind, PrimitiveType)]
        return Schema(*fields)


def _leaves(fields: Any, before: str = "") -> Iterator[tuple[str, int, pa.DataType]]:
    """Columns and fields of structs, with their paths; lists and maps count values in ways of their own."""
    for field in fields:
        path = f"{before}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _leaves(list(field.type), f"{path}.")
        elif not pa.types.is_nested(field.type):
            yield path, int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")), field.type


def wrong_ids(columns: TableColumns, own: Mapping[str, int], file: pa.Schema) -> Iterator[Told]:
    """Columns whose id means another column in the table, or none, or whose type is another."""
    for path, number, kind in _leaves(file):
        if number < 0 or number >= RESERVED:
            continue
        name = path.lower()
        if number not in columns.names:
            yield "field_ids", f"its column `{path}` has id {number}, which no schema of the table knows"
        elif name not in columns.names[number] and number not in columns.ids.get(name, {number}):
            theirs, mine = min(columns.names[number]), min(columns.ids[name])
            yield "field_ids", f"its column `{path}` has id {number}, which is `{theirs}`; `{path}` is {mine}"
        elif not _can_read(columns.type_of(number), kind):
            yield "column_type", f"its column `{path}` is {kind}, the table's is {columns.type_of(number)}"


def _can_read(table: IcebergType | None, file: pa.DataType) -> bool:
    """Whether a file's column may stand for the table's; what is not listed may."""
    if pa.types.is_dictionary(file):
        file = file.value_type
    for kinds, tests in READABLE:
        if isinstance(table, kinds):
            return any(test(file) for test in tests)
    return True


def _measured(
    columns: TableColumns, own: Mapping[str, int], footer: pq.FileMetaData
) -> tuple[dict[str, Any], dict[int, PrimitiveType]]:
    """What the footer really says, by field id, as a manifest would."""
    schema = columns.wide({number for number in own.values() if number in columns.names})
    reader = FooterReader(schema, FULL)
    kinds = {field.field_id: field.field_type for field in schema.fields}
    reader.ids = {path: number for path, number in own.items() if number in kinds}
    try:
        with damage_said():
            measured = reader.metrics(footer)
    except Damaged:
        return {}, {}
    return measured, {n: kind for n, kind in kinds.items() if isinstance(kind, PrimitiveType)}


def wrong_columns(
    columns: TableColumns, own: Mapping[str, int], file: pa.Schema, footer: pq.FileMetaData, entry: Mapping[str, Any]
) -> Iterator[Told]:
    """Counts and bounds of an entry that the footer contradicts."""
    measured, kinds = _measured(columns, own, footer)
    if not measured:
        return
    names = {number: path for path, number in own.items()}
    for key, said, what in (("vc", "value_counts", "values"), ("nc", "null_value_counts", "nulls")):
        for number, count in measured[said].items():
            there = entry.get(f"{key}{number}")
            if there is not None and there != count:
                yield "null_counts", f"`{names[number]}` holds {count} {what}, the table says {there}"
    for number, kind in kinds.items():
        yield from _bounds(number, names[number], kind, measured, entry)


def _bounds(
    number: int, name: str, kind: PrimitiveType, measured: Mapping[str, Any], entry: Mapping[str, Any]
) -> Iterator[Told]:
    low, high = (value_of(kind, measured[key].get(number)) for key in ("lower_bounds", "upper_bounds"))
    said_low, said_high = (_padded(kind, entry.get(f"{key}{number}")) for key in ("lo", "hi"))
    if low is None or high is None:
        return
    try:
        narrow = _above(said_low, low) or _above(high, said_high)
        wide = isinstance(kind, EXACT) and (_above(low, said_low) or _above(said_high, high))
    except TypeError:
        return
    if narrow or wide:
        said = f"the table says {_short(said_low)} to {_short(said_high)}"
        text = f"`{name}` goes from {_short(low)} to {_short(high)}, {said}"
        yield ("bounds" if narrow else "wide_bounds"), text


def _padded(kind: PrimitiveType, raw: bytes | None) -> Any:
    """A bound of an entry; an int or a float that was written before its column was widened is one still."""
    if raw is not None and len(raw) == 4:
        kind = IntegerType() if isinstance(kind, LongType) else FloatType() if isinstance(kind, DoubleType) else kind
    return value_of(kind, raw)


def _above(one: Any, other: Any) -> bool:
    """Whether a bound lies above another; a writer of statistics may have cut either."""
    if one is None or other is None:
        return False
    if isinstance(one, str | bytes) and isinstance(other, str | bytes):
        return one > other and not one.startswith(other)  # type: ignore[operator,arg-type]
    return bool(one > other)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def wrong_partition(
    columns: TableColumns, own: Mapping[str, int], footer: pq.FileMetaData, entry: Mapping[str, Any], spec_id: int
) -> Iterator[Told]:
    """Partition values of an entry that the footer's bounds contradict."""
    if spec_id not in columns.partitions.specs:
        return
    measured, kinds = _measured(columns, own, footer)
    for part in columns.partitions.fields(spec_id):
        key = f"p{part.field_id}"
        kind = kinds.get(part.source_id)
        if key in entry and kind is not None and part.transform is not None and str(part.transform) != "void":
            yield from _partition(part, kind, measured, entry[key], footer.num_rows)


def _partition(
    part: PartitionPart, kind: PrimitiveType, measured: Mapping[str, Any], said: Any, rows: int
) -> Iterator[Told]:
    number = part.source_id
    nulls = measured["null_value_counts"].get(number)
    if nulls is not None and rows and said is None and nulls < rows:
        yield "partition_values", f"`{part.name}` is null, and {rows - nulls} rows have a value"
        return
    if nulls and said is not None:
        yield "partition_values", f"`{part.name}` is {said}, and {nulls} rows have none"
        return
    ends = [value_of(kind, measured[key].get(number)) for key in ("lower_bounds", "upper_bounds")]
    if None in ends or said is None or part.source is None or part.transform is None:
        return
    real = [_transformed(part, end) for end in ends]
    spreads = part.transform.preserves_order or ends[0] == ends[1]
    comparable = all(_alike(each, said) for each in real)
    if spreads and comparable and any(each != said for each in real):
        yield "partition_values", f"`{part.name}` is {said}, and its rows belong to {real[0]} to {real[1]}"


def _transformed(part: PartitionPart, value: Any) -> Any:
    assert part.transform is not None
    assert part.source is not None
    try:
        with damage_said():
            return part.transform.transform(part.source)(value)
    except Damaged:
        return None


def _alike(one: Any, other: Any) -> bool:
    """Whether two values can be compared: manifests hold some types in another form."""
    return one is not None and (
        type(one) is type(other) or (isinstance(one, int | float) and isinstance(other, int | float))
    )
