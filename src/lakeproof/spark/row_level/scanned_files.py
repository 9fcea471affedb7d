"""The data files that a command found rows in, as its scan snapshot knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lakeproof.format import DataFile, RowSet, row_set
from lakeproof.iceberg.committing.values import data_file_values
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.row_positions import Found, PlacedScan, deleted_in, head_source, placed_scan, places_in


class Home(NamedTuple):
    """A data file as a value, its partition as Iceberg stores it, its size, and what delete files it has."""

    file: DataFile
    partition: tuple[Any, ...]
    bytes: int = 0
    delete_files: int = 0
    has_equality_deletes: bool = False

    @property
    def path(self) -> str:
        """The path as the manifest spells it."""
        return self.file.path


def homes_of(
    engine: Engine, table: Table, paths: Iterable[str] | None = None, *, columns: Sequence[str] = ()
) -> dict[str, Home]:
    """The data files of the head by path: all, or these; with the bounds of these columns."""
    wanted = None if paths is None else set(paths)
    homes = _homes(table, head_source(engine, table).planned(), columns)
    return {home.path: home for home in homes if wanted is None or home.path in wanted}


def _homes(table: Table, planned: ScanPlan, bounds: Sequence[str]) -> Iterator[Home]:
    equality = [word == "equality" for word in planned.delete_files["content"].to_pylist()]
    columns = (planned.files["size"].to_pylist(), planned.files["delete_files"].to_pylist())
    values = data_file_values(table, planned.picked, bounds)
    for value, partition, size, deletes in zip(values, planned.partitions(), *columns, strict=True):
        yield Home(value, partition, size, len(deletes), any(equality[number] for number in deletes))


def dead_rows(engine: Engine, table: Table, homes: Iterable[Home]) -> Found:
    """The positions of these files that delete files take away; equality deletes are asked of Spark."""
    wanted = {home.path: home for home in homes}
    planned = head_source(engine, table).planned()
    dead = {path: gone for path, gone in deleted_in(table, planned, wanted).items() if path in wanted}
    by_value = [home for home in wanted.values() if home.has_equality_deletes]
    if by_value:
        live = _live(placed_scan(engine, table), by_value)
        for home in by_value:
            every = np.arange(home.file.record_count, dtype=np.int64)
            dead[home.path] = np.setdiff1d(every, live.get(home.path, every[:0]), assume_unique=True)
    return {path: gone for path, gone in dead.items() if len(gone)}


def _live(scan: PlacedScan, homes: Iterable[Home]) -> Found:
    paths = {home.path for home in homes}
    found = scan.found(places_in(scan.rows))
    return {path: positions for path, positions in found.items() if path in paths}


def kept_rows(home: Home, lost: Found) -> RowSet:
    """The rows of a file that stay when these are lost."""
    gone = lost.get(home.path)
    return home.file.all_rows if gone is None else home.file.all_rows & ~row_set(gone)
