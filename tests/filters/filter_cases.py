"""Random tables, files and predicates, and what SQL says of a predicate on a row: the measure of every filter test."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from lakeproof.filters import (
    ALWAYS,
    NEVER,
    Always,
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Never,
    Opaque,
    Or,
    StartsWith,
    applied,
    negated,
)
from lakeproof.format import Bounds, DataFile, PartitionField, PartitionSpec, Row, TableShape, Value

NAN = float("nan")
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-7, 7),
    "str": st.text("abz", max_size=4),
    "float": st.sampled_from([-2.5, -0.0, 0.0, 1.0, 2.5, float("inf"), float("-inf"), NAN]),
    "date": st.integers(-400, 400).map(lambda day: date(1970, 1, 1) + timedelta(days=day)),
    "datetime": st.integers(-9000, 9000).map(lambda hour: datetime(1970, 1, 1) + timedelta(minutes=60 * hour + 7)),
    "bool": st.booleans(),
}
"""Small domains, so that rows, literals and bounds meet."""

TRANSFORMS = {
    "int": ("identity", "bucket[3]", "truncate[4]", "void"),
    "str": ("identity", "bucket[3]", "truncate[2]", "void"),
    "float": ("identity", "void"),
    "date": ("identity", "bucket[3]", "year", "month", "day", "void"),
    "datetime": ("identity", "bucket[3]", "year", "month", "day", "hour", "void"),
    "bool": ("identity", "void"),
}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Not(NamedTuple):
    """NOT, which `filters` does not store: `stored` pushes it down."""

    part: Any


class Case(NamedTuple):
    """One file of a table, its rows, and a predicate (with `Not` inside)."""

    shape: TableShape
    file: DataFile
    rows: tuple[Row, ...]
    predicate: Any

    @property
    def expression(self) -> Expression:
        """The predicate as `filters` stores it."""
        return stored(self.predicate)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A file whose partition values and bounds are true of its rows, and a predicate over its columns."""
    kinds = draw(TABLES)
    columns = columns_of(kinds)
    spec = draw(specs(kinds))
    rows = draw(row_lists(kinds))
    partition = partition_of(spec, rows[0], columns)
    rows = [row for row in rows if same(partition_of(spec, row, columns), partition)]
    bounds = [bounds_of(name, [row[i] for row in rows], *draw(TOLD)) for i, name in enumerate(columns)]
    known = tuple(each for each in bounds if each is not None)
    file = DataFile("file", partition, 1, record_count=len(rows), bounds=known)
    return Case(TableShape(columns, ((), spec)), file, tuple(rows), draw(predicates(kinds)))


Kinds = tuple[str, ...]
TABLES: st.SearchStrategy[Kinds] = st.sampled_from(
    [(kind,) for kind in KINDS] + list(product(KINDS, repeat=2))  # building a strategy is slow: each is made once
)
BOUNDS = ("exact", "widened", "truncated", "lower only", "upper only", "none", "missing")
TOLD = st.tuples(st.sampled_from(BOUNDS), st.booleans())


def columns_of(kinds: Kinds) -> tuple[str, ...]:
    """Column names that say their type."""
    return tuple(f"{kind}_{i}" for i, kind in enumerate(kinds))


@lru_cache
def row_lists(kinds: Kinds) -> st.SearchStrategy[list[Row]]:
    """Some rows of these types, with nulls."""
    return st.lists(st.tuples(*(st.none() | KINDS[kind] for kind in kinds)), min_size=1, max_size=5)


@lru_cache
def specs(kinds: Kinds) -> st.SearchStrategy[PartitionSpec]:
    """Up to two partition fields, perhaps of one column."""
    fields = [
        PartitionField(name, each)
        for name, kind in zip(columns_of(kinds), kinds, strict=True)
        for each in TRANSFORMS[kind]
    ]
    return st.lists(st.sampled_from(fields), max_size=2).map(tuple)


def partition_of(spec: PartitionSpec, row: Row, columns: tuple[str, ...]) -> tuple[Value, ...]:
    """The partition that a row lies in."""
    return tuple(applied(field.transform, row[columns.index(field.column)]) for field in spec)


