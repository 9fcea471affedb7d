"""Dates that an old calendar skips, years of few digits, and decimals wider than the file: found, and changed."""

from __future__ import annotations

import pytest

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
VALUES = {
    "date": ["date'1582-10-10'", "date'0001-01-01'", "date'0999-03-01'", "date'+10001-01-01'", "date'2024-01-01'"],
    "timestamp": [
        "timestamp'1582-10-10 01:02:03.000004'",
        "timestamp'0001-01-01 00:00:00'",
        "timestamp'1899-01-01 00:00:00.5'",
        "timestamp'2024-11-03 01:30:00'",
    ],
    "timestamp_ntz": ["timestamp_ntz'1582-10-10 01:02:03.000004'", "timestamp_ntz'0001-01-01 00:00:00'"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_command_finds_the_row(lake: Lake, name: str, kind: str) -> None:
    lake.sql(f"create table {name} (k {kind}, v int) using iceberg")
    lake.sql(f"insert into {name} values " + ", ".join(f"({value}, 0)" for value in VALUES[kind]))
    for value in VALUES[kind]:
        assert lake.sql(f"select v from {name} where k = {value}").count() == 1
        lake.sql(
            f"merge into {name} t using (select {value} k) s on t.k = s.k when matched then update set v = t.v + 1 "
            "when not matched then insert (k, v) values (s.k, 99)"
        )
        lake.sql(f"update {name} set v = v + 10 where k in ({value})")
        lake.sql(f"insert into {name} select k, v + 100 from {name} where k <= {value} and k >= {value}")
        assert sorted(row.v for row in lake.sql(f"select v from {name} where k = {value}").collect()) == [11, 111]
        lake.sql(f"delete from {name} where k = {value} and v > 100")
    assert lake.sql(f"select k from {name}").count() == len(VALUES[kind])


@pytest.mark.parametrize("rows", ["values (7, -1.5), (8, 5.00)", "select id + 7, decimal(id) from range(2)"])
def test_a_decimal_is_compared_as_wide_as_it_is_now(lake: Lake, name: str, rows: str) -> None:
    """Spark would cut the literal to the width that the column had when the file was written, or fail over it."""
    lake.sql(f"create table {name} (id bigint, s decimal(9,2)) using iceberg")
    lake.sql(f"insert into {name} {rows}")
    lake.sql(f"alter table {name} alter column s type decimal(38,2)")
    for literal in ("21474836.48", "42949672.95", "999999999999999999999999999999999999.99", "92233720368547758.08"):
        assert lake.sql(f"select * from {name} where s < {literal}").count() == 2
        assert lake.sql(f"select * from {name} where s > -{literal} and id > 0").count() == 2
        lake.sql(f"delete from {name} where s <=> {literal} or s = {literal} or s > {literal}")
    lake.sql(f"update {name} set id = 0 where s <= 999999999999999999999999999999999999.99")
    assert [row.id for row in lake.sql(f"select id from {name}").collect()] == [0, 0]
