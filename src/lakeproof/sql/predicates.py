"""SQL predicates as `filters` expressions; what cannot be expressed becomes opaque, and so matches cautiously."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime

import sqlglot
from sqlglot import exp

from lakeproof.errors import InvalidInput
from lakeproof.filters import (
    ALWAYS,
    NEVER,
    Compare,
    Expression,
    In,
    IsNull,
    Opaque,
    StartsWith,
    all_of,
    any_of,
    negated,
)
from lakeproof.format import Value
from lakeproof.sql.resolving import COMPARISONS, FLIPPED

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it takes for a command, we refuse in a sentence of our own
LONGEST = 240
_OPERATORS = {kind: sign for kind, sign in COMPARISONS.items() if kind is not exp.NullSafeEQ}


def predicate_from_text(text: str, *, place: str = "") -> Expression:
    """A predicate such as `data = 'u' and id >= 5`."""
    return predicate(parsed_expression(text, place=place))


def parsed_expression(text: str, *, place: str = "") -> exp.Expr:
    """SQL text as a sqlglot expression; a mistake is shown with the place marked."""
    try:
        with understood(place):
            return sqlglot.parse_one(text, read="spark")
    except sqlglot.errors.ParseError as error:
        raise InvalidInput(f"The SQL does not parse: {describe_parse_error(error)}", place=place) from None
    except sqlglot.errors.TokenError as error:  # a quote that is not closed
        raise InvalidInput(f"The SQL does not parse: {one_line(str(error.__cause__ or error))}", place=place) from None


@contextmanager
def understood(place: str) -> Iterator[None]:
    """What a parser, or whoever walks its trees, stumbles over inside is text that nobody has thought of.

    A tree that text gives may have any shape; each shape that means something is asked for, and all others end here.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else "a part of it stands where nothing of its kind is expected"
        hint = "compare it with Spark's own syntax"
        raise InvalidInput(f"The SQL cannot be read: {why}", place=place, hint=hint) from error


def one_line(text: str) -> str:
    """A text in one line that a sentence can hold."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def describe_parse_error(error: sqlglot.errors.ParseError) -> str:
    """What the parser says, with the offending text marked."""
    if not error.errors:
        return one_line(str(error))
    first = error.errors[0]
    near = f"{first.get('start_context') or ''}>{first.get('highlight') or ''}<{first.get('end_context') or ''}"
    return one_line(f"{one_line(first.get('description', 'unexpected text')).rstrip('.')}, near {near.strip()[-80:]}")


def predicate(node: exp.Expr) -> Expression:
    """The predicate that a sqlglot condition stands for."""
    if isinstance(node, exp.Paren | exp.Where):
        return predicate(node.this)
    if isinstance(node, exp.And):
        return all_of([predicate(node.left), predicate(node.right)])
    if isinstance(node, exp.Or):
        return any_of([predicate(node.left), predicate(node.right)])
    if isinstance(node, exp.Not):
        return negated(predicate(node.this))
    if isinstance(node, exp.Boolean):
        return ALWAYS if node.this else NEVER
    return _leaf(node)


def _leaf(node: exp.Expr) -> Expression:
    opaque = Opaque(node.sql(dialect="spark"))
    if type(node) in _OPERATORS:
        return _comparison(node, _OPERATORS[type(node)]) or opaque
    if not isinstance(node.this, exp.Column):
        return opaque
    name = node.this.name
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return IsNull(name)
    if isinstance(node, exp.In) and not node.args.get("query"):
        values = [literal_value(one) for one in node.expressions]
        return opaque if any(value is NOT_LITERAL for value in values) else In(name, tuple(values))
    if isinstance(node, exp.Between):
        low, high = literal_value(node.args["low"]), literal_value(node.args["high"])
        if low is not NOT_LITERAL and high is not NOT_LITERAL:
            return all_of([Compare(name, ">=", low), Compare(name, "<=", high)])
    if isinstance(node, exp.Like):
        pattern = literal_value(node.expression)
        if isinstance(pattern, str) and pattern.endswith("%") and not set(pattern[:-1]) & set("%_\\"):
            return StartsWith(name, pattern[:-1])
    if isinstance(node, exp.StartsWith):
        prefix = literal_value(node.expression)
        return StartsWith(name, prefix) if isinstance(prefix, str) else opaque
    return opaque


def _comparison(node: exp.Expr, operator: str) -> Expression | None:
    left, right = node.args["this"], node.args["expression"]
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        left, right, operator = right, left, FLIPPED[operator]
    value = literal_value(right)
    if not isinstance(left, exp.Column) or value is NOT_LITERAL:
        return None
    return NEVER if value is None else Compare(left.name, operator, value)


class _NotLiteral(str):
    """Marks an expression that is not a literal."""


NOT_LITERAL = _NotLiteral("not a literal")


def literal_value(node: exp.Expr) -> Value:
    """The Python value of a literal, or `NOT_LITERAL`."""
    if isinstance(node, exp.Paren):
        return literal_value(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        return int(node.this) if node.is_int else float(node.this)
    if isinstance(node, exp.Neg):
        value = literal_value(node.this)
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else NOT_LITERAL
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _cast(str(node.this.this), node.to.sql(dialect="spark").upper())
    return NOT_LITERAL


def _cast(text: str, kind: str) -> Value:
    try:
        if kind == "DATE":
            return date.fromisoformat(text)
        if kind.startswith("TIMESTAMP"):
            return datetime.fromisoformat(text)
    except ValueError:
        return NOT_LITERAL
    return NOT_LITERAL
