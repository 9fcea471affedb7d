"""A table with its whole history in memory: what a scenario's steps happen to."""

from __future__ import annotations

from lakeproof.commit import Commit, CommitWith, Policy, TableChange
from lakeproof.commit.snapshots import new_snapshot
from lakeproof.format import (
    DeleteContent,
    DeleteFile,
    Row,
    Snapshot,
    TableShape,
    TableState,
    equality_hits,
    lineage,
    rows_of,
    visible,
)


class History:
    """Every snapshot ever committed, and which of them were expired."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self.states: dict[int, TableState] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.expired: set[int] = set()
        self.head = TableState()
        self.next_file = 1

    def at(self, snapshot: int | None) -> TableState:
        """The table at a snapshot; `None` is the empty table."""
        return self.states[snapshot] if snapshot else TableState()

    def unseen(self, scan_snapshot: int | None) -> tuple[tuple[Snapshot, ...], int | None]:
        """The commit window after a scan, and one of its snapshots that was expired, if one was."""
        parents = {i: s.parent_id for i, s in self.snapshots.items() if i not in self.expired}
        found = lineage(parents, scan_snapshot=scan_snapshot or None, head_snapshot=self.head.snapshot_id)
        return tuple(self.snapshots[i] for i in found.unseen), found.missing

    def commit(self, change: TableChange, answer: Commit | CommitWith, policy: Policy) -> Snapshot:
        """Apply a validated change to the head."""
        change, answer = self._named(change, answer)
        number = len(self.snapshots) + 1
        self.head, snapshot = new_snapshot(self.head, change, answer, policy, self.shape, number)
        self.states[number], self.snapshots[number] = self.head, snapshot
        return snapshot

    def alter(self, shape: TableShape) -> None:
        """Give the table another shape; from an upgrade to format v3 on, commits give its rows ids."""
        if shape.format_version >= 3 > self.shape.format_version:
            self.head = self.head._replace(next_row_id=0)
        self.shape = shape

    def rows(self) -> tuple[Row, ...]:
        """What a reader of the head sees."""
        return visible(self.head, self.shape.columns)

    def _named(self, change: TableChange, answer: Commit | CommitWith) -> tuple[TableChange, Commit | CommitWith]:
        """Give new data files the names that they are committed under."""
        names: dict[str, str] = {}
        for file in change.added_data_files:
            if file.path.startswith("+"):
                names[file.path] = f"data-{self.next_file}"
                self.next_file += 1
        if names:
            change = change._replace(
                added_data_files=tuple(f._replace(path=names.get(f.path, f.path)) for f in change.added_data_files),
                mapping=change.mapping
                and tuple(m._replace(new_file=names.get(m.new_file, m.new_file)) for m in change.mapping),
            )
            if isinstance(answer, CommitWith):
                answer = answer._replace(carried=tuple((names.get(f, f), bits) for f, bits in answer.carried))
        return change._replace(added_delete_files=tuple(map(self._delete_named, change.added_delete_files))), answer

    def _delete_named(self, file: DeleteFile) -> DeleteFile:
        """Give a new delete file its name, and an equality delete the rows that it hits in this head."""
        if not file.path.startswith("+"):
            return file
        if file.content is DeleteContent.EQUALITY:
            hits = ((data.path, equality_hits(data, file, self.shape.columns)) for data in self.head.data_files)
            file = file._replace(positions=rows_of(hits))
        return file._replace(path=f"delete-{len(self.snapshots) + 1}{file.path}")
