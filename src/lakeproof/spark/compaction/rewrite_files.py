"""Data files are written again without some of their rows; the rows that stay keep their order.

Each new file is one task that reads its old files whole, one after the other. So the new place of every row is
arithmetic: what was kept before it, counted. No row travels, nothing is sorted or shuffled.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeproof.errors import LakeproofError
from lakeproof.format import Move, RowMapping
from lakeproof.iceberg.committing.footers import WrittenFile
from lakeproof.iceberg.format_v3.lineage import LAST_UPDATED, ROW_ID, as_stored
from lakeproof.iceberg.pyiceberg_names import DataFile as IcebergFile
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.jvm.session import session_like
from lakeproof.spark.jvm.spark_types import has_collections
from lakeproof.spark.reading import lineage
from lakeproof.spark.reading.columns import history_of, kept_columns, scan_columns
from lakeproof.spark.reading.deletes import DELETED, is_live
from lakeproof.spark.reading.file_index import ScanSource
from lakeproof.spark.reading.scan import Scans
from lakeproof.spark.row_level.row_positions import Found, PlacedFileIndex, placed_source, read_schema
from lakeproof.spark.row_level.scanned_files import Home, kept_rows
from lakeproof.spark.writing.leftovers import removed_if_failed
from lakeproof.spark.writing.repetition import SAMPLED, unrepeated_columns
from lakeproof.spark.writing.spark_write import native_paths, new_folder, tagged, with_statistics
from lakeproof.spark.writing.worker_write import worker_paths

_PART = "_lakeproof_part"
_WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.unionOutputPartitioning": "false",
}
_TOGETHER, _EACH = "0", str(1 << 40)  # the cost of opening a file: nothing, or more than a task may hold
_gateways: WeakKeyDictionary[Engine, dict[str, Gateway]] = WeakKeyDictionary()
Piece = Sequence[Home]
"""The old files of one new file; they are of one partition."""


class RewrittenFiles(NamedTuple):
    """The new files, where the kept rows went, and the folder that holds nothing else."""

    files: tuple[IcebergFile, ...] = ()
    mapping: RowMapping = ()
    folder: str = ""


def rewrite(engine: Engine, table: Table, pieces: Sequence[Piece], lost: Found) -> RewrittenFiles:
    """Each piece as one file (none, where no row is left) without the rows that are lost.

    A row that moves keeps its id and the number of its last change: both are written beside it.
    """
    alone = [home for piece in pieces if len(piece) == 1 for home in piece]
    source = placed_source(engine, table)
    gateway = _gateway(engine, _EACH if alone else _TOGETHER)
    parts = [rows_kept(gateway, table, source, alone, lost)] if alone else []
    for piece in (piece for piece in pieces if len(piece) > 1):
        parts.append(rows_kept(_gateway(engine, _TOGETHER), table, source, piece, lost))
    rows = reduce(DataFrame.unionAll, parts)
    layout = _layout(rows, source)
    folder, stored = new_folder(table), as_stored(table)
    with removed_if_failed(gateway, folder):
        homes = {home.path: home for piece in pieces for home in piece}
        written = _written(gateway, stored, rows, folder, homes.values())
        files = [
            WrittenFile(path, homes[layout[part][0]].partition, homes[layout[part][0]].file.spec_id)
            for path, part in written.items()
        ]
        made = with_statistics(stored, files)
        mapping = tuple(
            move for file in made for move in _moves(file, [homes[p] for p in layout[written[file.file_path]]], lost)
        )
        return RewrittenFiles(made, mapping, folder)


def _moves(file: IcebergFile, inputs: Sequence[Home], lost: Found) -> list[Move]:
    moves, start = [], 0
    for home in inputs:
        kept = kept_rows(home, lost)
        if kept:
            moves.append(Move(home.path, kept, file.file_path, start))
        start += kept.bit_count()
    if start != file.record_count:  # never seen; if it happens, no row may be believed to be where it is
        raise LakeproofError(f"{file.record_count} rows were written where {start} were kept, in {file.file_path}")
    return moves


class _PieceIndex(PlacedFileIndex):
    """Some files of a snapshot, each with the rows that it loses."""

    def __init__(self, gateway: Gateway, source: ScanSource, homes: Sequence[Home], lost: Found) -> None:
        super().__init__(gateway, source, None, frozenset(home.path for home in homes))
        self.lost = lost

    def dead(self, planned: ScanPlan) -> Found:
        """Given, whatever the snapshot's delete files say."""
        return self.lost

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def rows_kept(gateway: Gateway, table: Table, source: ScanSource, homes: Sequence[Home], lost: Found) -> DataFrame:
    """The rows of these files that are not lost."""
    columns = scan_columns(table.schema(), history_of(table))
    index = _PieceIndex(gateway, source, homes, lost)
    fields = [lineage.STORED_ID, lineage.STORED_NUMBER] if index.lineage else []
    rows = Scans(gateway).relation(table, index, read_schema(columns, fields))
    if any(home.path in lost for home in homes):
        rows = rows.filter(kept_columns.get(DELETED, lambda: is_live(gateway.spark)))
    chosen = [column.shown() for column in columns]
    if index.lineage:
        chosen += [lineage.row_id().alias(ROW_ID), lineage.last_updated().alias(LAST_UPDATED)]
    return tagged(rows.select(*chosen), as_stored(table), checked=False)


def _layout(rows: DataFrame, source: ScanSource) -> list[list[str]]:
    """Which files each task reads, in order; the hidden file number of a split says which file it is."""
    paths: list[str] = source.planned().files["path"].to_pylist()
    plan = spark41.execution_of(rows).executedPlan()
    return [
        [paths[file.partitionValues().getInt(0)] for file in part.files()]
        for leaf in items_of(plan.collectLeaves())
        for part in leaf.inputRDD().partitions()
    ]


def _written(gateway: Gateway, table: Table, rows: DataFrame, folder: str, homes: Iterable[Home]) -> Mapping[str, int]:
    """The paths of the new files, each with the number of the task that wrote it."""
    if has_collections(rows.schema):
        numbered = rows.withColumn(_PART, F.spark_partition_id().cast("string"))
        return {path: int(texts[0] or 0) for path, texts in worker_paths(numbered, [_PART], folder, table)}
    largest = heapq.nlargest(SAMPLED, homes, key=lambda home: home.bytes)
    unrepeated = unrepeated_columns(table, [home.path for home in largest])
    found = {}
    for path in native_paths(gateway, rows, [], folder, table, unrepeated=unrepeated):
        number = re.search(r"/part-(\d+)-[^/]*$", path)
        assert number is not None, path
        found[path] = int(number[1])
    return found


def _gateway(engine: Engine, opening: str) -> Gateway:
    """A session beside the engine's in which a task reads files whole: alone, or all of a relation together."""
    known = _gateways.setdefault(engine, {})
    if opening not in known:
        changed = {**_WHOLE_FILES, "spark.sql.files.openCostInBytes": opening}
        known[opening] = Gateway(session_like(engine.gateway.spark, changed))
    return known[opening]
