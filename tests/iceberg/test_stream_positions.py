"""A stream over a table's history: random histories, limits and restarts; each appended file is read once, in order."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from commit_hooks import compaction, expire_all_but_the_head
from lakehouse import Lakehouse, insert, people, write

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Compare
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import append, delete_where, overwrite_where
from lakeproof.iceberg.history import stream_positions
from lakeproof.iceberg.history.stream_positions import (
    BatchLimits,
    StreamPosition,
    StreamRules,
    files_between,
    next_position,
    position_of,
)
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.refs import rollback_to_snapshot
from lakeproof.iceberg.tables.tables import PartitionBy

HISTORIES = int(os.environ.get("LAKEPROOF_STREAM_HISTORIES", "12"))
SEED = int(os.environ.get("LAKEPROOF_STREAM_SEED", "1"))
PASSES = StreamRules(skip_overwrites=True, skip_deletes=True)


def make(lake: Lakehouse, name: str = "t") -> Table:
    return lake.create(name, by=[PartitionBy("id")])


def change(table: Table, chance: random.Random) -> list[str]:
    """One random command; the files that an append adds, in the order of their snapshot."""
    kind = chance.choice(["append", "append", "append", "delete", "overwrite", "replace"])
    if kind == "append":
        known = {row["path"] for row in plan(table).files.to_pylist()}
        added = append(table, write(table, people(*chance.sample(range(6), chance.randint(1, 4))))).table
        return [row["path"] for row in plan(added).files.to_pylist() if row["path"] not in known]
    if kind == "delete":
        delete_where(table, Compare("id", "=", chance.randrange(6)))
    elif kind == "overwrite" and plan(table).files.num_rows:  # of an empty table it would be an append
        overwrite_where(table, ALWAYS, write(table, people(chance.randrange(6))))
    elif plan(table).files.num_rows:
        commit_change(table, *compaction(table))
    return []


class Reader:
    """A stream that keeps nothing but its checkpoint, and forgets it between planning a batch and reading it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.checkpoint, self.read = chance, list[str](), list[str]()

    def batch(self, table: Table, limits: BatchLimits) -> bool:
        """Plan a batch, perhaps die, and read it; false: there is nothing new."""
        end = next_position(table, self._position(-1), PASSES, limits)
        if end is None:
            return False
        self.checkpoint.append(end.as_json())
        for _ in range(self.chance.choice([1, 1, 2])):  # a batch that was read before a death is read again
            found = files_between(table, self._position(-2), self._last(), PASSES)
        assert found
        assert limits.files is None or len(found) <= limits.files
        before = sum(each.rows for each in found[:-1])
        assert limits.rows is None or before < limits.rows
        self.read += [each.path for each in found]
        return True

    def _last(self) -> StreamPosition:
        return position_of(self.checkpoint[-1], "checkpoint")

    def _position(self, at: int) -> StreamPosition | None:
        return position_of(self.checkpoint[at], "checkpoint") if len(self.checkpoint) >= -at else None


def streamed(lake: Lakehouse, seed: int) -> tuple[list[str], list[str]]:
    """The files that appends added in a random history, and those that a stream read."""
    chance = random.Random(seed)
    name, added = f"t{seed}", list[str]()
    make(lake, name)
    reader = Reader(chance)
    for _ in range(10):
        added += change(lake.load(name), chance)
        for _ in range(chance.choice([0, 0, 1, 2])):
            limits = BatchLimits(chance.choice([None, 1, 2, 3]), chance.choice([None, 1, 2, 4]))
            reader.batch(lake.load(name), limits)
    while reader.batch(lake.load(name), BatchLimits(files=chance.choice([None, 2]))):
        pass
    return added, reader.read


@pytest.mark.parametrize("seed", range(SEED, SEED + HISTORIES))
def test_each_appended_file_is_read_once_and_in_order(lake: Lakehouse, seed: int) -> None:
    added, read = streamed(lake, seed)
    assert sorted(read) == sorted(added)
    assert len(set(read)) == len(read)


def skips_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    real = stream_positions._to_read

    def planted(table: Table, line: Sequence[object], start: StreamPosition | None, *rest: object) -> Iterator[object]:
        found = list(real(table, line, start, *rest))  # type: ignore[arg-type]
        yield from found[:1] + found[2:] if start is not None and len(found) > 2 else found

    monkeypatch.setattr(stream_positions, "_to_read", planted)


def forgets_how_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    real = StreamPosition.as_json
    monkeypatch.setattr(StreamPosition, "as_json", lambda self: real(self._replace(files=0)))


def counts_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    real = StreamPosition.as_json
    monkeypatch.setattr(StreamPosition, "as_json", lambda self: real(self._replace(files=self.files + 1)))


