"""`src=dest:transform` says that one column is computed from another; parsed, checked, carried into predicates.

If `dest = f(src)` in every row, a predicate on `src` implies one on `dest`: equality and membership for any f, ranges
for those f that keep the order. What is inferred is weaker than what it comes from, never stronger: it may only spare
files that hold no matching row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pyiceberg.expressions import BoundPredicate
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform, TruncateTransform, parse_transform
from pyiceberg.types import IcebergType, IntegerType, PrimitiveType, StringType

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.predicates import (
    TRUE,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThanOrEqual,
    NotNull,
    Or,
    StartsWith,
)

DEPENDENCIES_PROPERTY = "lakeproof.column-dependencies"
HINT = "write source=destination:transform, with identity, year, month, day, hour, truncate[n], bucket[n] or extract[n]"


class Dependency(NamedTuple):
    """`destination` is `transform` of `source`, in every row."""

    source: str
    destination: str
    transform: str

    def __str__(self) -> str:
        return f"{self.source}={self.destination}:{self.transform}"


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """The dependencies of a comma-separated list; a malformed one is an `InvalidInput`."""
    found, problems = _parsed(text)
    if problems:
        raise InvalidInput("; ".join(problems), place="columnDependencies", hint=HINT)
    return tuple(found)


def check_dependencies(text: str, schema: Schema, *, place: str) -> tuple[Dependency, ...]:
    """The dependencies, if the schema allows them; else every problem is named in one `InvalidInput`."""
    found, problems = _parsed(text)
    for dependency in found:
        problems += _problems(dependency, schema)
    destinations = [dependency.destination.lower() for dependency in found]
    for dependency in found:
        if dependency.source.lower() == dependency.destination.lower():
            problems.append(f"`{dependency}`: a column cannot depend on itself")
    if len({(d.source.lower(), d.destination.lower()) for d in found}) < len(destinations):
        problems.append("two dependencies have the same source and destination")
    if problems:
        raise InvalidInput("; ".join(problems), place=f"{place}, columnDependencies", hint=HINT)
    return tuple(found)


def table_dependencies(table: Table) -> tuple[Dependency, ...]:
    """The dependencies that the table declares."""
    text = table.properties.get(DEPENDENCIES_PROPERTY, "")
    return parse_dependencies(text) if text else ()


def infer(row_filter: BooleanExpression, dependencies: Sequence[Dependency], schema: Schema) -> BooleanExpression:
    """What the filter implies for the destination columns; `AlwaysTrue` if nothing. Chains of dependencies count."""
    if not dependencies or isinstance(row_filter, AlwaysTrue):
        return TRUE
    known = row_filter
    inferred: BooleanExpression = TRUE
    for _ in dependencies:  # each round may use what the one before found
        step = _implied(bind(schema, rewrite_not(known), case_sensitive=False), dependencies, schema)
        if step in (TRUE, inferred):
            break
        known, inferred = And(row_filter, step), step
    return inferred


def transform_value(dependency: Dependency, kind: IcebergType, value: Any) -> Any:
    """The destination's value for a source value."""
    return dependency_transform(dependency).transform(kind)(value)


def dependency_transform(dependency: Dependency) -> Transform[Any, Any]:
    """The transform; `extract[n]` takes the first n characters."""
    return parse_transform(dependency.transform.replace("extract[", "truncate["))


def _parsed(text: str) -> tuple[list[Dependency], list[str]]:
    found, problems = [], []
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = re.fullmatch(r"([^=:]+)=([^=:]+):(\w+)(?:\s*\[\s*(\d+)\s*\])?", part)
        if match is None:
            problems.append(f"`{part}` is not of the form source=destination:transform")
            continue
        name, width = match[3].lower(), match[4]
        if name not in _PLAIN + _WIDE or (name in _WIDE) != (width is not None) or width == "0":
            problems.append(f"`{part}`: `{part.rpartition(':')[2]}` is not a transform")
            continue
        found.append(Dependency(match[1].strip(), match[2].strip(), f"{name}[{width}]" if width else name))
    return found, problems


_PLAIN = ("identity", "year", "month", "day", "hour")
_WIDE = ("truncate", "bucket", "extract")


