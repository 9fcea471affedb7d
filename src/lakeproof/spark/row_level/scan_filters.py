"""What a statement asks of its own table: the predicates of its scans, from Spark's optimized plan.

They become the conflict filter (which concurrent rows would have mattered) and say which rows were read and not written
(a subquery, the SELECT of an INSERT). A predicate found here is never stronger than what Spark evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.filters import (
    COMPARISONS,
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
)
from lakeproof.iceberg.predicates import from_filter, to_filter
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import label_of
from lakeproof.iceberg.tables.column_dependencies import infer, table_dependencies
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.reading.catalyst import CatalystNode, Translation, conjuncts_of, translated, trees_of
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.reading.deletes import HIDDEN
from lakeproof.spark.reading.file_index import ScanSource
from lakeproof.spark.reading.scan import TRAVELS
from lakeproof.spark.row_level.literals import spark_literal
from lakeproof.spark.row_level.row_positions import PlacedFileIndex

_AROUND = ("Project", "Filter", "SubqueryAlias")
_WITHOUT_FILES = ("LocalRelation", "OneRowRelation", "Range")
_OURS = "lakeproof "  # how the name of a managed file index begins


class Asked(NamedTuple):
    """The predicates of the scans of one table: the target's (`None`: not scanned), and those of other readers.

    `heads` are the snapshots that were the table's head when those readers were resolved.
    """

    target: Expression | None
    reads: tuple[Expression, ...] = ()
    heads: frozenset[int | None] = frozenset()


def asked_of_table(engine: Engine, table: Table, rows: DataFrame, target: PlacedFileIndex | None = None) -> Asked:
    """What a query asks of `table`; `target` is the index of the scan whose rows the command writes."""
    sources = {f"lakeproof {key}": source for key, source in engine.scans.sources.items()}
    found: Expression | None = None
    reads = []
    heads: set[int | None] = set()
    for key, conjuncts in _scans(engine.gateway, spark41.execution_of(rows).optimizedPlan()):
        source: ScanSource | None
        if target is not None and key == target.toString():
            own = _predicate(engine, table, target.source, conjuncts)
            found = own if found is None else any_of([found, own])
        elif (source := sources.get(key)) is not None and _same_table(source, table):
            reads.append(_predicate(engine, table, source, conjuncts))
            heads |= set() if source.key.endswith(TRAVELS) else {source.snapshot_id}
    return Asked(found, tuple(dict.fromkeys(reads)), frozenset(heads))


def _same_table(source: ScanSource, table: Table) -> bool:
    """Whether the source reads this very branch: what another branch says is nobody's write."""
    same = source.table.metadata.table_uuid == table.metadata.table_uuid
    return bool(same and label_of(source.table) == label_of(table))


def _predicate(engine: Engine, table: Table, source: ScanSource, conjuncts: list[Any]) -> Expression:
    trees = trees_of(engine.gateway, engine.gateway.sequence(conjuncts)) if conjuncts else []
    said = source.translated(trees).filter
    dependencies = table_dependencies(table)
    if dependencies:
        inferred = infer(from_filter(said, table.schema()), dependencies, table.schema())
        said = all_of([said, to_filter(inferred, table.schema())])
    return shortened(said)


def filter_from_text(engine: Engine, table: Table, text: str) -> Translation:
    """A condition of SQL on the table's rows, as Spark reads it: exact where it is all that the filter says."""
    scan = engine.scan(table)
    rows = scan.rows.filter(F.expr(text))
    exact = exact_filter(scan.source, spark41.execution_of(rows).optimizedPlan())
    return (
        Translation(any_of(asked_of_table(engine, table, rows).reads), False)
        if exact is None
        else Translation(exact, True)
    )


class _OneScan(NamedTuple):
    """The managed scan below projections and filters (`None`: none), their conditions, whether nothing can match."""

    key: str | None
    conditions: list[Any]
    is_empty: bool = False


def _one_scan(plan: Any) -> _OneScan:
    conditions: list[Any] = []
    while (kind := plan.nodeName()) in _AROUND:
        if kind == "Filter":
            conditions.append(plan.condition())
        plan = plan.child()
    if kind == "LocalRelation":  # the optimizer found that no row can match
        return _OneScan(None, conditions, bool(plan.data().isEmpty()))
    location = _location(plan.relation()) if kind == "LogicalRelation" else ""
    return _OneScan(location.removeprefix(_OURS) if location.startswith(_OURS) else None, conditions)


def _location(relation: Any) -> str:
    """Where the files of a relation come from; nowhere, if it is not one of files."""
    told = str(relation.getClass().getName())
    return str(relation.location().toString()) if told == spark41.HADOOP_FS_RELATION else ""


def exact_filter(source: ScanSource, plan: Any) -> Expression | None:
    """The filter that an optimized plan puts on one scan of `source`, and nothing else; `None`: it does more."""
    found = _one_scan(plan)
    if found.is_empty:
        return NEVER
    return _exact(source, found.conditions) if found.key == source.key else None


