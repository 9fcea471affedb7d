"""A literal of another type than its column: what metadata say must be what Spark says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
ROW = "5, 5.00, cast(0.1 as float), '5', timestamp'2020-01-01 00:00:00', date'2020-01-06'"

MATCHING = [
    "d < 5.004",
    "d > 4.999",
    "d != 5.001",
    "d in (5.001, 5)",
    "f > 0.1",
    "f != 0.1",
    "id = 5.0",
    "id < 5.5",
    "id = '5'",
    "s = 5",
    "s < 6",
    "s in (5, 6)",
    "ts = date'2020-01-01'",
    "ts >= '2020-01-01'",
    "day = '2020-01-06'",
]
FAILING = ["d = 5.001", "d in (5.001)", "f = 0.1", "id = 5.5", "id > 5.5", "s = 6", "s > 5", "day > '2020-01-06'"]


@pytest.fixture(scope="module")
def row(lake: Lake) -> str:
    """A table of one row, whose every column is partitioned."""
    columns = "id int, d decimal(10,2), f float, s string, ts timestamp, day date"
    buckets = ", ".join(f"bucket(97, {column})" for column in ("id", "d", "s", "ts", "day"))
    lake.sql(f"create table one_row ({columns}) using iceberg partitioned by ({buckets})")
    lake.sql(f"insert into one_row values ({ROW})")
    return "one_row"


@pytest.mark.parametrize("where", MATCHING)
def test_a_row_that_matches_is_found_and_counted(rows: Rows, row: str, where: str) -> None:
    assert rows(f"select count(*) from {row} where {where}") == [(1,)]
    assert rows(f"select id from {row} where {where}") == [(5,)]


@pytest.mark.parametrize("where", FAILING)
def test_a_row_that_does_not_match_is_neither(rows: Rows, row: str, where: str) -> None:
    assert rows(f"select count(*) from {row} where {where}") == [(0,)]
    assert rows(f"select id from {row} where {where}") == []


@pytest.mark.parametrize("where", ["d < 5.004", "id = 5.0", "s = 5", "f > 0.1"])
def test_a_delete_takes_what_the_query_shows(lake: Lake, rows: Rows, row: str, where: str) -> None:
    lake.sql(f"create table gone_soon using iceberg as select * from {row}")
    try:
        assert lake.table("gone_soon").plan(where).files
        lake.sql(f"delete from gone_soon where {where}")
        assert rows("select * from gone_soon") == []
    finally:
        lake.sql("drop table gone_soon")
