"""An independent judge: it reads the store with PyIceberg's decoders and computes the rows itself.

It is told of every move of a table pointer as it happens. A new snapshot must hold exactly the rows that its command
makes of those of its parent; every snapshot of every table must be readable at every such moment and at the end; and
what each command was answered must be what became of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from commands import OP, Command_
from judging_rows import RowWithId, lineage_in, wrong_rows
from judging_version_three import deleted_by, state_of, wrong_ids
from memory_catalogs import Pointers, metadata_at
from memory_store import MemoryIO, files, removed_by
from pyiceberg.manifest import DataFileContent, ManifestEntryStatus, ManifestFile, read_manifest_list
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from rows_in_files import Row, Rows, WriterFailed
from upkeep import CreateAs, Drop, EqualityDelete, Expire, RemoveOrphans, Rename, Tag

from lakeproof import errors

IO = MemoryIO()


class Fault(NamedTuple):
    """Something that must never be."""

    kind: str
    told: str


class Wrong(Exception):
    """The judge's finding, on its way out."""

    def __init__(self, kind: str, told: str) -> None:
        super().__init__(f"{kind}: {told}")
        self.fault = Fault(kind, told)


class Entry(NamedTuple):
    """One live file of a manifest."""

    path: str
    content: DataFileContent
    number: int
    partition: int


class Outcome(NamedTuple):
    """How a command ended, as its caller saw it."""

    command: Command_
    error: BaseException | None
    snapshot_id: int | None
    crashed: bool
    faults: tuple[str, ...]
    unanswered: int
    table: str


