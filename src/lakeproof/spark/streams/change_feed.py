"""The change feed of a table: which rows each snapshot of a range inserted and deleted, as a view.

Rows that a snapshot only carried from one file into another are paired and left out; so are rows that came and went
again within the range, if the net changes are asked for. A row that was replaced by one with the same identifier can
be told as an update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.history.changes import ChangeWindow, changes_of, window_between
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.refs import snapshot_as_of
from lakeproof.spark.engine import Engine
from lakeproof.spark.reading.columns import named_column, quoted
from lakeproof.spark.streams.changed_rows import ORDINAL, changed_rows, is_insert

CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
_OPTIONS = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")
_SIGN = "_lakeproof_sign"


class Feed(NamedTuple):
    """How the changes are told: with carried rows or without, net, as updates by these columns."""

    remove_carryovers: bool = True
    net_changes: bool = False
    update_columns: tuple[str, ...] | None = None


def change_feed(engine: Engine, table: Table, window: ChangeWindow, feed: Feed) -> DataFrame:
    """The changed rows of a window, each with its change type, its ordinal and its snapshot."""
    if feed.update_columns is not None and feed.net_changes:
        raise InvalidInput("net changes cannot be told as updates", hint="leave out net_changes or compute_updates")
    signed = F.when(is_insert(), F.lit(1)).otherwise(F.lit(-1)).alias(_SIGN)
    changes = changes_of(table, window)
    rows = changed_rows(engine, table, changes, signed, F.col(ORDINAL).alias(CHANGE_ORDINAL))
    names = [field.name for field in table.schema().fields]
    if feed.remove_carryovers or feed.net_changes or feed.update_columns is not None:
        rows = _net(rows, names) if feed.net_changes else _without_carried(rows, names)
    told = F.when(F.col(_SIGN) > 0, F.lit("INSERT")).otherwise(F.lit("DELETE"))
    if feed.update_columns is not None:
        rows, told = _with_updates(rows, feed.update_columns)
    shown = [named_column(name) for name in names]
    return rows.select(*shown, told.alias(CHANGE_TYPE), F.col(CHANGE_ORDINAL), _snapshot_of(window))


def _snapshot_of(window: ChangeWindow) -> Column:
    ids = F.array(*(F.lit(each.snapshot_id).cast("long") for each in window.snapshots)).cast("array<bigint>")
    return F.get(ids, F.col(CHANGE_ORDINAL)).alias(COMMIT_SNAPSHOT)


def _without_carried(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Of equal rows that one snapshot deleted and inserted, as many as are left over."""
    equal = [*(named_column(name) for name in names), F.col(CHANGE_ORDINAL)]
    left = rows.groupBy(*equal).agg(F.sum(_SIGN).alias(_SIGN)).filter(F.col(_SIGN) != 0)
    return _repeated(left)


