"""Which rows, and which files, a predicate may match.

Of a file only its partition values and its column bounds are known. The answer "no" must be certain: when bounds are
missing, types do not compare or a part is opaque, the answer is "may match".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakeproof.filters.expression import (
    COMPARISONS,
    NEVER,
    Always,
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Leaf,
    Never,
    Opaque,
    Or,
    StartsWith,
    may_be_true,
    negated,
)
from lakeproof.filters.transforms import applied, is_known, is_monotone, name_and_width
from lakeproof.format import Bounds, DataFile, DeleteFile, PartitionField, PartitionSpec, Row, TableShape, Value

_PLAIN = (int, str, bool, float, bytes)  # values of one of these types always compare
_TYPES: Mapping[type, tuple[str, ...]] = {
    int: ("int", "long"),
    str: ("string",),
    date: ("date",),
    bytes: ("binary",),
}
"""Iceberg's types of columns whose values have this Python type."""


def matches(expression: Expression, row: Row, columns: tuple[str, ...]) -> bool:
    """Whether the predicate may be true of this row: exact but for what nobody here can tell, which may always be.

    That is opaque parts, and literals of another type than the value: SQL casts before it compares.
    """
    return may_be_true(expression, lambda leaf: _may_be_true(leaf, row[columns.index(leaf.column)]))


def _may_be_true(leaf: Leaf, value: Value) -> bool:
    try:
        for literal in _literals(leaf):
            _expect_comparable(literal, value)
    except TypeError:
        return True
    return _leaf_matches(leaf, value)


def _leaf_matches(leaf: Leaf, value: Value) -> bool:
    match leaf:
        case IsNull(_, negative):
            return (value is None) != negative
        case Compare(_, op, wanted):
            return value is not None and wanted is not None and compared(value, op, wanted)
        case In(_, values, negative):
            known = [one for one in values if one is not None]
            if value is None or (negative and len(known) < len(values)):
                return False
            return any(compared(value, "=", one) for one in known) != negative
        case StartsWith(_, prefix, negative):
            return isinstance(value, str) and value.startswith(prefix) != negative
    raise AssertionError(leaf)


def compared(left: Value, op: str, right: Value) -> bool:
    """Spark's comparison: NaN equals itself and is greater than every number."""
    nans = (left != left) - (right != right)  # 1, 0 or -1 where exactly one side is NaN
    if left != left or right != right:
        return bool(COMPARISONS[op](nans, 0))
    return bool(COMPARISONS[op](left, right))


def may_match_file(expression: Expression, file: DataFile, shape: TableShape) -> bool:
    """Whether a data file may hold a row that matches."""
    spec = shape.specs[file.spec_id] if file.spec_id < len(shape.specs) else ()
    bounds = {each.column: each for each in file.bounds}
    return _may_match(expression, bounds, _partition_values(spec, file.partition))


def may_match_partition(expression: Expression, file: DataFile | DeleteFile, shape: TableShape) -> bool:
    """Whether a file's partition may hold a row that matches: all that a delete file lets us ask."""
    spec = shape.specs[file.spec_id] if file.spec_id < len(shape.specs) else ()
    return _may_match(expression, {}, _partition_values(spec, file.partition))


def must_match_file(expression: Expression, file: DataFile, shape: TableShape) -> bool:
    """Whether every row of a data file certainly matches, so that the file can be dropped whole."""
    if isinstance(expression, And):
        return all(must_match_file(part, file, shape) for part in expression.parts)
    if isinstance(expression, Always | Never | Opaque | Or):
        return isinstance(expression, Always) or (
            isinstance(expression, Or) and any(must_match_file(part, file, shape) for part in expression.parts)
        )
    expression = _without_nulls(expression)
    if isinstance(expression, Never):
        return False
    nulls = not isinstance(expression, IsNull) and may_match_file(IsNull(expression.column), file, shape)
    return not nulls and not may_match_file(negated(expression), file, shape)


def _without_nulls(leaf: Leaf) -> Leaf | Never:
    """The leaf without null literals: neither a comparison with null nor its negation is ever true."""
    if isinstance(leaf, Compare) and leaf.value is None:
        return NEVER
    if isinstance(leaf, In) and None in leaf.values:
        return NEVER if leaf.negative else In(leaf.column, tuple(one for one in leaf.values if one is not None))
    return leaf


_Partition = Mapping[str, tuple[tuple[PartitionField, Value], ...]]


def _partition_values(spec: PartitionSpec, partition: tuple[Value, ...]) -> _Partition:
    known: dict[str, tuple[tuple[PartitionField, Value], ...]] = {}
    for field, value in zip(spec, partition, strict=False):
        if is_known(field.transform) and name_and_width(field.transform)[0] != "void":
            known[field.column] = (*known.get(field.column, ()), (field, value))
    return known


def _may_match(expression: Expression, bounds: Mapping[str, Bounds], partition: _Partition) -> bool:
    return may_be_true(expression, lambda leaf: _leaf_may_match(leaf, bounds, partition))


