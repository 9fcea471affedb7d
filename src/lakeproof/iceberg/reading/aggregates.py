"""`count(*)`, `min` and `max` from metadata, where the answer is certain; `None` says that the rows must be read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pyiceberg.table import Table
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    TimestampType,
    TimestamptzType,
)

from lakeproof.filters import ALWAYS, Expression
from lakeproof.filters.decimals import scaled
from lakeproof.format import Value
from lakeproof.iceberg.committing.values import converter
from lakeproof.iceberg.committing.whole_file_commits import whole_files
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.reading.delete_files import DeletesAt, place_of, read_positions
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.planning import ScanPlan, plan
from lakeproof.iceberg.reading.segments import Picked
from lakeproof.iceberg.tables.tables import find_column

# Bounds of strings and bytes may be cut, so they are neither a minimum nor a maximum.
EXACT = (
    BooleanType,
    IntegerType,
    LongType,
    DateType,
    TimestampType,
    TimestamptzType,
    DecimalType,
    FloatType,
    DoubleType,
)
READ_AT_MOST = 20_000_000  # deleted rows that are read to be counted
_deleted_counts: Recent[int] = Recent(100_000)  # of data files under these delete files, none of which ever changes


class Range(NamedTuple):
    """The smallest and the largest value of a column; both `None` when it has no value but null."""

    smallest: Value
    largest: Value


def count_rows(table: Table, row_filter: Expression = ALWAYS, *, snapshot_id: int | None = None) -> int | None:
    """How many rows match, if the filter takes whole files and no equality deletes are about."""
    found = plan(table, from_filter(row_filter, table.schema()), snapshot_id=snapshot_id)
    if found.files.num_rows == 0:
        return 0
    if row_filter != ALWAYS and whole_files(table, row_filter, snapshot_id=snapshot_id).partial:
        return None
    deleted = _deleted_rows(table, found) if found.delete_files.num_rows else 0
    return None if deleted is None else found.rows_kept - deleted


def column_range(table: Table, column: str, *, snapshot_id: int | None = None) -> Range | None:
    """The smallest and largest value of a column, if every live file knows its own and no row was deleted."""
    field = find_column(table.schema(), column, f"table {'.'.join(table.name())}")
    found = plan(table, snapshot_id=snapshot_id)
    if not isinstance(field.field_type, EXACT) or found.delete_files.num_rows:
        return None
    lows: list[Any] = []
    highs: list[Any] = []
    for picked in found.picked:
        known = _ends(picked, field)
        if known is None:
            return None
        lows += known[0]
        highs += known[1]
    if not lows:
        return Range(None, None)
    convert = _readable(field)
    ends = Range(convert(min(lows)), convert(max(highs)))
    is_time = isinstance(field.field_type, DateType | TimestampType | TimestamptzType)
    return None if is_time and any(isinstance(end, int) for end in ends) else ends  # beyond Python's calendar


def _deleted_rows(table: Table, found: ScanPlan) -> int | None:
    """Rows that position deletes take out of the planned files; `None`: too many to read, or equality deletes."""
    applied = found.files["delete_files"].combine_chunks()
    used = np.unique(applied.flatten().to_numpy(zero_copy_only=False))
    deletes = found.delete_files.take(used)
    if "equality" in deletes["content"].to_pylist() or sum(deletes["record_count"].to_pylist()) > READ_AT_MOST:
        return None
    deleted = 0
    for path, rows, numbers in zip(
        found.files["path"].to_pylist(), found.files["record_count"].to_pylist(), applied.to_pylist(), strict=True
    ):
        if numbers:
            named = [place_of(row) for row in found.delete_files.take(numbers).to_pylist()]
            key = "\n".join([path, *(each.key for each in named)])
            deleted += _deleted_counts.get(key, partial(_count_deleted, table, path, rows, named))
    return deleted


def _count_deleted(table: Table, path: str, rows: int, delete_files: Sequence[DeletesAt]) -> int:
    """The rows of one data file that are gone.

    The counts of the delete files say it only where no row is named twice, in one file or in two, and nothing promises
    that. Marking rows needs no sorting: it takes a fraction of the time in which their union is made.
    """
    gone = np.zeros(rows, np.bool_)
    for each in delete_files:
        if each.data_file in (None, path):
            positions = read_positions(table.io, each).get(path)
            if positions is not None:
                gone[positions[positions < rows]] = True
    return int(np.count_nonzero(gone))


def _ends(picked: Picked, field: NestedField) -> tuple[list[Any], list[Any]] | None:
    """The bounds of the files that hold values; `None`: one of them does not say."""
    segment, rows = picked.segment, picked.rows
    values, nulls = segment.counts("vc", field.field_id), segment.counts("nc", field.field_id)
    empty = segment.record_count[rows] == 0
    if values is not None and nulls is not None:
        known = np.ones(len(rows), bool)
        for each in (values, nulls):
            known &= True if each.valid is None else each.valid[rows]
        empty = empty | (known & (values.values[rows] == nulls.values[rows]))
    wanted = rows[~empty]
    if not len(wanted):
        return [], []
    if isinstance(field.field_type, FloatType | DoubleType):
        nans = segment.counts("nan", field.field_id)
        if nans is None or np.any(nans.values[wanted] != 0):
            return None
    ends = []
    for kind in ("lo", "hi"):
        bounds = segment.bound(kind, field.field_id, field.field_type)
        if bounds is None or (bounds.valid is not None and not bounds.valid[wanted].all()):
            return None
        ends.append(bounds.values[wanted].tolist())
    if isinstance(field.field_type, FloatType | DoubleType) and 0 in (*ends[0], *ends[1]):
        return None  # writers say -0.0 for a least 0.0, and 0.0 for a greatest -0.0
    return ends[0], ends[1]


def _readable(field: NestedField) -> Any:
    if isinstance(field.field_type, DecimalType):
        scale = field.field_type.scale
        return lambda number: scaled(number, scale)
    if isinstance(field.field_type, BooleanType):
        return bool
    return converter(field.field_type)
