"""What a Paimon primary-key table is while jobs work on it: rows, files, vectors, snapshots, and what each job holds.

Files are values. A data file is named after what is in it (`file_id`), not by a counter, so two worlds that differ only
in names are one world; files that no snapshot and no job can reach are not in the world at all.
"""

from __future__ import annotations

from typing import NamedTuple

INSERT, UPDATE, DELETE = "+I", "+U", "-D"  # row kinds
APPEND, COMPACT, OVERWRITE = "APPEND", "COMPACT", "OVERWRITE"  # commit kinds

UNSTAMPED = -1  # the sequence number of a row that gets its snapshot's id when it is committed


class Row(NamedTuple):
    """One version of a key; of two versions the higher sequence number wins."""

    sequence: int
    kind: str
    key: str
    col2: str
    col3: str


def file_id(newest: int, born: int, again: int = 0) -> int:
    """The id of a file whose newest row came with the bucket's n-th write and that was written for level `born`.

    No two files of a bucket share it: once a file is compacted, the same write never reaches the same level again,
    unless a file is rewritten in place or a snapshot is rolled back or overwritten; `again` tells those apart.
    """
    return newest * 10_000 + again * 10 + born


def file_name(identity: int) -> str:
    """A file's name for readers: data-2-l1 was written for level 1, and its newest row came with the second write."""
    newest, rest = divmod(identity, 10_000)
    again, born = divmod(rest, 10)
    return f"data-{newest}" + (f"-l{born}" if born else "") + (f"-r{again}" if again else "")


class LevelFile(NamedTuple):
    """A file of one level of a bucket's LSM tree; `rows` are in the order of their positions."""

    id: int
    level: int
    rows: tuple[Row, ...]


Vectors = tuple[tuple[int, tuple[int, ...]], ...]  # a bucket's deletion vectors: (file id, deleted positions)


class Bucket(NamedTuple):
    """One bucket of the head snapshot: its live files, oldest data first, and its deletion-vector index file."""

    files: tuple[LevelFile, ...] = ()
    vectors: Vectors = ()
    writes: int = 0  # committed to this bucket: they name its files


class Expected(NamedTuple):
    """Ghost: what a read of one key must return; a stamp orders writes where the user gave a sequence field."""

    col2: str = ""
    col3: str = ""
    stamp2: int = -1
    stamp3: int = -1


class Append(NamedTuple):
    """A write: one row for a new file of level 0."""

    bucket: int
    row: Row
    columns: tuple[bool, bool]  # which of col2 and col3 the command sets (the ghost history needs it)

    @property
    def commit_kind(self) -> str:
        """Paimon's name for a commit with this change."""
        return APPEND


class CompactionPlan(NamedTuple):
    """A compaction that has chosen its bucket and level, and has read nothing yet."""

    bucket: int
    level: int


class Rewrite(NamedTuple):
    """A change that replaces files: a compaction, or a row-level command that overwrites them."""

    bucket: int
    level: int
    rows: tuple[Row, ...]
    removed: tuple[tuple[int, int], ...]  # (file id, level), as manifest entries are identified
    keeps_id: int = 0  # an upgraded file moves to its new level under its own name; 0: a new file
    vectors: Vectors | None = None  # the bucket's whole new index file; None: the snapshot keeps the old one
    seen_vectors: Vectors | None = None  # the index file it replaces; carried only where somebody asks
    write: Append | None = None  # the row that a row-level command sets; None: a compaction

    @property
    def commit_kind(self) -> str:
        """Paimon's name for a commit with this change."""
        return COMPACT if self.write is None else OVERWRITE


Work = Append | CompactionPlan | Rewrite


class Handed(NamedTuple):
    """A change whose files are written, waiting for the committer; and the process that may wait for it."""

    actor: int
    change: Append | Rewrite


class Shared(NamedTuple):
    """What everybody can see: the head snapshot, the lock, the committer's queue; and ghosts and bounds."""

    version: int = 0  # the head snapshot's id
    snapshots: int = 0  # how many snapshot files there are
    lost: int = 0  # snapshots that were rolled back or overwritten
    buckets: tuple[Bucket, ...] = ()
    expected: tuple[Expected, ...] = ()  # ghost, per key
    inserted: tuple[bool, ...] = ()  # bound, per key: an insert is under way or committed
    ops_on: tuple[int, ...] = ()  # bound, per key; empty where keys have no bound of their own
    writes: int = 0  # bound: writes started
    compactions: int = 0  # bound: compactions started
    locked: bool = False
    queue: tuple[Handed, ...] = ()  # what a committer apart has not taken yet
    before: tuple[tuple[Bucket, ...], ...] = ()  # what rolling back the newest COMPACT snapshots would restore


class Base(NamedTuple):
    """The snapshot that a prepared snapshot builds on, kept only where nothing stops it from being overwritten."""

    version: int
    buckets: tuple[Bucket, ...]


class Idle(NamedTuple):
    """Nothing under way."""

    actor: int
    done: int
    phase: str = "idle"


STARTED, WRITTEN, PREPARED, LOCKED, STALE = "started", "written", "prepared", "locked", "stale"
HANDED, BAD = "handed over", "bad"


class Busy(NamedTuple):
    """An operation under way.

    started: decided; written: its data and vector files are in the store; prepared: its metadata files extend the head;
    locked: the same, and it holds the lock; stale: the head has moved since; handed over: the committer has it;
    bad: it would remove a file that is not there.
    """

    actor: int
    done: int
    phase: str
    work: Work
    unsafe: tuple[int, ...] = ()  # strict mode: partitions that another user has compacted since this began
    base: Base | None = None
    waiter: int = -1  # for whom a committer apart commits; -1: for itself


Own = Idle | Busy
