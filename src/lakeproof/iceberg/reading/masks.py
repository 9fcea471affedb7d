"""What both evaluators of a predicate share: a mask of files per leaf, joined by AND and OR."""

from __future__ import annotations

import numpy as np
from pyiceberg.expressions import BoundTerm
from pyiceberg.expressions.visitors import BoundBooleanExpressionVisitor

from lakeproof.iceberg.reading.segments import Mask, Segment


class Masks(BoundBooleanExpressionVisitor[Mask]):
    def __init__(self, segment: Segment) -> None:
        self.segment = segment

    def all(self, answer: bool) -> Mask:
        """The same answer for every file."""
        return np.full(self.segment.rows, answer)

    def visit_true(self) -> Mask:
        return self.all(True)

    def visit_false(self) -> Mask:
        return self.all(False)

    def visit_not(self, child_result: Mask) -> Mask:
        raise ValueError("NOT is pushed to the leaves before files are pruned")

    def visit_and(self, left_result: Mask, right_result: Mask) -> Mask:
        return left_result & right_result

    def visit_or(self, left_result: Mask, right_result: Mask) -> Mask:
        return left_result | right_result


def field_id(term: BoundTerm) -> int:
    """The column that a leaf asks about."""
    return int(term.ref().field.field_id)
