"""What a commit makes of the table: the next snapshot, the ghost history beside it, and what the others learn."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import remembered
from lakeproof.models.paimon.world import (
    DELETE,
    UNSTAMPED,
    Append,
    Base,
    Bucket,
    Expected,
    LevelFile,
    Rewrite,
    Row,
    Shared,
    file_id,
)

IN_PLACE = file_id(0, 0, again=100)  # a file rewritten for its own level is the next of that name


class Event(NamedTuple):
    """What everybody else learns of a commit."""

    kind: str
    partition: int | None = None  # None: nothing that anybody's checks ask about
    user: int = -1
    waiter: int = -1  # the writer, or else compactor, that the committer worked for
    compacted: bool = False


def committed(setup: Setup, shared: Shared, work: Append | Rewrite, base: Base) -> Shared:
    """The world after a snapshot with this work, built on `base`, got its final name.

    Where nothing guards that name the base may be older than the head: then the snapshot replaces one that is there.
    """
    version = base.version + 1
    lost = shared.lost + (version <= shared.version)
    write = work if isinstance(work, Append) else work.write
    stamp = version if setup.snapshot_ordering else 0
    bucket = changed(setup, work, base.buckets[work.bucket], stamp, lost)
    buckets = (*base.buckets[: work.bucket], bucket, *base.buckets[work.bucket + 1 :])
    expected, inserted = shared.expected, shared.inserted
    if write is not None:
        expected, inserted = history(setup, expected, inserted, write)
    after = shared._replace(
        version=max(version, shared.version),
        snapshots=shared.snapshots + (version > shared.version),
        lost=lost,
        buckets=buckets if version >= shared.version else shared.buckets,
        expected=expected,
        inserted=inserted,
        locked=False,
    )
    if setup.compaction_rollback:
        return after._replace(before=() if write else (base.buckets, *shared.before))
    return after


@remembered
def changed(setup: Setup, work: Append | Rewrite, bucket: Bucket, stamp: int, lost: int) -> Bucket:
    """The bucket with this work in it; universal compaction writes no empty file."""
    if isinstance(work, Append):
        new = LevelFile(file_id(bucket.writes + 1, 0, lost), 0, (stamped(work.row, stamp),))
        return Bucket((*bucket.files, new), bucket.vectors, bucket.writes + 1)
    files = tuple(file for file in bucket.files if (file.id, file.level) not in work.removed)
    if work.rows or not setup.universal:
        rows = tuple(stamped(row, stamp) for row in work.rows)
        new = LevelFile(work.keeps_id or id_of(work, bucket, lost), work.level, rows)
        files = tuple(sorted((*files, new)))
    vectors = bucket.vectors if work.vectors is None else work.vectors
    return Bucket(files, vectors, bucket.writes + (work.write is not None))


def id_of(work: Rewrite, bucket: Bucket, lost: int) -> int:
    """The id of the file that a rewrite adds."""
    if work.write is not None:
        return file_id(bucket.writes + 1, 0, lost)
    newest = max(identity for identity, _ in work.removed)
    if len(work.removed) == 1 and work.removed[0][1] == work.level:
        return newest + IN_PLACE
    return file_id(newest // file_id(1, 0), work.level, lost)


def stamped(row: Row, stamp: int) -> Row:
    """The row with its snapshot's id as sequence number, if it waits for one."""
    return row._replace(sequence=stamp) if row.sequence == UNSTAMPED else row


@remembered
def history(
    setup: Setup, expected: tuple[Expected, ...], inserted: tuple[bool, ...], write: Append
) -> tuple[tuple[Expected, ...], tuple[bool, ...]]:
    """The ghost history after a write: reads must return its columns, unless the user's own order says otherwise."""
    row, number = write.row, setup.keys.index(write.row.key)
    old = expected[number]
    stamp = row.sequence if setup.sequence_field else -1
    set2 = write.columns[0] and stamp >= old.stamp2
    set3 = write.columns[1] and stamp >= old.stamp3
    new = Expected(
        row.col2 if set2 else old.col2,
        row.col3 if set3 else old.col3,
        stamp if set2 else old.stamp2,
        stamp if set3 else old.stamp3,
    )
    if row.kind == DELETE:
        inserted = (*inserted[:number], False, *inserted[number + 1 :])
    return (*expected[:number], new, *expected[number + 1 :]), inserted


def rolled_back(shared: Shared) -> Shared:
    """The world after the head, a COMPACT snapshot, was removed and the one before it is the head again."""
    return shared._replace(
        version=shared.version - 1,
        snapshots=shared.snapshots - 1,
        buckets=shared.before[0],
        before=shared.before[1:],
        lost=shared.lost + 1,
    )
