"""An INSERT as Spark's analyzer resolves it: rows with the columns and types of the table, and what they replace.

Spark resolves names, defaults, static partitions and casts, as for any table that can be written; then the command is
ours. All its references to the table must read one snapshot, the one that its change names as its scan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput, Unavailable
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import AppendRows, Engine, Overwrite, OverwritePartitions, WriteMode, version_label
from lakeproof.spark.jvm import spark41
from lakeproof.spark.reading.catalyst import translated, trees_of
from lakeproof.spark.row_level.scan_filters import Asked, asked_of_table
from lakeproof.spark.row_level.target import analyzer_of
from lakeproof.spark.statements.analysis import ParsedInsert

MOST_LOOKS = 50


class ResolvedInsert(NamedTuple):
    """What an INSERT writes into a table, instead of what, and what it reads of the table itself."""

    table: Table
    rows: DataFrame
    mode: WriteMode
    said: Asked


def resolve_insert(engine: Engine, name: str, parsed: ParsedInsert) -> ResolvedInsert:
    """The INSERT on the table's head; it is resolved again when somebody commits while Spark looks at the table."""
    for _ in range(MOST_LOOKS):
        table = engine.session_table(engine.load(name))
        found = _resolved(engine, table, parsed)
        if found is not None:
            return found
    raise Unavailable("the table changes faster than a statement can be resolved", place=f"table {name}")


def _resolved(engine: Engine, table: Table, parsed: ParsedInsert) -> ResolvedInsert | None:
    gateway, analyzer, name = engine.gateway, analyzer_of(engine), f"table {'.'.join(table.name())}"
    command = analyzer.resolved(parsed.plan)
    if command.table().table().toString() != version_label(table):
        return None
    if given := gateway.java_map(command.writeOptions()):
        hint = "use a DataFrame's writer"
        raise InvalidInput(f"the write option `{next(iter(given))}` is not supported here", place=name, hint=hint)
    rows = gateway.dataframe(command.query())
    said = asked_of_table(engine, table, rows)
    head = table.current_snapshot()
    if said.heads - {None if head is None else head.snapshot_id}:
        return None
    return ResolvedInsert(table, rows, _mode(engine, table, command), said)


def _mode(engine: Engine, table: Table, command: Any) -> WriteMode:
    kind = command.nodeName()
    if kind == "AppendData":
        return AppendRows()
    return OverwritePartitions() if kind == "OverwritePartitionsDynamic" else _replaced(engine, table, command)


def _replaced(engine: Engine, table: Table, command: Any) -> Overwrite:
    """The rows of the condition; constants in it (`PARTITION (p = 1)` casts them) are folded as Spark would."""
    gateway = engine.gateway
    asked = gateway.named(spark41.FILTER)(command.deleteExpr(), command.table())
    folded = gateway.module(spark41.CONSTANT_FOLDING).apply(asked).condition()
    names = {name: name for name in table.schema().column_names}
    said = translated(trees_of(gateway, gateway.one(folded)), names)
    if not said.exact:
        raise InvalidInput(
            f"rows cannot be overwritten by `{folded.sql()}`", hint="compare partition columns with literals"
        )
    return Overwrite(said.filter)