def _leaf_may_match(leaf: Leaf, bounds: Mapping[str, Bounds], partition: _Partition) -> bool:
    try:
        known = bounds.get(leaf.column)
        if known is not None and not _bounds_allow(leaf, known):
            return False
        return all(_partition_allows(leaf, *pair) for pair in partition.get(leaf.column, ()))
    except TypeError:  # the literal and the file's values do not compare: nobody can tell
        return True


def _bounds_allow(leaf: Leaf, known: Bounds) -> bool:
    if isinstance(leaf, IsNull):
        return known.has_values if leaf.negative else known.has_nulls
    if not known.has_values:
        return False
    match leaf:
        case Compare(_, op, value):
            return value is not None and _interval_allows(op, value, known)
        case In(_, values, False):
            return any(value is not None and _interval_allows("=", value, known) for value in values)
        case StartsWith(_, prefix, False):
            size = len(prefix)
            return not (isinstance(known.lower, str) and known.lower[:size] > prefix) and not (
                isinstance(known.upper, str) and known.upper[:size] < prefix
            )
    return True  # negated forms: bounds may be wider than the values, so they exclude nothing


def _interval_allows(op: str, value: Any, known: Bounds) -> bool:
    lower, upper = (None if one is not None and one != one else one for one in (known.lower, known.upper))
    if isinstance(value, float) and value != value:
        return True
    _expect_comparable(value, lower)
    _expect_comparable(value, upper)
    if op in ("=", "<", "<=") and lower is not None and not COMPARISONS["<" if op == "<" else "<="](lower, value):
        return False
    nan_possible = isinstance(upper, float) and known.has_nans and op != "="
    if op in ("=", ">", ">=") and upper is not None and not nan_possible:
        return bool(COMPARISONS[">" if op == ">" else ">="](upper, value))
    return True


def _partition_allows(leaf: Leaf, field: PartitionField, there: Value) -> bool:
    """Whether a row whose transformed value is `there` may match."""
    if isinstance(leaf, IsNull):
        return (there is None) != leaf.negative
    if there is None:
        return False  # only null is transformed to null, and no other leaf matches null
    transform = field.transform
    if transform == "identity" or name_and_width(transform)[0] == "truncate":
        for value in _literals(leaf):
            _expect_comparable(value, there, exactly=transform != "identity")
    else:  # a bucket or an ordinal says nothing of the column's type, so the literal must be of it
        for value in _literals(leaf):
            _expect_of_type(value, field.type)
    if transform == "identity":
        return _leaf_matches(leaf, there)
    match leaf:
        case Compare(_, op, value):
            return value is not None and _transformed_allows(transform, op, value, there)
        case In(_, values, False):
            return any(value is not None and applied(transform, value) == there for value in values)
        case StartsWith(_, prefix, False) if name_and_width(transform)[0] == "truncate" and isinstance(there, str):
            return there.startswith(prefix) or prefix.startswith(there)
    return True


def _transformed_allows(transform: str, op: str, value: Value, there: Any) -> bool:
    if op == "=":
        return bool(applied(transform, value) == there)
    if op == "!=" or not is_monotone(transform):
        return True
    edge: Any = applied(transform, value)  # x < value implies transform(x) <= transform(value)
    return bool(there <= edge if op in ("<", "<=") else there >= edge)


def _literals(leaf: Leaf) -> tuple[Value, ...]:
    match leaf:
        case Compare(_, _, value):
            return (value,)
        case In(_, values):
            return values
        case StartsWith(_, prefix):
            return (prefix,)
    return ()


def _expect_comparable(literal: Value, known: Value, *, exactly: bool = False) -> None:
    """Raises TypeError where SQL would cast before it compares: a date and a string, a decimal and a double.

    `exactly`: truncation also depends on the type, and of a decimal on its scale.
    """
    if literal is None or known is None or (type(literal) is type(known) and type(known) in _PLAIN):
        return
    kinds = {type(literal), type(known)}
    if len(kinds) > 1:
        fits = not exactly and (kinds <= {int, float} or kinds <= {int, Decimal})
    elif isinstance(literal, datetime) and isinstance(known, datetime):
        fits = (literal.tzinfo is None) == (known.tzinfo is None)
    elif isinstance(literal, Decimal) and isinstance(known, Decimal) and exactly:
        fits = literal.as_tuple().exponent == known.as_tuple().exponent
    else:
        fits = True
    if not fits:
        raise TypeError(f"{literal!r} and {known!r} do not compare")


def _expect_of_type(literal: Value, column: str) -> None:
    """Raises TypeError where the literal is not a value of the column's type: cast, it has another hash or ordinal."""
    if literal is None or not column:
        return
    if isinstance(literal, datetime):
        fits = column == ("timestamp" if literal.tzinfo is None else "timestamptz")
    elif isinstance(literal, Decimal):
        fits = column.startswith("decimal") and column.endswith(f" {-int(literal.as_tuple().exponent)})")
    else:
        fits = column in _TYPES.get(type(literal), ())
    if not fits:
        raise TypeError(f"{literal!r} is not of the type {column}")
