"""UPDATE: the rows that match, at their places, and their new versions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.asked import asked
from lakeproof.spark.row_level.effect import Effect, amount_read, conflict_filter, named, rows_read
from lakeproof.spark.row_level.new_rows import FATE, WRITTEN, required, take
from lakeproof.spark.row_level.places import PLACE, placed_scan
from lakeproof.spark.types import to_spark_schema
from lakeproof.sql.statements import Update


def update_effect(engine: Engine, table: Table, name: str, statement: Update, policy: Policy) -> Effect:
    """The rows that an UPDATE rewrites, and what they become."""
    scan = placed_scan(engine, table)
    rows = named(engine, scan, name, statement.alias)
    hit = rows if statement.where is None else rows.filter(F.expr(statement.where))
    spoken_of = statement.alias or name.rpartition(".")[2]
    columns = assigned(table, statement.assignments, spoken_of)
    new = hit.select(*columns, F.col(PLACE), F.lit(WRITTEN).alias(FATE))
    said = asked(engine, table, new, scan.files)
    taken = take(engine, table, new, read=amount_read(scan, said))
    targets = scan.found(taken.places[WRITTEN])
    reads = rows_read(scan, said, targets) if targets else {}
    return Effect(targets, taken.new, reads, conflict_filter(said, policy))


def assigned(table: Table, assignments: Sequence[tuple[str, str]], spoken_of: str) -> list[Column]:
    """Every column of the table after the assignments; `spoken_of` is the name or alias of the target."""
    given = given_columns(table, assignments, spoken_of)
    columns = []
    for field in to_spark_schema(table.schema()).fields:
        value = F.col(f"`{spoken_of}`.`{field.name}`")
        for path, text in given.get(field.name, ()):
            value = F.expr(text) if not path else value.withField(path, F.expr(text))
        if field.name in given:
            value = required(table, field.name, value.cast(field.dataType))
        columns.append(value.alias(field.name))
    return columns


def given_columns(
    table: Table, assignments: Sequence[tuple[str, str]], spoken_of: str
) -> dict[str, list[tuple[str, str]]]:
    """The assignments by column; a field inside a struct keeps its path. A column may be assigned once."""
    known = {field.name.lower(): field.name for field in table.schema().fields}
    given: dict[str, list[tuple[str, str]]] = {}
    for target, text in assignments:
        parts = target.split(".")
        while parts[0].lower() not in known and len(parts) > 1:  # the alias, the table or its namespace
            parts = parts[1:]
        name = known.get(parts[0].lower())
        if name is None:
            hint = f"the columns are {', '.join(known.values())}"
            raise InvalidInput(f"there is no column `{target}`", place=f"table {spoken_of}", hint=hint)
        path = ".".join(parts[1:])
        if any(not path or not other or path == other for other, _ in given.get(name, ())):
            raise InvalidInput(f"column `{target}` is assigned twice", place=f"table {spoken_of}")
        given.setdefault(name, []).append((path, text))
    return given
