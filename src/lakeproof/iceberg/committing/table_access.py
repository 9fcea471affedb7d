"""A real table as a commit sees it: what `commit.py` asks for is read from manifests and written to files.

Everything is computed anew on every try: the window, the files and their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyiceberg.io import FileIO
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import CheckList, Commit, CommitWith
from lakeproof.commit.rows import asks_of_other_rows
from lakeproof.errors import InvalidInput
from lakeproof.filters import columns_of
from lakeproof.format import Snapshot as WindowSnapshot
from lakeproof.format import TableShape, rows_of
from lakeproof.iceberg.committing.commit import (
    METADATA_WRITTEN,
    Hook,
    SeenHead,
    TakenNumber,
)
from lakeproof.iceberg.committing.physical import (
    BaseSnapshot,
    Wanted,
    described_deletes,
    head_state,
    physical_change,
    with_ranges,
)
from lakeproof.iceberg.committing.pointer import StagedSwap, refreshed, stage, swap
from lakeproof.iceberg.committing.produce import Producer
from lakeproof.iceberg.committing.summary import RETRIES, own_snapshot
from lakeproof.iceberg.committing.values import data_file_value, shape_of
from lakeproof.iceberg.committing.window import load_window, unseen_snapshots, with_rows
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.metadata import require_kept
from lakeproof.iceberg.format_v3.row_moves import ids_of_rows, is_unmapped, with_moves
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, shared_cache
from lakeproof.iceberg.tables.branches import at_ref, ref_of, whole_table
from lakeproof.iceberg.upkeep.reachable import own_files


def remove_files(table: Table, paths: Iterable[str]) -> None:
    """The files are gone, or were before; one that cannot be removed is left as an orphan."""
    remove_from(table.io, paths)


def remove_from(io: FileIO, paths: Iterable[str]) -> None:
    """The same of a store."""
    for path in sorted(set(paths)):
        with suppress(Exception):
            io.delete(path)


class Try(NamedTuple):
    """One try: who wrote its manifests, what else was written for it, and the request when all is written."""

    producer: Producer
    others: list[str]
    staged: list[StagedSwap]


class TableAccess:
    """The table as a commit sees it: the newest metadata, the head of the branch, and the tries so far."""

    def __init__(self, table: Table, wanted: Wanted, cache: ManifestCache | None = None) -> None:
        change, files = wanted.change, wanted.files
        columns = columns_of(change.row_filter) if change.row_filter is not None else ()
        values = tuple(data_file_value(table, file, columns) for file in files.data_files)
        scanned = None if change.scan_snapshot is None else table.snapshot_by_id(change.scan_snapshot)
        self.change = change._replace(
            added_data_files=values,
            added_delete_files=described_deletes(change, files),
            before_row_ids=scanned is not None and scanned.first_row_id is None,
        )
        self.wanted = wanted._replace(change=self.change)
        self.table, self.ref, self.cache = whole_table(table), ref_of(table), cache or shared_cache()
        self.name = ".".join(table.name())
        self.head: Snapshot | None = None
        self.heads: tuple[int | None, int | None] = (None, None)
        self.shape: TableShape
        self.tries: list[Try] = []

    @property
    def head_id(self) -> int | None:
        """The head that was loaded last; `None`: the branch is empty."""
        return None if self.head is None else self.head.snapshot_id

    @property
    def base(self) -> BaseSnapshot:
        """What a try is written on."""
        return BaseSnapshot(self.table, self.head, self.cache)

    def refresh(self) -> None:
        """Load the newest metadata and the head of the branch."""
        place, before = f"table {self.name}", self.head_id
        with translate_errors(place):
            newest = refreshed(self.table)
            if newest.metadata.table_uuid != self.table.metadata.table_uuid:
                raise InvalidInput("the table was dropped and made anew meanwhile", place=place)
            self.table = newest
            head = at_ref(newest, self.ref).metadata.current_snapshot_id
            self.head = None if head is None else newest.snapshot_by_id(head)
            self.heads = before, self.head_id

    def seen(self, checks: CheckList) -> SeenHead:
        """The unseen snapshots and what else the checks ask for; a window that was expired meanwhile has a hole."""
        change = self.change
        with translate_errors(f"table {self.name}"):
            found = unseen_snapshots(self.table, scan_snapshot=change.scan_snapshot, head_snapshot=self.head_id)
            self.shape, missing = shape_of(self.table), found.missing
            columns = columns_of(change.conflict_filter)
            try:
                window = load_window(self.table, found.unseen, checks.needs, columns=columns, cache=self.cache)
                window = self._followed(window, checks) if checks.rows else window
            except (FileNotFoundError, InvalidInput):  # expired between our two looks
                window, missing = (), found.unseen[0]
            if checks.rows:
                window = tuple(with_rows(self.table, each, change.conflict_filter, self.shape) for each in window)
            head = head_state(self.base, change) if checks.head else None
            return SeenHead(with_ranges(self.base, change, window), window, missing, self.shape, head)

    def _followed(self, window: tuple[WindowSnapshot, ...], checks: CheckList) -> tuple[WindowSnapshot, ...]:
        """The window in which row ids tell where rows went, of snapshots that replaced files and recorded nothing."""
        if not any(is_unmapped(self.table, each) for each in window):
            return window
        change, wanted = self.change, None
        if not asks_of_other_rows(change, checks.rows):
            mine = rows_of((*change.targets, *change.reads))
            wanted = ids_of_rows(self.table, change.scan_snapshot, mine, self.cache)
        return tuple(with_moves(self.table, each, self.cache, wanted) for each in window)

    def taken(self) -> TakenNumber:
        """What became of the sequence number that the last request asked for."""
        sent = [each.staged[0].snapshot for each in self.tries if each.staged][-1]
        metadata = self.table.metadata
        if metadata.format_version > 1:
            numbers = {each.sequence_number or 0 for each in metadata.snapshots}
            return TakenNumber(sent.sequence_number or 0, metadata.next_sequence_number() - 1, numbers)
        # Format version 1 counts nothing: one more snapshot on the unbroken line from the expected head is as good.
        before, now = self.heads
        since = unseen_snapshots(self.table, scan_snapshot=before, head_snapshot=now)
        return TakenNumber(1, int(now != before), {1} if since.missing is None else ())

    def write(self, answer: Commit | CommitWith, written: Hook) -> None:
        """Write a new try; `written` hears when its manifests are there, before the request is made ready."""
        mine = Try(Producer(self.table, self.cache), [], [])
        self.tries.append(mine)
        with translate_errors(f"table {self.name}"):
            require_kept(self.table)
            snapshot = self.produced(answer, mine.producer, mine.others)
            written(METADATA_WRITTEN)
            mine.staged.append(stage(self.table, snapshot, self.ref, mine.others))

    def produced(self, answer: Commit | CommitWith, producer: Producer, others: list[str]) -> Snapshot:
        """The snapshot of a try; files beside its manifests are noted in `others`."""
        retries = {RETRIES: str(len(self.tries) - 1)} if len(self.tries) > 1 else {}
        wanted = self.wanted._replace(summary={**self.wanted.summary, **retries})
        change = physical_change(self.base, wanted, answer, self.shape, producer.snapshot_id, others)
        return producer.produce(self.table, self.head, change)

    def swap(self) -> None:
        """Ask the catalog to swap the pointer to the last try."""
        self.table = swap(self.table, self.tries[-1].staged[0])

    def has_moved(self) -> bool:
        """Whether the catalog points to other metadata by now."""
        with translate_errors(f"table {self.name}"):
            return bool(refreshed(self.table).metadata_location != self.table.metadata_location)

    def _own(self) -> Snapshot | None:
        return own_snapshot(self.table, self.change.command_id, {each.producer.snapshot_id for each in self.tries})

    def own_id(self) -> int | None:
        """The snapshot that one of the tries, or an earlier run of the command, has committed."""
        own = self._own()
        return None if own is None else own.snapshot_id

    def sent(self) -> Sequence[int]:
        """The snapshots of the tries that may have been asked for."""
        return [each.producer.snapshot_id for each in self.tries if each.staged]

    def written(self) -> Sequence[str]:
        """Every file that was written here, of all tries; the writer's own files are not among them."""
        return [path for each in self.tries for path in (*each.producer.written, *each.others)]

    def brought(self) -> Sequence[str]:
        """The writer's delete files, unless the commit stands on the very snapshot that they were written for."""
        own = self._own()
        if own is not None and own.parent_snapshot_id == self.change.scan_snapshot:
            return ()
        return [file.file_path for file in self.wanted.files.delete_files]

    def named(self) -> frozenset[str]:
        """What the committed snapshot names; the metadata file that the catalog points to names itself."""
        own = self._own()
        if own is None:
            return frozenset()
        logged = {entry.metadata_file for entry in self.table.metadata.metadata_log}
        return own_files(self.table, own, self.cache) | logged | {self.table.metadata_location}

    def remove(self, paths: Sequence[str]) -> None:
        """Delete these files."""
        remove_files(self.table, paths)
