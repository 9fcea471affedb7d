"""The answer to 'may I commit?': one value that a runtime and a model both obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lakeproof.commit.change import Command, Mode, TableChange
from lakeproof.commit.checks import missing_delete_paths, whole_files_match
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.policy import CheckList, Policy
from lakeproof.commit.rows import NOWHERE, RowMemory
from lakeproof.commit.window import CommitWindow
from lakeproof.format import Rows, TableShape, TableState


@dataclass(frozen=True)
class Commit:
    """Commit the change as it was written."""


class CommitWith(NamedTuple):
    """Commit, but with these rows deleted (where they are now), these deletes carried over to my own new files, and
    only these files removed."""

    positions: Rows = ()
    carried: Rows = ()
    removed: tuple[str, ...] = ()


class RunAgain(NamedTuple):
    """Scan and write again from the head, in this mode."""

    conflict: Conflict
    mode: Mode


class Refuse(NamedTuple):
    """Abort: the user sees this conflict."""

    conflict: Conflict


@dataclass(frozen=True)
class AlreadyCommitted:
    """An earlier attempt of this very command did commit, or somebody else the very batch of a stream that it is."""


@dataclass(frozen=True)
class NothingLeft:
    """Nothing of the change is left to do: end without a commit."""


Answer = Commit | CommitWith | RunAgain | Refuse | AlreadyCommitted | NothingLeft


def validate(
    change: TableChange,
    window: CommitWindow,
    policy: Policy,
    checks: CheckList,
    *,
    reruns_left: bool = True,
    head: TableState | None = None,
    shape: TableShape | None = None,
) -> Answer:
    """What to do with a change, given what its writer remembers of the window. Asked again on every attempt."""
    if window.repeated or (window.committed and policy.finds_own_commit):
        return AlreadyCommitted()
    conflict = standing_conflict(change, window, checks, head, shape)
    if conflict is None:
        return adjusted(change, window, policy)
    return refused(change, conflict, policy, reruns_left=reruns_left)


def refused(change: TableChange, conflict: Conflict, policy: Policy, *, reruns_left: bool = True) -> RunAgain | Refuse:
    """What a conflict means to a command: it runs again from the head, or aborts."""
    if not policy.runs_again or not reruns_left:
        return Refuse(conflict)
    falls_back = policy.falls_back_to_merge_on_read and change.command is not Command.REWRITE
    return RunAgain(conflict, Mode.MERGE_ON_READ if falls_back else change.mode)


def standing_conflict(
    change: TableChange, window: CommitWindow, checks: CheckList, head: TableState | None, shape: TableShape | None
) -> Conflict | None:
    """The first check that says no at this head."""
    if window.conflict or window.newest:
        return window.conflict or window.newest
    if window.rows is not None:
        conflict = conflict_now(change, window.rows, checks.rows)
        if conflict:
            return conflict
    if "missing_delete_paths" in checks.head and window.gone:
        return missing_delete_paths(change, window.gone)
    if "whole_files_match" in checks.head and head and shape:
        return whole_files_match(change, head.data_files, shape)
    return None


def conflict_now(change: TableChange, memory: RowMemory, asked: frozenset[str]) -> Conflict | None:
    """A conflict that stands at this head, though a later commit might undo it."""
    if change.rewrites and "replaced_files" in asked:
        inputs = {file.path for file in change.removed_data_files}
        away = tuple(file for file, _ in memory.targets if file not in inputs)
        if away:  # the row lives on in a file that I do not replace
            return Conflict("replaced_files", None, away, "moved")
    if "new_rows_match" in asked and memory.unseen:
        return Conflict("new_rows_match", None, _named(memory.unseen), "added")
    if "target_rows" not in asked:
        return None
    if memory.missed is not None:
        named = sorted({file for rows in memory.missed for file in _named(rows)}) or _named(memory.unseen)
        return Conflict("target_rows", None, tuple(named), "updated")
    if memory.restarted and memory.reads_changed:
        return Conflict("rows_read", None, tuple(file for file, _ in change.reads), "updated")
    return None


def _named(rows: Rows) -> tuple[str, ...]:
    return tuple(file for file, _ in rows if file != NOWHERE)


def adjusted(change: TableChange, window: CommitWindow, policy: Policy) -> Answer:
    """The change as it must be committed on this head."""
    if window.rows is None:
        return Commit()
    removed = tuple(file.path for file in change.removed_data_files if file.path not in window.gone)
    carried = window.rows.carried if policy.carries_deletes else ()
    if change.command is Command.REWRITE and not removed and not change.kept:
        return NothingLeft()
    return CommitWith(() if change.rewrites else window.rows.targets, carried, removed)
