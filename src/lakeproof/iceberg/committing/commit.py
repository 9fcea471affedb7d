"""A change is validated, written and swapped in, again and again until it is committed, refused or unknown.

`commit/attempt.py` says what comes next and `commit/driver.py` goes from phase to phase; this file has the calls that
they make of a real table. Everything is computed anew on every try: the window, the answer, the files and their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import (
    AlreadyCommitted,
    Attempt,
    Commit,
    CommitWith,
    Ended,
    Happened,
    Phase,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    checks_of,
    drive,
    followed_all,
    heard,
    validate,
    what_became,
)
from lakeproof.commit.explain import explained, unknown_outcome
from lakeproof.commit.policy_text import named_policy
from lakeproof.commit.validation import Answer
from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput
from lakeproof.filters import columns_of
from lakeproof.format import Snapshot as WindowSnapshot
from lakeproof.iceberg.committing.command_record import RETRIES, own_snapshot, record_of
from lakeproof.iceberg.committing.patience import Patience
from lakeproof.iceberg.committing.physical import (
    NO_FILES,
    NewFiles,
    described_deletes,
    head_state,
    physical_change,
    with_ranges,
)
from lakeproof.iceberg.committing.pointer import Staged, refreshed, stage, swap
from lakeproof.iceberg.committing.produce import Producer
from lakeproof.iceberg.committing.values import data_file_value, shape_of
from lakeproof.iceberg.committing.window import load_window, unseen_snapshots
from lakeproof.iceberg.committing.window_rows import with_rows
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, shared_cache
from lakeproof.iceberg.upkeep.reachable import own_files

SCANNED, FILES_WRITTEN, METADATA_WRITTEN, SWAPPED = "scanned", "files written", "metadata written", "swapped"
PHASES = (SCANNED, FILES_WRITTEN, METADATA_WRITTEN, SWAPPED)
# Phases that come only when somebody else is in the way, or several times.
ATTEMPTING, LOOKING, FOUND, RUNNING_AGAIN = "attempting", "looking", "found committed", "running again"
POLICY_PROPERTY = "lakeproof.policy"
Hook = Callable[[str], None]


class Committed(NamedTuple):
    """The table after the commit and the snapshot it made (`None`: nothing was left to do); swaps that were lost."""

    table: Table
    snapshot_id: int | None
    retries: int


def no_hook(phase: str) -> None:
    """Nobody watches the phases."""


def commit_change(
    table: Table,
    change: TableChange,
    files: NewFiles = NO_FILES,
    *,
    policy: Policy | None = None,
    branch: str = "main",
    reruns: int = 0,
    reruns_left: bool = False,
    summary: Mapping[str, str] | None = None,
    cache: ManifestCache | None = None,
    on_phase: Hook = no_hook,
) -> Committed | RunAgain:
    """The change as one snapshot on `branch`, on top of whatever others committed since its scan snapshot.

    `RunAgain` is given back only if `reruns_left`; else a conflict is raised. Metadata of a commit that did not happen
    is removed; the data files are the caller's (`remove_files`).
    """
    policy = policy or named_policy(table.properties.get(POLICY_PROPERTY, "lakeproof"))
    record = {**record_of(change, policy, reruns), **(summary or {})}
    return through(TableCalls(table, change, files, policy, branch, record, cache, on_phase, reruns_left=reruns_left))


def through(calls: TableCalls) -> Committed | RunAgain:
    """Go through the protocol with these calls, as patiently as the table says."""
    patience = Patience(calls.table.properties)
    return calls.outcome(drive(Attempt(max_retries=patience.max_retries), calls, may_wait=patience.wait))


class _Try(NamedTuple):
    """One try: who wrote its manifests, what else was written for it, and the request when all is written."""

    producer: Producer
    others: list[str]
    staged: list[Staged]


class TableCalls:
    """The calls that `commit/driver.py` makes of a real table; each says what happened."""

    def __init__(
        self,
        table: Table,
        change: TableChange,
        files: NewFiles,
        policy: Policy,
        branch: str,
        summary: Mapping[str, str],
        cache: ManifestCache | None,
        on_phase: Hook,
        *,
        reruns_left: bool = False,
    ) -> None:
        columns = columns_of(change.row_filter) if change.row_filter is not None else ()
        values = tuple(data_file_value(table, file, columns) for file in files.data_files)
        self.table, self.files, self.policy, self.branch, self.summary = table, files, policy, branch, summary
        deletes = described_deletes(change, files)
        self.change = change._replace(added_data_files=values, added_delete_files=deletes)
        self.reruns_left, self.on_phase, self.cache = reruns_left, on_phase, cache or shared_cache()
        self.name = ".".join(table.name())
        self.checks = checks_of(policy, change.command, change.mode, change.isolation, table.format_version)
        self.head: Snapshot | None = None
        self.tries: list[_Try] = []
        self.turned_down: InvalidInput | None = None
        self.answer: Answer | None = None

    @property
    def head_id(self) -> int | None:
        """The head that was loaded last; `None`: the branch is empty."""
        return None if self.head is None else self.head.snapshot_id

    def refresh(self) -> Happened:
        """Load the head and the unseen snapshots."""
        self.on_phase(ATTEMPTING)
        with spoken(f"table {self.name}"):
            newest = refreshed(self.table)
            if newest.metadata.table_uuid != self.table.metadata.table_uuid:
                raise InvalidInput("the table was dropped and made anew meanwhile", place=f"table {self.name}")
            self.table = newest
            ref = self.table.metadata.refs.get(self.branch)
            self.head = None if ref is None else self.table.snapshot_by_id(ref.snapshot_id)
            if self.head is None and self.branch != "main":
                hint, place = "create it first", f"table {self.name}"
                raise InvalidInput(f"there is no branch `{self.branch}`", place=place, hint=hint)
            self.window, self.missing = self._unseen()
        return Happened.LOADED

    def _unseen(self) -> tuple[tuple[WindowSnapshot, ...], int | None]:
        """The unseen snapshots, and one of the window that was expired, if one was."""
        found = unseen_snapshots(self.table, scan_snapshot=self.change.scan_snapshot, head_snapshot=self.head_id)
        columns = columns_of(self.change.conflict_filter)
        try:
            needs = self.checks.needs
            return load_window(self.table, found.unseen, needs, columns=columns, cache=self.cache), found.missing
        except (FileNotFoundError, InvalidInput):  # expired between our two looks
            return (), found.unseen[0]

    def look(self) -> Happened:
        """Load them, and look for a commit of our own among all snapshots: a rollback may have hidden it."""
        self.on_phase(LOOKING)
        before = self.head_id
        self.refresh()
        if self.policy.finds_own_commit and self.own() is not None:
            self.on_phase(FOUND)
            return Happened.OWN_ID_FOUND
        sent = [each.staged[0].snapshot for each in self.tries if each.staged][-1]
        metadata, asked = self.table.metadata, sent.sequence_number or 0
        if metadata.format_version > 1:
            taken = {each.sequence_number or 0 for each in metadata.snapshots}
            return what_became(asked=asked, last=metadata.next_sequence_number() - 1, taken=taken)
        # Format version 1 counts nothing: one more snapshot on the unbroken line from the expected head is as good.
        since = unseen_snapshots(self.table, scan_snapshot=before, head_snapshot=self.head_id)
        moved = self.head_id != before
        return what_became(asked=1, last=int(moved), taken={1} if since.missing is None else ())

    def validate(self) -> Happened:
        """Ask the policy's checks of the window."""
        try:
            with spoken(f"table {self.name}"):
                self.shape = shape_of(self.table)
                if self.checks.rows:
                    asked = self.change.conflict_filter
                    self.window = tuple(with_rows(self.table, each, asked, self.shape) for each in self.window)
                asks_head = bool(self.checks.head)
                head = head_state(self.table, self.head, self.change, self.cache) if asks_head else None
                change = with_ranges(self.table, self.head, self.change, self.window, self.cache)
        except InvalidInput as error:
            return self._expired(error)
        self.answer = validate(
            self.change,
            followed_all(change, self.window, self.checks, self.shape, missing=self.missing),
            self.policy,
            self.checks,
            reruns_left=self.reruns_left,
            head=head,
            shape=self.shape if asks_head else None,
        )
        if isinstance(self.answer, AlreadyCommitted):
            self.on_phase(FOUND)
        return heard(self.answer)

    def write_metadata(self) -> Happened:
        """Write the manifests, the manifest list and whatever files the answer asks for, all under new names."""
        mine = _Try(Producer(self.table, self.cache), [], [])
        self.tries.append(mine)
        try:
            with spoken(f"table {self.name}"):
                snapshot = self.produced(mine.producer, mine.others)
                self.on_phase(METADATA_WRITTEN)
                mine.staged.append(stage(self.table, snapshot, self.branch, self.head_id, mine.others))
        except InvalidInput as error:
            return self._expired(error)
        return Happened.WRITTEN

    def _expired(self, error: InvalidInput) -> Happened:
        """A file that is missing because the head moved on and was expired is a lost race; else the error stands."""
        if isinstance(error.__cause__, FileNotFoundError):
            with spoken(f"table {self.name}"):
                if refreshed(self.table).metadata_location != self.table.metadata_location:
                    return Happened.HEAD_EXPIRED
        raise error

    def produced(self, producer: Producer, written: list[str]) -> Snapshot:
        """The snapshot of this try; files beside its manifests are noted in `written`."""
        assert isinstance(self.answer, Commit | CommitWith)
        retries = {RETRIES: str(len(self.tries) - 1)} if len(self.tries) > 1 else {}
        physical = physical_change(
            self.table,
            self.head,
            self.change,
            self.answer,
            self.files,
            policy=self.policy,
            shape=self.shape,
            snapshot_id=producer.snapshot_id,
            summary={**self.summary, **retries},
            cache=self.cache,
            written=written,
        )
        return producer.produce(self.table, self.head, physical)

    def swap(self) -> Happened:
        """Swap the table pointer, if the head is still the one that was validated."""
        try:
            self.table = swap(self.table, self.tries[-1].staged[0])
        except CommitRejected:
            return Happened.LOST_SWAP
        except InvalidInput as error:
            self.turned_down = error
            return Happened.TURNED_DOWN
        self.on_phase(SWAPPED)
        return Happened.SWAPPED

    def own(self) -> Snapshot | None:
        """The snapshot that one of the tries, or an earlier run of the command, has committed."""
        return own_snapshot(self.table, self.change.command_id, {each.producer.snapshot_id for each in self.tries})

    def written(self) -> Sequence[str]:
        """Every file that was written here, of all tries; the writer's own files are not among them."""
        return [path for each in self.tries for path in (*each.producer.written, *each.others)]

    def named(self) -> frozenset[str]:
        """What the committed snapshot names; the metadata file that the catalog points to names itself."""
        own = self.own()
        if own is None:
            return frozenset()
        logged = {entry.metadata_file for entry in self.table.metadata.metadata_log}
        return own_files(self.table, own, self.cache) | logged | {self.table.metadata_location}

    def remove(self, paths: Sequence[str]) -> None:
        """Delete these files."""
        remove_files(self.table, paths)

    def outcome(self, ended: Ended) -> Committed | RunAgain:
        """The outcome, as a value or as the exception that says it."""
        attempt, error = ended
        if attempt.phase is Phase.COMMITTED:
            own = self.own()
            return Committed(self.table, None if own is None else own.snapshot_id, attempt.retries)
        if attempt.phase is Phase.RUN_AGAIN:
            assert isinstance(self.answer, RunAgain)
            return self.answer
        if attempt.phase is Phase.UNKNOWN:
            raise self._unknown(error)
        if error := error or self.turned_down:
            raise error
        if not isinstance(self.answer, Refuse | RunAgain):
            raise CommitRejected(f"{self.change.command} on {self.name} lost the swap {attempt.retries} times")
        scanned, conflict = self.change.scan_snapshot, self.answer.conflict
        raise CommitConflict(
            explained(conflict, self.change, table=self.name, head=self.head_id, scanned=scanned), conflict
        )

    def _unknown(self, error: BaseException | None) -> BaseException:
        """Nobody knows; an interrupt stays one, but says so too."""
        ids = [each.producer.snapshot_id for each in self.tries if each.staged]
        said = unknown_outcome(str(self.change.command), self.name, ids)
        if error is None or isinstance(error, Exception):
            unknown = CommitUnknown(said)
            unknown.__cause__ = error
            return unknown
        error.add_note(said)
        return error


def remove_files(table: Table, paths: Iterable[str]) -> None:
    """The files are gone, or were before; one that cannot be removed is left as an orphan."""
    for path in sorted(set(paths)):
        with suppress(Exception):
            table.io.delete(path)
