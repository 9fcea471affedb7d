"""The expressions that the rest of the package may use; a column is named by its (dotted) name.

The leaves are typed `Any`: type checkers see pydantic's generated signatures instead of `EqualTo(column, value)`.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from pyiceberg import expressions
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Or
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakeproof import filters
from lakeproof.filters.decimals import divided, scaled, unscaled
from lakeproof.iceberg.committing.values import converter

EqualTo: Any = expressions.EqualTo
NotEqualTo: Any = expressions.NotEqualTo
LessThan: Any = expressions.LessThan
LessThanOrEqual: Any = expressions.LessThanOrEqual
GreaterThan: Any = expressions.GreaterThan
GreaterThanOrEqual: Any = expressions.GreaterThanOrEqual
In: Any = expressions.In
NotIn: Any = expressions.NotIn
IsNull: Any = expressions.IsNull
NotNull: Any = expressions.NotNull
IsNaN: Any = expressions.IsNaN
NotNaN: Any = expressions.NotNaN
StartsWith: Any = expressions.StartsWith
NotStartsWith: Any = expressions.NotStartsWith

TRUE = AlwaysTrue()
FALSE = AlwaysFalse()

_COMPARED = {
    "=": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}


def from_filter(expression: filters.Expression, schema: Schema) -> BooleanExpression:
    """A filter as a predicate for planning, never stronger: what PyIceberg cannot say may match anything.

    PyIceberg would refuse a literal that is not a value of its column's type, or round it; SQL compares both as they
    are. So each leaf is said in values of its column, or not at all.
    """
    match expression:
        case filters.And(parts):
            return _joined(And, [from_filter(part, schema) for part in parts])
        case filters.Or(parts):
            return _joined(Or, [from_filter(part, schema) for part in parts])
        case filters.Never():
            return FALSE
        case filters.Always() | filters.Opaque():
            return TRUE
    try:
        kind = schema.find_field(expression.column, case_sensitive=False).field_type
    except ValueError:  # an unknown column is the planner's to refuse
        kind = None
    match expression:
        case filters.Compare(column, operator, value):
            return _comparison(column, operator, value, kind)
        case filters.In(column, values, negative):
            return _membership(column, values, kind, negative=negative)
        case filters.IsNull(column, negative):
            return _leaf(NotNull if negative else IsNull, column)
        case filters.StartsWith(column, prefix, negative):
            fits = kind is None or isinstance(kind, StringType)
            return _leaf(NotStartsWith if negative else StartsWith, column, prefix) if fits else TRUE
    raise AssertionError(expression)


def _comparison(column: str, operator: str, value: Any, kind: IcebergType | None) -> BooleanExpression:
    if value is None:
        return FALSE  # nothing compares with null
    if isinstance(value, Decimal) and isinstance(kind, DecimalType):
        return _compared_decimal(column, operator, value, kind)
    if not _is_said(value, kind):
        return TRUE
    made = _leaf(_COMPARED[operator], column, value)
    if operator in (">", ">=") and isinstance(kind, FloatType | DoubleType):
        return Or(made, _leaf(IsNaN, column))  # Spark sorts NaN above every number; bounds know nothing of it
    return made


def _compared_decimal(column: str, operator: str, value: Decimal, kind: DecimalType) -> BooleanExpression:
    """A comparison with a decimal of any scale: between two values of the column only their order matters."""
    number, rest = divided(value, kind.scale)
    if abs(number) >= 10**kind.precision:
        return TRUE
    below = scaled(number, kind.scale)
    if not rest:
        return _leaf(_COMPARED[operator], column, below)
    if operator in ("=", "!="):
        return FALSE if operator == "=" else _leaf(NotNull, column)
    return _leaf(LessThanOrEqual if operator in ("<", "<=") else GreaterThan, column, below)


def _is_said(value: Any, kind: IcebergType | None) -> bool:
    """Whether PyIceberg compares this value with the column exactly."""
    match value:
        case _ if kind is None:
            return not isinstance(value, float) or math.isfinite(value)
        case bool():
            return isinstance(kind, BooleanType)
        case int():
            return isinstance(kind, IntegerType | LongType) and -(1 << 63) <= value < 1 << 63
        case float():
            exact = isinstance(kind, FloatType) and math.isfinite(value) and float(np.float32(value)) == value
            return exact or (isinstance(kind, DoubleType) and value == value)
        case str():
            return isinstance(kind, StringType)
        case bytes():
            return isinstance(kind, BinaryType)
        case datetime():
            return isinstance(kind, TimestampType if value.tzinfo is None else TimestamptzType)
        case date():
            return isinstance(kind, DateType)
    return False


def _leaf(kind: Any, *arguments: Any) -> BooleanExpression:
    made: BooleanExpression = kind(*arguments)
    return made


def _membership(column: str, values: tuple[Any, ...], kind: IcebergType | None, *, negative: bool) -> BooleanExpression:
    known = [value for value in values if value is not None]
    if negative and len(known) < len(values):
        return FALSE
    if isinstance(kind, DecimalType):
        if not all(isinstance(value, Decimal) for value in known):
            return TRUE
        numbers = [unscaled(value, kind.scale) for value in known]
        known = [scaled(one, kind.scale) for one in numbers if one is not None and abs(one) < 10**kind.precision]
    elif not all(_is_said(value, kind) for value in known):
        return TRUE
    if negative:
        return _leaf(NotIn, column, known) if known else _leaf(NotNull, column)
    return _leaf(In, column, known) if known else FALSE


def to_filter(predicate: Any, schema: Schema) -> filters.Expression:
    """A planning predicate as a filter, with dates and times for PyIceberg's numbers; what has no form is opaque."""
    kind = type(predicate).__name__
    if isinstance(predicate, AlwaysTrue | AlwaysFalse):
        return filters.ALWAYS if isinstance(predicate, AlwaysTrue) else filters.NEVER
    if isinstance(predicate, And | Or):
        parts = [to_filter(predicate.left, schema), to_filter(predicate.right, schema)]
        return filters.all_of(parts) if isinstance(predicate, And) else filters.any_of(parts)
    if not hasattr(predicate, "term"):
        return filters.Opaque(str(predicate))
    column = predicate.term.name
    convert = converter(schema.find_field(column, case_sensitive=False).field_type)
    if kind in ("IsNull", "NotNull"):
        return filters.IsNull(column, negative=kind == "NotNull")
    if kind in ("In", "NotIn"):
        values = sorted((convert(one.value) for one in predicate.literals), key=repr)
        return filters.In(column, tuple(values), negative=kind == "NotIn")
    if kind in ("StartsWith", "NotStartsWith"):
        return filters.StartsWith(column, predicate.literal.value, negative=kind == "NotStartsWith")
    sign = next((sign for sign, known in _COMPARED.items() if known.__name__ == kind), None)
    if sign is None:
        return filters.Opaque(str(predicate))
    return filters.Compare(column, sign, convert(predicate.literal.value))


def _joined(kind: Any, parts: list[BooleanExpression]) -> BooleanExpression:
    made: BooleanExpression = parts[0]
    for part in parts[1:]:
        made = kind(made, part)
    return made


__all__ = [
    "FALSE",
    "TRUE",
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "BooleanExpression",
    "EqualTo",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNaN",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "NotEqualTo",
    "NotIn",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Or",
    "StartsWith",
    "from_filter",
    "to_filter",
]
