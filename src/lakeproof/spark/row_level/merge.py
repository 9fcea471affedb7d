"""MERGE: the target's rows with their places, joined with the source; for each pair the first clause that applies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.gateway import items_of
from lakeproof.spark.row_level.asked import Asked, asked
from lakeproof.spark.row_level.effect import Effect, amount_read, conflict_filter, named, rows_read, without
from lakeproof.spark.row_level.merge_keys import Keys, hinted, keys_of, only_matching
from lakeproof.spark.row_level.new_rows import FATE, GONE, READ, WRITTEN, Taken, required, take
from lakeproof.spark.row_level.places import PLACE, Found, PlacedScan, placed_scan
from lakeproof.spark.row_level.update import given_columns
from lakeproof.spark.types import to_spark_schema
from lakeproof.sql.statements import Merge, MergeClause

_SOURCE, _CLAUSE = "_lakeproof_source", "_lakeproof_clause"
_PLAIN_NODES = ("LocalRelation", "LogicalRelation", "Range", "Project", "Filter", "Union")
_LEVEL = StorageLevel.MEMORY_AND_DISK
_MATCHED, _NEW_KEYS, _NO_SOURCE = "matched", "not matched", "not matched by source"


class _Sides(NamedTuple):
    """The two tables of a MERGE, each under the name by which the statement speaks of it."""

    target: DataFrame
    target_name: str
    source: DataFrame
    source_name: str


def merge_effect(engine: Engine, table: Table, name: str, statement: Merge, policy: Policy) -> Effect:
    """The rows that a MERGE rewrites, removes and adds."""
    scan = placed_scan(engine, table)
    source_name = statement.source_alias or _last_part(statement.source)
    plain = _query(engine, f"select * from {statement.source}")
    read_by_source = asked(engine, table, plain).reads
    kept = _kept(plain)
    try:
        sides = _Sides(
            named(engine, scan, name, statement.alias),
            statement.alias or name.rpartition(".")[2],
            kept.withColumn(_SOURCE, F.lit(True)).alias(source_name),
            source_name,
        )
        rows, at_most = _outcomes(engine, table, sides, statement)
        said = Asked(asked(engine, table, rows, scan.files).target, read_by_source)
        read = amount_read(scan, said)
        read = read._replace(bytes=read.bytes + _bytes(plain))
        taken = take(engine, table, rows, read=read, at_most=read.rows if at_most is None else at_most)
    finally:
        if kept is not plain:
            kept.unpersist()
    try:
        _refuse_ambiguous(taken)
        targets = scan.found(np.concatenate([taken.places[WRITTEN], taken.places[GONE]]))
        reads = _reads(scan, said, taken, targets)
    except BaseException:
        taken.discard(engine.gateway)
        raise
    wanted = conflict_filter(said, policy) if policy.filters_by_all_reads else ALWAYS
    return Effect(targets, taken.new, reads, wanted)


def _outcomes(engine: Engine, table: Table, sides: _Sides, statement: Merge) -> tuple[DataFrame, int | None]:
    """One row for each pair that a clause acts on, or that was matched in vain; and about how many have a place."""
    kinds = {clause.when for clause in statement.clauses}
    target, keys = sides.target, Keys()
    if _NO_SOURCE not in kinds:  # rows without a source row do not matter: their files need not be read
        keys = keys_of(engine, target, sides.source, statement.on)
        target = only_matching(target, keys)
    how = {
        (False, False): "inner",
        (True, False): "right_outer",
        (False, True): "left_outer",
        (True, True): "full_outer",
    }[_NEW_KEYS in kinds, _NO_SOURCE in kinds]
    source = hinted(sides.source, keys.rows, preserved=_NEW_KEYS in kinds)
    joined = target.join(source, F.expr(statement.on), how)
    chosen = joined.select("*", _clause(statement.clauses).alias(_CLAUSE))
    matched = F.col(PLACE).isNotNull() & F.col(_SOURCE).isNotNull()
    kept = chosen.filter(F.col(_CLAUSE).isNotNull() | (matched if _NEW_KEYS in kinds else F.lit(False)))
    writes = [number for number, clause in enumerate(statement.clauses) if clause.action != "delete"]
    is_written = F.col(_CLAUSE).isin(*writes) if writes else F.lit(False)
    fate = F.when(F.col(_CLAUSE).isNull(), READ).when(is_written, WRITTEN).otherwise(GONE)
    rows = kept.select(*_columns(table, sides, statement.clauses), F.col(PLACE), fate.alias(FATE))
    return rows, keys.rows


def _clause(clauses: Sequence[MergeClause]) -> Column:
    """The number of the first clause that applies to a joined row, or null."""
    here, there = F.col(PLACE).isNotNull(), F.col(_SOURCE).isNotNull()
    sides = {_MATCHED: here & there, _NEW_KEYS: ~here & there, _NO_SOURCE: here & ~there}
    chosen: Any = F
    for number, clause in enumerate(clauses):
        applies = sides[clause.when]
        if clause.condition is not None:
            applies = applies & F.expr(clause.condition)
        chosen = chosen.when(applies, F.lit(number))
    found: Column = chosen
    return found


def _columns(table: Table, sides: _Sides, clauses: Sequence[MergeClause]) -> list[Column]:
    """Every column of the table after the clause that applies."""
    values = [_values(table, sides, clause) for clause in clauses]
    columns = []
    for field in to_spark_schema(table.schema()).fields:
        chosen: Any = F
        for number, given in enumerate(values):
            if given is not None:
                value = given.get(field.name, F.lit(None)).cast(field.dataType)
                chosen = chosen.when(F.col(_CLAUSE) == number, required(table, field.name, value))
        nothing = F.lit(None).cast(field.dataType)
        columns.append((nothing if chosen is F else chosen).alias(field.name))
    return columns


def _values(table: Table, sides: _Sides, clause: MergeClause) -> dict[str, Column] | None:
    """The columns that a clause writes; `None`: it deletes."""
    if clause.action == "delete":
        return None
    names = [field.name for field in table.schema().fields]
    old = {name: F.col(f"`{sides.target_name}`.`{name}`") for name in names} if clause.action == "update" else {}
    if not clause.assignments:
        return {**old, **_from_source(names, sides)}
    values: dict[str, Column] = dict(old)
    for name, parts in given_columns(table, clause.assignments, sides.target_name).items():
        for path, text in parts:
            values[name] = F.expr(text) if not path else values[name].withField(path, F.expr(text))
    return values


def _from_source(names: Sequence[str], sides: _Sides) -> dict[str, Column]:
    """`*`: every column of the target from the source's column of that name."""
    there = {name.lower(): name for name in sides.source.columns if name != _SOURCE}
    missing = [name for name in names if name.lower() not in there]
    if missing:
        raise InvalidInput(
            f"the source has no column {', '.join(missing)}, which `*` needs", hint="name the columns and their values"
        )
    return {name: F.col(f"`{sides.source_name}`.`{there[name.lower()]}`") for name in names}


