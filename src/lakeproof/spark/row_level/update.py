"""UPDATE: the rows that match, at their places, and their new versions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeproof.commit import Command, Policy
from lakeproof.iceberg.format_v3.lineage import as_stored
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.effect import RowEffect, amount_read, rows_read, wanted_by
from lakeproof.spark.row_level.new_rows import FATE, WRITTEN, take
from lakeproof.spark.row_level.row_positions import PLACE, PlacedScan, placed_scan
from lakeproof.spark.row_level.scan_filters import asked_of_table
from lakeproof.spark.row_level.target import meaning_on
from lakeproof.spark.statements.analysis import ParsedCommand


def update_effect(engine: Engine, table: Table, parsed: ParsedCommand, policy: Policy) -> RowEffect:
    """The rows that an UPDATE rewrites, and what they become."""
    scan = placed_scan(engine, table)
    meant = meaning_on(engine, table, scan.rows, parsed)
    hit = scan.rows if meant.condition is None else scan.rows.filter(meant.condition)
    new_values = zip(table.schema().fields, meant.values, strict=True)
    values = [_only_where_found(scan, value).alias(field.name) for field, value in new_values]
    new = hit.select(*values, *scan.written_with(), scan.rows[PLACE], F.lit(WRITTEN).alias(FATE))
    said = asked_of_table(engine, table, new, scan.files)
    taken = take(engine, as_stored(table), new, read=amount_read(scan, said))
    targets = scan.found(taken.places[WRITTEN])
    reads = rows_read(scan, said, targets) if targets else {}
    return RowEffect(targets, taken.new, reads, wanted_by(said, Command.UPDATE, policy))


def _only_where_found(scan: PlacedScan, value: Column) -> Column:
    """The value inside a condition that every row meets.

    Spark computes constants before it reads a row, unless they stand in a branch: an UPDATE that finds no row must not
    fail over a value that nobody would have stored.
    """
    return F.when(scan.rows[PLACE].isNotNull(), value)
