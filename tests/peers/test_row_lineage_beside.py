"""Row ids beside Apache Iceberg 1.12: every command and every pair of commands, and both engines on one table.

`LAKEPROOF_LINEAGE_TURNS` and `LAKEPROOF_LINEAGE_SEEDS` say how many random commands the engines take turns with, and
how often.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from both_engines import Engines, ordered
from lineage_judge import COLUMNS, COMMANDS, MODES, Act, Judge, Read, Walk, every_pair, last_number, made

from lakeproof.replay.sql_process import SqlProcess

pytestmark = pytest.mark.peer
TURNS = int(os.environ.get("LAKEPROOF_LINEAGE_TURNS", "40"))
SEEDS = int(os.environ.get("LAKEPROOF_LINEAGE_SEEDS", "3"))


def _run(engines: Engines, engine: SqlProcess, act: Act, name: str) -> None:
    engine.sql(act.text.format(t=name, s="" if engine is engines.ours else "lakeproof."))


def _lineage(engines: Engines, name: str) -> list[Read]:
    """The rows with their ids, after both engines have agreed on them; PyIceberg reads the same rows."""
    ours = ordered(engines.ours.sql(f"select {COLUMNS} from {name}"))
    assert ordered(engines.theirs.sql(f"select {COLUMNS} from {name}")) == ours
    engines.rows(name)
    return ours


def _number(engines: Engines, name: str) -> int:
    return last_number(engines.table(name))


@pytest.mark.parametrize("mode", MODES)
def test_every_pair_of_commands_keeps_ids_and_numbers_as_apache_iceberg_does(
    engines: Engines, name: str, mode: str
) -> None:
    tables = {f"{name}_ours": engines.ours, f"{name}_theirs": engines.theirs}
    judges = {table: Judge() for table in tables}
    for table, engine in tables.items():
        engine.sql(made(table, mode))
    for act in Walk(7).acts(every_pair(COMMANDS)):
        numbers = []
        for table, engine in tables.items():
            _run(engines, engine, act, table)
            read = _lineage(engines, table)
            assert judges[table].wrong(act, read, _number(engines, table)) == [], (table, act.text)
            numbers.append({key: number for _, number, key, _, _ in read})
        assert numbers[0] == numbers[1], act.text


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("mode", MODES)
def test_engines_take_turns_on_one_table(engines: Engines, name: str, mode: str, seed: int) -> None:
    walk, judge, r = Walk(seed), Judge(), Random(f"who {seed} {mode}")
    engines.ours.sql(made(name, mode))
    for act in walk.acts(walk.random(TURNS)):
        engine = r.choice((engines.ours, engines.theirs))
        _run(engines, engine, act, name)
        who = "ours" if engine is engines.ours else "theirs"
        assert judge.wrong(act, _lineage(engines, name), _number(engines, name)) == [], (who, act.text)


def test_an_upgraded_table_gets_its_ids_once(engines: Engines, name: str) -> None:
    engines.theirs.sql(f"create table {name} (id int, v string, k string) using iceberg")
    engines.theirs.sql(f"insert into {name} values (1, 'a', 'x'), (2, 'b', 'x')")
    engines.ours.sql(f"insert into {name} values (3, 'c', 'y')")
    first = engines.table(name).metadata.snapshots[0].snapshot_id
    engines.ours.sql(f"alter table {name} set tblproperties ('format-version'='3')")
    without: Any = {row[:2] for row in _lineage(engines, name)}
    assert without == {(None, None)}
    engines.ours.sql(f"insert into {name} values (4, 'd', 'y')")
    before = {row[2]: row[0] for row in _lineage(engines, name)}
    assert sorted(before.values()) == [0, 1, 2, 3]
    engines.ours.sql(f"update {name} set v = 'B' where id = 2")
    engines.theirs.sql(f"update {name} set v = 'C' where id = 3")
    found = _lineage(engines, name)
    assert {row[2]: row[0] for row in found} == before
    assert {row[2]: row[1] for row in found} == {1: 1, 2: 4, 3: 5, 4: 3}
    old = f"select {COLUMNS} from {name} version as of {first}"
    assert {row[:2] for row in engines.ours.sql(old)} == {row[:2] for row in engines.theirs.sql(old)} == {(None, None)}


def test_defaults_are_read_and_inserted_alike(engines: Engines, name: str) -> None:
    engines.ours.sql(f"create table {name} (id int) using iceberg tblproperties ('format-version'='3')")
    engines.ours.sql(f"insert into {name} values (1), (2)")
    columns = ("i int default 7", "s string default 'it''s'", "d decimal(9, 2) default 1.5", "b binary default X'00ff'")
    for column in (
        *columns,
        "day date default date '2024-02-29'",
        "at timestamp_ntz default timestamp_ntz '2024-01-01'",
    ):
        engines.ours.sql(f"alter table {name} add column {column}")
    engines.ours.sql(f"insert into {name} (id) values (3)")
    engines.theirs.sql(f"insert into {name} (id) values (4)")
    engines.theirs.sql(f"update {name} set s = 'x' where id = 2")
    engines.ours.sql(f"update {name} set s = 'y', i = default where id in (1, 3)")
    rest = (7, "1.50", "00ff", "2024-02-29")
    assert [(row[0], row[2], row[1], *row[3:6]) for row in engines.rows(name)] == [
        (key, text, *rest) for key, text in ((1, "y"), (2, "x"), (3, "y"), (4, "it's"))
    ]
