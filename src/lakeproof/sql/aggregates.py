"""A query that only asks how many rows a table has, or for the ends of its columns, said as a question to metadata."""

from __future__ import annotations

from typing import NamedTuple

import sqlglot
from sqlglot import exp

from lakeproof.filters import ALWAYS, And, Expression, Opaque, Or
from lakeproof.sql.predicates import predicate

_PLAIN = {"expressions", "from", "from_", "where", "kind", "hint", "distinct", "limit", "operation_modifiers"}


class Aggregate(NamedTuple):
    """`count` of all rows (no column), or `min` or `max` of a column."""

    function: str
    column: str | None = None


class Question(NamedTuple):
    """Aggregates over one table, in the order of the SELECT, under a filter."""

    table: str
    aggregates: tuple[Aggregate, ...]
    where: Expression = ALWAYS


def question(text: str) -> Question | None:
    """The question that a query asks, if it is one that metadata may answer.

    >>> question("select count(*) from t")
    Question(table='t', aggregates=(Aggregate(function='count', column=None),), where=Always())
    """
    try:
        node = sqlglot.parse_one(text, read="spark")
    except sqlglot.errors.SqlglotError:
        return None
    if not isinstance(node, exp.Select) or any(value for key, value in node.args.items() if key not in _PLAIN):
        return None
    if node.args.get("distinct") or node.args.get("limit") or node.args.get("kind"):
        return None
    table = _single_table(node)
    aggregates = [_aggregate(one) for one in node.expressions]
    if table is None or not aggregates or not all(aggregates):
        return None
    where = predicate(node.args["where"]) if node.args.get("where") else ALWAYS
    known = tuple(one for one in aggregates if one is not None)
    if _has_opaque(where) or (where != ALWAYS and any(one.function != "count" for one in known)):
        return None
    return Question(table, known, where)


def _single_table(node: exp.Select) -> str | None:
    source = node.args.get("from_") or node.args.get("from")
    found = source.this if source is not None else None
    if not isinstance(found, exp.Table) or not isinstance(found.this, exp.Identifier):
        return None
    if any(found.args.get(key) for key in ("joins", "pivots", "version", "when", "sample", "laterals", "hints")):
        return None
    if any("." in part.name for part in found.parts):
        return None
    return ".".join(part.name for part in found.parts)


def _aggregate(node: exp.Expr) -> Aggregate | None:
    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(inner, exp.Count):
        counted = inner.this
        every = isinstance(counted, exp.Star) or (isinstance(counted, exp.Literal) and not inner.expressions)
        return Aggregate("count") if every else None
    if isinstance(inner, exp.Min | exp.Max) and isinstance(inner.this, exp.Column) and not inner.expressions:
        return Aggregate("min" if isinstance(inner, exp.Min) else "max", inner.this.name)
    return None


def _has_opaque(expression: Expression) -> bool:
    if isinstance(expression, And | Or):
        return any(_has_opaque(part) for part in expression.parts)
    return isinstance(expression, Opaque)
