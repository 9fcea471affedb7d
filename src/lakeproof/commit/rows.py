"""The questions that Lakeproof asks of rows, as a fold over the unseen snapshots.

For each row that a change read, somebody else's commit leaves it here (perhaps at a new place), deletes it, updates it
(it may live on with other values) or loses it (nobody recorded where it went). Two deletes of one row agree; nothing
else does. A DELETE that finds its row updated asks whether it would hit the new version, as if it had started later.
"""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation, TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.filters import matches, may_match_file
from lakeproof.format import (
    DataFile,
    DeleteContent,
    Operation,
    RowMapping,
    Rows,
    RowSet,
    Snapshot,
    TableShape,
    images,
    moved,
    rows_of,
)

NOWHERE = ""
"""The file of rows that were lost: no snapshot ever touches it, so they count for ever."""


class Touched(NamedTuple):
    """What one snapshot did to rows that were there before it. Unknown: it deletes rows, and nobody can say which."""

    positions: dict[str, RowSet]
    equality: dict[str, RowSet]
    unknown_positions: bool
    unknown_equality: bool
    removed: frozenset[str]
    mapping: RowMapping | None
    pure_delete: bool


def touched(snapshot: Snapshot) -> Touched:
    """The snapshot's deletes and removals, by file."""
    positions: dict[str, RowSet] = {}
    equality: dict[str, RowSet] = {}
    unknown = set()
    for delete in snapshot.added_delete_files:
        by_value = delete.content is DeleteContent.EQUALITY
        if delete.positions is None:
            unknown.add(by_value)
            continue
        hits = equality if by_value else positions
        for file, rows in delete.positions:
            hits[file] = hits.get(file, 0) | rows
    removed = frozenset([file.path for file in snapshot.removed_data_files])
    return Touched(
        positions, equality, False in unknown, True in unknown, removed, snapshot.mapping, snapshot.adds_no_data
    )


class Walked(NamedTuple):
    """The fates of rows after one more snapshot; `here` says where they are now."""

    here: Rows
    deleted: Rows
    updated: Rows
    lost: Rows


NO_ROWS = Walked((), (), (), ())


def walked(rows: Rows, by: Touched) -> Walked:
    """Follow rows through one snapshot. Decided by content, never by the snapshot's operation."""
    if not rows:
        return NO_ROWS
    here: list[tuple[str, RowSet]] = []
    gone: list[tuple[str, RowSet]] = []
    updated: list[tuple[str, RowSet]] = []
    lost: list[tuple[str, RowSet]] = []
    for file, bits in rows:
        if (by.unknown_positions or by.unknown_equality) and file != NOWHERE:
            lost.append((file, bits))
            continue
        hit = bits & hits_of(file, by)
        if hit:
            (gone if by.pure_delete else updated).append((file, hit))
            bits ^= hit
        if not bits:
            continue
        if file not in by.removed:
            here.append((file, bits))
        elif by.pure_delete:
            gone.append((file, bits))
        elif by.mapping is None:
            lost.append((file, bits))
        else:
            places, not_kept = moved(by.mapping, file, bits)
            here.extend(places)
            if not_kept:
                updated.append((file, not_kept))
    return Walked(rows_of(here) if len(here) > 1 else tuple(here), tuple(gone), tuple(updated), tuple(lost))


def hits_of(file: str, by: Touched) -> RowSet:
    """The rows of a file that the snapshot's delete files are known to take away."""
    return by.positions.get(file, 0) | by.equality.get(file, 0)


class RowMemory(NamedTuple):
    """What the row checks will still ask.

    `carried` are deletes of rows that my rewrite keeps, at their places in my own new files.

    `missed` is `None` while nobody updated a row that a DELETE removes, or when it would not have mattered. Otherwise
    it holds, for each snapshot since the last such update, the rows that the DELETE would have hit there and that
    nobody deleted since: one empty set among them and the DELETE is what it would have been, had it started there.
    """

    targets: Rows = ()
    carried: Rows = ()
    reads: Rows = ()
    reads_changed: bool = False
    restarted: bool = False
    unseen: Rows = ()
    missed: frozenset[Rows] | None = None


