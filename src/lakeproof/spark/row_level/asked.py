"""What a statement asks of its own table: the predicates of its scans, from Spark's optimized plan.

They become the conflict filter (which concurrent rows would have mattered) and say which rows were read and not written
(a subquery, the SELECT of an INSERT). A predicate found here is never stronger than what Spark evaluates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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
    all_of,
    any_of,
    negated,
)
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.dependencies import infer, table_dependencies
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.file_index import ScanSource
from lakeproof.spark.gateway import CATALYST, Gateway, items_of
from lakeproof.spark.row_level.places import PlacedFileIndex

_SIGNS = {
    "EqualTo": "=",
    "NotEqualTo": "!=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Asked(NamedTuple):
    """The predicates of the scans of one table: the target's (`None`: not scanned), and those of other readers."""

    target: Expression | None
    reads: tuple[Expression, ...] = ()


def asked(engine: Engine, table: Table, rows: DataFrame, target: PlacedFileIndex | None = None) -> Asked:
    """What a query asks of `table`; `target` is the index of the scan whose rows the command writes."""
    sources = {f"lakeproof {key}": source for key, source in engine.scans.sources.items()}
    found: Expression | None = None
    reads = []
    for key, conjuncts in _scans(engine.gateway, rows._jdf.queryExecution().optimizedPlan()):
        source: ScanSource | None
        if target is not None and key == target.toString():
            own = _predicate(engine, table, target.source, conjuncts)
            found = own if found is None else any_of([found, own])
        elif (source := sources.get(key)) is not None and _same_table(source, table):
            reads.append(_predicate(engine, table, source, conjuncts))
    return Asked(found, tuple(dict.fromkeys(reads)))


def _same_table(source: ScanSource, table: Table) -> bool:
    return bool(source.table.metadata.table_uuid == table.metadata.table_uuid)


def _predicate(engine: Engine, table: Table, source: ScanSource, conjuncts: list[Any]) -> Expression:
    pushed = source.predicate(engine.gateway.sequence(conjuncts))
    inferred = infer(pushed, table_dependencies(table), table.schema())
    return _shortened(all_of([expression_of(pushed), expression_of(inferred)]))


def _shortened(expression: Expression) -> Expression:
    """Without «is not null» where another part of the conjunction says so by comparing."""
    if not isinstance(expression, And):
        return expression
    compared = {part.column for part in expression.parts if isinstance(part, Compare | In | StartsWith)}
    return all_of(
        part
        for part in expression.parts
        if not (isinstance(part, IsNull) and part.negative and part.column in compared)
    )


def _scans(gateway: Gateway, plan: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[str, list[Any]]]:
    """The scans of a plan, those inside subqueries too, each with the filters that stand directly above it."""
    kind = plan.nodeName()
    if kind == "Filter":
        above = (*above, *_conjuncts(gateway, plan.condition()))
    elif kind == "LogicalRelation":
        relation = plan.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            yield str(relation.location().toString()), list(above)
    elif kind.startswith("InMemoryRelation"):  # what Spark keeps in memory hides the scan that it came from
        yield from _scans(gateway, plan.cacheBuilder().logicalPlan())
    else:
        above = ()
    for child in items_of(plan.children()):
        yield from _scans(gateway, child, above)
    for inner in items_of(plan.subqueries()):
        yield from _scans(gateway, inner)


def _conjuncts(gateway: Gateway, condition: Any) -> Iterator[Any]:
    if condition.getClass().getSimpleName() == "And":
        yield from _conjuncts(gateway, condition.left())
        yield from _conjuncts(gateway, condition.right())
    elif not gateway.module(f"{CATALYST}expressions.SubqueryExpression").hasSubquery(condition):
        yield condition


def expression_of(predicate: Any) -> Expression:
    """A planning predicate as a value that `commit/` compares; what has no form there may match anything."""
    kind = type(predicate).__name__
    if isinstance(predicate, p.AlwaysTrue | p.AlwaysFalse):
        return ALWAYS if isinstance(predicate, p.AlwaysTrue) else NEVER
    if isinstance(predicate, p.And | p.Or):
        parts = [expression_of(predicate.left), expression_of(predicate.right)]
        return all_of(parts) if isinstance(predicate, p.And) else any_of(parts)
    if isinstance(predicate, p.Not):
        return negated(expression_of(predicate.child))
    if not hasattr(predicate, "term"):
        return Opaque(str(predicate))
    column = predicate.term.name
    if kind in ("IsNull", "NotNull"):
        return IsNull(column, negative=kind == "NotNull")
    if kind in ("In", "NotIn"):
        values = sorted((one.value for one in predicate.literals), key=lambda value: (type(value).__name__, value))
        return In(column, tuple(values), negative=kind == "NotIn")
    if kind in ("StartsWith", "NotStartsWith"):
        return StartsWith(column, predicate.literal.value, negative=kind == "NotStartsWith")
    if kind in _SIGNS:
        return Compare(column, _SIGNS[kind], predicate.literal.value)
    return Opaque(str(predicate))


def condition_of(expression: Expression) -> Column:
    """The expression as a condition of Spark's: true at least where the expression may match."""
    match expression:
        case And(parts) | Or(parts):
            made = condition_of(parts[0])
            for part in parts[1:]:
                made = made & condition_of(part) if isinstance(expression, And) else made | condition_of(part)
            return made
        case Always() | Opaque():
            return F.lit(True)
        case Never():
            return F.lit(False)
    column = F.col(".".join(f"`{part}`" for part in expression.column.split(".")))
    match expression:
        case IsNull(_, negative):
            return column.isNotNull() if negative else column.isNull()
        case In(_, values, negative):
            return ~column.isin(*values) if negative else column.isin(*values)
        case StartsWith(_, prefix, negative):
            return ~column.startswith(prefix) if negative else column.startswith(prefix)
        case Compare(_, sign, value):
            return _COMPARED[sign](column, value)
    raise AssertionError(expression)
