"""Which target rows a MERGE can match at all: those whose key is among the source's, or between the least and greatest.

Iceberg's own MERGE has no such predicate: every file is read, and every concurrent commit may conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.spark.engine import Engine
from lakeproof.spark.gateway import items_of

MOST_KEYS = 200
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def key_conditions(engine: Engine, target: DataFrame, source: DataFrame, on: str) -> list[Column]:
    """Conditions on the target, one for each `target column = source expression` of the ON clause."""
    joined = target.join(source, F.expr(on), "inner")
    pairs = list(_equalities(joined._jdf.queryExecution().analyzed(), target))
    if not pairs:
        return []
    expressions = engine.gateway.named("org.apache.spark.sql.classic.ExpressionUtils")
    names = [f"key_{number}" for number in range(len(pairs))]
    keys = [Column(expressions.column(side)).alias(name) for (_, side), name in zip(pairs, names, strict=True)]
    few = source.select(*keys).distinct().limit(MOST_KEYS + 1).toArrow()
    if few.num_rows <= MOST_KEYS:
        values = [sorted({v for v in few[name].to_pylist() if v is not None}, key=repr) for name in names]
        return [
            F.col(column).isin(*listed) if listed else F.lit(False)
            for (column, _), listed in zip(pairs, values, strict=True)
        ]
    ends = source.select(*keys).agg(*[f(name).alias(f"{f.__name__}_{name}") for name in names for f in (F.min, F.max)])
    row = ends.toArrow().to_pylist()[0]
    least, most = [[row[f"{end}_{name}"] for name in names] for end in ("min", "max")]
    return [
        F.lit(False) if low is None else F.col(column).between(low, high)
        for (column, _), low, high in zip(pairs, least, most, strict=True)
    ]


def _equalities(plan: Any, target: DataFrame) -> Iterator[tuple[str, Any]]:
    """(target column, source expression) of the join's equalities whose target side is a plain column."""
    own = {attribute.exprId().id(): attribute.name() for attribute in _output(target)}
    node = plan
    while node.nodeName() != "Join":
        node = node.children().apply(0)
    if node.condition().isEmpty():
        return
    for equality in _conjuncts(node.condition().get()):
        if equality.getClass().getSimpleName() != "EqualTo":
            continue
        for left, right in ((equality.left(), equality.right()), (equality.right(), equality.left())):
            column = _column(left, own)
            if column is not None and not any(ref.exprId().id() in own for ref in items_of(right.references().toSeq())):
                yield column, right
                break


def _column(expression: Any, own: dict[int, str]) -> str | None:
    """The target column behind a plain reference, or behind a cast that only makes a whole number wider."""
    if expression.getClass().getSimpleName() == "Cast":
        kinds = [str(kind.simpleString()) for kind in (expression.child().dataType(), expression.dataType())]
        if not all(kind in _WHOLE_NUMBERS for kind in kinds):
            return None
        if _WHOLE_NUMBERS.index(kinds[0]) > _WHOLE_NUMBERS.index(kinds[1]):
            return None
        expression = expression.child()
    if expression.getClass().getSimpleName() != "AttributeReference":
        return None
    name = own.get(expression.exprId().id())
    return None if name is None else f"`{name}`"


def _output(rows: DataFrame) -> Iterator[Any]:
    yield from items_of(rows._jdf.queryExecution().analyzed().output())


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.getClass().getSimpleName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
