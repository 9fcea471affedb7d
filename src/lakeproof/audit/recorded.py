"""The recorded history as changes: what each commit did, what it must have read, and from which snapshot.

A snapshot that Lakeproof made records its command and its read snapshot. Of another engine's commit both are inferred:
the newest snapshot at which every row that it deletes, and every file that it removes, was still there. A row that it
names again only because it wrote an older delete file anew was not a target: it was dead when it read the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lakeproof.commit import Command, Isolation, Mode, TableChange
from lakeproof.commit.checks import Part
from lakeproof.errors import InvalidInput
from lakeproof.format import DeleteContent, DeleteFile, Operation, Rows, RowSet, Snapshot, rows_of
from lakeproof.iceberg.committing.window import load_snapshot, removed_delete_files, unseen_snapshots
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.manifest_cache import ManifestCache

EVERYTHING = Part(True, True, True)
PARENT = "its read snapshot is not recorded; its parent is assumed, the kindest assumption"
INFERRED = "its read snapshot is not recorded; it cannot be newer than the one named here"


class Recorded(NamedTuple):
    """One commit of the table's history: its change, the index of its scan snapshot (-1: an empty table), a note.

    `blind`: it added delete files that cannot be read, so nobody knows which rows it took.
    """

    place: int
    snapshot: Snapshot
    change: TableChange
    scan: int
    note: str
    blind: bool = False


def snapshots_of(table: Table, cache: ManifestCache) -> tuple[Snapshot, ...]:
    """The snapshots from the oldest that is still recorded to the head."""
    head = table.current_snapshot()
    if head is None:
        return ()
    found = unseen_snapshots(table, scan_snapshot=None, head_snapshot=head.snapshot_id)
    return tuple(_loaded(table, number, cache) for number in found.unseen)


def _loaded(table: Table, number: int, cache: ManifestCache) -> Snapshot:
    try:
        return load_snapshot(table, number, EVERYTHING, cache=cache)
    except InvalidInput:  # a delete file is gone: the state says so; what it held nobody knows
        return load_snapshot(table, number, EVERYTHING._replace(added_delete_files=False), cache=cache)


def read_commits(table: Table, snapshots: tuple[Snapshot, ...], cache: ManifestCache) -> list[Recorded]:
    """Every commit as a change that a policy can judge."""
    said = {one.snapshot_id: _summary(one) for one in table.metadata.snapshots}
    places = {snapshot.snapshot_id: index for index, snapshot in enumerate(snapshots)}
    past = _Past()
    found = []
    for index, snapshot in enumerate(snapshots):
        summary = said.get(snapshot.snapshot_id, {})
        past.forget(removed_delete_files(table, snapshot.snapshot_id, cache=cache))
        scan, note = _scan(index, snapshot, summary, places, past)
        blind = not snapshot.added_delete_files and summary.get("added-delete-files", "0") != "0"
        found.append(Recorded(index, snapshot, _change(snapshot, summary, past, scan), scan, note, blind))
        past.add(index, snapshot)
    return found


def _summary(snapshot: object) -> Mapping[str, str]:
    summary = getattr(snapshot, "summary", None)
    return dict(summary.additional_properties) if summary is not None else {}


class _Past:
    """Which snapshot took which row and which file away, so far."""

    def __init__(self) -> None:
        self.deleted: dict[str, list[tuple[int, RowSet]]] = {}
        self.standing: dict[str, dict[str, tuple[int, RowSet]]] = {}
        self.named: dict[str, Rows] = {}
        self.removed: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def forget(self, delete_files: Iterable[str]) -> None:
        """These delete files left the table: what they held, others hold now."""
        for path in delete_files:
            for file, _ in self.named.pop(path, ()):
                del self.standing[file][path]

    def add(self, index: int, snapshot: Snapshot) -> None:
        for one in _by_position(snapshot):
            self.named[one.path] = one.positions or ()
            for file, rows in one.positions or ():
                self.standing.setdefault(file, {})[one.path] = index, rows
        for file, rows in positions_of(snapshot):
            self.deleted.setdefault(file, []).append((index, rows))
        for data in snapshot.removed_data_files:
            self.removed[data.path] = index
        for data in snapshot.added_data_files:
            self.removed.pop(data.path, None)
            self.counts[data.path] = data.record_count

    def dead(self, file: str, *, before: int) -> RowSet:
        """The rows of a file that position deletes took away before a snapshot."""
        rows = 0
        for index, some in self.deleted.get(file, ()):
            if index < before:
                rows |= some
        return rows


def positions_of(snapshot: Snapshot) -> Rows:
    """The rows that a snapshot's position deletes and vectors name."""
    return rows_of(pair for file in _by_position(snapshot) for pair in file.positions or ())


def _by_position(snapshot: Snapshot) -> list[DeleteFile]:
    return [file for file in snapshot.added_delete_files if file.content is not DeleteContent.EQUALITY]


def _scan(
    index: int, snapshot: Snapshot, summary: Mapping[str, str], places: Mapping[int, int], past: _Past
) -> tuple[int, str]:
    """The index of the snapshot that the commit read, and a note where that is an assumption."""
    written = summary.get("lakeproof.read-snapshot-id", "")
    if written.isdecimal() and int(written) in places:
        return places[int(written)], ""
    newest = index - 1
    for file, rows in positions_of(snapshot):
        standing = past.standing.get(file, {}).values()  # had it seen them, it would have left their rows alone
        newest = min([newest, *(at - 1 for at, some in standing if some & rows)])
        newest = min(newest, past.removed.get(file, index) - 1)
    for data in snapshot.removed_data_files:
        newest = min(newest, past.removed.get(data.path, index) - 1)
    return newest, PARENT if newest == index - 1 else INFERRED


def _change(snapshot: Snapshot, summary: Mapping[str, str], past: _Past, scan: int) -> TableChange:
    before = scan + 1
    targets = rows_of((file, rows & ~past.dead(file, before=before)) for file, rows in positions_of(snapshot))
    command = _command(snapshot, summary)
    replaces = bool(snapshot.removed_data_files)
    kept = rows_of(
        (data.path, ((1 << past.counts.get(data.path, data.record_count)) - 1) & ~past.dead(data.path, before=before))
        for data in snapshot.removed_data_files
        if snapshot.added_data_files
    )
    level = summary.get("lakeproof.isolation", "snapshot")
    return TableChange(
        command=command,
        mode=Mode.COPY_ON_WRITE if replaces else Mode.MERGE_ON_READ,
        isolation=Isolation(level) if level in set(Isolation) else Isolation.SNAPSHOT,
        added_data_files=snapshot.added_data_files,
        removed_data_files=snapshot.removed_data_files,
        added_delete_files=() if replaces else snapshot.added_delete_files,
        required_data_files=() if replaces else tuple(file for file, _ in targets),
        targets=() if replaces else targets,
        kept=kept,
        mapping=snapshot.mapping,
    )


def _command(snapshot: Snapshot, summary: Mapping[str, str]) -> Command:
    word = summary.get("lakeproof.command", "")
    if word in set(Command):
        return Command(word)
    if snapshot.operation is Operation.REPLACE:
        return Command.REWRITE
    if snapshot.operation is Operation.APPEND:
        return Command.INSERT
    if snapshot.adds_no_data:
        return Command.METADATA_DELETE if snapshot.removed_data_files else Command.DELETE
    return Command.UPDATE if snapshot.removed_data_files or snapshot.added_delete_files else Command.INSERT