def remembered(change: TableChange) -> RowMemory:
    """What a change knows of its rows at its scan snapshot."""
    return RowMemory(targets=change.targets, reads=change.reads)


class RowStep(NamedTuple):
    """One more unseen snapshot, what it did to rows, and which checks are asked of the change."""

    change: TableChange
    snapshot: Snapshot
    by: Touched
    asked: frozenset[str]
    shape: TableShape


def followed(
    change: TableChange,
    memory: RowMemory,
    snapshot: Snapshot,
    asked: frozenset[str],
    shape: TableShape,
    by: Touched | None = None,
) -> RowMemory | Conflict:
    """The memory after one more unseen snapshot, or the conflict that nothing later can undo."""
    step = RowStep(change, snapshot, touched(snapshot) if by is None else by, asked, shape)
    targets = follow_targets(memory, step)
    if isinstance(targets, Conflict):
        return targets
    reads = follow_reads(memory, step)
    if isinstance(reads, Conflict):
        return reads
    unseen, missed = follow_unseen(memory, targets, step)
    return RowMemory(
        targets=targets.here,
        carried=_carried(change, memory.carried, step.by) if change.kept else memory.carried,
        reads=reads.here,
        reads_changed=memory.reads_changed or is_changed(reads),
        restarted=memory.restarted or bool(targets.updated and (memory.reads or memory.reads_changed)),
        unseen=unseen,
        missed=missed,
    )


def follow_targets(memory: RowMemory, step: RowStep) -> Walked | Conflict:
    """The fates of the rows that the change writes, or what it may not do with them."""
    targets = walked(memory.targets, step.by)
    conflict = target_conflict(step.change, targets, step.snapshot) if "target_rows" in step.asked else None
    if conflict is None and "replaced_files" in step.asked:
        conflict = replaced_conflict(step.change, step.by, step.snapshot)
    return conflict or targets


def follow_reads(memory: RowMemory, step: RowStep) -> Walked | Conflict:
    """The fates of the rows that the change only reads; where that is asked, a row of them that changed."""
    reads = walked(memory.reads, step.by)
    if is_changed(reads) and "rows_read" in step.asked:
        return Conflict("rows_read", step.snapshot.snapshot_id, _files(reads), _fate(reads))
    return reads


def asks_of_other_rows(change: TableChange, asked: frozenset[str]) -> bool:
    """Whether rows matter that the change did not read: what is told of where rows went must then be told of all."""
    return "new_rows_match" in asked or change.command in ONLY_REMOVES


def follow_unseen(memory: RowMemory, targets: Walked, step: RowStep) -> tuple[Rows, frozenset[Rows] | None]:
    """Rows added since the scan that the change would have read, and what a DELETE would have hit (`missed`).

    Somebody must ask for them: the check of new rows, or a command that only removes and still has a row to remove, or
    one whose row was updated.
    """
    removes = step.change.command in ONLY_REMOVES
    wanted = removes and (targets.here or targets.updated or memory.missed is not None)
    if "new_rows_match" not in step.asked and not wanted:
        return memory.unseen, memory.missed
    unseen = _still_unseen(step.change, memory.unseen, step.by, step.snapshot, step.shape)
    if not removes or step.change.isolation is not Isolation.SNAPSHOT:
        return unseen, memory.missed
    missed = _missed(memory.missed, targets, unseen, step.by)
    return (unseen if missed is not None or targets.here else ()), missed


def is_changed(fates: Walked) -> bool:
    """Whether any of the rows is no longer what it was."""
    return bool(fates.deleted or fates.updated or fates.lost)


def target_conflict(change: TableChange, targets: Walked, snapshot: Snapshot) -> Conflict | None:
    """A row that I write has another version, or nobody knows; a row that is only deleted agrees with a DELETE."""
    agreeing = change.command in ONLY_REMOVES
    if targets.lost or ((targets.deleted or targets.updated) and not agreeing):
        return Conflict("target_rows", snapshot.snapshot_id, _files(targets), _fate(targets))
    return None


