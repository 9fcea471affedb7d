"""Which files satisfy a predicate on their partition values: exact, for a file has one value of each field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression, BoundTerm
from pyiceberg.expressions.literals import Literal as LiteralOf
from pyiceberg.expressions.visitors import visit
from pyiceberg.types import DecimalType, NestedField

from lakeproof.filters.decimals import scaled
from lakeproof.filters.matching import compared
from lakeproof.iceberg.reading.masks import Masks, field_id
from lakeproof.iceberg.reading.segments import Mask, Segment


def in_partition(segment: Segment, bound: BooleanExpression) -> Mask:
    """The files whose partition values satisfy a predicate on them, exactly."""
    mask: Mask = visit(bound, _Partition(segment))
    return mask


class _Partition(Masks):
    """One mask per leaf: exact, because a partition value is the value of every row of its file."""

    def visit_is_null(self, term: BoundTerm) -> Mask:
        return ~self.visit_not_null(term)

    def visit_not_null(self, term: BoundTerm) -> Mask:
        column = self.segment.partition(field_id(term))
        return self.all(False) if column is None else column.is_valid().to_numpy(zero_copy_only=False)

    def visit_is_nan(self, term: BoundTerm) -> Mask:
        return self._each(term, lambda value: bool(value != value))

    def visit_not_nan(self, term: BoundTerm) -> Mask:
        return ~self.visit_is_nan(term)

    def visit_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: compared(value, "=", literal.value))

    def visit_not_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return ~self.visit_equal(term, literal)

    def visit_less_than(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: compared(value, "<", literal.value))

    def visit_less_than_or_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: compared(value, "<=", literal.value))

    def visit_greater_than(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: compared(value, ">", literal.value))

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: compared(value, ">=", literal.value))

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        return self._each(term, lambda value: value in literals)

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> Mask:
        return ~self.visit_in(term, literals)

    def visit_starts_with(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return self._each(term, lambda value: bool(value.startswith(literal.value)))

    def visit_not_starts_with(self, term: BoundTerm, literal: LiteralOf[Any]) -> Mask:
        return ~self.visit_starts_with(term, literal)

    def _each(self, term: BoundTerm, matches: Callable[[Any], bool]) -> Mask:
        """Asked once per distinct value; a null is never matched."""
        codes, values = self._distinct(term.ref().field)
        if codes is None:
            return self.all(False)
        answers = np.array([*(matches(value) for value in values), False])
        mask: Mask = answers[codes]
        return mask

    def _distinct(self, field: NestedField) -> tuple[Any, list[Any]]:
        key = ("distinct", field.field_id, str(field.field_type))
        kept: tuple[Any, list[Any]] | None = self.segment.kept(key)
        if kept is None:
            column = self.segment.partition(field.field_id)
            kept = (None, [])
            if column is not None:
                encoded = pc.dictionary_encode(column)
                codes = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy(zero_copy_only=False)
                kept = (codes, [_as_iceberg(value, field) for value in encoded.dictionary.to_pylist()])
            self.segment.keep(key, kept)
        return kept


def _as_iceberg(value: Any, field: NestedField) -> Any:
    """A decoded partition value in the form that PyIceberg's literals have."""
    if isinstance(field.field_type, DecimalType) and isinstance(value, bytes):
        return scaled(int.from_bytes(value, "big", signed=True), field.field_type.scale)
    return value