def _refuse_ambiguous(taken: Taken) -> None:
    """Two source rows may not both rewrite one row; that both delete it is no contradiction."""
    rewritten = np.sort(taken.places[WRITTEN])
    twice = bool(np.any(rewritten[1:] == rewritten[:-1]))
    if twice or len(np.intersect1d(rewritten, taken.places[GONE])):
        raise InvalidInput(
            "two source rows of the MERGE match one row of the table",
            hint="let the source have one row for each key, for example with GROUP BY or row_number()",
        )


def _reads(scan: PlacedScan, said: Asked, taken: Taken, targets: Found) -> Found:
    """Rows that were matched and left as they are, and what the source read of the table."""
    left = without(scan.found(taken.places[READ]), targets)
    for path, positions in rows_read(scan, said, targets).items():
        left[path] = np.union1d(left[path], positions) if path in left else positions
    return left


def _query(engine: Engine, text: str) -> DataFrame:
    return DataFrame(engine.gateway.session.sql(text), engine.gateway.spark)


def _kept(source: DataFrame) -> DataFrame:
    """The source, computed once; what gives the same rows each time need not be kept."""
    return source if _is_repeatable(source._jdf.queryExecution().optimizedPlan()) else source.persist(_LEVEL)


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
    return int(str(source._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _last_part(source: str) -> str:
    return "_lakeproof_using" if source.startswith("(") else source.replace("`", "").rpartition(".")[2]
