"""The change feed of random commands is the difference of the snapshots' rows; and how it tells them."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from test_spark_adopted import commit_deletes, equality_delete

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.history import changes
from lakeproof.spark.lake import Lake
from lakeproof.spark.streams import change_feed

pytestmark = pytest.mark.spark
COMMANDS = int(os.environ.get("LAKEPROOF_CHANGES", "12"))
SEED = int(os.environ.get("LAKEPROOF_CHANGES_SEED", "1"))
MODES = ("copy-on-write", "merge-on-read")
Bag = Counter[tuple[Any, ...]]


def made(lake: Lake, name: str, mode: str, more: str = "") -> None:
    modes = ", ".join(f"'write.{command}.mode' = '{mode}'" for command in ("update", "delete", "merge"))
    lake.sql(f"create table {name} (id bigint, n bigint, v string) using iceberg {more} tblproperties ({modes})")


def commands(table: str, seed: int) -> Iterator[str]:
    """Commands on a small domain, so that equal rows stand several times in the table."""
    chance = random.Random(seed)
    while True:
        at, n, word = chance.randrange(6), chance.randrange(4), chance.choice(("'a'", "'b'", "null"))
        rows = ", ".join(f"({chance.randrange(6)}, {chance.randrange(4)}, {word})" for _ in range(chance.randint(1, 5)))
        yield chance.choice(
            [
                f"insert into {table} values {rows}",
                f"insert into {table} values {rows}",
                f"update {table} set n = n + 1 where id = {at}",
                f"update {table} set v = {word} where n >= {n}",
                f"update {table} set v = v where id <= {at}",
                f"delete from {table} where id = {at} and n >= {n}",
                f"merge into {table} t using (select {at} id, {n} n) s on t.id = s.id"
                f" when matched and t.n > s.n then delete when matched then update set v = {word}"
                f" when not matched then insert (id, n, v) values (s.id, s.n, {word})",
                f"call system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
                f"insert overwrite {table} select id, n, v from {table} where id <> {at}",
            ]
        )


def bag(lake: Lake, text: str) -> Bag:
    return Counter(tuple(row) for row in lake.collect(lake.sql(text)))


def feed_of(lake: Lake, table: str, **options: int) -> dict[int, Bag]:
    """What each snapshot inserted (positive) and deleted (negative), by its id."""
    chosen = ", ".join(f"'{name.replace('_', '-')}', '{value}'" for name, value in options.items())
    given = f", options => map({chosen})" if chosen else ""
    lake.sql(f"call system.create_changelog_view(table => '{table}', changelog_view => 'feed'{given})")
    found: dict[int, Bag] = {}
    for *row, kind, _, snapshot in lake.collect(lake.sql("select * from feed")):
        counted = found.setdefault(snapshot, Counter())
        if counted[tuple(row)] * (1 if kind == "INSERT" else -1) < 0:
            counted["carried", *row] += 1  # the same row came and went: a carry-over that nobody removed
        counted[tuple(row)] += 1 if kind == "INSERT" else -1
    return found


def history(lake: Lake, table: str) -> list[tuple[int, Bag]]:
    """The snapshots and their rows, oldest first; before them, an empty table."""
    found = [
        (each.snapshot_id, bag(lake, f"select * from {table} version as of {each.snapshot_id}"))
        for each in lake.table(table).snapshots()
    ]
    return [(0, Counter()), *found]


def difference(before: Bag, after: Bag) -> Bag:
    return Counter({row: after[row] - before[row] for row in before | after if after[row] != before[row]})


def wrong_snapshots(lake: Lake, table: str, known: list[tuple[int, Bag]]) -> list[int]:
    """The snapshots of which the feed says something else than the difference of the rows."""
    feed = feed_of(lake, table)
    pairs = pairwise(known)
    return [now for (_, before), (now, after) in pairs if feed.get(now, Counter()) != difference(before, after)]


@pytest.mark.parametrize("mode", MODES)
def test_the_feed_is_the_difference_of_the_rows(lake: Lake, name: str, mode: str) -> None:
    made(lake, name, mode, "partitioned by (bucket(2, id))")
    chosen = commands(name, SEED)
    for _ in range(COMMANDS):
        lake.sql(next(chosen))
    known = history(lake, name)
    assert len(known) > COMMANDS // 3
    assert wrong_snapshots(lake, name, known) == []
    chance = random.Random(SEED)
    for _ in range(max(2, COMMANDS // 10)):
        first, last = sorted(chance.sample(range(1, len(known)), 2))
        feed = feed_of(lake, name, start_snapshot_id=known[first][0], end_snapshot_id=known[last][0])
        total: Bag = Counter()
        for each in feed.values():
            total.update(each)
        expected = difference(known[first][1], known[last][1])
        assert {row: n for row, n in total.items() if n} == expected, (first, last)


@pytest.mark.parametrize("planted", ["deleted rows inside files", "rows deleted before", "carry-overs"])
def test_planted_errors_are_found(lake: Lake, name: str, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = "copy-on-write" if planted == "carry-overs" else "merge-on-read"
    made(lake, name, mode)
    lake.sql(f"insert into {name} values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    lake.sql(f"delete from {name} where id = 1")
    lake.sql(f"insert overwrite {name} values (2, 2, 'b'), (9, 9, 'z')")
    known = history(lake, name)
    assert wrong_snapshots(lake, name, known) == []
    if planted == "deleted rows inside files":
        monkeypatch.setattr(changes, "_inside", lambda *given: iter(()))
    elif planted == "rows deleted before":
        real = changes._Files.whole
        monkeypatch.setattr(
            changes._Files, "whole", lambda self, *given, **how: real(self, *given, **how)._replace(but=None)
        )
    else:
        monkeypatch.setattr(change_feed, "_without_carried", lambda rows, names: rows)
    assert wrong_snapshots(lake, name, known) != []


@pytest.mark.parametrize("mode", MODES)
def test_updates_net_changes_and_compaction(lake: Lake, name: str, mode: str) -> None:
    made(lake, name, mode)
    lake.sql(f"insert into {name} values (1, 1, 'a'), (2, 2, 'b')")
    lake.sql(f"update {name} set v = 'x' where id = 2")
    lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    lake.sql(f"delete from {name} where id = 1")
    call = f"call system.create_changelog_view(table => '{name}'"
    assert lake.sql(f"{call})").collect() == [(f"{name}_changes",)]
    told = lake.sql(f"select id, v, _change_type, _change_ordinal from {name}_changes order by 4, 1, 3").collect()
    first = [(1, "a", "INSERT", 0), (2, "b", "INSERT", 0)]
    assert told == [*first, (2, "b", "DELETE", 1), (2, "x", "INSERT", 1), (1, "a", "DELETE", 2)]
    lake.sql(f"{call}, identifier_columns => array('id'))")
    told = lake.sql(f"select v, _change_type from {name}_changes where _change_ordinal = 1 order by 1").collect()
    assert told == [("b", "UPDATE_BEFORE"), ("x", "UPDATE_AFTER")]
    lake.sql(f"{call}, net_changes => true)")
    told = lake.sql(f"select id, v, _change_type, _change_ordinal from {name}_changes").collect()
    assert told == [(2, "x", "INSERT", 1)]


def test_instants_bound_the_range(lake: Lake, name: str) -> None:
    made(lake, name, "copy-on-write")
    for number in range(1, 4):
        lake.sql(f"insert into {name} values ({number}, 0, 'a')")
    first, second, third = lake.table(name).snapshots()
    between = feed_of(lake, name, start_timestamp=first.timestamp_ms, end_timestamp=second.timestamp_ms)
    assert between == {second.snapshot_id: Counter({(2, 0, "a"): 1})}
    assert set(feed_of(lake, name, start_timestamp=second.timestamp_ms)) == {third.snapshot_id}
    assert set(feed_of(lake, name, end_timestamp=second.timestamp_ms)) == {first.snapshot_id, second.snapshot_id}
    with pytest.raises(InvalidInput, match="start-snapshot-id and start-timestamp exclude each other"):
        feed_of(lake, name, start_snapshot_id=first.snapshot_id, start_timestamp=first.timestamp_ms)


def test_after_an_expired_snapshot_only_an_append_can_be_told(lake: Lake, name: str) -> None:
    made(lake, name, "copy-on-write")
    lake.sql(f"insert into {name} values (1, 1, 'a'), (2, 2, 'b')")
    lake.sql(f"insert into {name} values (3, 3, 'c')")
    lake.sql(f"update {name} set v = 'x' where id = 1")
    first, second, third = (each.snapshot_id for each in lake.table(name).snapshots())
    lake.engine.load(f"default.{name}").maintenance.expire_snapshots().by_id(first).commit()
    assert feed_of(lake, name, end_snapshot_id=second) == {second: Counter({(3, 3, "c"): 1})}
    lake.engine.load(f"default.{name}").maintenance.expire_snapshots().by_id(second).commit()
    with pytest.raises(InvalidInput, match=f"what snapshot {third} changed can no longer be told: the one before it"):
        feed_of(lake, name)
    with pytest.raises(InvalidInput, match=f"there is no snapshot {first}"):
        feed_of(lake, name, start_snapshot_id=first)


def test_carried_rows_are_told_if_they_are_asked_for(lake: Lake, name: str) -> None:
    made(lake, name, "copy-on-write")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ * from values (1, 1, 'a'), (2, 2, 'b')")
    lake.sql(f"update {name} set v = 'x' where id = 2")
    call = f"call system.create_changelog_view(table => '{name}', changelog_view => 'carried'"
    told = "select id, v, _change_type from carried where _change_ordinal = 1 order by 1, 3"
    lake.sql(f"{call}, remove_carryovers => false)")
    updated = [(2, "b", "DELETE"), (2, "x", "INSERT")]
    assert lake.sql(told).collect() == [(1, "a", "DELETE"), (1, "a", "INSERT"), *updated]
    lake.sql(f"{call})")
    assert lake.sql(told).collect() == updated


def test_equality_deletes_of_another_engine_are_deletions(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, v string, p string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} values (1, 'a', 'x'), (2, null, 'x'), (3, 'a', 'y'), (4, 'b', 'x')")
    table = lake.engine.load(f"default.{name}")
    commit_deletes(table, equality_delete(table, {"v": ["a", None]}, ids=(2,), partition=("x",)))
    lake.sql(f"insert into {name} values (5, 'a', 'x')")
    assert wrong_snapshots(lake, name, history(lake, name)) == []
    deleted = list(feed_of(lake, name).values())[1]
    assert deleted == Counter({(1, "a", "x"): -1, (2, None, "x"): -1})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("options => map('start-snapshot-id', '77')", "there is no snapshot 77"),
        ("options => map('start-snapshot-id', 'x')", "must be a whole number"),
        ("options => map('since', '1')", "there is no option `since`"),
        ("compute_updates => true", "columns that identify a row"),
        ("identifier_columns => array('nobody')", "there is no column `nobody`"),
        ("identifier_columns => array('id'), net_changes => true", "net changes cannot be told as updates"),
    ],
)
def test_bad_input_is_one_sentence(lake: Lake, name: str, more: str, said: str) -> None:
    made(lake, name, "copy-on-write")
    lake.sql(f"insert into {name} values (1, 1, 'a')")
    with pytest.raises(InvalidInput, match=said):
        lake.sql(f"call system.create_changelog_view(table => '{name}', {more})")
