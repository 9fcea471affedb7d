"""`src=dest:transform` says that one column is computed from another; parsed, checked, carried into predicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakeproof.iceberg.predicates import TRUE

DEPENDENCIES_PROPERTY = "lakeproof.column-dependencies"


class Dependency(NamedTuple):
    """`destination` is `transform` of `source`, in every row."""

    source: str
    destination: str
    transform: str


def check_dependencies(text: str, schema: Schema, *, place: str) -> None:
    """Every problem of the text is named in one `InvalidInput`."""
    raise NotImplementedError


def table_dependencies(table: Table) -> tuple[Dependency, ...]:
    """The dependencies that the table declares."""
    return ()


def infer(row_filter: BooleanExpression, dependencies: Sequence[Dependency], schema: Schema) -> BooleanExpression:
    """What the filter implies for the destination columns."""
    return TRUE
