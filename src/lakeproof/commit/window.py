"""The commit window as a fold: what a writer remembers of the snapshots that it did not see.

A runtime reduces over the snapshots it loads; a model's writer folds in each commit as it happens. Both then ask
`validation.validate`. Nothing here keeps history: only what a check may still ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from lakeproof.commit.change import TableChange
from lakeproof.commit.checks import CHANGE_CHECKS, history_known
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.policy import CheckList
from lakeproof.commit.rows import RowMemory, Touched, followed, remembered
from lakeproof.format import Snapshot, StreamBatch, TableShape, TableState


class CommitWindow(NamedTuple):
    """What is known of the unseen snapshots so far.

    `conflict` is one that nothing later can undo, `newest` one of the newest snapshot alone, `gone` the files that the
    change removes and that are no longer there. `committed`: the change's own command id was seen; `repeated`: so was
    the batch of a stream that it is, whoever committed it.
    """

    conflict: Conflict | None = None
    newest: Conflict | None = None
    gone: tuple[str, ...] = ()
    committed: bool = False
    rows: RowMemory | None = None
    repeated: bool = False


def open_window(
    change: TableChange, checks: CheckList, shape: TableShape, scanned: TableState | None = None
) -> CommitWindow:
    """The window at the scan snapshot: nothing unseen yet. `scanned` finds files that were not even there then."""
    conflict = next(filter(None, (CHANGE_CHECKS[name](change, shape) for name in checks.change)), None)
    gone: tuple[str, ...] = ()
    if scanned is not None:
        there = {*(file.path for file in scanned.data_files), *(file.path for file in scanned.delete_files)}
        gone = tuple(path for path in _removed(change) if path not in there)
    return CommitWindow(conflict, gone=gone, rows=remembered(change) if checks.rows else None)


def follow(
    change: TableChange,
    window: CommitWindow,
    snapshot: Snapshot,
    checks: CheckList,
    shape: TableShape,
    by: Touched | None = None,
) -> CommitWindow:
    """The window after one more unseen snapshot; `by` is what it did to rows, where somebody knows that already."""
    if snapshot.command_id and snapshot.command_id == change.command_id:
        return window._replace(committed=True)
    if has_batch(change.batch, snapshot.batch):
        return window._replace(repeated=True)
    if window.conflict:
        return window
    for _, check in checks.snapshot:
        conflict = check(change, snapshot, shape)
        if conflict:
            return window._replace(conflict=conflict)
    newest = None
    for name, check in checks.newest:
        found = check(change, snapshot, shape)
        newest = newest or (found._replace(check=name) if found else None)
    rows = window.rows
    if rows is not None:
        after = followed(change, rows, snapshot, checks.rows, shape, by)
        if isinstance(after, Conflict):
            return window._replace(conflict=after)
        rows = after
    removes = change.removed_data_files or change.removed_delete_files
    gone = _gone(change, window.gone, snapshot) if removes else window.gone
    return CommitWindow(None, newest, gone, window.committed, rows, window.repeated)


def has_batch(wanted: StreamBatch | None, found: StreamBatch | None) -> bool:
    """Whether a snapshot of this batch says that the wanted one is in the table: the same, or a later of its query."""
    return wanted is not None and found is not None and found.comes_after(wanted)


def followed_all(
    change: TableChange,
    snapshots: Iterable[Snapshot],
    checks: CheckList,
    shape: TableShape,
    scanned: TableState | None = None,
    *,
    missing: int | None = None,
) -> CommitWindow:
    """The window over snapshots that are at hand, oldest first; `missing` is one of the window that is not."""
    start = with_hole(open_window(change, checks, shape, scanned), checks, missing)
    if change.batch is not None and start.conflict is None:  # it may have been committed in the hole
        start = start._replace(conflict=history_known(missing))
    return reduce(lambda window, snapshot: follow(change, window, snapshot, checks, shape), snapshots, start)


def with_hole(window: CommitWindow, checks: CheckList, missing: int | None) -> CommitWindow:
    """The window when this snapshot of it was expired (`None`: none was); if that is not asked, it forgets the past."""
    if checks.asks_history:
        return window._replace(conflict=window.conflict or history_known(missing))
    if missing is None:
        return window
    kept = window.conflict if window.conflict and window.conflict.check in CHANGE_CHECKS else None
    rows = window.rows and RowMemory(window.rows.targets, reads=window.rows.reads)
    return CommitWindow(kept, committed=window.committed, rows=rows, repeated=window.repeated)


def lasting_conflict(window: CommitWindow, checks: CheckList) -> Conflict | None:
    """The conflict that stays if no file comes back under its old name; names of files that are gone are not kept."""
    if window.conflict is None and window.gone and "missing_delete_paths" in checks.head:
        return Conflict("missing_delete_paths")
    return window.conflict


def _gone(change: TableChange, gone: tuple[str, ...], snapshot: Snapshot) -> tuple[str, ...]:
    """Files of mine that are no longer there; one that a rewrite added again under its old name is."""
    back = {file.path for file in snapshot.added_data_files}
    away = {file.path for file in snapshot.removed_data_files} | {file.path for file in snapshot.removed_delete_files}
    return tuple(path for path in _removed(change) if path in {*away, *gone} and path not in back)


def _removed(change: TableChange) -> tuple[str, ...]:
    return (*(file.path for file in change.removed_data_files), *(file.path for file in change.removed_delete_files))
