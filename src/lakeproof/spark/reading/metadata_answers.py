"""`count(*)`, `min` and `max` of a query from metadata alone: what it asks is read off Spark's optimized plan."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from lakeproof.filters import ALWAYS
from lakeproof.iceberg.reading.aggregates import column_range, count_rows
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.reading.catalyst import CatalystNode, Untranslatable, column_of_node, trees_of
from lakeproof.spark.reading.file_index import ScanSource
from lakeproof.spark.row_level.scan_filters import scan_and_filter

# A plan that was not optimized, has no groups (they would come first) and counts: there is nothing to make simpler.
_COUNTS_ALL = re.compile(r"Aggregate \[count\(1\) AS [^#,\[\]]*#\d+L\]$", re.MULTILINE)


class Aggregate(NamedTuple):
    """`count` of all rows (no column), or `min` or `max` of a column."""

    function: str
    column: str | None = None


class MetadataAnswer(NamedTuple):
    """The one row of a query, and the attributes of its plan that name it."""

    values: tuple[Any, ...]
    columns: Any
    only_counts: bool


def answer_from_metadata(engine: Engine, rows: DataFrame) -> MetadataAnswer | None:
    """The row of a query that only counts a managed table, or asks for ends of its columns; `None`: read the rows."""
    execution = spark41.execution_of(rows)
    analyzed = plan = execution.analyzed()
    told = str(plan.toString())
    if not told.startswith("Aggregate ["):
        return None
    found = scan_and_filter(engine, plan.child()) if _COUNTS_ALL.match(told) and "Filter" not in told else None
    if found is None:  # the optimizer folds constants, unwraps casts and drops what says nothing
        plan = execution.optimizedPlan()
        found = scan_and_filter(engine, plan.child()) if plan.nodeName() == "Aggregate" else None
        if found is None or not plan.groupingExpressions().isEmpty():
            return None
    source, where = found
    if not source.at_head or source.snapshot_id is None:
        return None  # an older snapshot is planned with its own schema, and may name its columns in another way
    try:
        wanted = [_aggregate(tree, source) for tree in trees_of(engine.gateway, plan.aggregateExpressions())]
    except Untranslatable:
        return None
    if where != ALWAYS and any(one.column is not None for one in wanted):
        return None
    values: list[Any] = []
    for one in wanted:
        value = count_rows(source.table, where) if one.column is None else _end(source, one)
        if value is None:
            return None
        values.append(value[0] if isinstance(value, tuple) else value)
    return MetadataAnswer(tuple(values), analyzed.output(), all(one.column is None for one in wanted))


def _end(source: ScanSource, asked: Aggregate) -> tuple[Any] | None:
    """The least or greatest value, which may be null, in a tuple of its own."""
    assert asked.column is not None
    found = column_range(source.table, asked.column)
    return None if found is None else (found.smallest if asked.function == "min" else found.largest,)


def _aggregate(tree: CatalystNode, source: ScanSource) -> Aggregate:
    """`count(1) AS n`, `min(x) AS m`: not distinct, and without a FILTER clause."""
    expression = tree.children[0] if tree.kind == "Alias" else tree
    if expression.kind != "AggregateExpression" or expression.fields["isDistinct"] or len(expression.children) != 1:
        raise Untranslatable(expression.kind)
    function = expression.children[0]
    if function.kind == "Count" and len(function.children) == 1 and function.children[0].kind == "Literal":
        return Aggregate("count")  # of a literal that is not null: the optimizer has made 0 of the others
    if function.kind in ("Min", "Max"):
        return Aggregate(function.kind.lower(), column_of_node(function.children[0], source.columns))
    raise Untranslatable(function.kind)
