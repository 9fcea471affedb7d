"""A MERGE of many rows into a small table: the ends of its keys are told while it runs, and bound what conflicts."""

from __future__ import annotations

from typing import Any

import pytest
from session_settings import setting

from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
KEYS = {
    "bigint": "id",
    "int": "cast(id as int)",
    "string": "format_string('%08d', id)",
    "date": "date_add(date'2020-01-01', cast(id as int))",
    "timestamp": "timestamp_seconds(1600000000 + id)",
    "decimal(12, 3)": "cast(id / 8 as decimal(12, 3))",
    "double": "id / 8.0D",
    "binary": "cast(format_string('%08d', id) as binary)",
}
SOURCE = "(select {key} k, id v from range(0, 150000) where id % 3 = 0 and id between 9000 and 120000)"


def create(lake: Lake, name: str, kind: str, key: str) -> None:
    lake.sql(
        f"create table {name} (k {kind}, v bigint) using iceberg tblproperties ("
        "'write.merge.mode'='merge-on-read', 'write.merge.isolation-level'='serializable')"
    )
    lake.sql(
        f"insert into {name} select {key}, -1 from range(0, 100) union all select {key}, -1 from range(9000, 9100)"
    )


def merge(name: str, key: str) -> str:
    source = SOURCE.format(key=key)
    return f"merge into {name} t using {source} s on t.k = s.k when matched then update set v = s.v"


def said(lake: Lake, name: str) -> str:
    found: str = lake.table(name).snapshots()[-1].summary["lakeproof.conflict-filter"]
    return found


@pytest.mark.parametrize("kind", KEYS)
def test_the_ends_of_the_keys_are_in_the_conflict_filter(lake: Lake, name: str, kind: str) -> None:
    key = KEYS[kind]
    create(lake, name, kind, key)
    lake.sql(merge(name, key))
    (ends,) = lake.collect(lake.sql(f"select min(k), max(k) from {SOURCE.format(key=key)}"))
    assert "k >=" in said(lake, name), said(lake, name)
    assert "k <=" in said(lake, name)
    if kind in ("bigint", "int"):
        assert (str(ends[0]), str(ends[1])) == ("9000", "120000")
        assert "9000" in said(lake, name)
        assert "120000" in said(lake, name)
    assert lake.collect(lake.sql(f"select count(*) from {name} where v >= 0"))[0][0] > 30


def meanwhile(lake: Lake, name: str, statement: str, others: str) -> list[Any]:
    waiting: list[str] = [others]
    conflicts: list[Any] = []

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and waiting:
            lake.sql(waiting.pop())

    lake.watched(on_phase=hook, on_rerun=conflicts.append).sql(statement)
    assert not waiting
    return conflicts


@pytest.mark.parametrize(("inserted", "reruns"), [(8999, 0), (9200, 1), (9201, 1), (120000, 1), (120001, 0)])
def test_only_rows_between_the_ends_are_in_the_way(lake: Lake, name: str, inserted: int, reruns: int) -> None:
    create(lake, name, "bigint", "id")
    found = meanwhile(lake, name, merge(name, "id"), f"insert into {name} values ({inserted}, -5)")
    assert len(found) == reruns
    expected = inserted if inserted % 3 == 0 and 9000 <= inserted <= 120000 else -5
    assert lake.collect(lake.sql(f"select v from {name} where k = {inserted}"))[0][0] == expected


@pytest.mark.parametrize(
    ("kind", "least", "greatest", "between"),
    [
        ("date", "date'1582-10-06'", "date'1582-10-12'", "date'1582-10-07'"),
        (
            "timestamp",
            "timestamp'1582-10-06 01:00:00'",
            "timestamp'9999-12-31 10:00:00'",
            "timestamp'1582-10-06 02:00:00'",
        ),
        ("double", "double('-Infinity')", "double('NaN')", "double('Infinity')"),
        ("bigint", "-9223372036854775808", "9223372036854775807", "9223372036854775806"),
        ("decimal(38, 2)", "-999999999999999999999999999999999999.99", "999999999999999999999999999999999999.99", "0"),
        ("string", "''", "'\U0010ffff'", "'\U0001f600'"),
        (
            "timestamp_ntz",
            "timestamp_ntz'1582-10-06 01:00:00'",
            "timestamp_ntz'2020-01-01 00:00:00'",
            "timestamp_ntz'1582-10-07 00:00:00'",
        ),
    ],
)
def test_no_end_is_moved_on_its_way(lake: Lake, name: str, kind: str, least: str, greatest: str, between: str) -> None:
    lake.sql(
        f"create table {name} (k {kind}, v bigint) using iceberg tblproperties ("
        "'write.merge.mode'='merge-on-read', 'write.merge.isolation-level'='serializable')"
    )
    lake.sql(f"insert into {name} values ({least}, 1), ({greatest}, 2)")
    source = f"(select cast(if(id = 0, {least}, {greatest}) as {kind}) k, id v from range(0, 900000) where id < 2)"
    statement = f"merge into {name} t using {source} s on t.k = s.k when matched then update set v = 5"
    with setting(lake, "spark.sql.datetime.java8API.enabled", "false"):  # as in a session that somebody else made
        assert len(meanwhile(lake, name, statement, f"insert into {name} values ({between}, -5)")) == 1
    assert sorted(v for (v,) in lake.collect(lake.sql(f"select v from {name}"))) == [-5, 5, 5]


MERGE_NULLS = (
    "merge into {name} t using (select cast(null as bigint) k, id v from range(0, 150000)) s on t.k = s.k "
    "when matched then delete when not matched and s.v = 7 then insert (k, v) values (-7, s.v)"
)


def test_a_source_of_nulls_conflicts_with_nothing(lake: Lake, name: str) -> None:
    create(lake, name, "bigint", "id")
    assert meanwhile(lake, name, MERGE_NULLS.format(name=name), f"insert into {name} values (50, -5)") == []
    assert lake.collect(lake.sql(f"select count(*), min(k) from {name}"))[0][:] == (202, -7)


def test_a_source_without_rows_does_nothing(lake: Lake, name: str) -> None:
    create(lake, name, "bigint", "id")
    lake.sql(
        f"merge into {name} t using (select id k, id v from range(0, 150000) where id < 0) s on t.k = s.k "
        "when matched then delete"
    )
    assert lake.collect(lake.sql(f"select count(*) from {name}"))[0][0] == 200
