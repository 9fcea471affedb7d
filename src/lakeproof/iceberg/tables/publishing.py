"""What was staged or written on a branch is brought to main: cherry-pick, publish by id, fast-forward.

Where the head is what the snapshot stands on, main moves to the very snapshot. Else its files are committed again on
top of the head, if that means what it meant: rows that were added, or partitions that were replaced and that nobody has
changed since. Whether it was published already is asked of the newest metadata in every attempt.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakeproof.commit import CheckList, Command, Isolation, Mode, TableChange, checks_of
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import Expression, any_of, worded
from lakeproof.format import rows_of
from lakeproof.iceberg.committing.commit import Committed, Hook, SeenHead, TableCalls, no_hook
from lakeproof.iceberg.committing.physical import NewFiles, Wanted
from lakeproof.iceberg.committing.retrying import change_metadata
from lakeproof.iceberg.committing.summary import CONFLICT_FILTER, MADE_BY, REPLACE_PARTITIONS, record_of
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.committing.table_commits import POLICY_PROPERTY, go_through
from lakeproof.iceberg.committing.values import data_file_value
from lakeproof.iceberg.committing.whole_file_commits import partition_filter
from lakeproof.iceberg.format_v3.row_ids import entries_of
from lakeproof.iceberg.reading.manifest_cache import manifests_of
from lakeproof.iceberg.tables.branches import WAP_ID
from lakeproof.iceberg.tables.refs import ancestors, known_snapshot, move_branch

PUBLISHED_ID, SOURCE_ID = "published-wap-id", "source-snapshot-id"


class MovedBranch(NamedTuple):
    """A branch that moved: from where (`None`: it was not there), and to where."""

    table: Table
    before: int | None
    after: int


def publish_changes(table: Table, wap_id: str, on_phase: Hook = no_hook) -> MovedBranch:
    """The snapshot that waits under this `wap.id` is on main; `before` is that snapshot."""
    waiting = [each for each in table.metadata.snapshots if _said(each).get(WAP_ID) == wap_id]
    if len(waiting) != 1:
        there = "no snapshot waits" if not waiting else f"{len(waiting)} snapshots wait"
        staged = sorted({_said(each)[WAP_ID] for each in table.metadata.snapshots if WAP_ID in _said(each)})
        hint = f"staged are {', '.join(staged) or 'none'}" if not waiting else "cherry-pick one by its snapshot id"
        raise InvalidInput(f"{there} under the id `{wap_id}`", place=_place(table), hint=hint)
    return cherrypick_snapshot(table, waiting[0].snapshot_id, on_phase)


def cherrypick_snapshot(table: Table, snapshot_id: int, on_phase: Hook = no_hook) -> MovedBranch:
    """What the snapshot changed is on main too, as a snapshot of its own or, where nothing came between, as itself."""
    known_snapshot(table, snapshot_id)
    moved = change_metadata(table, lambda newest: _forwarded(newest, snapshot_id))
    if isinstance(moved, MovedBranch):
        return moved
    table, snapshot = moved, known_snapshot(moved, snapshot_id)
    change, files = _picked(table, snapshot)
    said = _said(snapshot)
    policy = named_policy(table.properties.get(POLICY_PROPERTY, "lakeproof"))
    summary = {SOURCE_ID: str(snapshot_id), **({PUBLISHED_ID: said[WAP_ID]} if WAP_ID in said else {})}
    wanted = Wanted(change, NewFiles(files), policy, {**record_of(change, policy, 0), **summary})
    checks = checks_of(policy, change.command, change.mode, change.isolation, table.format_version)
    calls = TableCalls(_Publishing(table, wanted, snapshot_id), policy, checks, on_phase, reruns_left=False)
    done = go_through(calls, table.properties)
    assert isinstance(done, Committed)  # it cannot run again: its rows are written
    return MovedBranch(done.table, snapshot_id, done.snapshot_id or snapshot_id)


def fast_forward(table: Table, branch: str, to: str) -> MovedBranch:
    """The branch is where the other is, which must be ahead of it; a branch that is not there begins there."""

    def change(newest: Table) -> MovedBranch:
        target, known = newest.metadata.refs.get(to), newest.metadata.refs.get(branch)
        if target is None:
            names = ", ".join(sorted(newest.metadata.refs)) or "none"
            raise InvalidInput(f"there is no branch `{to}`", place=_place(table), hint=f"branches and tags: {names}")
        if known is not None and known.snapshot_ref_type.value != "branch":
            raise InvalidInput(f"`{branch}` is a tag and cannot move", place=_place(table), hint="name a branch")
        at = target.snapshot_id
        if known is not None and known.snapshot_id not in {each.snapshot_id for each in ancestors(newest, at)}:
            raise InvalidInput(
                f"`{branch}` cannot be fast-forwarded: its head is not an ancestor of `{to}`",
                place=_place(table),
                hint="somebody committed on it since; cherry-pick the snapshots instead",
            )
        return MovedBranch(move_branch(newest, at, branch), None if known is None else known.snapshot_id, at)

    return change_metadata(table, change)


class _Publishing(TableAccess):
    """A commit of files that a snapshot of the table has already: refused once anybody has published that snapshot."""

    def __init__(self, table: Table, wanted: Wanted, source: int) -> None:
        super().__init__(table, wanted)
        self.source = source

    def seen(self, checks: CheckList) -> SeenHead:
        """What validation looks at, if the snapshot is not published by now."""
        _refuse_published(self.table, self.source)
        return super().seen(checks)


def _forwarded(table: Table, snapshot_id: int) -> MovedBranch | Table:
    """Main at the snapshot itself, where it stands on main's head; else the table."""
    _refuse_published(table, snapshot_id)
    snapshot, head = known_snapshot(table, snapshot_id), table.metadata.current_snapshot_id
    if snapshot.parent_snapshot_id != head:
        return table
    return MovedBranch(move_branch(table, snapshot_id), snapshot_id, snapshot_id)


