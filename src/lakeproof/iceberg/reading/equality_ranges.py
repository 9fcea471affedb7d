"""Which data files may hold what an equality delete names, by the ranges and counts of its columns.

Apache Iceberg asks the same before it applies an equality delete: a file whose ranges lie apart from the delete's, or
which lacks the nulls that it deletes, need not be joined with it. Whatever is not known counts as "may hold".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from lakeproof.iceberg.reading.bounds_pruning import compare_bounds, where_known
from lakeproof.iceberg.reading.segments import Mask, Picked, Segment


class Named(NamedTuple):
    """What an equality delete says of one column: its ends (`None`: not known), and what else may be among them."""

    lower: Any
    upper: Any
    nulls: bool
    values: bool
    nans: bool


def may_hold(data: Sequence[Picked], delete: Picked, row: int, ids: Sequence[int], schema: Schema) -> Mask:
    """The planned data files, in order, that may hold a row which this delete file (a row of its segment) names."""
    fields = [schema.find_field(number) for number in ids if schema.find_column_name(number)]
    known = [(field, _named(delete.segment, row, field)) for field in fields if field.field_type.is_primitive]
    parts = []
    for segment, rows, *_ in data:
        mask = np.ones(segment.rows, bool)
        for field, named in known:
            mask &= ~_cannot_hold(segment, field, named)
        parts.append(mask[rows])
    return np.concatenate([*parts, np.zeros(0, bool)])


def _named(segment: Segment, row: int, field: NestedField) -> Named:
    ends = []
    for kind in ("lo", "hi"):
        known = segment.bound(kind, field.field_id, field.field_type)
        there = known is not None and (known.valid is None or bool(known.valid[row]))
        ends.append(_plain(known.values[row]) if known is not None and there else None)
    nulls, counts, nans = (_count(segment, kind, field.field_id, row) for kind in ("nc", "vc", "nan"))
    return Named(
        ends[0], ends[1], nulls != 0, counts is None or nulls is None or counts == 0 or counts != nulls, nans != 0
    )


def _plain(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value


def _count(segment: Segment, kind: str, field_id: int, row: int) -> int | None:
    known = segment.counts(kind, field_id)
    return None if known is None or (known.valid is not None and not known.valid[row]) else int(known.values[row])


def _cannot_hold(segment: Segment, field: NestedField, named: Named) -> Mask:
    """The files that certainly hold none of the values: nulls meet nulls alone, NaN meets NaN, ranges must overlap."""
    with_nulls, only_nulls = _nulls(segment, field.field_id)
    apart = np.zeros(segment.rows, bool)
    for kind, sign, end in (("hi", "<", named.lower), ("lo", ">", named.upper)):
        known = segment.bound(kind, field.field_id, field.field_type)
        if known is not None and named.lower is not None and named.upper is not None:
            apart |= where_known(compare_bounds(known.values, sign, end), known)
    if named.nans and str(field.field_type) in ("float", "double"):
        nans = segment.counts("nan", field.field_id)
        apart &= np.zeros(segment.rows, bool) if nans is None else where_known(nans.values == 0, nans)
    no_values = only_nulls if not named.nulls else np.zeros(segment.rows, bool)
    no_nulls = ~with_nulls if not named.values else np.zeros(segment.rows, bool)
    none_shared = apart | no_values | no_nulls
    return none_shared & ~with_nulls if named.nulls else none_shared


def _nulls(segment: Segment, field_id: int) -> tuple[Mask, Mask]:
    """The files that may hold nulls, and those that certainly hold nothing else."""
    nulls, values = segment.counts("nc", field_id), segment.counts("vc", field_id)
    if nulls is None:
        return np.ones(segment.rows, bool), np.zeros(segment.rows, bool)
    with_nulls = ~where_known(nulls.values == 0, nulls)
    if values is None:
        return with_nulls, np.zeros(segment.rows, bool)
    return with_nulls, where_known((nulls.values == values.values) & (values.values > 0), nulls, values)
