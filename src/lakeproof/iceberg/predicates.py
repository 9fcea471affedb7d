"""The expressions that the rest of the package may use; a column is named by its (dotted) name.

The leaves are typed `Any`: type checkers see pydantic's generated signatures instead of `EqualTo(column, value)`.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyiceberg import expressions
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Or
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakeproof import filters

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


def from_filter(expression: filters.Expression, schema: Schema | None = None) -> BooleanExpression:
    """A predicate of `filters/` for planning: opaque parts may match anything.

    With a schema so does a literal that is not exactly a value of its column's type: PyIceberg would refuse it or round
    it (`d < 5.004` on two digits would leave out 5.00), where SQL compares both as they are.
    """
    match expression:
        case filters.And(parts):
            return _joined(And, [from_filter(part, schema) for part in parts])
        case filters.Or(parts):
            return _joined(Or, [from_filter(part, schema) for part in parts])
        case filters.Never():
            return FALSE
    if schema is not None and not _fits(expression, schema):
        return TRUE
    match expression:
        case filters.Compare(column, operator, value):
            return _leaf(_COMPARED[operator], column, value)
        case filters.In(column, values, negative):
            return _membership(column, values, negative=negative)
        case filters.IsNull(column, negative):
            return _leaf(NotNull if negative else IsNull, column)
        case filters.StartsWith(column, prefix, negative):
            return _leaf(NotStartsWith if negative else StartsWith, column, prefix)
    return TRUE


def _fits(expression: filters.Expression, schema: Schema) -> bool:
    """Whether every literal of a leaf is a value of the column's type; an unknown column is the planner's to refuse."""
    if not isinstance(expression, filters.Compare | filters.In | filters.StartsWith):
        return True
    try:
        kind = schema.find_field(expression.column, case_sensitive=False).field_type
    except ValueError:
        return True
    match expression:
        case filters.Compare(_, _, value):
            return _is_exact(value, kind)
        case filters.In(_, values):
            return all(_is_exact(value, kind) for value in values)
    return isinstance(kind, StringType)


def _is_exact(value: Any, kind: IcebergType) -> bool:
    match value:
        case None:
            return True
        case bool():
            return isinstance(kind, BooleanType)
        case int():
            exact = isinstance(kind, IntegerType | LongType | DecimalType)
            return exact or (isinstance(kind, DoubleType) and abs(value) < 1 << 53)
        case float():
            return isinstance(kind, DoubleType)
        case str():
            return isinstance(kind, StringType)
        case datetime():
            return isinstance(kind, TimestampType if value.tzinfo is None else TimestamptzType)
        case date():
            return isinstance(kind, DateType)
        case Decimal():
            return isinstance(kind, DecimalType) and -int(value.as_tuple().exponent) <= kind.scale
    return False


def _leaf(kind: Any, *arguments: Any) -> BooleanExpression:
    if any(argument is None for argument in arguments):
        return FALSE  # nothing compares with null
    if any(argument != argument for argument in arguments):
        return TRUE  # NaN: bounds leave it out
    made: BooleanExpression = kind(*arguments)
    return made


def _membership(column: str, values: tuple[Any, ...], *, negative: bool) -> BooleanExpression:
    known = [value for value in values if value is not None]
    if negative:
        return FALSE if len(known) < len(values) else _leaf(NotIn, column, known) if known else _leaf(NotNull, column)
    if any(value != value for value in known):
        return TRUE
    return _leaf(In, column, known) if known else FALSE


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
]