def exact_condition(source: ScanSource, condition: Any) -> Expression | None:
    """The filter that a resolved condition on the table's own columns is; `None`: it says more, or must be simplified.

    Here the columns have the table's names. A scan may read them under others, which are those of optimized plans.
    """
    return _if_exact(translated(conjuncts_of(condition), {name: name for name in source.columns.values()}))


def scan_and_filter(engine: Engine, plan: Any) -> tuple[ScanSource, Expression] | None:
    """The one managed scan of an optimized plan and its exact filter; `None`: there is more, or it is not exact."""
    found = _one_scan(plan)
    source = None if found.key is None else engine.scans.sources.get(found.key)
    said = None if source is None else _exact(source, found.conditions)
    return None if source is None or said is None else (source, said)


def _exact(source: ScanSource, conditions: list[Any]) -> Expression | None:
    trees = [tree for condition in conditions for tree in conjuncts_of(condition) if not _is_own(tree)]
    return _if_exact(source.translated(trees))


def _if_exact(said: Translation) -> Expression | None:
    return shortened(said.filter) if said.exact else None


def scanned_key(plan: Any) -> str | None:
    """The key of the one managed scan below projections and filters; `None`: there is something else."""
    return _one_scan(plan).key


def _is_own(tree: CatalystNode) -> bool:
    """Whether a condition is the scan's own: it leaves out deleted rows, and no user can write it."""
    names = {str(node.fields["name"]) for node in tree.every() if node.kind == "AttributeReference"}
    return bool(names) and all(name.startswith(HIDDEN) for name in names)


def shortened(expression: Expression) -> Expression:
    """Without "is not null" where another part of the conjunction says so by comparing."""
    if not isinstance(expression, And):
        return expression
    compared = {part.column for part in expression.parts if isinstance(part, Compare | In | StartsWith)}
    return all_of(
        part
        for part in expression.parts
        if not (isinstance(part, IsNull) and part.negative and part.column in compared)
    )


def _scans(gateway: Gateway, plan: Any) -> Iterator[tuple[str, list[Any]]]:
    """The scans of a plan, those inside subqueries too, each with the filters that stand directly above it."""
    yield from _scans_below(gateway, plan, (), subqueries=not plan.subqueriesAll().isEmpty())


def _scans_below(
    gateway: Gateway, plan: Any, above: tuple[Any, ...], *, subqueries: bool
) -> Iterator[tuple[str, list[Any]]]:
    kind = plan.nodeName()
    if kind in _WITHOUT_FILES:
        return
    if kind == "LogicalRelation":
        if location := _location(plan.relation()):
            yield location, list(above)
        return
    if kind.startswith("InMemoryRelation"):  # what Spark keeps in memory hides the scan that it came from
        yield from _scans(gateway, plan.cacheBuilder().logicalPlan())
    above = (*above, *_conjuncts(gateway, plan.condition())) if kind == "Filter" else ()
    for child in items_of(plan.children()):
        yield from _scans_below(gateway, child, above, subqueries=subqueries)
    for inner in items_of(plan.subqueries()) if subqueries else ():
        yield from _scans(gateway, inner)


def _conjuncts(gateway: Gateway, condition: Any) -> Iterator[Any]:
    """The condition, or the parts of it that say what they say without a subquery."""
    if not gateway.module(spark41.SUBQUERY_EXPRESSION).hasSubquery(condition):
        yield condition
    elif condition.nodeName() == "And":
        yield from _conjuncts(gateway, condition.left())
        yield from _conjuncts(gateway, condition.right())


def condition_of(expression: Expression, rows: DataFrame) -> Column:
    """The filter as a condition on these rows: true at least where the filter may match."""
    match expression:
        case And(parts) | Or(parts):
            made = condition_of(parts[0], rows)
            for part in parts[1:]:
                one = condition_of(part, rows)
                made = made & one if isinstance(expression, And) else made | one
            return made
        case Always() | Opaque():
            return F.lit(True)
        case Never():
            return F.lit(False)
    column = _column(expression.column, rows.schema)
    match expression:
        case IsNull(_, negative):
            return column.isNotNull() if negative else column.isNull()
        case In(_, values, negative):
            listed = column.isin(*[spark_literal(value) for value in values])
            return ~listed if negative else listed
        case StartsWith(_, prefix, negative):
            return ~column.startswith(prefix) if negative else column.startswith(prefix)
        case Compare(_, sign, value):
            return COMPARISONS[sign](column, spark_literal(value))
    raise AssertionError(expression)


def _column(name: str, schema: spark.StructType) -> Column:
    """A column by its name in the metadata, in which a dot leads into a struct, or is part of a name."""
    path: list[str] = []
    inside: Any = schema
    while name:
        found = next(each for each in inside.names if name == each or name.startswith(f"{each}."))
        path.append(found)
        name, inside = name[len(found) + 1 :], inside[found].dataType
    return named_column(*path)
