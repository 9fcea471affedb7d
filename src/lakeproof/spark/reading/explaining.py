"""EXPLAIN: Spark's plan, and below it what each scan of a managed table reads and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.pyiceberg_names import DateType, IcebergType, Schema, TimestampType, TimestamptzType
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import items_of
from lakeproof.spark.reading.catalyst import trees_of
from lakeproof.spark.reading.file_index import ScanSource

_SIGNS = {
    "EqualTo": "=",
    "NotEqualTo": "!=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_AFTER = {"IsNull": "IS NULL", "NotNull": "IS NOT NULL", "IsNaN": "IS NaN", "NotNaN": "IS NOT NaN"}


class ManagedScan(NamedTuple):
    """One scan of a plan: what it reads, from which snapshot of which table."""

    source: ScanSource
    plan: ScanPlan


def scans_of(engine: Engine, rows: DataFrame) -> list[ManagedScan]:
    """The scans of managed tables in a query's plan, each planned with the filters that Spark pushed into it."""
    found = []
    for node in _nodes(spark41.execution_of(rows).sparkPlan()):
        if node.getClass().getSimpleName() != "FileSourceScanExec":
            continue
        key = node.relation().location().toString().removeprefix("lakeproof ")
        source = engine.scans.sources.get(key)
        if source is not None:
            said = source.translated(trees_of(engine.gateway, _filters(engine, node))).filter
            found.append(ManagedScan(source, source.planned(said)))
    return found


def _filters(engine: Engine, node: Any) -> Any:
    """What a scan is asked for, but for what other parts of the query will have to say while it runs."""
    subqueries = engine.gateway.module(spark41.SUBQUERY_EXPRESSION)
    known = [each for each in items_of(node.partitionFilters()) if not subqueries.hasSubquery(each)]
    return node.dataFilters().prependedAll(engine.gateway.sequence(known)) if known else node.dataFilters()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in items_of(plan.children()):
        yield from _nodes(child)
    for query in items_of(plan.subqueries()):
        yield from _nodes(query)


def explain_query(engine: Engine, rows: DataFrame, mode: str) -> str:
    """The plan of a query as text."""
    gateway = engine.gateway
    execution = spark41.execution_of(rows)
    chosen = gateway.module(spark41.EXPLAIN_MODE).fromString(mode)
    parts = [str(execution.explainString(chosen)).rstrip()]
    for scan in scans_of(engine, rows):
        parts.append(worded_scan(scan))
    return "\n\n".join(parts)


def worded_scan(scan: ManagedScan) -> str:
    """Filter, inferred predicates, files and bytes of one scan."""
    plan = scan.plan
    said = Predicates(scan.source.schema)
    return "\n".join(
        [
            f"== Managed scan of {scan.source.label} at snapshot {plan.snapshot_id or 'none'} ==",
            f"Iceberg filter: {said.text(plan.row_filter)}",
            f"Inferred from column dependencies: {said.text(plan.inferred)}",
            f"Files: {plan.files.num_rows} of {plan.files_seen}",
            f"Bytes: {plan.bytes_kept}",
            f"Manifests read: {plan.manifests_read} of {plan.manifests_seen}",
        ]
    )


class Predicates:
    """Iceberg predicates as SQL text; the schema says which numbers are dates and instants."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def text(self, expression: Any) -> str:
        """One predicate."""
        kind = type(expression).__name__
        if isinstance(expression, p.AlwaysTrue | p.AlwaysFalse):
            return "true" if isinstance(expression, p.AlwaysTrue) else "false"
        if kind in ("And", "Or"):
            sides = []
            for side in (expression.left, expression.right):
                said = self.text(side)
                other = type(side).__name__
                sides.append(f"({said})" if other in ("And", "Or") and other != kind else said)
            return f" {kind.upper()} ".join(sides)
        if kind == "Not":
            return f"NOT ({self.text(expression.child)})"
        return self._about_one_column(expression, kind)

    def _about_one_column(self, expression: Any, kind: str) -> str:
        name = expression.term.name
        if kind in _AFTER:
            return f"{name} {_AFTER[kind]}"
        if kind in ("In", "NotIn"):
            values = ", ".join(sorted(self._literal(name, one) for one in expression.literals))
            return f"{name} {'NOT ' * (kind == 'NotIn')}IN ({values})"
        said = self._literal(name, expression.literal)
        if kind in ("StartsWith", "NotStartsWith"):
            return f"{name} {'NOT ' * (kind == 'NotStartsWith')}LIKE {said[:-1]}%'"
        return f"{name} {_SIGNS[kind]} {said}"

    def _literal(self, name: str, literal: Any) -> str:
        value = literal.value
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bytes):
            return f"X'{value.hex().upper()}'"
        return _instant(value, self.schema.find_type(name)) if type(value) is int else str(value)


def _instant(value: int, kind: IcebergType) -> str:
    """A number of days or microseconds as the date or instant that it means; beyond Python's years, the number."""
    try:
        if isinstance(kind, DateType):
            return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
        moment = datetime(1970, 1, 1) + timedelta(microseconds=value)
    except OverflowError:
        return str(value)
    if isinstance(kind, TimestamptzType):
        return f"TIMESTAMP '{moment}+00:00'"
    return f"TIMESTAMP_NTZ '{moment}'" if isinstance(kind, TimestampType) else str(value)
