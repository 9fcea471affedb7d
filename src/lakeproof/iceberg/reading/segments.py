"""A segment: decoded entries of a batch of manifests of one partition spec, with what numpy needs of them at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

DELETED = 2
WIDTHS: dict[type[IcebergType], str] = {
    BooleanType: "u1",
    IntegerType: "<i4",
    DateType: "<i4",
    LongType: "<i8",
    TimeType: "<i8",
    TimestampType: "<i8",
    TimestamptzType: "<i8",
    TimestampNanoType: "<i8",
    TimestamptzNanoType: "<i8",
    FloatType: "<f4",
    DoubleType: "<f8",
}


class Span(NamedTuple):
    """The rows of one manifest in a segment."""

    manifest: ManifestFile
    first: int
    rows: int


class Known(NamedTuple):
    """Values of a column, with the mask of rows that have one (`None`: all); numpy, or Arrow for strings and bytes."""

    values: Any
    valid: Mask | None


class Segment:
    """Decoded columns; typed bounds are made on first touch and kept."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.rows = table, table.num_rows
        self.names = frozenset(table.column_names)
        self.live: Mask = self.numpy("status") != DELETED
        self.record_count: Ints = self.numpy("record_count")
        self.seq, self._seq_inherits = self._inheritable("seq")
        self.file_seq, self._file_seq_inherits = self._inheritable("file_seq")
        self.snapshot_id, self._snapshot_inherits = self._inheritable("snapshot_id")
        self._inherited: set[int] = set()
        self._kept: dict[Any, Any] = {}

    def _inheritable(self, name: str) -> tuple[Ints, Mask]:
        column = self.column(name) if name in self.names else pa.nulls(self.rows, pa.int64())
        values = pc.fill_null(column, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.array(values), column.is_null().to_numpy(zero_copy_only=False)

    def inherit(self, spans: Sequence[Span]) -> None:
        """Entries without a sequence number or snapshot id take their manifest's, which the manifest list knows."""
        for span in spans:
            if span.first in self._inherited:
                continue
            rows = slice(span.first, span.first + span.rows)
            for values, inherits, number in (
                (self.seq, self._seq_inherits, span.manifest.sequence_number),
                (self.file_seq, self._file_seq_inherits, span.manifest.sequence_number),
                (self.snapshot_id, self._snapshot_inherits, span.manifest.added_snapshot_id),
            ):
                values[rows][inherits[rows]] = number or 0
            self._inherited.add(span.first)

    def column(self, name: str) -> pa.Array:
        """The column as one Arrow array."""
        column = self.table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def numpy(self, name: str) -> Any:
        """The column as a numpy array."""
        return self.column(name).to_numpy(zero_copy_only=False)

    def counts(self, kind: str, field_id: int) -> Known | None:
        """Value (`vc`), null (`nc`) or NaN (`nan`) counts; `None`: no file has one."""
        key = f"{kind}{field_id}"
        if key not in self._kept:
            self._kept[key] = self._counts(key)
        known: Known | None = self._kept[key]
        return known

    def _counts(self, key: str) -> Known | None:
        if key not in self.names:
            return None
        column = self.column(key)
        return Known(pc.fill_null(column, -1).to_numpy(zero_copy_only=False), valid_rows(column))

    def bound(self, kind: str, field_id: int, kind_of: Any) -> Known | None:
        """Lower (`lo`) or upper (`hi`) bounds; `None`: no file has one."""
        key = (kind, field_id, str(kind_of))
        if key not in self._kept:
            name = f"{kind}{field_id}"
            self._kept[key] = typed_bounds(self.column(name), kind_of) if name in self.names else None
        known: Known | None = self._kept[key]
        return known

    def partition(self, field_id: int) -> pa.Array | None:
        """Partition values of one field; `None`: the spec of this segment does not have it."""
        name = f"p{field_id}"
        return self.column(name) if name in self.names else None

    def keep(self, key: Any, value: Any) -> Any:
        """Remember a derived value under its key."""
        self._kept[key] = value
        return value

    def kept(self, key: Any) -> Any:
        """A derived value, or `None`."""
        return self._kept.get(key)


def valid_rows(column: pa.Array) -> Mask | None:
    """The rows that are not null; `None`: all of them."""
    return column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None


def typed_bounds(column: pa.Array, kind: PrimitiveType) -> Known:
    """Bounds as numbers where their type has an order that numpy shares, else as bytes, whose order is the type's."""
    valid = valid_rows(column)
    if (code := WIDTHS.get(type(kind))) is not None:
        return Known(_numbers(column, kind, np.dtype(code)), valid)
    if isinstance(kind, DecimalType):
        unscaled = [0 if raw is None else int.from_bytes(raw, "big", signed=True) for raw in column.to_pylist()]
        return Known(np.array(unscaled, dtype=np.int64 if kind.precision <= 18 else object), valid)
    return Known(column.cast(pa.binary()).cast(pa.large_binary()), valid)


def _numbers(column: pa.Array, kind: PrimitiveType, dtype: np.dtype[Any]) -> Any:
    if pa.types.is_fixed_size_binary(column.type):
        width = column.type.byte_width
        raw = np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width)
        if width == dtype.itemsize:
            return raw.view(dtype)
        if width == 4 and dtype.itemsize == 8:  # written before the column was widened
            return raw.view("<i4" if dtype.kind == "i" else "<f4").astype(dtype)
    return np.array([0 if raw is None else from_bytes(kind, raw) for raw in column.to_pylist()], dtype)


class Picked(NamedTuple):
    """Rows of a segment that a plan keeps, the partition spec of that segment, and their first row ids where asked."""

    segment: Segment
    rows: Ints
    spec_id: int
    first_row_ids: Ints | None = None


def rows_of_spans(segment: Segment, spans: Sequence[Span]) -> Mask:
    """The rows of a segment that belong to these manifests."""
    if sum(span.rows for span in spans) == segment.rows:
        return np.ones(segment.rows, bool)
    mask = np.zeros(segment.rows, bool)
    for span in spans:
        mask[span.first : span.first + span.rows] = True
    return mask


def partition_tuples(segment: Segment, rows: Ints, spec: PartitionSpec) -> list[tuple[Any, ...]]:
    """Partition values as plain values, one tuple per row; a field that the file lacks is null."""
    if not spec.fields:
        return [()] * len(rows)
    taken = pa.array(rows)
    columns = []
    for field in spec.fields:
        column = segment.partition(field.field_id)
        columns.append([None] * len(rows) if column is None else column.take(taken).to_pylist())
    return list(zip(*columns, strict=True))
