"""What is in a world of this model: one shared table, and writers with a command in hand.

The shared value is what a catalog and an object store show to everybody: the head's live files. A writer holds its own
change and what it remembers of the window (`commit/`'s fold); no history is kept anywhere. Ghosts know the truth about
row identity; no guard reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from lakeproof.commit.attempt import Attempt, Phase
from lakeproof.commit.change import Command, Isolation, Mode, TableChange
from lakeproof.commit.meaning import RowCommand
from lakeproof.commit.planning import Plan
from lakeproof.commit.policy import CheckList, Policy, checks_of
from lakeproof.commit.rows import Touched, touched
from lakeproof.commit.validation import RunAgain
from lakeproof.commit.window import CommitWindow
from lakeproof.commit.writing import Origins, Place, plan_of
from lakeproof.format import Row, Rows, Snapshot, TableShape, TableState, Value
from lakeproof.models.iceberg.renaming.row_ids import IdMoves

COMPACTION = -1
"""The index that a compaction has in place of a command's."""

UNBOUNDED = sys.maxsize
"""The bound of what is not counted, so that it never runs out."""

DEAD: Place = ("", -1)
"""The origin of a written row whose old version somebody else removed meanwhile."""


class Logged(NamedTuple):
    """A snapshot as a report shows it: who made it, the table then, the rows it has and those it should have."""

    snapshot: Snapshot
    table: TableState
    committed_by: str
    command: str
    rows: tuple[Row, ...]
    expected: tuple[Row, ...]


class Shared(NamedTuple):
    """The table, the budget spent, the commands under way, and the properties that the last commit violated."""

    table: TableState
    commands: int = 0
    compactions: int = 0
    delete_rewrites: int = 0
    under_way: int = 0
    pending: tuple[object, ...] = ()  # ids that an INSERT under way will bring: the workload inserts each id once
    crashes: int = 0
    expiries: int = 0
    violated: tuple[str, ...] = ()
    log: tuple[Logged, ...] = ()  # only in a run that is told: every snapshot so far


class Ready(NamedTuple):
    """READY: nothing in hand (also after COMMITTED and ABORTED, which leave nothing behind).

    A writer with a program of its own counts here which of its statements comes next.
    """

    next: int = 0


class Conflicted(NamedTuple):
    """Refused for ever by this check, whatever comes: only the command and the ghost of its outcome are left."""

    command: int
    group: str
    check: str
    turn: int = 0


class Ghost(NamedTuple):
    """What the judge needs. `mine`: the places of the rows that I change, as long as nobody else wrote one (`None`:
    somebody did). `others`: what the command would have changed, had it started later. `removes`: the rows that I
    meant to remove at my scan, wherever they are now."""

    origins: Origins = ()
    mine: Rows | None = ()
    hits: Rows = ()
    others: frozenset[Rows] = frozenset()
    removes: Rows = ()


class Request(NamedTuple):
    """What a table shows of the tries of one command (only with unknown outcomes).

    `taken`: whose snapshot has the sequence number that they ask for. `below`: it is no longer the head's.
    `on_its_way`: the first of them is unanswered and may still arrive. `landed` is a ghost: it did. `tries`: how many
    were written since nothing was unanswered.
    """

    taken: str = ""
    below: bool = False
    on_its_way: bool = False
    landed: bool = False
    tries: int = 0

    def passed(self, me: bool, expiries: int) -> Request:
        """After somebody's commit (`me`: it was ours)."""
        if self.taken:
            return self._replace(below=expiries > 0, on_its_way=False)
        return self._replace(taken=OWN if me else OTHER, on_its_way=False, landed=self.landed or me)

    def expired(self) -> Request:
        """After an expiry of all snapshots but the head."""
        return self._replace(taken=HIDDEN) if self.below else self


NOBODY, OWN, OTHER, HIDDEN = "", "mine", "somebody else's", "hidden by an expiry"
NO_REQUEST = Request()