def forgets_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    real = stream_positions._beginning
    monkeypatch.setattr(stream_positions, "_beginning", lambda line, rules: min(real(line, rules) + 1, len(line)))


def reads_what_compactions_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_positions, "operation_of", lambda snapshot: "append")


PLANTED = [
    *(skips_a_snapshot, forgets_how_many_files, counts_one_too_many),
    *(forgets_where_it_began, reads_what_compactions_wrote),
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_errors_are_found(
    plant: Callable[[pytest.MonkeyPatch], None], lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    def finds(seed: int) -> bool:
        try:
            added, read = streamed(lake, seed)
        except AssertionError:
            return True
        return sorted(read) != sorted(added)

    assert any(finds(seed) for seed in range(1, 20))


# ---------------------------------------------------------------- what stops a stream


def test_what_cannot_be_read_stops_it_behind_the_files_before(lake: Lakehouse) -> None:
    make(lake)
    insert(lake.load(), people(1))
    start = next_position(lake.load(), None, StreamRules())
    insert(lake.load(), people(2))
    delete_where(lake.load(), Compare("id", "=", 1))
    insert(lake.load(), people(3))
    end = next_position(lake.load(), start, StreamRules())
    assert start is not None
    assert end is not None
    assert len(files_between(lake.load(), start, end, StreamRules())) == 1
    deleting = lake.load().metadata.snapshots[2].snapshot_id
    with pytest.raises(InvalidInput, match=f"cannot read snapshot {deleting}, which deleted rows") as refused:
        next_position(lake.load(), end, StreamRules(skip_overwrites=True))
    assert "streaming-skip-delete-snapshots" in refused.value.hint
    passed = next_position(lake.load(), end, StreamRules(skip_deletes=True))
    assert passed is not None
    assert passed.snapshot_id == lake.load().metadata.current_snapshot_id
    assert next_position(lake.load(), passed, StreamRules()) is None, "what was passed over is behind it"


def test_an_overwrite_stops_it_and_a_compaction_does_not(lake: Lakehouse) -> None:
    make(lake)
    insert(lake.load(), people(1, 2))
    start = next_position(lake.load(), None, StreamRules())
    commit_change(lake.load(), *compaction(lake.load()))
    assert next_position(lake.load(), start, StreamRules()) is None
    overwrite_where(lake.load(), ALWAYS, write(lake.load(), people(5)))
    with pytest.raises(InvalidInput, match="which overwrote rows") as refused:
        next_position(lake.load(), start, StreamRules(skip_deletes=True))
    assert "streaming-skip-overwrite-snapshots" in refused.value.hint


def test_it_begins_at_an_instant_or_with_the_oldest_snapshot(lake: Lakehouse) -> None:
    make(lake)
    assert next_position(lake.load(), None, StreamRules()) is None
    for number in range(3):
        insert(lake.load(), people(number))
    times = [each.timestamp_ms for each in lake.load().metadata.snapshots]
    for from_ms, count in ((None, 3), (times[0], 3), (times[1], 2), (times[2] + 1, 0)):
        rules = StreamRules(from_ms)
        end = next_position(lake.load(), None, rules)
        assert (0 if end is None else len(files_between(lake.load(), None, end, rules))) == count


def test_lost_snapshots_are_told_in_a_sentence(lake: Lakehouse) -> None:
    make(lake)
    insert(lake.load(), people(1))
    start = next_position(lake.load(), None, StreamRules())
    insert(lake.load(), people(2))
    second = next_position(lake.load(), start, StreamRules())
    assert start is not None
    assert second is not None
    rollback_to_snapshot(lake.load(), start.snapshot_id)
    insert(lake.load(), people(3))
    with pytest.raises(InvalidInput, match=f"stands at snapshot {second.snapshot_id}, which is not in the table's"):
        next_position(lake.load(), second, StreamRules())
    expire_all_but_the_head(lake)
    with pytest.raises(InvalidInput, match=f"stands at snapshot {start.snapshot_id}, which was expired"):
        next_position(lake.load(), start, StreamRules())


@pytest.mark.parametrize("text", ["", "{}", "[1]", "7", '{"snapshot_id": 1}', '{"snapshot_id": "x", "position": 0}'])
def test_a_checkpoint_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="holds no position in a table"):
        position_of(text, "checkpoint")


def test_positions_are_written_as_apache_iceberg_writes_them() -> None:
    text = '{"version":1,"snapshot_id":5,"position":2,"scan_all_files":false}'
    assert position_of(text, "checkpoint") == StreamPosition(5, 2)
    assert position_of(StreamPosition(5, 2, 4).as_json(), "checkpoint") == StreamPosition(5, 2, 4)
    whole = text.replace("false", "true")
    with pytest.raises(InvalidInput, match="in the middle of a whole table"):
        position_of(whole, "checkpoint")
