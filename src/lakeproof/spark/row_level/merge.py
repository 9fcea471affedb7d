"""MERGE: the target's rows with their places, joined with the source; for each pair the first clause that applies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.asked import Asked, asked
from lakeproof.spark.row_level.effect import Effect, bytes_read, conflict_filter, named, rows_read, without
from lakeproof.spark.row_level.merge_keys import key_conditions
from lakeproof.spark.row_level.new_rows import NEW, required, take
from lakeproof.spark.row_level.places import PLACE, PlacedScan, placed_scan
from lakeproof.spark.row_level.update import given_columns
from lakeproof.spark.types import to_spark_schema
from lakeproof.sql.statements import Merge, MergeClause

_SOURCE, _CLAUSE = "_lakeproof_source", "_lakeproof_clause"
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
        rows = _outcomes(engine, table, sides, statement)
        said = Asked(asked(engine, table, rows, scan.files).target, read_by_source)
        taken = take(table, rows, bytes_read=bytes_read(scan, said) + _bytes(plain))
    finally:
        kept.unpersist()
    _refuse_ambiguous(taken.told, statement.clauses)
    acted = taken.told.filter(pc.is_valid(taken.told[_CLAUSE]))
    targets = scan.found(pc.drop_null(acted[PLACE].combine_chunks()))
    reads = _reads(scan, said, taken.told, targets)
    wanted = conflict_filter(said, policy) if policy.filters_by_all_reads else ALWAYS
    return Effect(targets, taken.new, reads, wanted)


def _outcomes(engine: Engine, table: Table, sides: _Sides, statement: Merge) -> DataFrame:
    """One row for each pair that a clause acts on, or that was matched in vain."""
    kinds = {clause.when for clause in statement.clauses}
    target = sides.target
    if _NO_SOURCE not in kinds:  # rows without a source row do not matter: their files need not be read
        target = reduce(DataFrame.filter, key_conditions(engine, target, sides.source, statement.on), target)
    how = {
        (False, False): "inner",
        (True, False): "right_outer",
        (False, True): "left_outer",
        (True, True): "full_outer",
    }[_NEW_KEYS in kinds, _NO_SOURCE in kinds]
    joined = target.join(sides.source, F.expr(statement.on), how)
    chosen = joined.select("*", _clause(statement.clauses).alias(_CLAUSE))
    matched = F.col(PLACE).isNotNull() & F.col(_SOURCE).isNotNull()
    kept = chosen.filter(F.col(_CLAUSE).isNotNull() | (matched if _NEW_KEYS in kinds else F.lit(False)))
    writes = [number for number, clause in enumerate(statement.clauses) if clause.action != "delete"]
    is_new = F.coalesce(F.col(_CLAUSE).isin(*writes), F.lit(False)) if writes else F.lit(False)
    return kept.select(*_columns(table, sides, statement.clauses), F.col(PLACE), F.col(_CLAUSE), is_new.alias(NEW))


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


def _refuse_ambiguous(told: pa.Table, clauses: Sequence[MergeClause]) -> None:
    """Two source rows may not both rewrite one row; that both delete it is no contradiction."""
    acted = told.filter(pc.and_(pc.is_valid(told[_CLAUSE]), pc.is_valid(told[PLACE])))
    places, clause = acted[PLACE].to_numpy(), acted[_CLAUSE].to_numpy()
    order = np.argsort(places, kind="stable")
    same = np.flatnonzero(np.diff(places[order]) == 0)
    rewrites = np.array([one.action != "delete" for one in clauses])
    if len(same) and bool(np.any(rewrites[clause[order[same]]] | rewrites[clause[order[same + 1]]])):
        raise InvalidInput(
            "two source rows of the MERGE match one row of the table",
            hint="let the source have one row for each key, for example with GROUP BY or row_number()",
        )


def _reads(scan: PlacedScan, said: Asked, told: pa.Table, targets: Any) -> Any:
    """Rows that were matched and left as they are, and what the source read of the table."""
    in_vain = told.filter(pc.is_null(told[_CLAUSE]))
    left = without(scan.found(pc.drop_null(in_vain[PLACE].combine_chunks())), targets)
    for path, positions in rows_read(scan, said, targets).items():
        left[path] = np.union1d(left[path], positions) if path in left else positions
    return left


def _query(engine: Engine, text: str) -> DataFrame:
    return DataFrame(engine.gateway.session.sql(text), engine.gateway.spark)


def _kept(source: DataFrame) -> DataFrame:
    """The source, computed once; what is written in the statement itself needs no keeping."""
    local = source._jdf.queryExecution().optimizedPlan().nodeName() == "LocalRelation"
    return source if local else source.persist(StorageLevel.MEMORY_AND_DISK)


def _bytes(source: DataFrame) -> int:
    return int(str(source._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _last_part(source: str) -> str:
    return "_lakeproof_using" if source.startswith("(") else source.replace("`", "").rpartition(".")[2]