def same(left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
    """Whether two partitions are one; NaN is NaN."""
    return all(a == b or (a != a and b != b) for a, b in zip(left, right, strict=True))


def bounds_of(column: str, values: list[Value], how: str, told: bool) -> Bounds | None:
    """Statistics that are true of these values. `told`: the counts are known, else everything is thought possible."""
    if how == "missing":
        return None
    ordered: list[Any] = sorted(value for value in values if value is not None and value == value)
    lower: Any = ordered[0] if ordered else None
    upper: Any = ordered[-1] if ordered else None
    if how == "widened" and ordered:
        lower, upper = widened(lower), widened(upper, up=True)
    if how == "truncated" and isinstance(lower, str):
        lower, upper = lower[:1], truncated_upper(upper, 1)
    return Bounds(
        column,
        lower=None if how in ("upper only", "none") else lower,
        upper=None if how in ("lower only", "none") else upper,
        has_nulls=None in values or not told,
        has_values=any(value is not None for value in values) or not told,
        has_nans=any(value != value for value in values) or not told,
    )


def widened(value: Any, *, up: bool = False) -> Any:
    """A bound further out; none where there is nothing further out."""
    if isinstance(value, bool):
        return up
    if isinstance(value, str):
        return value + "zz" if up else value[:-1]
    if isinstance(value, date):
        return value + timedelta(days=40 if up else -40)
    return value + (3 if up else -3)


def truncated_upper(text: str, width: int) -> str | None:
    """The smallest short string that is not smaller: the last letter is counted up."""
    return text if len(text) <= width else text[: width - 1] + chr(ord(text[width - 1]) + 1)


@lru_cache
def predicates(kinds: Kinds) -> st.SearchStrategy[Any]:
    """Nested predicates with NOT; literals are of the column's type, or null."""
    of_columns = [leaf(name, kind) for name, kind in zip(columns_of(kinds), kinds, strict=True)]
    leaves = st.one_of(st.sampled_from([ALWAYS, NEVER]), *of_columns, *of_columns)

    def nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(parts, min_size=1, max_size=3).map(tuple)
        return several.map(And) | several.map(Or) | parts.map(Not)

    return st.recursive(leaves, nested, max_leaves=5)


def leaf(column: str, kind: str) -> st.SearchStrategy[Any]:
    """Any leaf over one column."""
    value = KINDS[kind] if kind == "bool" else st.none() | KINDS[kind] | KINDS[kind] | KINDS[kind]
    forms: list[st.SearchStrategy[Any]] = [
        st.builds(Compare, st.just(column), st.sampled_from(sorted(_OPERATORS)), value),
        st.builds(In, st.just(column), st.lists(value, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(column), st.booleans()),
    ]
    if kind == "str":
        forms.append(st.builds(StartsWith, st.just(column), st.text("abz", max_size=3), st.booleans()))
    return st.one_of(forms)


def stored(predicate: Any) -> Expression:
    """The predicate without NOT."""
    match predicate:
        case Not(part):
            return negated(stored(part))
        case And(parts):
            return And(tuple(stored(part) for part in parts))
        case Or(parts):
            return Or(tuple(stored(part) for part in parts))
    kept: Expression = predicate
    return kept


def truth(predicate: Any, row: Row, columns: tuple[str, ...]) -> bool | None:
    """What SQL says of the row: true, false, or `None` for unknown."""
    match predicate:
        case Not(part):
            inner = truth(part, row, columns)
            return None if inner is None else not inner
        case And(parts):
            answers = [truth(part, row, columns) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [truth(part, row, columns) for part in parts]
            return True if True in answers else None if None in answers else False
        case Opaque():
            return True
        case Always() | Never():
            return isinstance(predicate, Always)
    return leaf_truth(predicate, row[columns.index(predicate.column)])


def leaf_truth(leaf: Any, value: Any) -> bool | None:
    """What SQL says of a leaf."""
    match leaf:
        case IsNull(_, negative):
            return (value is None) != negative
        case Compare(_, op, wanted):
            return compare(value, op, wanted)
        case In(_, values, negative):
            answers = [compare(value, "=", one) for one in values]
            found = True if True in answers else None if None in answers else False
            return None if found is None else found != negative
        case StartsWith(_, prefix, negative):
            return None if value is None else value.startswith(prefix) != negative
    raise AssertionError(leaf)


def compare(left: Any, op: str, right: Any) -> bool | None:
    """Spark's comparison: unknown with null; NaN is one value, above all others."""
    if left is None or right is None:
        return None
    rank = [(side != side, 0 if side != side else side) for side in (left, right)]
    return _OPERATORS[op](*rank)
