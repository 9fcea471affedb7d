"""Merging in a bucket's LSM tree: what a read of a key returns, and what a compaction makes of the files it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.world import DELETE, INSERT, Bucket, LevelFile, Rewrite, Row, Vectors

remembered = lru_cache(maxsize=1 << 18)  # for functions that read one bucket: few buckets make many worlds


def newest(setup: Setup, key: str, files: Iterable[LevelFile], vectors: Vectors) -> Row | None:
    """The key's unmarked row with the highest sequence number; files come in the order of their commits."""
    deleted = dict(vectors)
    found: Row | None = None
    for file in files:
        positions = deleted.get(file.id, ())
        for position, row in enumerate(file.rows):
            if row.key == key and position not in positions and (found is None or wins(setup, row, found)):
                found = row
    return found


def wins(setup: Setup, later: Row, earlier: Row) -> bool:
    """The row of the file that was committed later is the newer one; sequence numbers may tie."""
    return later.sequence > earlier.sequence or (setup.later_file_wins and later.sequence == earlier.sequence)


@remembered
def read_key(setup: Setup, bucket: Bucket, key: str, consult_vectors: bool = True) -> Row | None:
    """What a reader of the snapshot gets for the key: the newest row of all levels, or `None` if there is none."""
    row = newest(setup, key, bucket.files, bucket.vectors if consult_vectors else ())
    return None if row is None or row.kind == DELETE else row


def highest_sequence(bucket: Bucket) -> int:
    """The highest sequence number in the bucket, which a restarted writer restores; -1 if it is empty."""
    return max((row.sequence for file in bucket.files for row in file.rows), default=-1)


@remembered
def compact_level(setup: Setup, index: int, bucket: Bucket, level: int) -> Rewrite:
    """All files of one level become one file of the next, and the rows above of the same keys are marked deleted."""
    taken = [file for file in bucket.files if file.level == level]
    rows, superseded = [], set()
    for key in setup.keys_of_bucket[index]:
        row = newest(setup, key, taken, bucket.vectors)
        if row is None or (row.kind == DELETE and not setup.keep_deletes):
            continue
        if row.kind != INSERT or not setup.as_in_spec:
            superseded.add(key)
        if setup.dv_enabled and not setup.as_in_spec:
            above = newest(setup, key, [file for file in bucket.files if file.level > level], bucket.vectors)
            row = above if above and above.sequence > row.sequence else row
        if row.kind != DELETE or not setup.dv_enabled:
            rows.append(row)
    removed = tuple((file.id, file.level) for file in taken)
    if not setup.dv_enabled:
        return Rewrite(index, level + 1, tuple(rows), removed)
    marked = [
        (file.id, position)
        for file in bucket.files
        if file.level > level
        for position, row in enumerate(file.rows)
        if row.key in superseded
    ]
    vectors: Vectors | None = next_vectors(setup, bucket.vectors, marked, removed)
    if vectors == bucket.vectors and not (setup.as_in_spec and superseded):
        vectors = None
    return Rewrite(index, level + 1, tuple(rows), removed, 0, vectors, seen(setup, bucket))


def next_vectors(
    setup: Setup, old: Vectors, marked: Iterable[tuple[int, int]], removed: Iterable[tuple[int, int]]
) -> Vectors:
    """The bucket's vectors with more positions marked and without those of the files that are compacted away."""
    gone = {file_id for file_id, _ in removed} if setup.prune_vectors else set()
    positions = {file_id: set(deleted) for file_id, deleted in old if file_id not in gone}
    for file_id, position in marked:
        positions.setdefault(file_id, set()).add(position)
    return tuple((file_id, tuple(sorted(positions[file_id]))) for file_id in sorted(positions))


def seen(setup: Setup, bucket: Bucket) -> Vectors | None:
    """The vectors that a compaction read, where a check will compare them with the head's."""
    return bucket.vectors if setup.dv_conflict_check or setup.dv_index_check or setup.compare_rules else None


def universal_units(bucket: Bucket, max_level: int) -> Iterator[tuple[tuple[LevelFile, ...], int]]:
    """The (files, output level) that universal compaction may pick, whatever the sizes of the files.

    A unit is a prefix of the sorted runs, youngest first: all of level 0, then whole levels upwards, level 1 always.
    It goes just below the next run, or to the highest level if nothing is left. Where only the highest level is left,
    a full compaction rewrites the files that have vectors.
    """
    levels = sorted({file.level for file in bucket.files if file.level})
    flushed = any(file.level == 0 for file in bucket.files)
    if not flushed and levels == [max_level]:
        vectored = dict(bucket.vectors)
        rewritten = tuple(file for file in bucket.files if file.id in vectored)
        if rewritten:
            yield rewritten, max_level
        return
    for count in range(0 if flushed else 1, len(levels) + 1):
        below = levels[count] - 1 if count < len(levels) else max_level
        taken = tuple(file for file in bucket.files if file.level == 0 or file.level in levels[:count])
        if below and (len(taken) > 1 or taken[0].level != below):
            yield taken, below


@remembered
def compact_unit(setup: Setup, index: int, bucket: Bucket, taken: tuple[LevelFile, ...], output: int) -> Rewrite:
    """The taken files become one file of the output level; a lookup above marks the rows that level 0 supersedes."""
    rows, marked = [], []
    drops_deletes = setup.dv_enabled or output >= max(file.level for file in bucket.files)
    for key in setup.keys_of_bucket[index]:
        row = newest(setup, key, taken, bucket.vectors)
        if row is None:
            continue
        if setup.dv_enabled and newest(setup, key, [file for file in taken if file.level], bucket.vectors) is None:
            above = look_up(key, bucket, output)
            if above is not None:
                marked.append(above[:2])
                row = above[2] if above[2].sequence > row.sequence else row
        if row.kind != DELETE or not drops_deletes:
            rows.append(row)
    removed = tuple((file.id, file.level) for file in taken)
    upgraded = is_upgrade(setup, taken, output)
    if upgraded:
        rows = list(taken[0].rows)
    keeps_id = taken[0].id if upgraded else 0
    if not setup.dv_enabled:
        return Rewrite(index, output, tuple(rows), removed, keeps_id)
    vectors = next_vectors(setup, bucket.vectors, marked, () if upgraded else removed)
    new_index = None if vectors == bucket.vectors else vectors
    return Rewrite(index, output, tuple(rows), removed, keeps_id, new_index, seen(setup, bucket))


def is_upgrade(setup: Setup, taken: tuple[LevelFile, ...], output: int) -> bool:
    """A single file changes its level under its own name, unless it has -D rows to drop or rows to merge."""
    if len(taken) > 1 or taken[0].level == output:
        return False
    to_max, flushed = output == setup.max_level, taken[0].level == 0
    if any(row.kind == DELETE for row in taken[0].rows) and (to_max or (setup.dv_enabled and flushed)):
        return False
    return not (setup.dv_enabled and setup.sequence_field and flushed and not to_max)


def look_up(key: str, bucket: Bucket, output: int) -> tuple[int, int, Row] | None:
    """The key's live row in the levels above the output level, lowest level first: (file id, position, row)."""
    deleted = dict(bucket.vectors)
    for file in sorted((file for file in bucket.files if file.level > output), key=lambda file: file.level):
        for position, row in enumerate(file.rows):
            if row.key == key and position not in deleted.get(file.id, ()):
                return file.id, position, row
    return None
