"""Rows with their places: a scan in which every row says in which file and at which position it lies, and its id.

A place is one long, the file's number above, the position below: it leaves Spark through Arrow at eight bytes a row.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.format import Rows, row_set, rows_of
from lakeproof.iceberg.format_v3.lineage import LAST_UPDATED, ROW_ID, has_lineage
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import Positions, deleted_positions
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark_types import FIELD_ID
from lakeproof.spark.reading import lineage
from lakeproof.spark.reading.columns import ScanColumn, history_of, kept_columns, scan_columns
from lakeproof.spark.reading.deletes import (
    DELETED,
    FILE,
    GROUP,
    ROW_INDEX,
    SnapshotDeletes,
    bitmap,
    find_deletes,
    without_deleted,
)
from lakeproof.spark.reading.file_groups import portions_of
from lakeproof.spark.reading.file_index import FileGroup, ManagedFileIndex, ScanSource

PLACE = "_lakeproof_place"
_SHIFT = 40
_HIDDEN = f"{FILE} INT, {GROUP} INT, {DELETED} BINARY"
ROW_ID_HERE = "_lakeproof_row_id"
Found = dict[str, Positions]
"""Positions by data file, ascending."""


class PlacedFileIndex(ManagedFileIndex):
    """A file index that gives every file its number and the bitmap of what is deleted in it."""

    def __init__(
        self, gateway: Gateway, source: ScanSource, deletes: SnapshotDeletes | None, only: frozenset[str] | None = None
    ) -> None:
        self.lineage = has_lineage(source.table)
        super().__init__(gateway, source, f"{_HIDDEN}, {lineage.HIDDEN_SCHEMA}" if self.lineage else _HIDDEN, only)
        self.deletes = deletes
        self.paths: list[str] = source.planned().files["path"].to_pylist()
        self.numbers = {path: number for number, path in enumerate(self.paths)}
        self.id = uuid.uuid4().hex

    def dead(self, planned: ScanPlan) -> Found:
        """The positions that the scan leaves out by bitmap."""
        if self.deletes is None or not self.deletes.by_bitmap:
            return {}
        return deleted_in(self.source.table, planned)

    def groups(self, planned: ScanPlan) -> list[FileGroup]:
        """Every file stands alone."""
        dead, paths = self.dead(planned), planned.files["path"].to_pylist()
        groups = self.deletes.groups if self.deletes is not None else {}
        more = lineage.hidden_values(planned) if self.lineage else [()] * len(paths)
        return [
            FileGroup((self.numbers[paths[n]], groups.get(paths[n], 0), _bits(dead.get(paths[n])), *more[n]), [n])
            for n in self.kept(planned)
        ]

    def toString(self) -> str:
        """Never the same as another: Spark must not take one scan's rows for another's."""
        return f"lakeproof rows {self.id}"

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


class PlacedScan(NamedTuple):
    """The live rows of a table at its head; behind the table's own columns `PLACE`, and where rows have ids theirs."""

    rows: DataFrame
    files: PlacedFileIndex

    def written_with(self) -> list[Column]:
        """What a changed row is written with besides its columns: its id; its number will be that of the commit."""
        if not self.files.lineage:
            return []
        return [self.rows[ROW_ID_HERE].alias(ROW_ID), F.lit(None).cast("long").alias(LAST_UPDATED)]

    def found(self, places: Positions) -> Found:
        """Packed places by data file."""
        packed = np.unique(places)
        cuts = np.flatnonzero(np.diff(packed >> _SHIFT)) + 1
        parts = [part for part in np.split(packed, cuts) if len(part)]
        return {self.files.paths[int(part[0] >> _SHIFT)]: part & ((1 << _SHIFT) - 1) for part in parts}


def placed_scan(engine: Engine, table: Table) -> PlacedScan:
    """The rows of the table's head."""
    source = placed_source(engine, table)
    deletes = find_deletes(source)
    index = PlacedFileIndex(engine.gateway, source, deletes)
    columns = scan_columns(table.schema(), history_of(table))
    rows = engine.scans.relation(table, index, read_schema(columns, [lineage.STORED_ID] if index.lineage else ()))
    if deletes is not None:
        rows = without_deleted(rows, deletes, {c.read.metadata[FIELD_ID]: c.read.name for c in columns})
    hidden = [kept_columns.get(PLACE, _place)]
    if index.lineage:
        hidden.append(kept_columns.get(ROW_ID_HERE, lambda: lineage.row_id().alias(ROW_ID_HERE)))
    return PlacedScan(rows.select(*[column.shown() for column in columns], *hidden), index)


def _place() -> Column:
    return F.shiftleft(F.col(FILE).cast("long"), _SHIFT).bitwiseOR(F.col(ROW_INDEX)).alias(PLACE)


def head_source(engine: Engine, table: Table) -> ScanSource:
    """What plans the table's head."""
    head = table.current_snapshot()
    return engine.scans.source_of(table, None if head is None else head.snapshot_id)


def placed_source(engine: Engine, table: Table) -> ScanSource:
    """The same, if every row has a place that Spark can tell: only in Parquet files with field ids."""
    source = head_source(engine, table)
    others = sorted(other_files(source))
    if others:
        raise InvalidInput(
            f"rows of {', '.join(others)} files cannot be changed one by one",
            place=f"table {source.label}",
            hint="write them anew first: INSERT OVERWRITE the table with SELECT * from it",
        )
    return source


def other_files(source: ScanSource) -> set[str]:
    """The kinds of files in which rows have no places."""
    formats = set(source.planned().files["format"].unique().to_pylist()) - {"PARQUET"}
    adopted = any(portion.by_name for portion in portions_of(source))
    return formats or ({"adopted"} if adopted else set())


def deleted_in(table: Table, planned: ScanPlan, only: Iterable[str] | None = None) -> Found:
    """The positions that delete files and vectors take from the planned files: all, or these."""
    files = planned.files
    if only is not None:
        wanted = pa.array(list(only), pa.large_string())
        files = files.filter(pc.is_in(files["path"], wanted))
    used = pc.unique(pc.list_flatten(files["delete_files"])).sort()
    return deleted_positions(table, planned.delete_files.take(used))


def read_schema(columns: list[ScanColumn], more: Sequence[spark.StructField] = ()) -> spark.StructType:
    """What a scan reads of each file: the columns, these fields, and each row's position."""
    position = spark.StructField(ROW_INDEX, spark.LongType(), True)
    return spark.StructType([*(column.read for column in columns), *more, position])


def places_in(rows: DataFrame) -> Positions:
    """The places of these rows; a row without a place has none."""
    found: Positions = rows.select(PLACE).filter(F.col(PLACE).isNotNull()).toArrow()[PLACE].to_numpy()
    return found


def as_rows(found: Found) -> Rows:
    """Positions by file as the row sets that `commit/` compares."""
    return rows_of((path, row_set(positions)) for path, positions in found.items())


def _bits(positions: Positions | None) -> bytes | None:
    return None if positions is None or not len(positions) else bitmap(positions)