class Op(NamedTuple):
    """A command under way: its change, its memory of the window, and how far it has come."""

    stage: str
    command: int
    group: str
    change: TableChange
    window: CommitWindow
    ghost: Ghost
    policy: str = ""
    turn: int = 0
    as_is: Rows = ()  # only when false aborts are measured: the targets where they were scanned
    attempt: Attempt = Attempt()
    since: int = 0  # only with expiry: how many commits there were since the scan, at most two
    request: Request = NO_REQUEST

    @property
    def phase(self) -> str:
        """How far it has come, in the seeds' words."""
        if self.stage != COMMITTING:
            return self.stage
        lost = self.attempt.retries and self.attempt.phase is Phase.REFRESH
        return LOST if lost else _WORDS.get(self.attempt.phase, STOP)

    @property
    def tries(self) -> bool:
        """Whether the next thing that it does is to load the table for another try."""
        return self.stage == COMMITTING and self.attempt.phase in (Phase.REFRESH, Phase.LOOK)


READ, WRITE, COMMITTING = "READ_DATA_FILES", "WRITE_DATA_FILES", "the files are written"
METADATA, COMMIT, LOOK, STOP = "WRITE_METADATA_FILES", "COMMIT", "LOOK", "UNKNOWN"
LOST = "WRITE_METADATA_FILES after a lost swap"
_WORDS = {Phase.REFRESH: METADATA, Phase.LOOK: LOOK, Phase.SWAP: COMMIT}
KEPT, GIVEN = "a row keeps its id", "a row is given an id"
GIVEN_AGAIN = "row ids are handed out after a lost swap"
READY = Ready()
Own = Ready | Conflicted | Op


class _EventFields(NamedTuple):
    """What a commit is to those who did not see it coming: the snapshot (in the head's names), the new names, and the
    truth about every row of the old head."""

    snapshot: Snapshot | None  # `None`: no commit; old snapshots were expired
    names: tuple[tuple[str, str, tuple[int, ...]], ...] = ()  # old file, new file, new position of each old one
    truth: tuple[tuple[Place, Place | None, bool], ...] = ()  # old place, new place (None: gone), was it written?
    fresh: tuple[tuple[Place, Row], ...] = ()  # rows that this commit wrote, at their new places
    rows: tuple[tuple[Place, Row], ...] = ()  # all rows of the new head; only where a command has a subquery
    ids: IdMoves | None = None  # under canonical names: what became of the numbers that rows had


