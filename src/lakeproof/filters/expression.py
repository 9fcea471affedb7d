"""Predicates over the columns of one table, as values.

Only positive forms are stored: `negated` pushes NOT down to the leaves. A comparison with null is then simply false,
and SQL's third truth value is not needed. Forms with the same fields are dataclasses: a named tuple equals every other
tuple with its values, and "always" must not equal "never".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lakeproof.errors import InvalidInput
from lakeproof.format import Value

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Always:
    """True of every row."""


@dataclass(frozen=True)
class Never:
    """True of no row."""


class Compare(NamedTuple):
    """`column operator value`, false where either side is null. Operators: = != < <= > >=."""

    column: str
    operator: str
    value: Value


class In(NamedTuple):
    """The column's value is one of these (or, negated, is none of these and not null)."""

    column: str
    values: tuple[Value, ...]
    negative: bool = False


class IsNull(NamedTuple):
    """The column is null (negated: it is not)."""

    column: str
    negative: bool = False


class StartsWith(NamedTuple):
    """The string begins with this prefix (negated: it does not, and is not null)."""

    column: str
    prefix: str
    negative: bool = False


class Opaque(NamedTuple):
    """Something that cannot be decided here, such as a function call: it may match any row."""

    text: str


@dataclass(frozen=True)
class And:
    """All parts match."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """Some part matches."""

    parts: tuple[Expression, ...]


Leaf = Compare | In | IsNull | StartsWith
Expression = Always | Never | Compare | In | IsNull | StartsWith | Opaque | And | Or

ALWAYS, NEVER = Always(), Never()
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def negated(expression: Expression) -> Expression:
    """The predicate that is true where this one is false (and nothing is null)."""
    match expression:
        case Always():
            return NEVER
        case Never():
            return ALWAYS
        case Compare(column, operator, value):
            return Compare(column, _NEGATED[operator], value)
        case In() | IsNull() | StartsWith():
            return expression._replace(negative=not expression.negative)
        case And(parts):
            return Or(tuple(negated(part) for part in parts))
        case Or(parts):
            return And(tuple(negated(part) for part in parts))
        case Opaque(text):
            return Opaque(f"NOT ({text})")
    raise AssertionError(expression)


def all_of(parts: Iterable[Expression]) -> Expression:
    """The conjunction, without the parts that say nothing."""
    return _joined(And, parts, without=ALWAYS, decided_by=NEVER)


def any_of(parts: Iterable[Expression]) -> Expression:
    """The disjunction, without the parts that never match."""
    return _joined(Or, parts, without=NEVER, decided_by=ALWAYS)


def _joined(
    kind: type[And] | type[Or], parts: Iterable[Expression], *, without: Expression, decided_by: Expression
) -> Expression:
    flat = (one for part in parts for one in (part.parts if isinstance(part, kind) else (part,)))
    kept = tuple(dict.fromkeys(part for part in flat if part != without))
    if decided_by in kept:
        return decided_by
    return kept[0] if len(kept) == 1 else kind(kept) if kept else without


def may_be_true(expression: Expression, leaf: Callable[[Leaf], bool]) -> bool:
    """Whether the predicate may be true, where `leaf` says so of each comparison; an opaque part always may be."""
    match expression:
        case And(parts):
            return all(may_be_true(part, leaf) for part in parts)
        case Or(parts):
            return any(may_be_true(part, leaf) for part in parts)
        case Always() | Opaque():
            return True
        case Never():
            return False
    return leaf(expression)


def rebuilt(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """The same predicate with every leaf replaced."""
    if isinstance(expression, And):
        return all_of(rebuilt(part, leaf) for part in expression.parts)
    if isinstance(expression, Or):
        return any_of(rebuilt(part, leaf) for part in expression.parts)
    if isinstance(expression, Always | Never | Opaque):
        return expression
    return leaf(expression)


def columns_of(expression: Expression) -> tuple[str, ...]:
    """The columns that the predicate names, in order of appearance."""
    seen: dict[str, None] = {}

    def note(leaf: Leaf) -> Expression:
        seen[leaf.column] = None
        return leaf

    rebuilt(expression, note)
    return tuple(seen)


def bound(expression: Expression, columns: tuple[str, ...], *, case_sensitive: bool = True) -> Expression:
    """The predicate with each column spelled as the table spells it."""
    spelled = {name if case_sensitive else name.lower(): name for name in columns}

    def resolve(leaf: Leaf) -> Expression:
        name = spelled.get(leaf.column if case_sensitive else leaf.column.lower())
        if name is None:
            raise InvalidInput(
                f"Cannot find field {leaf.column!r} in the table",
                hint=f"the columns are {', '.join(columns)}" + ("; names are case sensitive" if case_sensitive else ""),
            )
        return leaf._replace(column=name)

    return rebuilt(expression, resolve)


def worded(expression: Expression) -> str:
    """The predicate as SQL text.

    >>> worded(all_of([Compare("k", ">", 1), IsNull("v", negative=True)]))
    'k > 1 AND v IS NOT NULL'
    """
    match expression:
        case Always():
            return "true"
        case Never():
            return "false"
        case Compare(column, operator, value):
            return f"{column} {operator} {literal(value)}"
        case In(column, values, negative):
            return f"{column} {'NOT ' * negative}IN ({', '.join(map(literal, values))})"
        case IsNull(column, negative):
            return f"{column} IS {'NOT ' * negative}NULL"
        case StartsWith(column, prefix, negative):
            return f"{column} {'NOT ' * negative}LIKE {literal(prefix + '%')}"
        case Opaque(text):
            return text
        case And(parts):
            return " AND ".join(f"({worded(p)})" if isinstance(p, Or) else worded(p) for p in parts)
        case Or(parts):
            return " OR ".join(f"({worded(p)})" if isinstance(p, And) else worded(p) for p in parts)
    raise AssertionError(expression)


def literal(value: Value) -> str:
    """A value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"
