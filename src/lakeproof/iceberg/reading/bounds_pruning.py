"""Which files a predicate may match by their column bounds and counts, as one mask per segment.

Bounds answer with certainty only "no". Predicates come bound and with NOT pushed to the leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, BoundTerm
from pyiceberg.expressions.literals import Literal as LiteralOf
from pyiceberg.expressions.visitors import visit
from pyiceberg.types import DecimalType, NestedField, StringType

from lakeproof.filters.decimals import divided
from lakeproof.iceberg.reading.masks import Masks, field_id
from lakeproof.iceberg.reading.segments import Known, Mask, Segment

IN_LIMIT = 200
NUMPY = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal}
ARROW = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal, "=": pc.equal}


def may_match(segment: Segment, bound: BooleanExpression, *, as_pyiceberg: bool = False) -> Mask:
    """The files whose bounds and counts do not rule out a matching row.

    `as_pyiceberg`: exactly its answers. They differ where Spark puts NaN above every number (its rows match `x > 5`
    whatever the upper bound says), and where equal bounds or null counts say more than PyIceberg asks of them.
    """
    mask: Mask = visit(bound, _Bounds(segment, as_pyiceberg)) & (segment.record_count != 0)
    return mask


class _Bounds(Masks):
    """One mask per leaf: the files that its bounds and counts leave."""

    def __init__(self, segment: Segment, as_pyiceberg: bool) -> None:
        super().__init__(segment)
        self.as_pyiceberg = as_pyiceberg

    # ---- nulls and NaN

    def visit_is_null(self, term: BoundTerm) -> Mask:
        nulls = self.segment.counts("nc", field_id(term))
        return self.all(True) if nulls is None else np.asarray(nulls.values != 0)

    def visit_not_null(self, term: BoundTerm) -> Mask:
        return ~self._only("nc", field_id(term))

    def visit_is_nan(self, term: BoundTerm) -> Mask:
        nans = self.segment.counts("nan", field_id(term))
        some = self.all(True) if nans is None else nans.values != 0
        return np.asarray(some & ~self._only("nc", field_id(term)))

    def visit_not_nan(self, term: BoundTerm) -> Mask:
        return ~self._only("nan", field_id(term))

    def _only(self, kind: str, field_id: int) -> Mask:
        """The files in which every value is null (or NaN)."""
        key = ("only", kind, field_id)
        kept = self.segment.kept(key)
        if kept is None:
            counts, values = self.segment.counts(kind, field_id), self.segment.counts("vc", field_id)
            kept = self.all(False)
            if counts is not None and values is not None:
                kept = where_known((counts.values == values.values) & (values.values > 0), counts, values)
            self.segment.keep(key, kept)
        mask: Mask = kept
        return mask

    def _has_numbers(self, field_id: int) -> Mask:
        return ~(self._only("nc", field_id) | self._only("nan", field_id))

    # ---- order

    def visit_less_than(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._has_numbers(field_id(term)) & ~self._beyond("lo", ">=", term, literal.value)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._has_numbers(field_id(term)) & ~self._beyond("lo", ">", term, literal.value)

    def visit_greater_than(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._above(term, "<=", literal.value)

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._above(term, "<", literal.value)

    def _above(self, term: BoundTerm, operator: str, value: Any) -> Mask:
        beyond = self._beyond("hi", operator, term, value)
        if self.as_pyiceberg:
            return self._has_numbers(field_id(term)) & ~beyond
        return ~self._only("nc", field_id(term)) & (~beyond | self._may_hold_nan(term))

    def _may_hold_nan(self, term: BoundTerm) -> Mask:
        if str(term.ref().field.field_type) not in ("float", "double"):
            return self.all(False)
        nans = self.segment.counts("nan", field_id(term))
        return self.all(True) if nans is None else np.asarray(nans.values != 0)

    def _beyond(self, kind: str, operator: str, term: BoundTerm, value: Any) -> Mask:
        """The files whose bound lies beyond the value; a NaN bound proves nothing."""
        field = term.ref().field
        known = self.segment.bound(kind, field.field_id, field.field_type)
        if known is None:
            return self.all(False)
        mask = compare_bounds(known.values, operator, _comparable(value, field))
        if isinstance(known.values, np.ndarray) and known.values.dtype.kind == "f":
            mask = mask & ~np.isnan(known.values)
        return where_known(mask, known)

    # ---- equality

    def visit_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._has_numbers(field_id(term)) & self._around(term, literal.value)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        mask = self._has_numbers(field_id(term))
        if len(literals) > IN_LIMIT:
            return mask
        field = term.ref().field
        low, high = (self.segment.bound(kind, field.field_id, field.field_type) for kind in ("lo", "hi"))
        if _are_whole_numbers(low) and _are_whole_numbers(high):
            assert low is not None
            assert high is not None
            wanted = np.array(sorted(_comparable(value, field) for value in literals))
            first = np.searchsorted(wanted, low.values)  # the first value not below the file must not be above it
            inside: Mask = (first < len(wanted)) & (wanted[np.minimum(first, len(wanted) - 1)] <= high.values)
            return mask & inside
        around = self.all(False)
        for value in literals:
            around |= self._around(term, value)
        return mask & around

    def _around(self, term: BoundTerm, value: Any) -> Mask:
        return ~(self._beyond("lo", ">", term, value) | (self._beyond("hi", "<", term, value) & ~self._nan_low(term)))

    def _nan_low(self, term: BoundTerm) -> Mask:
        field = term.ref().field
        known = self.segment.bound("lo", field.field_id, field.field_type)
        if known is None or not isinstance(known.values, np.ndarray) or known.values.dtype.kind != "f":
            return self.all(False)
        return where_known(np.isnan(known.values), known)

    def visit_not_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self.all(True) if self.as_pyiceberg else ~self._holds_only(term, literal.value)

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        mask = self.all(True)
        if not self.as_pyiceberg and len(literals) <= IN_LIMIT:
            for value in literals:
                mask &= ~self._holds_only(term, value)
        return mask

    def _holds_only(self, term: BoundTerm, value: Any) -> Mask:
        """Both bounds are the value: no other can be between them (nulls and NaN do not count as unequal here)."""
        if not self._may_hold_nan(term).any():
            field = term.ref().field
            ends = [self.segment.bound(kind, field.field_id, field.field_type) for kind in ("lo", "hi")]
            if all(end is not None for end in ends):
                wanted = _comparable(value, field)
                same = [where_known(compare_bounds(end.values, "=", wanted), end) for end in ends if end is not None]
                return same[0] & same[1]
        return self.all(False)

    # ---- prefixes

    def visit_starts_with(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        field = term.ref().field
        mask, prefix = ~self._only("nc", field.field_id), _comparable(literal.value, field)
        for kind, operator in (("lo", ">"), ("hi", "<")):
            if (known := self._heads(kind, field, len(literal.value))) is not None:
                mask &= ~where_known(compare_bounds(known.values, operator, prefix), known)
        return mask

    def visit_not_starts_with(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        field = term.ref().field
        low, high = (self._heads(kind, field, len(literal.value)) for kind in ("lo", "hi"))
        if low is None or high is None:
            return self.all(True)
        prefix = _comparable(literal.value, field)
        every = where_known(
            compare_bounds(low.values, "=", prefix) & compare_bounds(high.values, "=", prefix), low, high
        )
        return ~every | self._nulls_count_as_other(field.field_id)

    def _nulls_count_as_other(self, field_id: int) -> Mask:
        nulls = self.segment.counts("nc", field_id)
        if not self.as_pyiceberg:
            return self.all(False)  # null is not "does not start with"
        if nulls is None:
            return self.all(False)
        return self.all(True) if nulls.valid is None else nulls.valid

    def _heads(self, kind: str, field: NestedField, length: int) -> Known | None:
        """Bounds cut to the length of a prefix, in characters for strings."""
        known = self.segment.bound(kind, field.field_id, field.field_type)
        if known is None:
            return None
        if isinstance(field.field_type, StringType):
            cut = pc.utf8_slice_codeunits(known.values.cast(pa.large_string()), 0, length)
            return Known(cut.cast(pa.large_binary()), known.valid)
        return Known(pc.binary_slice(known.values, 0, length), known.valid)


def _comparable(value: Any, field: NestedField) -> Any:
    """A literal in the form of a typed bound."""
    if isinstance(field.field_type, DecimalType):
        return divided(value, field.field_type.scale)[0]
    if isinstance(value, str):
        return value.encode()
    return value.bytes if hasattr(value, "bytes") else value


def compare_bounds(values: Any, operator: str, value: Any) -> Mask:
    """The files whose typed bound stands in this order to the value; never one without a bound of bytes."""
    if isinstance(values, np.ndarray):
        return np.asarray(NUMPY[operator](values, value), dtype=bool)
    compared = pc.fill_null(ARROW[operator](values, pa.scalar(value, values.type)), False)
    mask: Mask = compared.to_numpy(zero_copy_only=False)
    return mask


def where_known(mask: Mask, *known: Known) -> Mask:
    """The mask, false where one of these is not known."""
    for each in known:
        if each.valid is not None:
            mask = mask & each.valid
    return mask


def _are_whole_numbers(known: Known | None) -> bool:
    return (
        known is not None
        and known.valid is None
        and isinstance(known.values, np.ndarray)
        and known.values.dtype.kind in "iu"
    )
