"""What a writer may be asked to write: the rows of its commands, their sequence numbers, and the bounds they use up."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import highest_sequence, read_key
from lakeproof.models.paimon.world import DELETE, INSERT, UNSTAMPED, UPDATE, Append, Rewrite, Row, Shared

BOTH = (True, True)


def commands(setup: Setup, shared: Shared, index: int, key: str, done: int) -> Iterator[tuple[Row, tuple[bool, bool]]]:
    """The rows that a writer may write for a key now, each with the columns that the command sets."""
    number = setup.keys.index(key)
    sequence = next_sequence(setup, shared, index, done)
    current = read_key(setup, shared.buckets[index], key)
    if current is None:
        if not shared.inserted[number]:
            for col2 in setup.col2:
                for col3 in setup.col3:
                    yield Row(sequence, INSERT, key, col2, col3), BOTH
        return
    if setup.max_writes_per_key and shared.ops_on[number] >= setup.max_writes_per_key:
        return
    if setup.allow_deletes:
        yield Row(sequence, DELETE, key, "", ""), BOTH
    if setup.allow_updates and setup.streaming_sink:
        for col2 in others_first(setup.col2, current.col2):
            for col3 in others_first(setup.col3, current.col3):
                yield Row(sequence, UPDATE, key, col2, col3), BOTH
    elif setup.allow_updates:
        for col2 in others_first(setup.col2, current.col2):
            yield Row(sequence, UPDATE, key, col2, current.col3), (True, False)
        for col3 in others_first(setup.col3, current.col3):
            yield Row(sequence, UPDATE, key, current.col2, col3), (False, True)


def others_first(values: tuple[str, ...], current: str) -> tuple[str, ...]:
    """The values with the current one last: of two equally short traces, one in which something changes is told."""
    return tuple(sorted(values, key=lambda value: value == current))


def next_sequence(setup: Setup, shared: Shared, index: int, done: int) -> int:
    """The sequence number of a writer's next row: the user's own column, the snapshot's id, or a counter."""
    if setup.sequence_field:
        return shared.writes
    if setup.snapshot_ordering:
        return UNSTAMPED
    return highest_sequence(shared.buckets[index]) + 1 if setup.restored_sequence else done


def started(setup: Setup, shared: Shared, row: Row) -> Shared:
    """The bounds after one more write of this row's key."""
    number = setup.keys.index(row.key)
    inserted, ops_on = shared.inserted, shared.ops_on
    if row.kind == INSERT:
        inserted = (*inserted[:number], True, *inserted[number + 1 :])
    if setup.max_writes_per_key:
        count = 1 if row.kind == INSERT else ops_on[number] + 1
        ops_on = (*ops_on[:number], count, *ops_on[number + 1 :])
    return shared._replace(inserted=inserted, ops_on=ops_on, writes=shared.writes + 1)


def command_text(row: Row, columns: tuple[bool, bool]) -> str:
    """The command as a reader of the trace wants it."""
    if row.kind == INSERT:
        return f"insert {row.key} {row.col2} {row.col3}"
    if row.kind == DELETE:
        return f"delete {row.key}"
    values = [value for value, is_set in zip((row.col2, row.col3), columns, strict=True) if is_set]
    return f"update {row.key} to {' '.join(values)}"


def overwrite(setup: Setup, shared: Shared, write: Append) -> Rewrite:
    """A row-level command replaces all files of the bucket by one of level 0 in which its row is changed."""
    bucket = shared.buckets[write.bucket]
    rows = []
    for key in setup.keys_of_bucket[write.bucket]:
        row = write.row if key == write.row.key else read_key(setup, bucket, key)
        if row is not None:
            rows.append(row)
    removed = tuple((file.id, file.level) for file in bucket.files)
    return Rewrite(write.bucket, 0, tuple(rows), removed, 0, () if bucket.vectors else None, None, write)