class Judge:
    """What is known of all tables of one run."""

    def __init__(self, pointers: Callable[[], Pointers], commands: dict[int, Command_], *, server: bool) -> None:
        self.pointers, self.commands, self.server = pointers, commands, server
        self.before: Pointers = {}
        self.metadata: dict[str, TableMetadata] = {}
        self.expected: dict[int, Rows] = {}
        self.landed: Counter[int] = Counter()
        self.landed_in: dict[int, str] = {}
        self.moved = False  # a table was dropped or renamed: names mean other tables than before
        self.faults: list[Fault] = []
        self._manifests: dict[str, tuple[Entry, ...]] = {}
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        self._rows: dict[str, list[Row]] = {}
        self._ids: dict[str, dict[str, int]] = {}
        self._rows_with_ids: dict[int, dict[int, RowWithId]] = {}  # of each snapshot of format v3, by key
        self._given: Counter[str] = Counter()  # of each table, the first row id that nobody ever had

    # ---- watching

    def observe(self) -> None:
        """Look at what the last call has changed in the catalog."""
        now = self.pointers()
        if now == self.before:
            return
        before, self.before = self.before, now
        for name in set(before) - set(now):
            self.moved = True
            if not any(isinstance(each, Drop | Rename) and each.on == name for each in self.commands.values()):
                self._say("dropped", f"{name} is gone, and nobody has dropped it")
        for name, location in now.items():
            if before.get(name) != location:
                self._changed(name, location)

    def _changed(self, name: str, location: str) -> None:
        metadata = metadata_at(location)
        if metadata is None:
            self._say("unreadable", f"{name}: the metadata file {_last(location)} is gone{_by(location)}")
            return
        self.metadata[location] = metadata
        if name == CreateAs.on and not metadata.snapshots:
            self._say("half made", f"{name} is there without its first snapshot")
        for snapshot in metadata.snapshots:
            if snapshot.snapshot_id not in self.expected:
                self._landed(name, metadata, snapshot)
        self.check_readable(name, metadata)

    def _landed(self, name: str, metadata: TableMetadata, snapshot: Snapshot) -> None:
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        before = {} if snapshot.parent_snapshot_id is None else self.expected.get(snapshot.parent_snapshot_id, {})
        number = said.get(OP)
        after = before if number is None else self.commands[int(number)].apply(before)
        self.expected[snapshot.snapshot_id] = after
        if number is not None:
            self.landed[int(number)] += 1
            self.landed_in[int(number)] = name
            if self.landed[int(number)] > 1:
                self._say("twice", f"command {number} is committed {self.landed[int(number)]} times")
        try:
            rows = self.rows_of(snapshot)
        except Wrong as wrong:
            self.faults.append(wrong.fault)
            return
        if Counter(rows) != Counter(after.values()):
            lost, more = Counter(after.values()) - Counter(rows), Counter(rows) - Counter(after.values())
            told = f"command {number}: missing {sorted(lost.elements())}, too many {sorted(more.elements())}"
            self._say("rows", told)
        if metadata.format_version == 3:
            self._numbered(metadata, snapshot)
        parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        old = {each.manifest_path for each in self._lists.get(parent.manifest_list, ())} if parent else set()
        for manifest in self._lists[snapshot.manifest_list]:
            new = parent is not None and manifest.manifest_path not in old
            if new and manifest.sequence_number != snapshot.sequence_number:
                told = f"manifest has {manifest.sequence_number}, its snapshot {snapshot.sequence_number}"
                self._say("sequence number", told)

    def _numbered(self, metadata: TableMetadata, snapshot: Snapshot) -> None:
        """No row id is given twice, none changes, and the snapshot says which it took."""
        known = self._ids.setdefault(str(metadata.table_uuid), {})
        after = getattr(metadata, "next_row_id", None) or 0
        for told in wrong_ids(state_of(snapshot.manifest_list).data, known, after):
            self._say("row ids", told)
        self._followed(str(metadata.table_uuid), snapshot)
        newest = max(metadata.snapshots, key=lambda each: each.sequence_number or 0)
        end = (newest.first_row_id or 0) + (newest.added_rows or 0)
        if newest.first_row_id is None or end != after:
            self._say("row ids", f"the next row id is {after}, and the newest snapshot ends at {end}")

    def _followed(self, table: str, snapshot: Snapshot) -> None:
        """No row's id is given twice, changed or given again, and every last change is told right."""
        firsts = {each.path: each.first for each in state_of(snapshot.manifest_list).data}
        after = {
            row[0]: (row, *lineage_in(entry.path, firsts[entry.path], entry.number)[at])
            for entry, at, row in self._placed(snapshot)
        }
        before = self._rows_with_ids.get(snapshot.parent_snapshot_id or 0, {})
        for told in wrong_rows(before, after, number=snapshot.sequence_number or 0, given=self._given[table]):
            self._say("ids of rows", told)
        self._rows_with_ids[snapshot.snapshot_id] = after
        self._given[table] = max([self._given[table], *(each[1] + 1 for each in after.values() if each[1] is not None)])

    def check_readable(self, name: str, metadata: TableMetadata) -> None:
        """Every snapshot of the table can be read, every branch and tag points to one."""
        ids = {snapshot.snapshot_id for snapshot in metadata.snapshots}
        for ref, at in metadata.refs.items():
            if at.snapshot_id not in ids:
                self._say("unreadable", f"{name}: `{ref}` points to no snapshot")
        for snapshot in metadata.snapshots:
            try:
                self._live(snapshot)
            except Wrong as wrong:
                self.faults.append(Fault(wrong.fault.kind, f"{name}: {wrong.fault.told}"))
                return

    # ---- reading

    def rows_of(self, snapshot: Snapshot) -> list[Row]:
        """The rows of a snapshot."""
        return [row for _, _, row in self._placed(snapshot)]

    def _placed(self, snapshot: Snapshot) -> list[tuple[Entry, int, Row]]:
        """The rows of a snapshot where they lie: data files without what position and equality deletes take."""
        live = self._live(snapshot)
        gone, wrong = deleted_by(state_of(snapshot.manifest_list).vectors, files)
        if wrong:
            raise Wrong("vectors", wrong[0])
        equal: list[tuple[int, int, set[int]]] = []
        for entry in live:
            if entry.content is DataFileContent.POSITION_DELETES and not entry.path.endswith(".puffin"):
                for path, position in self._read(entry.path, ("file_path", "pos")):
                    gone.setdefault(path, set()).add(position)
            elif entry.content is DataFileContent.EQUALITY_DELETES:
                equal.append((entry.number, entry.partition, {row[0] for row in self._read(entry.path, ("id",))}))
        rows = []
        for entry in live:
            if entry.content is DataFileContent.DATA:
                for at, row in enumerate(self._read(entry.path, ("id", "p", "v"))):
                    if at in gone.get(entry.path, ()):
                        continue
                    if not any(entry.number < n and p == entry.partition and row[0] in ids for n, p, ids in equal):
                        rows.append((entry, at, row))
        return rows

    def _live(self, snapshot: Snapshot) -> list[Entry]:
        self._need(snapshot.manifest_list, f"the manifest list of snapshot {snapshot.snapshot_id}")
        if snapshot.manifest_list not in self._lists:
            listed = tuple(read_manifest_list(IO.new_input(snapshot.manifest_list)))
            self._lists[snapshot.manifest_list] = listed
        found: list[Entry] = []
        for manifest in self._lists[snapshot.manifest_list]:
            self._need(manifest.manifest_path, f"a manifest of snapshot {snapshot.snapshot_id}")
            key = f"{manifest.manifest_path} {manifest.sequence_number}"
            if key not in self._manifests:
                self._manifests[key] = tuple(
                    Entry(
                        entry.data_file.file_path,
                        entry.data_file.content,
                        entry.sequence_number or 0,
                        entry.data_file.partition[0],
                    )
                    for entry in manifest.fetch_manifest_entry(IO)
                    if entry.status is not ManifestEntryStatus.DELETED
                )
            found += self._manifests[key]
        for entry in found:
            self._need(entry.path, f"a {entry.content.name.lower()} file of snapshot {snapshot.snapshot_id}")
        return found

    def _need(self, path: str, what: str) -> None:
        if path not in files:
            raise Wrong("unreadable", f"{what} is gone: {_last(path)}{_by(path)}")

    def _read(self, path: str, columns: tuple[str, ...]) -> list[Any]:
        if path not in self._rows:
            read = pq.read_table(pa.BufferReader(files[path]), columns=list(columns), use_threads=False)
            self._rows[path] = list(zip(*(read[name].to_pylist() for name in columns), strict=True))
        return self._rows[path]

    # ---- the end

    def ended(self, outcomes: list[Outcome]) -> None:
        """Nothing is under way any more: every answer must have been true."""
        self.observe()
        for name, location in self.pointers().items():
            if location not in files:
                self._say("unreadable", f"{name}: its metadata file {_last(location)} is gone{_by(location)}")
            elif location in self.metadata:
                self.check_readable(name, self.metadata[location])
        for outcome in outcomes:
            self._answered(outcome, outcomes)

    def _answered(self, outcome: Outcome, outcomes: list[Outcome]) -> None:
        command, error = outcome.command, outcome.error
        number, landed = command.number, self.landed[command.number]
        told = f"command {number} ({type(command).__name__}) on {outcome.table}"
        if outcome.crashed or isinstance(command, EqualityDelete):
            return
        if error is None:
            if outcome.snapshot_id is not None and not landed:
                self._say("lost", f"{told} was answered ok and is not in the table")
            if isinstance(command, Tag) and command.made and not self.moved:
                self._tagged(command, outcomes)
        elif isinstance(error, errors.CommitUnknown):
            if not outcome.unanswered:
                self._say("unknown", f"{told} ended unknown although every request was answered")
        elif not isinstance(error, errors.LakeproofError):
            self._say("raw error", f"{told}: {error!r}{' though it is committed' if landed else ''}")
        elif landed:
            self._say("refused but committed", f"{told}: {error!r}")
        elif isinstance(error, errors.InvalidInput) and not self._may_be_refused(outcome):
            self._say("wrong family", f"{told}: {' '.join(str(error).split())} ({', '.join(outcome.faults)})")
        elif isinstance(error, errors.Unavailable | WriterFailed) and not outcome.faults:
            self._say("wrong family", f"{told}: {error!r} without any outage")

    def _may_be_refused(self, outcome: Outcome) -> bool:
        """Whether the call itself may be wrong: the table or the snapshot that it names may be gone, or be there."""
        if isinstance(outcome.command, Tag) and "snapshot" in str(outcome.error):
            return True
        if isinstance(outcome.command, RemoveOrphans) and "another table lies" in str(outcome.error):
            return self.server
        return self.moved or outcome.table in (CreateAs.on, Rename.to)

    def _tagged(self, tag: Tag, outcomes: list[Outcome]) -> None:
        """A server cannot be asked whether a tag is new: an expiry may drop it if it says so, or ends unknown."""
        expiries = [each for each in outcomes if isinstance(each.command, Expire)]
        said = any(
            each.crashed or isinstance(each.error, errors.CommitUnknown | errors.CommitConflict) for each in expiries
        )
        now = self.pointers().get(tag.on)
        if now in self.metadata and tag.ref not in self.metadata[now].refs and not (self.server and said):
            self._say("tag", f"`{tag.ref}` was made and is gone")

    def _say(self, kind: str, told: str) -> None:
        self.faults.append(Fault(kind, told))


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _by(path: str) -> str:
    return f", removed by {removed_by[path]}" if path in removed_by else ""
