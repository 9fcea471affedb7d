"""Every public call from Python, with values that it does not take: one sentence, where, and mostly what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakeproof
from lakeproof.audit.joinable import findings
from lakeproof.errors import CommitConflict, InvalidInput, LakeproofError
from lakeproof.spark.lake import Lake, LakeTable

pytestmark = pytest.mark.spark

NO_TEXTS: list[Any] = [7, b"t", ["t"], {"t": 1}, object(), True, 2.5, Path("t"), str]
NO_NAMES = [*NO_TEXTS, None, "", " ", "nosuch", "t.t.t.t.t", "`", "`t", "t`", "a b", "t;", "t'", "\0", "t" * 300, "💥"]
NO_PREDICATES = ["", "  ", "(", "id =", "nosuch = 1", "id = 'x'", "id + 1", "1", "null", "id = 1; drop table t", "\0"]
NO_PREDICATES += [
    "exists(",
    "id in (select id from nosuch)",
    "max(id) = 1",
    "row_number() over (order by id) = 1",
    "💥",
]
NO_ROWS: list[Any] = [None, 7, "select 1", [(1, "a")], [], {}, object()]
NO_BRANCHES = [*NO_TEXTS, None, "", "nosuch", "\0", "a b"]
NO_VERSIONS: list[Any] = [1.5, b"1", [1], {}, object(), True, "", "nosuch", -1, 0, 2**70, "1.5", "\0", "²", "9" * 5000]
NO_INSTANTS: list[Any] = ["2026-01-01", 1.5, True, datetime(2026, 1, 1), [1], -1, 0, -(2**70), object()]
NO_STATEMENTS = ["", "  ", ";", "-- nothing", "\0", "selec 1", "select", "select ' from", "select :x", "select ?", "💥"]
NO_ARGS: list[Any] = [7, "x", b"x", object(), {1: 2}, {"x": object()}, [object()], {"x": {1, 2}}, {"x": print}]


@pytest.fixture(scope="module")
def people(lake: Lake) -> LakeTable:
    lake.sql("create table asked (id int, name string) using iceberg")
    lake.sql("insert into asked values (1, 'jack'), (2, 'sarah')")
    return lake.table("asked")


Call = Callable[[], Any]


def each(function: Callable[..., Any], values: Iterable[Any], name: str = "") -> list[Call]:
    """The function with each of these values: as the argument of this name, else as its first."""
    return [partial(function, **{name: value}) if name else partial(function, value) for value in values]


def calls_of_lake(lake: Lake) -> dict[str, list[Call]]:
    """What may be done with a lake, done wrongly."""
    return {
        "sql": [
            *each(lake.sql, [*NO_TEXTS, None, *NO_STATEMENTS]),
            *each(partial(lake.sql, "select :x"), NO_ARGS),
        ],
        "table": each(lake.table, NO_NAMES),
        "watched": each(lake.watched, [1], "nosuch"),
        "collect": each(lake.collect, NO_ROWS),
        "scans": each(lake.scans, NO_ROWS),
    }


def calls_of_table(lake: Lake, people: LakeTable) -> dict[str, list[Call]]:
    """What may be done with a table, done wrongly."""
    good = lake.spark.createDataFrame([(3, "lucy")], "id int, name string")
    others = [good.withColumnRenamed("id", "di"), lake.spark.createDataFrame([("x", 1)], "id string, name int")]
    predicates = [*NO_TEXTS, *NO_PREDICATES]
    return {
        "scan": [
            *each(people.scan, NO_VERSIONS, "version"),
            *each(people.scan, NO_INSTANTS, "timestamp_ms"),
            *each(partial(people.scan, version="main"), [1], "timestamp_ms"),
        ],
        "plan": each(people.plan, predicates),
        "append": [
            *each(people.append, [*NO_ROWS, *others]),
            *each(partial(people.append, good), NO_BRANCHES, "branch"),
        ],
        "overwrite": [
            *each(people.overwrite, NO_ROWS),
            *each(partial(people.overwrite, good), predicates),
            *each(partial(people.overwrite, good), NO_BRANCHES, "branch"),
        ],
        "overwrite_partitions": [
            *each(people.overwrite_partitions, NO_ROWS),
            *each(partial(people.overwrite_partitions, good), NO_BRANCHES, "branch"),
        ],
    }


def wrong_in(answer: LakeproofError) -> str:
    """What is wrong with the words of an error."""
    message = getattr(answer, "message", str(answer))
    if not message or "\n" in message.strip() or len(message) > 600:
        return "not one sentence"
    if re.search(r"py4j|Traceback|java\.|org\.apache|\.scala|<object object at|o\d+\.|SQLSTATE|NoneType", str(answer)):
        return "the words of a library"
    return "" if isinstance(answer, InvalidInput | CommitConflict) else f"a {type(answer).__name__}"


def told(call: Call) -> str:
    """How a wrong call ends, if not in a sentence of ours."""
    shown = repr(call)[:300]
    try:
        call()
    except LakeproofError as error:
        wrong = wrong_in(error)
        return f"{shown}: {wrong}: {error}" if wrong else ""
    except Exception as error:
        return f"{shown}: raw {type(error).__name__}: {error}"
    return f"{shown}: accepted"


@pytest.mark.parametrize("name", ["sql", "table", "watched", "collect", "scans"])
def test_a_lake_refuses_in_a_sentence(lake: Lake, name: str) -> None:
    assert list(filter(None, map(told, calls_of_lake(lake)[name]))) == []


@pytest.mark.parametrize("name", ["scan", "plan", "append", "overwrite", "overwrite_partitions"])
def test_a_table_refuses_in_a_sentence(lake: Lake, people: LakeTable, name: str) -> None:
    before = people.snapshots()
    assert list(filter(None, map(told, calls_of_table(lake, people)[name]))) == []
    assert people.snapshots() == before


def test_every_call_that_takes_something_is_asked(lake: Lake, people: LakeTable) -> None:
    for kind, asked in ((Lake, calls_of_lake(lake)), (LakeTable, calls_of_table(lake, people))):
        public = [one for name, one in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
        takes = {one.__name__ for one in public if len(inspect.signature(one).parameters) > 1}
        assert takes == set(asked)


@pytest.mark.parametrize(
    "given",
    [
        {"spark": 7},
        {"spark": "local[2]"},
        {"spark": SparkSession.builder},
        {"catalog": 7},
        {"catalog": b"memory:"},
        {"catalog": ""},
        {"catalog": "nosuch://x"},
        {"warehouse": 7},
        {"warehouse": ["x"]},
        {"warehouse": "a#b"},
        {"warehouse": "\0"},
        {"token": 7},
        {"header.X": None},
    ],
)
def test_connect_refuses_in_a_sentence(lake: Lake, given: dict[str, Any]) -> None:
    usual = {"spark": lake.spark, "catalog": "memory:", "warehouse": "unused"}
    assert told(partial(lakeproof.connect, **{**usual, **given})) == ""


@pytest.mark.parametrize(
    "given", [{"lake": 7}, {"lake": None}, {"name": 7}, {"name": "nosuch"}, {"policy": 7}, {"policy": "nosuch"}]
)
def test_findings_refuses_in_a_sentence(lake: Lake, people: LakeTable, given: dict[str, Any]) -> None:
    assert told(partial(findings, **{"lake": lake, "name": "asked", **given})) == ""


def test_what_is_right_is_taken(people: LakeTable) -> None:
    assert people.plan("id = 1").files_seen == 1
    assert people.plan(None).files_seen == 1
    assert people.scan(version=people.snapshots()[0].snapshot_id).count() == 2