class Event(_EventFields):
    """A commit, with what every observer looks up in it computed once."""

    @cached_property
    def new_names(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Old file → new file and the new position of each old one."""
        return {old: (new, places) for old, new, places in self.names}

    @cached_property
    def fates(self) -> dict[Place, tuple[Place | None, bool]]:
        """Old place → new place (`None`: gone), and whether the row was written."""
        return {old: (new, wrote) for old, new, wrote in self.truth}

    @cached_property
    def touched(self) -> Touched:
        """What the commit did to rows that were there before it."""
        assert self.snapshot is not None
        return touched(self.snapshot)


class Anybody(NamedTuple):
    """Everybody but the watched writer: the rows that they may write, and the ways in which they commit."""

    rows: tuple[Row, ...]
    ways: tuple[str, ...]


@dataclass(frozen=True)
class Setup:
    """Everything that does not change during a run."""

    shape: TableShape
    commands: tuple[RowCommand, ...]
    table: TableState
    update_mode: Mode = Mode.MERGE_ON_READ
    delete_mode: Mode = Mode.MERGE_ON_READ
    isolation: Isolation = Isolation.SNAPSHOT
    max_commands: int = 3
    max_compactions: int = 0
    max_delete_rewrites: int = 0
    max_rows: int = UNBOUNDED  # nobody goes on from a table with more live rows, and anybody makes none
    duplicates: bool = False
    fused: bool = False
    canonical: bool = True
    keeps_bounds: bool = False  # some policy asks for the statistics of files that others removed
    anybody: Anybody | None = None
    measure: bool = False
    lean: bool = False
    unknown: bool = False
    max_crashes: int = 0
    max_expiries: int = 0
    literal_dangling: bool = False
    reruns: bool = True
    guarded: bool = False
    told: bool = False
    compacts_always: bool = False  # also what needs no compaction: a scenario says what is compacted
    modes: tuple[tuple[Command, Mode], ...] = ()  # of single commands, before update_mode and delete_mode
    isolations: tuple[tuple[Command, Isolation], ...] = ()  # of single commands, before isolation
    several: bool = False  # several tables are kept in one: a row's first value, and its partition's, is its table

    def isolation_of(self, command: RowCommand) -> Isolation:
        """What this command promises."""
        if command.meaning is not None and command.meaning.isolation is not None:
            return command.meaning.isolation
        return dict(self.isolations).get(command.command, self.isolation)

    @property
    def endless(self) -> bool:
        """Whether something never runs out: then a table forgets what would pile up for ever."""
        return self.anybody is not None or UNBOUNDED in (self.max_commands, self.max_compactions)

    @property
    def tracks_lost_swaps(self) -> bool:
        """Whether a writer that lost a swap is told apart from one that has not tried: worth it in small spaces."""
        return self.measure and not self.fused and not self.told


@dataclass(frozen=True)
class Writer:
    """How the processes of one kind commit."""

    policy: Policy
    setup: Setup
    name: str = ""  # only in a run that is told
    commands: tuple[int, ...] | None = None  # those that these writers run; `None`: all
    program: tuple[tuple[int, ...], ...] | None = None  # statements in order, each with its alternatives
    partition: tuple[Value, ...] | None = None  # compactions of a program touch this partition alone
    known: dict[tuple[Command, Mode, Isolation], CheckList] = field(default_factory=dict, compare=False, repr=False)
    last_try: list[Any] = field(default_factory=list, compare=False, repr=False)  # shared, own, and how far it comes

    def rested(self, own: Op | Conflicted) -> Ready:
        """READY again, after a command that was `own`."""
        return READY if self.program is None else Ready(own.turn + 1)

    def choices(self, own: Ready) -> Sequence[int]:
        """What a writer may start now; `COMPACTION` stands for one."""
        if self.program is not None:
            return self.program[own.next] if own.next < len(self.program) else ()
        return range(len(self.setup.commands)) if self.commands is None else self.commands

    def plan(self, command: RowCommand, again: RunAgain | None = None, rows: Sequence[Row] = ()) -> Plan:
        """How a command commits, as the table and the policy say; `rows` are those of its scan."""
        setup, kind = self.setup, command.command
        table = dict(setup.modes).get(kind, setup.delete_mode if kind is Command.DELETE else setup.update_mode)
        if command.meaning is not None and command.meaning.mode is not None:
            table = command.meaning.mode
        isolation = setup.isolation_of(command)
        return plan_of(command, setup.shape, self.policy, table_mode=table, isolation=isolation, again=again, rows=rows)

    def table_of(self, own: Op | Conflicted) -> str | None:
        """The table that a command works on, where there are several."""
        if not self.setup.several:
            return None
        if own.command == COMPACTION:  # whoever asks may be another writer: the command's own files say it
            files = (*own.change.removed_data_files, *own.change.added_data_files) if isinstance(own, Op) else ()
            return next((str(file.partition[0]) for file in files), None)
        meaning = self.setup.commands[own.command].meaning
        return meaning.table if meaning is not None else None

    def checks(self, change: TableChange) -> CheckList:
        """What this writer's policy asks of a change."""
        asked = change.command, change.mode, change.isolation
        found = self.known.get(asked)
        if found is None:
            found = self.known[asked] = checks_of(self.policy, *asked, self.setup.shape.format_version)
        return found
