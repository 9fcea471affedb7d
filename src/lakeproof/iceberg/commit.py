"""A change is validated, written and swapped in, again and again until it is committed, refused or unknown.

`commit/attempt.py` says what comes next; this file does it. Everything is computed anew on every attempt: the window,
the answer, the files. What an attempt wrote is removed only when it certainly did not commit. (One protocol, one file.)
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import (
    AlreadyCommitted,
    Attempt,
    Commit,
    CommitWith,
    Conflict,
    Happened,
    Phase,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    checks_of,
    followed_all,
    heard,
    validate,
)
from lakeproof.commit.explain import explained
from lakeproof.commit.policy_text import named_policy
from lakeproof.commit.validation import refused
from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput
from lakeproof.filters import columns_of
from lakeproof.format import Snapshot as WindowSnapshot
from lakeproof.iceberg.cache import ManifestCache, shared_cache
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.physical import NO_FILES, NewFiles, head_state, physical_change
from lakeproof.iceberg.produce import Producer
from lakeproof.iceberg.records import RETRIES, own_snapshot, record_of
from lakeproof.iceberg.swap import loaded, refreshed, swap
from lakeproof.iceberg.values import data_file_value, shape_of
from lakeproof.iceberg.window import load_window, unseen_snapshots
from lakeproof.iceberg.window_rows import with_rows

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
    run = _Run(table, change, files, policy, branch, reruns, reruns_left, summary or {}, cache, on_phase)
    return run.through()


class _Run:
    """One commit on its way; each method is a phase of `commit/attempt.py` and says what happened."""

    def __init__(
        self,
        table: Table,
        change: TableChange,
        files: NewFiles,
        policy: Policy,
        branch: str,
        reruns: int,
        reruns_left: bool,
        summary: Mapping[str, str],
        cache: ManifestCache | None,
        on_phase: Hook,
    ) -> None:
        columns = columns_of(change.row_filter) if change.row_filter is not None else ()
        values = tuple(data_file_value(table, file, columns) for file in files.data_files)
        self.table, self.files, self.policy, self.branch = table, files, policy, branch
        self.change = change._replace(added_data_files=values)
        self.reruns_left, self.on_phase, self.cache = reruns_left, on_phase, cache or shared_cache()
        self.place = f"table {'.'.join(table.name())}"
        self.checks = checks_of(policy, change.command, change.mode, change.isolation, table.format_version)
        self.summary = {**record_of(self.change, policy, reruns), **summary}
        self.producer = Producer(table, self.cache)
        self.head: Snapshot | None = None
        self.conflict: Conflict | None = None
        self.written: list[str] = []
        self.sent, self.lost_swaps = False, 0
        self.after: Table | None = None

    @property
    def head_id(self) -> int | None:
        """The head that was validated; `None`: the branch is empty."""
        return None if self.head is None else self.head.snapshot_id

    def through(self) -> Committed | RunAgain:
        """Obey the attempt until it has ended."""
        retries = self.table.properties.get("commit.retry.num-retries")
        attempt = Attempt(max_retries=None if retries is None else int(retries))
        deadline = time.monotonic() + _seconds(self.table, "commit.retry.total-timeout-ms", 1_800_000)
        phases = {
            Phase.REFRESH: self.refresh,
            Phase.VALIDATE: self.validate,
            Phase.WRITE_METADATA: self.write_metadata,
            Phase.SWAP: self.swap,
            Phase.LOOK: self.look,
        }
        try:
            while not attempt.ended:
                before, attempt = attempt, attempt.after(phases[attempt.phase]())
                if before.phase in (Phase.SWAP, Phase.LOOK) and not attempt.ended:
                    if time.monotonic() > deadline:
                        attempt = attempt.given_up()
                    else:
                        time.sleep(_wait(self.table, attempt.retries))
        except BaseException:
            if not self.sent:
                self.clean_up()
            raise
        return self.ended(attempt)

    def refresh(self) -> Happened:
        """Load the head and the unseen snapshots."""
        self.on_phase(ATTEMPTING)
        with spoken(self.place):
            newest = refreshed(self.table)
        if newest.metadata.table_uuid != self.table.metadata.table_uuid:
            raise InvalidInput("the table was dropped and made anew meanwhile", place=self.place)
        self.table = newest
        ref = self.table.metadata.refs.get(self.branch)
        self.head = None if ref is None else self.table.snapshot_by_id(ref.snapshot_id)
        if self.head is None and self.branch != "main":
            raise InvalidInput(f"there is no branch `{self.branch}`", place=self.place, hint="create it first")
        unseen = unseen_snapshots(self.table, scan_snapshot=self.change.scan_snapshot, head_snapshot=self.head_id)
        if unseen.missing is not None and not self.checks.names and not self.sent:
            self.window: tuple[WindowSnapshot, ...] = ()  # it asks nothing, so nothing need be known
            return Happened.LOADED
        if unseen.missing is not None:
            self.conflict = Conflict("history_known", unseen.missing)
            return Happened.HISTORY_BROKEN
        columns = columns_of(self.change.conflict_filter)
        try:
            self.window = load_window(self.table, unseen.unseen, self.checks.needs, columns=columns, cache=self.cache)
        except (FileNotFoundError, InvalidInput):  # expired between our two looks
            self.conflict = Conflict("history_known")
            return Happened.HISTORY_BROKEN
        return Happened.LOADED

    def validate(self) -> Happened:
        """Ask the policy's checks of the window."""
        self.shape = shape_of(self.table)
        if self.checks.rows:
            asked = self.change.conflict_filter
            self.window = tuple(with_rows(self.table, each, asked, self.shape) for each in self.window)
        followed = followed_all(self.change, self.window, self.checks, self.shape)
        asks_head = bool(self.checks.head)
        self.answer = validate(
            self.change,
            followed,
            self.policy,
            self.checks,
            reruns_left=self.reruns_left,
            head=head_state(self.table, self.head, self.change, self.cache) if asks_head else None,
            shape=self.shape if asks_head else None,
        )
        if isinstance(self.answer, Refuse | RunAgain):
            self.conflict = self.answer.conflict
        if isinstance(self.answer, AlreadyCommitted):
            self.on_phase(FOUND)
        return heard(self.answer)

    def write_metadata(self) -> Happened:
        """Write the manifests, the manifest list and whatever files the answer asks for."""
        assert isinstance(self.answer, Commit | CommitWith)
        with spoken(self.place):
            physical = physical_change(
                self.table,
                self.head,
                self.change,
                self.answer,
                self.files,
                policy=self.policy,
                shape=self.shape,
                snapshot_id=self.producer.snapshot_id,
                summary=self.summary | ({RETRIES: str(self.lost_swaps)} if self.lost_swaps else {}),
                cache=self.cache,
            )
            self.written += physical.written
            self.snapshot = self.producer.produce(self.table, self.head, physical.change)
            self.used = {*physical.written, self.snapshot.manifest_list}
        self.on_phase(METADATA_WRITTEN)
        return Happened.WRITTEN

    def swap(self) -> Happened:
        """Swap the table pointer, if the head is still the one that was validated."""
        self.sent = True
        try:
            self.after = swap(self.table, self.snapshot, branch=self.branch, head_id=self.head_id)
            self.on_phase(SWAPPED)
        except CommitRejected:
            self.sent, self.lost_swaps = False, self.lost_swaps + 1
            return Happened.LOST_SWAP
        except CommitUnknown:
            return Happened.NO_ANSWER
        return Happened.SWAPPED

    def look(self) -> Happened:
        """One refresh decides an unknown outcome, or it stays unknown."""
        self.on_phase(LOOKING)
        expected = self.head_id
        try:
            table = loaded(self.table.catalog, self.table.name())
        except Exception:  # whatever hinders us, we cannot look
            return Happened.CANNOT_LOOK
        if own_snapshot(table, self.change.command_id, self.producer.snapshot_id) is not None:
            self.on_phase(FOUND)
            return Happened.OWN_ID_FOUND
        ref = table.metadata.refs.get(self.branch)
        found = None if ref is None else ref.snapshot_id
        if found == expected:
            return Happened.HEAD_UNCHANGED
        if unseen_snapshots(table, scan_snapshot=expected, head_snapshot=found).missing is not None:
            return Happened.CANNOT_LOOK  # rolled back or expired: a late request could still pass
        self.sent = False
        return Happened.CERTAINLY_NOT

    def ended(self, attempt: Attempt) -> Committed | RunAgain:
        """The outcome, as a value or as the exception that says it."""
        if attempt.phase is Phase.COMMITTED:
            return self.committed(attempt)
        if attempt.may_clean_up:
            self.clean_up()
        if attempt.phase is Phase.RUN_AGAIN:
            assert isinstance(self.answer, RunAgain)
            return self.answer
        name = ".".join(self.table.name())
        if attempt.phase is Phase.UNKNOWN:
            raise CommitUnknown(
                f"nobody knows whether {self.change.command} on {name} was committed; "
                f"look for snapshot {self.producer.snapshot_id} before running it again"
            )
        if self.conflict is not None and self.conflict.check == "history_known":
            answer = refused(self.change, self.conflict, self.policy, reruns_left=self.reruns_left)
            if isinstance(answer, RunAgain):
                return answer
        if self.conflict is None:
            raise CommitRejected(f"{self.change.command} on {name} lost the swap {attempt.retries} times")
        message = explained(
            self.conflict,
            self.change,
            table=name,
            head=self.head_id,
            scanned=self.change.scan_snapshot,
        )
        raise CommitConflict(message, self.conflict)

    def committed(self, attempt: Attempt) -> Committed:
        """The table after the commit; leftovers of lost attempts are removed."""
        table = self.after or loaded(self.table.catalog, self.table.name())
        own = own_snapshot(table, self.change.command_id, self.producer.snapshot_id)
        if own is None:
            self.clean_up()
        elif self.producer.attempt > 1 or own.snapshot_id != self.producer.snapshot_id:
            kept = {manifest.manifest_path for manifest in own.manifests(table.io)} | self.used_by(own)
            remove_files(table, [path for path in self.all_written() if path not in kept])
        return Committed(table, None if own is None else own.snapshot_id, attempt.retries)

    def used_by(self, own: Snapshot) -> set[str]:
        """What the committed snapshot needs besides its manifests."""
        mine = own.snapshot_id == self.producer.snapshot_id
        return self.used if mine else {own.manifest_list}

    def all_written(self) -> list[str]:
        """Every file that this commit wrote, of all attempts; the writer's own files are not among them."""
        return [*self.producer.written, *self.written]

    def clean_up(self) -> None:
        """Remove what was written: the commit certainly did not happen."""
        remove_files(self.table, self.all_written())


def remove_files(table: Table, paths: Iterable[str]) -> None:
    """The files are gone, or were before; one that cannot be removed is left as an orphan."""
    for path in set(paths):
        with suppress(OSError):
            table.io.delete(path)


def _seconds(table: Table, name: str, default_ms: int) -> float:
    return int(table.properties.get(name, default_ms)) / 1000


def _wait(table: Table, retries: int) -> float:
    """Longer after each lost swap, but no more than 16 times: a commit is short. Never in step with the others."""
    shortest = _seconds(table, "commit.retry.min-wait-ms", 100)
    longest = _seconds(table, "commit.retry.max-wait-ms", 60_000)
    return float(min(longest, shortest * 2.0 ** min(retries, 4)) * random.uniform(0.1, 0.5))
