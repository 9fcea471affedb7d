"""Tables of format version 3 that we, Apache Iceberg and PyIceberg share: rows after every step, whoever wrote last.

`LAKEPROOF_TURNS` (40) commands for each of `LAKEPROOF_TURN_SEEDS` (3) seeds, the engines taking turns on one table.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from both_engines import MERGE_ON_READ, Engines

from lakeproof.errors import LakeproofError
from lakeproof.replay.sql_process import SqlProcess

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]
TURNS = int(os.environ.get("LAKEPROOF_TURNS", "40"))
SEEDS = int(os.environ.get("LAKEPROOF_TURN_SEEDS", "3"))
KEYS = 30
State = dict[int, str]


class Turn(NamedTuple):
    """A statement, and what it makes of the rows; a procedure makes nothing of them."""

    text: str
    effect: Callable[[State], State] = dict


def updated(state: State, key: int, word: str) -> State:
    return {k: word if k % 7 == key % 7 else v for k, v in state.items()}


def merged(state: State, key: int, word: str) -> State:
    return {**state, key: word, key + 1: word}


def turns(chance: random.Random, name: str, number: int) -> Turn:
    """Some command on the table; `{system}` is where the engine has its procedures."""
    key, word = chance.randrange(KEYS), f"w{number}"
    source = f"(select {key} as k, '{word}' as w union all select {key + 1}, '{word}') s"
    kinds = [
        Turn(f"delete from {name} where id = {key}", lambda s: {k: v for k, v in s.items() if k != key}),
        Turn(
            f"delete from {name} where id % 9 = {key % 9}", lambda s: {k: v for k, v in s.items() if k % 9 != key % 9}
        ),
        Turn(f"update {name} set v = '{word}' where id % 7 = {key % 7}", lambda s: updated(s, key, word)),
        Turn(
            f"merge into {name} t using {source} on t.id = s.k when matched then update set v = s.w "
            "when not matched then insert (id, v) values (s.k, s.w)",
            lambda s: merged(s, key, word),
        ),
        Turn(
            f"insert into {name} values ({1000 + number}, '{word}'), ({2000 + number}, '{word}')",
            lambda s: {**s, 1000 + number: word, 2000 + number: word},
        ),
    ]
    procedures = ("rewrite_data_files", "rewrite_position_delete_files", "rewrite_manifests", "expire_snapshots")
    upkeep = [Turn(f"call {{system}}.{each}(table => 'default.{name}')") for each in procedures]
    return chance.choice([*kinds, *kinds, *upkeep])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_engines_taking_turns_see_the_same_rows_after_every_command(engines: Engines, name: str, seed: int) -> None:
    chance = random.Random(seed)
    upgrade = None if seed % 3 == 0 else chance.randrange(TURNS)
    version = 3 if upgrade is None else 2
    sides = [(engines.ours, "system"), (engines.theirs, "lakeproof.system")]
    modes = MERGE_ON_READ if seed % 2 == 0 else MERGE_ON_READ.replace("merge-on-read", "copy-on-write", 1)
    make = f"create table {name} (id bigint, v string) using iceberg"
    chance.choice(sides)[0].sql(f"{make} tblproperties ('format-version'='{version}', {modes})")
    engines.ours.sql(f"insert into {name} select id, 'a' from range({KEYS})")
    state: State = dict.fromkeys(range(KEYS), "a")
    told = []
    for number in range(TURNS):
        (engine, system), turn = chance.choice(sides), turns(chance, name, number)
        if number == upgrade:
            engine.sql(f"alter table {name} set tblproperties ('format-version'='3')")
        told.append(f"{system} {turn.text}")
        engine.sql(turn.text.format(system=system))
        state = turn.effect(state)
        assert engines.rows(name) == sorted(state.items(), key=repr), told
    found = engines.audited(name)["findings"]
    assert [each for each in found if each["severity"] == "rows_wrong"] == [], told


def outcome(running: Future[Any]) -> str:
    try:
        running.result(180)
    except LakeproofError as error:
        return str(error)
    return ""


def together(engine: SqlProcess, statements: Iterator[str]) -> list[str]:
    """What became of statements that all run at once; nothing: committed."""
    return [outcome(each) for each in [engine.start(text) for text in statements]]


@pytest.mark.parametrize("writers", [4, 8])
def test_writers_of_different_rows_of_one_file(engines: Engines, name: str, writers: int) -> None:
    """All of ours commit without a re-run; how many of theirs are refused is printed, not judged."""
    refused = {}
    for side, engine in (("ours", engines.ours), ("theirs", engines.theirs)):
        table = f"{name}_{side}"
        properties = f"'format-version'='3', {MERGE_ON_READ}"
        engine.sql(f"create table {table} (id bigint, v string) using iceberg tblproperties ({properties})")
        engine.sql(f"insert into {table} select /*+ coalesce(1) */ id, 'a' from range({2 * writers})")
        ended = together(engine, (f"delete from {table} where id = {n}" for n in range(writers)))
        refused[side] = sum(bool(each) for each in ended)
        kept = [(n, "a") for n in range(2 * writers) if n >= writers or ended[n]]
        assert engines.rows(table) == sorted(kept, key=repr)
    print(f"{writers} writers of different rows of one file, refused: {refused}")
    assert refused["ours"] == 0
    said = [each.summary for each in engines.table(f"{name}_ours").metadata.snapshots]
    assert not [each for each in said if each and "lakeproof.reruns" in each.additional_properties]


def test_an_old_vector_of_theirs_and_two_of_one_file_of_ours(engines: Engines, name: str) -> None:
    ours, theirs = engines.ours, engines.theirs
    theirs.sql(
        f"create table {name} (id bigint, v string) using iceberg tblproperties ('format-version'='3', {MERGE_ON_READ})"
    )
    for start in (0, 100):
        theirs.sql(f"insert into {name} select /*+ coalesce(1) */ id + {start}, 'a' from range(10)")
    theirs.sql(f"delete from {name} where id in (1, 101)")
    assert len(engines.rows(name)) == 18
    ours.sql(f"delete from {name} where id in (2, 102)")
    assert len(engines.rows(name)) == 16
    theirs.sql(f"delete from {name} where id = 3")
    assert len(engines.rows(name)) == 15
    ours.sql(f"delete from {name} where id >= 100")
    assert engines.rows(name) == [(n, "a") for n in (0, 4, 5, 6, 7, 8, 9)]
    ours.sql(f"call system.expire_snapshots(table => '{name}', retain_last => 1, older_than => timestamp '2100-01-01')")
    assert engines.rows(name) == [(n, "a") for n in (0, 4, 5, 6, 7, 8, 9)]
    assert len(list(Path(engines.folder / "default" / name).rglob("*.puffin"))) == 1
