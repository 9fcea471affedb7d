"""A change is validated, written and swapped in, again and again until it is committed, refused or unknown.

`commit/attempt.py` says what comes next and `commit/driver.py` goes from phase to phase; this file has the calls that
they make, and says of each what happened. What is done to files and catalog for it is `Access`, which
`table_access.py` has for a real table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from pyiceberg.table import Table

from lakeproof.commit import (
    AlreadyCommitted,
    Attempt,
    CheckList,
    Commit,
    CommitWith,
    Ended,
    Happened,
    Phase,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    followed_all,
    heard,
    validate,
    what_became,
)
from lakeproof.commit.driver import remove_in_vain
from lakeproof.commit.explain import explain_conflict, unknown_outcome
from lakeproof.commit.validation import Answer
from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput
from lakeproof.format import Snapshot, TableShape, TableState

SCANNED, FILES_WRITTEN, METADATA_WRITTEN, SWAPPED = "scanned", "files written", "metadata written", "swapped"
PHASES = (SCANNED, FILES_WRITTEN, METADATA_WRITTEN, SWAPPED)
# Phases that come only when somebody else is in the way, or several times.
ATTEMPTING, LOOKING, FOUND, RUNNING_AGAIN = "attempting", "looking", "found committed", "running again"
Hook = Callable[[str], None]


class Committed(NamedTuple):
    """The table after the commit and the snapshot it made (`None`: nothing was left to do); swaps that were lost."""

    table: Table
    snapshot_id: int | None
    retries: int


class SeenHead(NamedTuple):
    """What validation looks at: the change with what is known of its files, the unseen snapshots and one of them that
    was expired (`None`: none was), the table's shape, and the head as far as a check asks for it."""

    change: TableChange
    unseen: Sequence[Snapshot]
    missing: int | None
    shape: TableShape
    head: TableState | None = None


class TakenNumber(NamedTuple):
    """The sequence number that the last request asked for, the last one given away, and those that can be seen."""

    asked: int
    last: int
    taken: Collection[int]


class Access(Protocol):
    """What a commit does to files and catalog. Every call may raise; `InvalidInput` from a missing file is looked into.

    `refresh` loads the newest table, `seen` reads what validation looks at, `write` writes the files of a new try, and
    `swap` asks the catalog for it. `written` are the files of all tries, `brought` the delete files of the writer that
    may be in vain, `named` those that the committed snapshot names.
    """

    name: str
    change: TableChange

    @property
    def table(self) -> Table: ...

    def refresh(self) -> None: ...
    def seen(self, checks: CheckList) -> SeenHead: ...
    def taken(self) -> TakenNumber: ...
    def write(self, answer: Commit | CommitWith, written: Hook) -> None: ...
    def swap(self) -> None: ...
    def has_moved(self) -> bool: ...
    def own_id(self) -> int | None: ...
    def sent(self) -> Sequence[int]: ...
    def written(self) -> Sequence[str]: ...
    def brought(self) -> Sequence[str]: ...
    def named(self) -> Collection[str]: ...
    def remove(self, paths: Sequence[str]) -> None: ...

    @property
    def head_id(self) -> int | None: ...


def no_hook(phase: str) -> None:
    """Nobody watches the phases."""


class TableCalls:
    """The calls that `commit/driver.py` makes; each says what happened."""

    def __init__(self, on: Access, policy: Policy, checks: CheckList, on_phase: Hook, *, reruns_left: bool) -> None:
        self.on, self.policy, self.checks = on, policy, checks
        self.on_phase, self.reruns_left = on_phase, reruns_left
        self.answer: Answer | None = None
        self.turned_down: InvalidInput | None = None

    def refresh(self) -> Happened:
        """Load the head and the unseen snapshots."""
        self.on_phase(ATTEMPTING)
        self.on.refresh()
        return Happened.LOADED

    def look(self) -> Happened:
        """Load them, and look for a commit of our own among all snapshots: a rollback may have hidden it."""
        self.on_phase(LOOKING)
        self.refresh()
        if self.policy.finds_own_commit and self.on.own_id() is not None:
            self.on_phase(FOUND)
            return Happened.OWN_ID_FOUND
        asked, last, taken = self.on.taken()
        return what_became(asked=asked, last=last, taken=taken)

    def validate(self) -> Happened:
        """Ask the policy's checks of the window."""
        try:
            seen = self.on.seen(self.checks)
        except InvalidInput as error:
            return self._expired(error)
        self.answer = validate(
            self.on.change,
            followed_all(seen.change, seen.unseen, self.checks, seen.shape, missing=seen.missing),
            self.policy,
            self.checks,
            reruns_left=self.reruns_left,
            head=seen.head,
            shape=seen.shape,
        )
        if isinstance(self.answer, AlreadyCommitted):
            self.on_phase(FOUND)
        return heard(self.answer)

    def write_metadata(self) -> Happened:
        """Write the manifests, the manifest list and whatever files the answer asks for, all under new names."""
        assert isinstance(self.answer, Commit | CommitWith)
        try:
            self.on.write(self.answer, self.on_phase)
        except InvalidInput as error:
            return self._expired(error)
        return Happened.WRITTEN

    def _expired(self, error: InvalidInput) -> Happened:
        """A file that is missing because the head moved on and was expired is a lost race; else the error stands."""
        if isinstance(error.__cause__, FileNotFoundError) and self.on.has_moved():
            return Happened.HEAD_EXPIRED
        raise error

    def swap(self) -> Happened:
        """Swap the table pointer, if the head is still the one that was validated."""
        try:
            self.on.swap()
        except CommitRejected:
            return Happened.LOST_SWAP
        except InvalidInput as error:
            self.turned_down = error
            return Happened.TURNED_DOWN
        self.on_phase(SWAPPED)
        return Happened.SWAPPED

    def written(self) -> Sequence[str]:
        """Every file that was written here, of all tries; the writer's own files are not among them."""
        return self.on.written()

    def named(self) -> Collection[str]:
        """What the committed snapshot names."""
        return self.on.named()

    def remove(self, paths: Sequence[str]) -> None:
        """Delete these files."""
        self.on.remove(paths)

    def outcome(self, ended: Ended) -> Committed | RunAgain:
        """The outcome, as a value or as the exception that says it."""
        attempt, error = ended
        if attempt.phase is Phase.COMMITTED:
            if brought := self.on.brought():
                remove_in_vain(attempt, brought, self)
            return Committed(self.on.table, self.on.own_id(), attempt.retries)
        if attempt.phase is Phase.RUN_AGAIN:
            assert isinstance(self.answer, RunAgain)
            return self.answer
        if attempt.phase is Phase.UNKNOWN:
            raise self._unknown(error)
        if error := error or self.turned_down:
            raise error
        raise self._not_committed(attempt)

    def _not_committed(self, attempt: Attempt) -> CommitRejected | CommitConflict:
        change, name = self.on.change, self.on.name
        if not isinstance(self.answer, Refuse | RunAgain):
            return CommitRejected(f"{change.command} on {name} lost the swap {attempt.retries} times")
        conflict = self.answer.conflict
        told = explain_conflict(conflict, change, table=name, head=self.on.head_id, scanned=change.scan_snapshot)
        return CommitConflict(told, conflict)

    def _unknown(self, error: BaseException | None) -> BaseException:
        """Nobody knows; an interrupt stays one, but says so too."""
        said = unknown_outcome(str(self.on.change.command), self.on.name, self.on.sent())
        if error is None or isinstance(error, Exception):
            unknown = CommitUnknown(said)
            unknown.__cause__ = error
            return unknown
        error.add_note(said)
        return error