def _net(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Of equal rows of the whole range, as many as are left over; each says when those began to be."""
    equal = [named_column(name) for name in names]
    sums = rows.groupBy(*equal, CHANGE_ORDINAL).agg(F.sum(_SIGN).alias(_SIGN)).filter(F.col(_SIGN) != 0)
    listed = F.array_sort(F.collect_list(F.struct(CHANGE_ORDINAL, _SIGN))).alias("events")
    start = F.struct(F.lit(0).cast("bigint").alias("left"), F.lit(0).alias("since"))

    def follow(state: Column, event: Column) -> Column:
        left = state["left"] + event[_SIGN]
        begins = (state["left"] == 0) | (F.signum(left) != F.signum(state["left"]))
        return F.struct(
            left.alias("left"), F.when(begins, event[CHANGE_ORDINAL]).otherwise(state["since"]).alias("since")
        )

    ended = sums.groupBy(*equal).agg(listed).withColumn("end", F.aggregate("events", start, follow))
    left = ended.filter(F.col("end.left") != 0)
    told = [F.col("end.since").alias(CHANGE_ORDINAL), F.col("end.left").alias(_SIGN)]
    return _repeated(left.select(*equal, *told))


def _repeated(rows: DataFrame) -> DataFrame:
    """Each row as often as its number says."""
    times = F.explode(F.sequence(F.lit(1).cast("bigint"), F.abs(F.col(_SIGN))))
    return rows.withColumn("_lakeproof_copy", times).drop("_lakeproof_copy")


def _with_updates(rows: DataFrame, identifier: Sequence[str]) -> tuple[DataFrame, Column]:
    """A deleted and an inserted row with the same identifier in one snapshot are the two sides of an update."""
    same = Window.partitionBy(*(named_column(name) for name in identifier), F.col(CHANGE_ORDINAL))
    deleted = F.count(F.when(F.col(_SIGN) < 0, 1)).over(same)
    inserted = F.count(F.when(F.col(_SIGN) > 0, 1)).over(same)
    number = F.row_number().over(same.orderBy(F.col(_SIGN)))  # the deleted row is the first, an inserted one the second
    names = ", ".join(identifier)
    several = F.raise_error(F.lit(f"updates cannot be told: several deleted rows have the same identifier ({names})"))
    counted = rows.withColumns({"_lakeproof_deleted": deleted, "_lakeproof_inserted": inserted, "_lakeproof_n": number})
    is_update = (F.col("_lakeproof_deleted") == 1) & (F.col("_lakeproof_inserted") > 0) & (F.col("_lakeproof_n") <= 2)
    told = (
        F.when(F.col("_lakeproof_deleted") > 1, several.cast("string"))
        .when(is_update & (F.col(_SIGN) < 0), F.lit("UPDATE_BEFORE"))
        .when(is_update, F.lit("UPDATE_AFTER"))
        .when(F.col(_SIGN) > 0, F.lit("INSERT"))
        .otherwise(F.lit("DELETE"))
    )
    return counted, told


def chosen_window(table: Table, options: Mapping[str, str]) -> ChangeWindow:
    """The range that the options say: after the start, up to the end."""
    place = f"table {'.'.join(table.name())}"
    given = {name: _number(name, value, place) for name, value in options.items()}
    for side in ("start", "end"):
        if f"{side}-snapshot-id" in given and f"{side}-timestamp" in given:
            raise InvalidInput(f"{side}-snapshot-id and {side}-timestamp exclude each other", place=place)
    start, end = given.get("start-snapshot-id"), given.get("end-snapshot-id")
    if "end-timestamp" in given:
        end = snapshot_as_of(table, given["end-timestamp"]).snapshot_id
    window = window_between(table, start, end)
    after = given.get("start-timestamp")
    kept = [each for each in window.snapshots if after is None or each.timestamp_ms > after]
    return ChangeWindow(tuple(kept))


def _number(name: str, value: Any, place: str) -> int:
    if name not in _OPTIONS:
        raise InvalidInput(f"there is no option `{name}`", place=place, hint=f"known are {', '.join(_OPTIONS)}")
    if not str(value).lstrip("-").isdigit():
        raise InvalidInput(f"the option `{name}` must be a whole number, not {value!r}", place=place)
    return int(value)


def identifier_of(table: Table, given: Sequence[str]) -> tuple[str, ...]:
    """The columns that identify a row: those given, else the table's identifier fields."""
    place = f"table {'.'.join(table.name())}"
    names = [field.name for field in table.schema().fields]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidInput(f"there is no column `{unknown[0]}`", place=place, hint=f"columns are {', '.join(names)}")
    found = tuple(given) or tuple(sorted(table.schema().identifier_field_names()))
    if not found:
        hint = "give identifier_columns => array('id')"
        raise InvalidInput("updates need columns that identify a row, and the table has none", place=place, hint=hint)
    return found


def create_view(name: str, rows: DataFrame) -> None:
    """The rows under a name of the session."""
    rows.createOrReplaceTempView(name if name.isidentifier() else quoted(name))