def _problems(dependency: Dependency, schema: Schema) -> list[str]:
    kinds: list[PrimitiveType] = []
    problems = []
    for column in (dependency.source, dependency.destination):
        try:
            kind = schema.find_field(column, case_sensitive=False).field_type
        except ValueError:
            problems.append(f"`{dependency}`: there is no column `{column}`")
            continue
        if not isinstance(kind, PrimitiveType):
            problems.append(f"`{dependency}`: `{column}` is {kind}, not a single value")
            continue
        kinds.append(kind)
    if problems or len(kinds) < 2:
        return problems
    source, destination = kinds
    transform = dependency_transform(dependency)
    if dependency.transform.startswith("extract") and not isinstance(source, StringType):
        return [f"`{dependency}`: extract needs a string, and `{dependency.source}` is {source}"]
    if not transform.can_transform(source):
        return [f"`{dependency}`: {dependency.transform} does not fit {source}"]
    result = _result_type(transform, source)
    wider = {"int": ("int", "long"), "day": ("int", "long", "date")}
    allowed = wider.get("day" if dependency.transform == "day" else str(result), (str(result),))
    fits = str(destination) in allowed
    return [] if fits else [f"`{dependency}`: it gives {result}, and `{dependency.destination}` is {destination}"]


def _result_type(transform: Transform[Any, Any], source: PrimitiveType) -> IcebergType:
    """Years, months, days and hours are numbers since 1970, whatever type a partition of them is displayed in."""
    if isinstance(transform, IdentityTransform | TruncateTransform):
        return source
    return IntegerType()


def _implied(bound: BooleanExpression, dependencies: Sequence[Dependency], schema: Schema) -> BooleanExpression:
    """What the bound, NOT-free expression implies for the destinations."""
    if isinstance(bound, And):
        return _both(_implied(bound.left, dependencies, schema), _implied(bound.right, dependencies, schema))
    if isinstance(bound, Or):
        return _either(_implied(bound.left, dependencies, schema), _implied(bound.right, dependencies, schema))
    if isinstance(bound, BoundPredicate):
        field = bound.term.ref().field
        name = schema.find_column_name(field.field_id) or ""
        implied: BooleanExpression = TRUE
        for dependency in dependencies:
            if dependency.source.lower() == name.lower():
                implied = _both(implied, _carried(bound, dependency, field.field_type))
        return implied
    return TRUE


def _carried(bound: Any, dependency: Dependency, kind: IcebergType) -> Any:
    """One leaf on the source, as a leaf on the destination."""
    name, there = type(bound).__name__, dependency.destination
    transform = dependency_transform(dependency)
    apply = transform.transform(kind)
    if name == "BoundIsNull":
        return IsNull(there)
    if name in ("BoundNotNull", "BoundNotNaN", "BoundNotEqualTo", "BoundNotIn", "BoundNotStartsWith", "BoundIsNaN"):
        return NotNull(there) if name != "BoundIsNaN" else TRUE
    if name == "BoundIn":
        return _in(there, [apply(literal.value) for literal in bound.literals])
    value = bound.literal.value
    if name == "BoundEqualTo":
        return _in(there, [apply(value)])
    if name == "BoundStartsWith":
        return _prefix(there, transform, value)
    if isinstance(transform, BucketTransform):
        return NotNull(there)  # buckets have no order
    if name in ("BoundLessThan", "BoundLessThanOrEqual"):
        return LessThanOrEqual(there, apply(value))
    if name in ("BoundGreaterThan", "BoundGreaterThanOrEqual"):
        return GreaterThanOrEqual(there, apply(value))
    return TRUE


def _in(column: str, values: Iterable[Any]) -> Any:
    distinct = sorted({value for value in values if value is not None}, key=repr)
    if not distinct:
        return TRUE
    return EqualTo(column, distinct[0]) if len(distinct) == 1 else In(column, distinct)


def _prefix(column: str, transform: Transform[Any, Any], prefix: str) -> Any:
    if isinstance(transform, IdentityTransform):
        return StartsWith(column, prefix)
    if isinstance(transform, TruncateTransform):
        width = transform.width
        return EqualTo(column, prefix[:width]) if len(prefix) >= width else StartsWith(column, prefix)
    return NotNull(column)


def _both(left: BooleanExpression, right: BooleanExpression) -> BooleanExpression:
    return right if left == TRUE else left if right == TRUE else And(left, right)


def _either(left: BooleanExpression, right: BooleanExpression) -> BooleanExpression:
    return TRUE if TRUE in (left, right) else Or(left, right)