def _refuse_published(table: Table, snapshot_id: int) -> None:
    """A snapshot is published once: not where main holds it, its files or its `wap.id` already."""
    wap_id = _said(known_snapshot(table, snapshot_id)).get(WAP_ID)
    for each in ancestors(table):
        said = _said(each)
        if each.snapshot_id == snapshot_id or said.get(SOURCE_ID) == str(snapshot_id):
            raise InvalidInput(f"snapshot {snapshot_id} is on main already", place=_place(table))
        if wap_id is not None and wap_id in (said.get(PUBLISHED_ID), said.get(WAP_ID)):
            raise InvalidInput(f"changes with the id `{wap_id}` were published already", place=_place(table))


def _picked(table: Table, snapshot: Snapshot) -> tuple[TableChange, tuple[IcebergFile, ...]]:
    """The snapshot as a change of the head; one that read or changed rows of its own head cannot be moved."""
    added = _files(table, snapshot, ManifestEntryStatus.ADDED)
    said, operation = _said(snapshot), snapshot.summary.operation if snapshot.summary else None
    read_itself = said.get(MADE_BY) == Command.INSERT_SELECT and said.get("lakeproof.isolation") != Isolation.SNAPSHOT
    base = TableChange(
        Command.INSERT,
        command_id=str(uuid.uuid4()),
        scan_snapshot=table.metadata.current_snapshot_id,
        scan_sequence_number=table.metadata.next_sequence_number() - 1,
    )
    if operation is Operation.APPEND and not read_itself:
        return base, added
    where = any_of(partition_filter(table, data_file_value(table, file)) for file in added)
    if operation is Operation.OVERWRITE and said.get(REPLACE_PARTITIONS) == "true" and _reads_no_more(said, where):
        removed = _files(table, snapshot, ManifestEntryStatus.DELETED)
        return _replacing(base, table, snapshot, where, removed), added
    raise InvalidInput(
        f"snapshot {snapshot.snapshot_id} cannot be moved onto the head: it is no plain append and no replacement of "
        "partitions",
        place=_place(table),
        hint="it can be published while main is where it was; else run its statement again",
    )


def _replacing(
    base: TableChange, table: Table, snapshot: Snapshot, where: Expression, removed: tuple[IcebergFile, ...]
) -> TableChange:
    """Partitions are replaced as the snapshot saw them: whatever came into them since is a conflict."""
    parent = snapshot.parent_snapshot_id
    if parent is not None and parent not in {each.snapshot_id for each in ancestors(table)}:
        raise InvalidInput(
            f"snapshot {snapshot.snapshot_id} does not stand on an ancestor of main's head",
            place=_place(table),
            hint="run its statement again",
        )
    scanned = None if parent is None else table.snapshot_by_id(parent)
    values = tuple(data_file_value(table, file) for file in removed)
    return base._replace(
        command=Command.OVERWRITE_PARTITIONS,
        mode=Mode.COPY_ON_WRITE,
        isolation=Isolation.SERIALIZABLE,
        scan_snapshot=parent,
        scan_sequence_number=0 if scanned is None else scanned.sequence_number or 0,
        conflict_filter=where,
        removed_data_files=values,
        targets=rows_of((value.path, value.all_rows) for value in values),
        mapping=(),
    )


def _reads_no_more(said: Mapping[str, str], where: Expression) -> bool:
    """Whether the statement looked at nothing but the partitions that it replaced; of others' commits nobody knows."""
    return MADE_BY not in said or said.get(CONFLICT_FILTER) == worded(where)


def _files(table: Table, snapshot: Snapshot, status: ManifestEntryStatus) -> tuple[IcebergFile, ...]:
    """The data files that the snapshot itself added or removed."""
    found = []
    for manifest in manifests_of(table.io, snapshot):
        if manifest.content != ManifestContent.DATA or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in entries_of(table.io, manifest):
            if entry.status == status and entry.snapshot_id == snapshot.snapshot_id:
                entry.data_file.spec_id = manifest.partition_spec_id
                found.append(entry.data_file)
    return tuple(found)


def _said(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}


def _place(table: Table) -> str:
    return f"table {'.'.join(table.name())}"
