"""UPDATE: the rows that match, at their places, and their new versions."""

from __future__ import annotations

from pyspark.sql import functions as F

from lakeproof.commit import Command, Policy
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.effect import Effect, amount_read, rows_read, wanted_by
from lakeproof.spark.row_level.new_rows import FATE, WRITTEN, take
from lakeproof.spark.row_level.row_positions import PLACE, placed_scan
from lakeproof.spark.row_level.scan_filters import asked
from lakeproof.spark.row_level.target import meaning_on
from lakeproof.spark.statements.analysis import ParsedCommand


def update_effect(engine: Engine, table: Table, parsed: ParsedCommand, policy: Policy) -> Effect:
    """The rows that an UPDATE rewrites, and what they become."""
    scan = placed_scan(engine, table)
    meant = meaning_on(engine, table, scan.rows, parsed)
    hit = scan.rows if meant.condition is None else scan.rows.filter(meant.condition)
    names = [field.name for field in table.schema().fields]
    values = [value.alias(name) for name, value in zip(names, meant.values, strict=True)]
    new = hit.select(*values, scan.rows[PLACE], F.lit(WRITTEN).alias(FATE))
    said = asked(engine, table, new, scan.files)
    taken = take(engine, table, new, read=amount_read(scan, said))
    targets = scan.found(taken.places[WRITTEN])
    reads = rows_read(scan, said, targets) if targets else {}
    return Effect(targets, taken.new, reads, wanted_by(said, Command.UPDATE, policy))
