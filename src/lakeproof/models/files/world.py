"""What is in a world of this model: a catalog with one pointer, a folder of files, and whoever uses them.

Rows have no values here: each command brings one, named by the number of the command. What counts is which files exist,
which files the table's metadata names, and what was acknowledged to whom.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from lakeproof.commit.attempt import Attempt, Protocol
from lakeproof.commit.upkeep import UpkeepPhase, UpkeepRules

METADATA, LISTS, MANIFESTS, DATA = "metadata", "lists", "manifests", "data"
KINDS = (METADATA, LISTS, MANIFESTS, DATA)
APPEND, REWRITE, ALTER = "append", "rewrite", "alter"
COMMANDS = (APPEND, REWRITE, ALTER)
NEIGHBOUR = "metadata-of-another-table"
NEIGHBOURS = (NEIGHBOUR, "data-of-another-table")


class Data(NamedTuple):
    """A data file: the rows that it holds, the manifest that lists it, and the number that its first row got."""

    path: str
    rows: tuple[int, ...]
    listed_in: str = ""
    first_row_id: int = 0


class Snap(NamedTuple):
    """A snapshot: whose command and try it is, its sequence number, its list and its live files."""

    id: str
    command: int
    number: int
    list: str
    files: tuple[Data, ...] = ()

    @property
    def named(self) -> frozenset[str]:
        """Every file that a reader of it opens."""
        return frozenset((self.list, *(f.path for f in self.files), *(f.listed_in for f in self.files)))

    @property
    def rows(self) -> tuple[int, ...]:
        """What a reader of it sees."""
        return tuple(sorted(row for file in self.files for row in file.rows))


class Meta(NamedTuple):
    """A metadata file: its snapshots, oldest first (the last is the head), tags, log, and what else it counts."""

    file: str
    snapshots: tuple[Snap, ...] = ()
    tags: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    last: int = 0
    schema: int = 0
    next_row_id: int = 0

    @property
    def head(self) -> Snap | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def refs(self) -> dict[str, str]:
        """Where main and the tags stand."""
        main = {} if self.head is None else {"main": self.head.id}
        return {**main, **{f"tag of {at}": at for at in self.tags}}

    @property
    def needed(self) -> frozenset[str]:
        """Every file that it names, and itself."""
        return frozenset((self.file, *self.log)).union(*(snapshot.named for snapshot in self.snapshots))


class Shared(NamedTuple):
    """Catalog and folder, what was spent of each bound, and ghosts: who landed, who was told what, who left files."""

    table: Meta | None
    store: tuple[str, ...] = ()
    started: int = 0
    under_way: tuple[int, ...] = ()  # commands whose files are young
    upkeep: int = 0  # who lists, expires, creates or drops just now
    spent: tuple[str, ...] = ()  # one word each for a lost answer, a failure, a crash, an expiry …
    landed: tuple[int, ...] = ()
    acknowledged: tuple[int, ...] = ()
    denied: tuple[int, ...] = ()
    left: tuple[str, ...] = ()  # files that may be orphans: of commands that died, ended as unknown or heard nothing
    dropped: tuple[int, ...] = ()  # rows that somebody meant to drop with their table
    violated: tuple[str, ...] = ()

    def used(self, what: str) -> int:
        """How often this happened."""
        return self.spent.count(what)

    def spend(self, *what: str) -> Shared:
        """One more of each."""
        return self._replace(spent=tuple(sorted((*self.spent, *what))))

    def leaving(self, paths: Iterable[str]) -> Shared:
        """These files may stay behind as orphans."""
        return self._replace(left=tuple(sorted({*self.left, *paths})))

    def with_files(self, paths: Iterable[str]) -> Shared:
        """The folder with these files."""
        return self._replace(store=tuple(sorted({*self.store, *paths})))

    def without(self, paths: Iterable[str]) -> Shared:
        """The folder without these files."""
        gone = {*paths}
        return self._replace(store=tuple(path for path in self.store if path not in gone))


class SwapRequest(NamedTuple):
    """What the catalog is asked: to point from one metadata file to another."""

    expected: str
    meta: Meta
    command: int


class AtRest(NamedTuple):
    """Nothing in hand; a request of a command that ended as unknown may still be on its way."""

    requests: tuple[SwapRequest, ...] = ()


class Writing(NamedTuple):
    """A command under way."""

    command: int
    kind: str
    attempt: Attempt
    data: Data | None = None
    sources: tuple[str, ...] = ()
    scan: Meta | None = None
    base: Meta | None = None
    tries: int = 0
    written: tuple[str, ...] = ()
    last_try: tuple[str, ...] = ()
    asked: int = 0
    first_row_id: int | None = None
    staged: SwapRequest | None = None
    requests: tuple[SwapRequest, ...] = ()
    known: Meta | None = None  # the metadata in which it knows its own commit to be

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that it wrote so far."""
        return (*self.written, *((self.data.path,) if self.data is not None else ()))


class Upkeep(NamedTuple):
    """An expiry, a removal of orphans, a drop or a creation: how far it has come and what it has read."""

    what: str
    phase: int = 0
    base: Meta | None = None
    listed: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    number: int = 0


class Reading(NamedTuple):
    """A reader in the middle of a scan: the snapshot, what is still to be opened, the rows so far."""

    snapshot: Snap
    left: tuple[str, ...]
    rows: tuple[int, ...] = ()


AT_REST = AtRest()
Own = AtRest | Writing | Upkeep | Reading


class Rules(NamedTuple):
    """What is explored: whose attempt, which files it removes, and whose upkeep."""

    name: str
    attempt: Protocol | None = None  # `None`: ours, `commit/attempt.py` as it stands
    upkeep: UpkeepRules = UpkeepRules()
    removes: tuple[str, ...] = KINDS
    removes_mentioned: bool = False  # clean-up takes every path of the change for one that it wrote
    finds_own_commit: bool = True
    finds_by_try: bool = False  # looks for the snapshot of its last try, not for any of its command
    shares_names: bool = False  # all tries of a command write the same files
    row_ids_at_first_try: bool = False
    schema_of_scan: bool = False


@dataclass(frozen=True)
class Setup:
    """Everything that does not change during a run."""

    rules: Rules
    commands: tuple[str, ...]
    limits: tuple[tuple[str, int], ...]
    compares: bool = True  # the catalog's swap is a compare-and-swap
    late: bool = False
    max_commands: int = 2
    max_retries: int = 1
    keep_versions: int | None = None  # how many old metadata files are kept; `None`: all
    neighbour: bool = False  # another table lies in the same folder
    slow_writers: bool = False  # files of writers at work may be older than the cut of remove_orphan_files

    def may(self, shared: Shared, what: str) -> bool:
        """Whether this may happen once more."""
        return not shared.violated and shared.used(what) < dict(self.limits).get(what, 0)


def command_of(path: str) -> int:
    """The number of the command that wrote a file; 0: it was there before.

    >>> command_of("manifests-3.2")
    3
    """
    number = path.partition("-")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def kind_of(path: str) -> str:
    """What kind of file it is."""
    return path.partition("-")[0]


def phases_of(setup: Setup, what: str) -> tuple[UpkeepPhase, ...]:
    """What this upkeep does, in order."""
    upkeep = setup.rules.upkeep
    return {"expiry": upkeep.expiry, "orphans": upkeep.orphans, "drop": upkeep.drop, "creation": upkeep.creation}[what]
