"""DELETE: rows by position, or whole files where metadata says that every row matches."""

from __future__ import annotations

from pyspark.sql import functions as F

from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, And, Expression, Opaque, Or, bound
from lakeproof.format import DataFile
from lakeproof.iceberg.operations import whole_files
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.asked import asked
from lakeproof.spark.row_level.effect import Effect, conflict_filter, named, rows_read
from lakeproof.spark.row_level.places import placed_scan, places_in
from lakeproof.sql.predicates import predicate_from_text
from lakeproof.sql.statements import Delete


def delete_effect(engine: Engine, table: Table, name: str, statement: Delete, policy: Policy) -> Effect:
    """The rows that a DELETE removes."""
    whole = whole_files_of(table, statement.where) if engine.context.whole_files else None
    if whole is not None:
        return Effect({}, conflict_filter=whole[0], whole=whole[1])
    scan = placed_scan(engine, table)
    rows = named(engine, scan, name, statement.alias)
    hit = rows if statement.where is None else rows.filter(F.expr(statement.where))
    said = asked(engine, table, hit, scan.files)
    targets = scan.found(places_in(hit))
    reads = rows_read(scan, said, targets) if targets else {}
    return Effect(targets, reads=reads, conflict_filter=conflict_filter(said, policy))


def whole_files_of(table: Table, where: str | None) -> tuple[Expression, tuple[DataFile, ...]] | None:
    """The predicate and its files, if no file has both rows that match and rows that do not."""
    chosen = ALWAYS if where is None else predicate_from_text(where)
    if not is_exact(chosen):
        return None
    try:
        chosen = bound(chosen, tuple(table.schema().column_names), case_sensitive=False)
        found = whole_files(table, chosen)
    except (InvalidInput, TypeError, ValueError):  # Spark may understand what statistics cannot be asked
        return None
    return None if found.partial else (chosen, found.whole)


def is_exact(expression: Expression) -> bool:
    """Whether every part of the predicate is understood."""
    if isinstance(expression, And | Or):
        return all(is_exact(part) for part in expression.parts)
    return not isinstance(expression, Opaque)
