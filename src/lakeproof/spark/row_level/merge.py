"""MERGE: the target's rows with their places, joined with the source; for each pair the first clause that applies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.commit import Command, Policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import NEVER, all_of
from lakeproof.iceberg.format_v3.lineage import as_stored
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import items_of
from lakeproof.spark.jvm.spark_types import to_spark_schema
from lakeproof.spark.row_level import new_rows
from lakeproof.spark.row_level.effect import RowEffect, amount_read, rows_read, wanted_by, without
from lakeproof.spark.row_level.merge_keys import KEYS_TOLD, Keys, hinted, keys_of, only_matching
from lakeproof.spark.row_level.new_rows import FATE, GONE, READ, WRITTEN, TakenRows, is_told, take
from lakeproof.spark.row_level.row_positions import PLACE, Found, PlacedScan, placed_scan
from lakeproof.spark.row_level.scan_filters import Asked, asked_of_table, shortened
from lakeproof.spark.row_level.target import meaning_on
from lakeproof.spark.statements.analysis import (
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    ParsedCommand,
    ResolvedClause,
    ResolvedCommand,
)

_SOURCE, _CLAUSE = "_lakeproof_source", "_lakeproof_clause"
_PLAIN_NODES = ("LocalRelation", "LogicalRelation", "Range", "Project", "Filter", "Union")
_LEVEL = StorageLevel.MEMORY_AND_DISK
_SMALL_TARGET = 64 * 1024 * 1024


def merge_effect(engine: Engine, table: Table, parsed: ParsedCommand, policy: Policy) -> RowEffect:
    """The rows that a MERGE rewrites, removes and adds."""
    scan = placed_scan(engine, table)
    meant = meaning_on(engine, table, scan.rows, parsed)
    assert meant.source is not None
    plain = meant.source
    read_by_source = asked_of_table(engine, table, plain).reads
    kept = _kept(plain)
    try:
        rows, keys = _outcomes(engine, table, scan, meant)
        said = Asked(asked_of_table(engine, table, rows, scan.files).target, read_by_source)
        read = amount_read(scan, said)
        read = read._replace(bytes=read.bytes + _bytes(plain))
        at_most = read.rows if keys.rows is None else keys.rows
        also = KEYS_TOLD if keys.told else ""
        taken = take(engine, as_stored(table), rows, read=read, at_most=at_most, also=also)
    finally:
        if kept:
            plain.unpersist()
    try:
        if _must_be_unique(meant.clauses):
            _refuse_ambiguous(taken)
        said = _narrowed(engine, table, scan, said, keys, taken)
        targets = scan.found(np.concatenate([taken.places[WRITTEN], taken.places[GONE]]))
        reads = _reads(scan, said, taken, targets)
    except BaseException:
        taken.discard(engine.gateway)
        raise
    return RowEffect(targets, taken.new, reads, wanted_by(said, Command.MERGE, policy))


def _narrowed(engine: Engine, table: Table, scan: PlacedScan, said: Asked, keys: Keys, taken: TakenRows) -> Asked:
    """What was asked of the target, within the ends of the keys that the source told on its way."""
    if taken.also is None or said.target is None:
        return said
    allowed = only_matching(scan.rows, Keys(keys.heard(engine.gateway, taken.also)))
    within = asked_of_table(engine, table, allowed, scan.files).target
    return said._replace(target=NEVER if within is None else shortened(all_of([said.target, within])))


def _outcomes(engine: Engine, table: Table, scan: PlacedScan, meant: ResolvedCommand) -> tuple[DataFrame, Keys]:
    """One row for each pair that a clause acts on, or that was matched in vain; and what the keys say."""
    assert meant.source is not None
    assert meant.condition is not None
    kinds = {clause.when for clause in meant.clauses}
    source = meant.source.select("*", F.lit(True).alias(_SOURCE))
    target, keys = scan.rows, Keys()
    if NOT_MATCHED_BY_SOURCE not in kinds:  # rows without a source row do not matter: their files need not be read
        keys = keys_of(engine, target, source, meant.condition, is_small=_is_small(table, scan))
        target, source = only_matching(target, keys), keys.watched(source)
    how = {
        (False, False): "inner",
        (True, False): "right_outer",
        (False, True): "left_outer",
        (True, True): "full_outer",
    }[NOT_MATCHED in kinds, NOT_MATCHED_BY_SOURCE in kinds]
    hinted_source = hinted(source, keys.rows, preserved=NOT_MATCHED in kinds)
    joined = target.join(hinted_source, meant.condition, how)
    chosen = joined.select("*", _clause(meant.clauses).alias(_CLAUSE))
    in_vain = NOT_MATCHED in kinds or _must_be_unique(meant.clauses)
    matched = _here() & _there() if in_vain else F.lit(False)
    kept = chosen.filter(F.col(_CLAUSE).isNotNull() | matched)
    writes = [number for number, clause in enumerate(meant.clauses) if clause.values is not None]
    is_written = F.col(_CLAUSE).isin(*writes) if writes else F.lit(False)
    fate = F.when(F.col(_CLAUSE).isNull(), READ if NOT_MATCHED in kinds else new_rows.MATCHED)
    fate = fate.when(is_written, WRITTEN).otherwise(GONE)
    # A row that is new has no row of the target beside it, and so no id: it gets one by where it is written.
    rows = kept.select(*_columns(table, meant.clauses), *scan.written_with(), F.col(PLACE), fate.alias(FATE))
    return rows, keys


def _is_small(table: Table, scan: PlacedScan) -> bool:
    """Whether all of the target is read sooner than a pass over the source would say which part of it to read."""
    planned = scan.files.source.planned()
    return planned.bytes_kept <= _SMALL_TARGET and is_told(as_stored(table), planned.rows_kept)


def _here() -> Column:
    """Whether a joined row has a row of the target."""
    return F.col(PLACE).isNotNull()


def _there() -> Column:
    """Whether a joined row has a row of the source."""
    return F.col(_SOURCE).isNotNull()


def _clause(clauses: Sequence[ResolvedClause]) -> Column:
    """The number of the first clause that applies to a joined row, or null."""
    sides = {
        MATCHED: _here() & _there(),
        NOT_MATCHED: ~_here() & _there(),
        NOT_MATCHED_BY_SOURCE: _here() & ~_there(),
    }
    chosen: Any = F
    for number, clause in enumerate(clauses):
        applies = sides[clause.when] if clause.condition is None else sides[clause.when] & clause.condition
        chosen = chosen.when(applies, F.lit(number))
    found: Column = chosen
    return found


def _columns(table: Table, clauses: Sequence[ResolvedClause]) -> list[Column]:
    """Every column of the table after the clause that applies."""
    columns = []
    for at, field in enumerate(to_spark_schema(table.schema()).fields):
        chosen: Any = F
        for number, clause in enumerate(clauses):
            if clause.values is not None:
                chosen = chosen.when(F.col(_CLAUSE) == number, clause.values[at])
        made = F.lit(None).cast(field.dataType) if chosen is F else chosen
        columns.append(made.alias(field.name))
    return columns


def _must_be_unique(clauses: Sequence[ResolvedClause]) -> bool:
    """Whether a row that two source rows match is a mistake: always but where every match deletes, as in Spark."""
    matched = [clause for clause in clauses if clause.when == MATCHED]
    if not matched:
        return False
    return len(matched) > 1 or matched[0].values is not None or matched[0].condition is not None


def _refuse_ambiguous(taken: TakenRows) -> None:
    """Two source rows may not match one row."""
    matched = np.sort(np.concatenate(taken.places))
    if np.any(matched[1:] == matched[:-1]):
        raise InvalidInput(
            "two source rows of the MERGE match one row of the table",
            hint="let the source have one row for each key, for example with GROUP BY or row_number()",
        )


def _reads(scan: PlacedScan, said: Asked, taken: TakenRows, targets: Found) -> Found:
    """Rows that were matched and left as they are, and what the source read of the table."""
    left = without(scan.found(taken.places[READ]), targets)
    for path, positions in rows_read(scan, said, targets).items():
        left[path] = np.union1d(left[path], positions) if path in left else positions
    return left


def _kept(source: DataFrame) -> bool:
    """Whether the source is kept by Spark from now on; what gives the same rows each time need not be."""
    if _is_repeatable(spark41.execution_of(source).optimizedPlan()):
        return False
    source.persist(_LEVEL)
    return True


def _is_repeatable(plan: Any) -> bool:
    """Whether the plan only takes, computes and leaves out rows of files and of local data, always the same ones."""
    kind = plan.nodeName()
    if kind.startswith("InMemoryRelation"):  # somebody keeps it already
        return True
    if kind not in _PLAIN_NODES or not plan.deterministic() or not plan.subqueries().isEmpty():
        return False
    if kind == "LogicalRelation" and plan.relation().getClass().getSimpleName() != "HadoopFsRelation":
        return False
    return all(_is_repeatable(child) for child in items_of(plan.children()))


def _bytes(source: DataFrame) -> int:
    return int(str(spark41.execution_of(source).optimizedPlan().stats().sizeInBytes()))