def replaced_conflict(change: TableChange, by: Touched, snapshot: Snapshot) -> Conflict | None:
    """A file that gave me rows to keep is gone: my copy of them would make them twice, or bring them back.

    The same where somebody deleted rows and nobody can say which: their deletes cannot be carried over. Unknown
    equality deletes reach a compaction's output by themselves.
    """
    gone = tuple(file for file, _ in change.kept if file in by.removed)
    if gone:
        return Conflict("replaced_files", snapshot.snapshot_id, gone, "moved")
    if by.unknown_positions or (by.unknown_equality and change.command is not Command.REWRITE):
        kept = tuple(file for file, _ in change.kept)
        return Conflict("replaced_files", snapshot.snapshot_id, kept, "lost") if kept else None
    return None


def _carried(change: TableChange, carried: Rows, by: Touched) -> Rows:
    """Rows that my rewrite keeps and somebody deleted meanwhile: their deletes move along, to their places in my files.

    A compaction's output is as old as its scan, so equality deletes reach it by themselves; copy-on-write output is
    new, so there they become position deletes.
    """
    found = list(carried)
    for file, bits in change.kept:
        hit = by.positions.get(file, 0)
        if change.command is not Command.REWRITE:
            hit = hits_of(file, by)
        if bits & hit:
            found.extend(moved(change.mapping or (), file, bits & hit)[0])
    return rows_of(found)


def _still_unseen(change: TableChange, unseen: Rows, by: Touched, snapshot: Snapshot, shape: TableShape) -> Rows:
    """Rows added since the scan that the change would have read and that are still there."""
    old = walked(unseen, by)
    found = list(old.here)
    if old.lost:
        found.append((NOWHERE, 1))
    found.extend(fresh_rows(change, snapshot, by, shape))
    return rows_of(found)


def fresh_rows(change: TableChange, snapshot: Snapshot, by: Touched, shape: TableShape) -> list[tuple[str, RowSet]]:
    """Rows that this snapshot brought and the change would have read: not those that a rewrite only kept."""
    if snapshot.operation is Operation.REPLACE:
        return []
    found = []
    for file in snapshot.added_data_files:
        bits = matching_rows(change, file, shape)
        if bits and by.mapping:
            bits &= ~images(by.mapping, file.path)
        if bits:
            found.append((file.path, bits & ~by.positions.get(file.path, 0)))
    return found


def matching_rows(change: TableChange, file: DataFile, shape: TableShape) -> RowSet:
    """The rows of a file that the conflict filter may match: by value where values are known, else by statistics."""
    if file.rows is None:
        return file.all_rows if may_match_file(change.conflict_filter, file, shape) else 0
    bits = 0
    for position, row in enumerate(file.rows):
        if matches(change.conflict_filter, row, shape.columns):
            bits |= 1 << position
    return bits


def _missed(missed: frozenset[Rows] | None, targets: Walked, unseen: Rows, by: Touched) -> frozenset[Rows] | None:
    """What a DELETE would have hit had it started at each snapshot since the last update of a row that it removes.

    Here is decided what "as if it had started later" means. It may have started after this snapshot (`unseen`), or, if
    nobody updated its rows since, after an earlier one whose rows are still there or deleted. With nothing left to hit
    at one of them, the DELETE is what it would have been had it started there: `None`. Rows that were lost can be
    anywhere, so a start that had to hit them is none.
    """
    if missed is None and not targets.updated:
        return None
    earlier = [walked(rows, by) for rows in missed or () if not targets.updated]
    starts = {unseen, *(fates.here for fates in earlier if not fates.updated and not fates.lost)}
    return None if () in starts else frozenset(rows for rows in starts if rows[0][0] != NOWHERE)


def _files(fates: Walked) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for file, _ in (*fates.deleted, *fates.updated, *fates.lost)))


def _fate(fates: Walked) -> str:
    return "lost" if fates.lost else "updated" if fates.updated else "deleted"
