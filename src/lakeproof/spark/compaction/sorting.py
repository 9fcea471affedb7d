"""Compaction that sorts: the rows of a partition in the order of some columns, or along a curve through several.

Rows change their places among each other, and nobody records how. So what others delete of them meanwhile is a
conflict, which sorts their partition again, and nothing is carried over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.iceberg.committing.footers import WrittenFile
from lakeproof.iceberg.format_v3.lineage import as_stored
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.evolution import SortedBy, sorted_by
from lakeproof.iceberg.tables.tables import PartitionBy, find_column, name_parts
from lakeproof.spark.compaction.plan import Partition
from lakeproof.spark.compaction.rewrite_files import Piece, RewrittenFiles, rows_kept
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.spark_types import has_collections
from lakeproof.spark.row_level.row_positions import Found, placed_source
from lakeproof.spark.row_level.scanned_files import Home, kept_rows
from lakeproof.spark.writing.leftovers import removed_if_failed
from lakeproof.spark.writing.ordering import sort_column
from lakeproof.spark.writing.spark_write import native_paths, new_folder, with_statistics
from lakeproof.spark.writing.worker_write import worker_paths
from lakeproof.sql import parse_sort_order

_CURVE = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_MOST_BITS, _PLACE = 60, "_lakeproof_place"


class Sorting(NamedTuple):
    """By what rows are sorted: a list of columns, or a curve through the space of several (`zorder`)."""

    order: tuple[SortedBy, ...] = ()
    curve: tuple[str, ...] = ()

    def sorted(self, table: Table, rows: DataFrame, count: int) -> DataFrame:
        """The rows in so many sorted parts, each later than the one before."""
        columns = [F.col(_PLACE)] if self.curve else [sort_column(table, each) for each in self.order]
        rows = rows.withColumn(_PLACE, _curve(table, self.curve)) if self.curve else rows
        parts = rows.coalesce(1) if count == 1 else rows.repartitionByRange(count, *columns)
        return parts.sortWithinPartitions(*columns).drop(_PLACE)


def sorting_of(table: Table, text: str | None) -> Sorting:
    """What a call says (`id DESC NULLS LAST`, `zorder(a, b)`); nothing: the order that the table has."""
    place = f"table {'.'.join(table.name())}"
    if text is None:
        known = tuple(sorted_by(table, field) for field in table.sort_order().fields)
        if not known:
            hint = "give sort_order, or say ALTER TABLE … WRITE ORDERED BY"
            raise InvalidInput("the table has no sort order", place=place, hint=hint)
        return Sorting(known)
    curve = _CURVE.fullmatch(text)
    if curve is not None:
        names = tuple(".".join(name_parts(each.strip())) for each in curve[1].split(","))
        for name in names:
            find_column(table.schema(), name, place)
        return Sorting(curve=names)
    found = []
    for each in parse_sort_order(text):
        column = ".".join(name_parts(each.field.column))
        find_column(table.schema(), column, place)
        found.append(SortedBy(PartitionBy(column, each.field.transform), each.descending, each.nulls_first))
    return Sorting(tuple(found))


def _curve(table: Table, names: Sequence[str]) -> Column:
    """The place of a row on a curve: the bits of its ranks by each column, one of each in turn."""
    bits = min(10, _MOST_BITS // len(names))
    place = F.lit(0).cast("bigint")
    for number, name in enumerate(names):
        by = sort_column(table, SortedBy(PartitionBy(name)))
        rank = (F.percent_rank().over(Window.orderBy(by)) * ((1 << bits) - 1)).cast("bigint")
        for bit in range(bits):
            one = F.shiftright(rank, bit).bitwiseAND(F.lit(1).cast("bigint"))
            place = place + F.shiftleft(one, bit * len(names) + number)
    return place


def together(pieces: Iterable[Piece]) -> list[Piece]:
    """All files of a partition in one piece."""
    found: dict[Partition, list[Home]] = {}
    for piece in pieces:
        for home in piece:
            found.setdefault((home.file.spec_id, home.partition), []).append(home)
    return list(found.values())


def rewrite_sorted(
    engine: Engine, table: Table, piece: Piece, lost: Found, order: Sorting, target_bytes: int
) -> RewrittenFiles:
    """The files of one partition as files of about the target size, sorted, without the rows that are lost.

    A row keeps its id and the number of its last change, as wherever it moves.
    """
    gateway, folder, stored = engine.gateway, new_folder(table), as_stored(table)
    rows = rows_kept(gateway, table, placed_source(engine, table), piece, lost)
    count = max(1, -(-sum(home.bytes for home in piece) // target_bytes))
    with removed_if_failed(gateway, folder):
        paths = _paths(engine, stored, order.sorted(table, rows, count), folder)
        files = [WrittenFile(path, piece[0].partition, piece[0].file.spec_id) for path in paths]
        made = with_statistics(stored, files)
        written = sum(file.record_count for file in made)
        wanted = sum(kept_rows(home, lost).bit_count() for home in piece)
        if written != wanted:  # never seen; if it happens, nothing may be replaced by it
            raise LakeproofError(f"{written} rows were written where {wanted} were kept, in {folder}")
        return RewrittenFiles(made, (), folder)


def _paths(engine: Engine, table: Table, rows: DataFrame, folder: str) -> list[str]:
    if has_collections(rows.schema):
        return [path for path, _ in worker_paths(rows, [], folder, table)]
    return native_paths(engine.gateway, rows, [], folder, table)
