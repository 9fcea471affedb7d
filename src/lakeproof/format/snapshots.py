"""Snapshots: what each commit did to a table, and the lineage that orders them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from lakeproof.format.files import DataFile, DeleteFile
from lakeproof.format.rows import RowMapping


class Operation(StrEnum):
    """The snapshot's own word for what it did. Rules that can decide by content do not trust it."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REPLACE = "replace"


class StreamBatch(NamedTuple):
    """What one batch of a stream is known by: the query, whose id outlives a restart, and the number of the batch."""

    query_id: str
    epoch: int

    def comes_after(self, other: StreamBatch) -> bool:
        """Whether this is the other one or a later one of the same query, which commits its batches in their order."""
        return self.query_id == other.query_id and self.epoch >= other.epoch


class Snapshot(NamedTuple):
    """One commit, as seen by a writer that did not expect it.

    `gives_row_ids`: from it on every row of the table has an id (format v3).
    """

    snapshot_id: int
    sequence_number: int
    operation: Operation
    parent_id: int | None = None
    added_data_files: tuple[DataFile, ...] = ()
    removed_data_files: tuple[DataFile, ...] = ()
    added_delete_files: tuple[DeleteFile, ...] = ()
    removed_delete_files: tuple[DeleteFile, ...] = ()
    mapping: RowMapping | None = None
    command_id: str = ""
    batch: StreamBatch | None = None
    gives_row_ids: bool = False

    @property
    def adds_no_data(self) -> bool:
        """A pure delete: whatever it removed is gone, not replaced."""
        return not self.added_data_files

    def removes(self, path: str) -> bool:
        """Whether this snapshot took that data file out of the table."""
        return any(file.path == path for file in self.removed_data_files)


class Lineage(NamedTuple):
    """The snapshots between a scan and the head; broken when one of them was expired."""

    unseen: tuple[int, ...]
    missing: int | None = None


def lineage(parents: Mapping[int, int | None], *, scan_snapshot: int | None, head_snapshot: int | None) -> Lineage:
    """The ids after the scan snapshot up to and including the head, oldest first.

    `parents` knows the snapshots that were not expired. The scan snapshot itself may be expired; one inside the window
    may not. A scan of `None` means that the table was empty when it was read.
    """
    unseen: dict[int, None] = {}
    current = head_snapshot
    while current is not None and current != scan_snapshot:
        if current not in parents or current in unseen:  # damaged metadata may lead in a circle
            return Lineage(tuple(reversed(unseen)), missing=current)
        unseen[current] = None
        current = parents[current]
    if current is None and scan_snapshot is not None:
        return Lineage(tuple(reversed(unseen)), missing=scan_snapshot)
    return Lineage(tuple(reversed(unseen)))
