"""DELETE: whole files where metadata is certain, else the rows that match, at their places."""

from __future__ import annotations

from lakeproof.commit import Command, Policy
from lakeproof.iceberg.committing.whole_file_commits import whole_files
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.row_level.effect import RowEffect, rows_read, wanted_by
from lakeproof.spark.row_level.row_positions import placed_scan, places_in
from lakeproof.spark.row_level.scan_filters import asked_of_table, exact_condition, exact_filter
from lakeproof.spark.row_level.target import meaning_on
from lakeproof.spark.statements.analysis import ParsedCommand


def delete_effect(engine: Engine, table: Table, parsed: ParsedCommand, policy: Policy) -> RowEffect:
    """The rows that a DELETE removes."""
    whole = _whole_files(engine, table, parsed) if engine.watch.whole_files else None
    if whole is not None:
        return whole
    scan = placed_scan(engine, table)
    condition = meaning_on(engine, table, scan.rows, parsed).condition
    hit = scan.rows if condition is None else scan.rows.filter(condition)
    said = asked_of_table(engine, table, hit, scan.files)
    targets = scan.found(places_in(hit))
    reads = rows_read(scan, said, targets) if targets else {}
    return RowEffect(targets, reads=reads, conflict_filter=wanted_by(said, Command.DELETE, policy))


def _whole_files(engine: Engine, table: Table, parsed: ParsedCommand) -> RowEffect | None:
    """The files that go, if no file has both rows that match and rows that do not.

    What the condition says does not depend on the snapshot; a scan with places is made when rows must be found.
    """
    scan = engine.shape(table)
    meant = meaning_on(engine, table, scan.rows, parsed)
    chosen = exact_condition(scan.source, meant.said)
    if chosen is None:  # the optimizer folds constants, unwraps casts and drops what says nothing
        assert meant.condition is not None
        hit = scan.rows.filter(meant.condition)
        chosen = exact_filter(scan.source, spark41.execution_of(hit).optimizedPlan())
    found = None if chosen is None else whole_files(table, chosen)
    if chosen is None or found is None or found.partial:
        return None
    return RowEffect({}, conflict_filter=chosen, whole=found.whole)
