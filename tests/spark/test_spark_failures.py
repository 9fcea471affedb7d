"""Bad input, broken files and locked folders: one sentence each, the place, and nothing left behind."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark_files import files_below

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing import pointer as swap
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.lake import Lake, connect

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.mark.parametrize(
    ("statement", "message", "place"),
    [
        ("selec 1", "Syntax error at or near 'selec'", "line 1, column 1"),
        ("select\n  * frm t", "Syntax error at or near 't'", "line 2, column 9"),
        ("select * from {t}_not", "`{t}_not` cannot be found", "line 1, column 15"),
        ("select nope from {t}", "name `nope` cannot be resolved", "line 1, column 8"),
        ("select id from {t} where v > 'x' +", "Syntax error", "line 1"),
        ("insert into {t} values ('x', 'y')", "Cannot write incompatible data", ""),
        ("insert into {t} (id, nope) values (1, 'y')", "nope", ""),
        ("alter table {t} create branch b as of version 3ays", "expected a literal, found `3ays`", "line 1"),
        (
            "create table {t}_b (id int) using iceberg partitioned by (bucket(4d, id))",
            "expected a whole number",
            "line 1",
        ),
        ("alter table {t} drop column nope", "there is no column `nope`", "table"),
        ("alter table {t} alter column id type int", "", ""),
        ("describe {t} extended", "", ""),
        ("call system.rollback_to_snapshot('{t}_not', 5)", "there is no table", ""),
        ("as of '2024-13-45' select * from {t}", "`2024-13-45` is not a time", "time zone"),
        ("select count(*) from `{t}$nothing`", "there is no view `$nothing`", "table"),
        ("", "there is no statement", ""),
        ("update {t} set id = id + 1, v", "Syntax error", "line 1"),
        ("update {t} set", "Syntax error", "line 1"),
        ("update {t} set nope = 1", "name `nope` cannot be resolved", "line 1, column 21"),
        ("update {t} set id = 1, id = 2", "Multiple assignments", ""),
        ("update {t} set id = 'x'", "Cannot write incompatible data", ""),
        ("update {t} set id = array(1)", "due to data type mismatch", "line 1"),
        ("delete {t} where id = 1", "Syntax error at or near 'mistaken'", "line 1, column 8"),
        ("delete from {t} where id = 'x", "this string is not closed", "line 1"),
        ("delete from {t} where nope.id = 1", "`nope`.`id` cannot be resolved", "line 1, column 28"),
        ("delete from {t} where max(id) = 1", "unsupported expressions", "line 1"),
        ("delete from {t} where id", "due to data type mismatch", ""),
        ("delete from {t}_not", "cannot be found", "line 1"),
        ("merge into {t} using (select 1 k) s on {t}.id = s.k", "at least one WHEN clause", "line 1"),
        ("merge into {t} using (select 1 k) s on id = nope when matched then delete", "`nope`", "line 1, column 50"),
        ("merge into {t} using (select 1 k) s on id = k when matched then update set *", "`id` cannot be", "line 1"),
        ("merge into {t} using (select 1 k) s on id = k when matched and 1 then delete", "condition 1 of WHEN", ""),
        ("delete from {t} where explode(array(1)) = 1", "is not supported: outside the SELECT clause", ""),
        ("delete from {t} where named_struct('x', 1) = 1", '("STRUCT<x: INT NOT NULL>" and "INT")', "line 1"),
    ],
)
def test_a_mistake_is_one_sentence(lake: Lake, statement: str, message: str, place: str) -> None:
    lake.sql("create table if not exists mistaken (id bigint, v string) using iceberg")
    with pytest.raises(InvalidInput) as caught:
        lake.collect(lake.sql(statement.replace("{t}", "mistaken")))
    said = caught.value
    assert message.replace("{t}", "mistaken") in said.message
    assert place in said.place
    assert "\n" not in said.message
    assert not re.search(r"_lakeproof|_tmp_metadata|lakeproof scan|'?Project|Filter \(|Relation \[|\+- ", str(said))
    assert not re.search(r"SQLSTATE|Exception|\tat |Traceback", str(said))


def test_a_broken_or_missing_metadata_file_says_so(
    lake: Lake, name: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    newest = max((warehouse / "default" / name / "metadata").glob("*.metadata.json"))
    monkeypatch.setattr(swap, "_recent", Recent(64))  # what this process has read is forgotten
    kept = newest.read_bytes()
    try:
        newest.write_text("{ not json")
        with pytest.raises(InvalidInput) as caught:
            lake.sql(f"select * from {name}")
        assert newest.name in caught.value.place
        newest.unlink()
        with pytest.raises(InvalidInput, match="missing"):
            lake.sql(f"select * from {name}")
    finally:
        newest.write_bytes(kept)
    assert [row.id for row in lake.sql(f"select id from {name}").collect()] == [1]


def test_a_warehouse_that_cannot_be_written_leaves_nothing_behind(lake: Lake, name: str, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the table's folder should be")
    with pytest.raises(InvalidInput):
        lake.sql(f"create table {name} (id int) using iceberg location '{blocked}'")
    with pytest.raises(InvalidInput, match="there is no table"):
        lake.table(name)
    folder = tmp_path / "table"
    lake.sql(f"create table {name} (id int) using iceberg location '{folder}'")
    (folder / "data").write_text("a file where the data should go")
    before = files_below(folder)
    with pytest.raises(InvalidInput):
        lake.sql(f"insert into {name} values (1)")
    assert files_below(folder) == before
    assert lake.table(name).snapshots() == []


def test_a_data_file_that_is_gone_is_named(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    file = Path(lake.table(name).plan().files[0].path.removeprefix("file://"))
    file.unlink()
    with pytest.raises(InvalidInput) as caught:
        rows(f"select * from {name}")
    assert "Traceback" not in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_sessions_that_cannot_work_are_refused() -> None:
    class Connect:
        """A session of Spark Connect has no JVM beside it."""

    with pytest.raises(InvalidInput, match="Spark Connect"):
        connect(Connect(), catalog="memory:")


@pytest.mark.parametrize(
    ("kind", "partition", "value", "limit"),
    [
        ("int", "truncate(10, c)", "-2147483648", "least of its type"),
        ("bigint", "truncate(10, c)", "-9223372036854775808L", "least of its type"),
        ("decimal(9,2)", "truncate(10, c)", "-9999999.99", "one digit more"),
        ("date", "c", "date'+10000-01-01'", "year 9999"),
        ("timestamp", "days(c)", "timestamp'+10001-01-01 00:00:00'", "year 9999"),
    ],
)
def test_a_partition_that_cannot_be_written_down_says_which_limit_it_met(
    lake: Lake, name: str, kind: str, partition: str, value: str, limit: str
) -> None:
    lake.sql(f"create table {name} (c {kind}) using iceberg partitioned by ({partition})")
    with pytest.raises(InvalidInput, match="beyond what the table's metadata can hold") as caught:
        lake.sql(f"insert into {name} values ({value})")
    assert limit in caught.value.hint
    lake.sql(f"drop table {name}")


def test_the_months_after_the_year_9999_are_counted(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (c date) using iceberg partitioned by (months(c))")
    lake.sql(f"insert into {name} values (date'+10000-01-01'), (date'2026-01-01')")
    assert rows(f"select cast(c as string) from {name} where c > date'9999-12-31'") == [("+10000-01-01",)]


def test_what_breaks_inside_spark_is_said_in_spark_s_own_words(lake: Lake) -> None:
    gateway = lake._engine.gateway
    with (
        pytest.raises(InvalidInput, match=r"Spark failed, java\.util\.NoSuchElement") as caught,
        translate_spark_errors(gateway),
    ):
        gateway.named("java.util.Optional").empty().get()
    assert "calling o" not in str(caught.value)


def test_a_task_that_is_still_at_work_when_another_fails_leaves_nothing(lake: Lake, name: str, warehouse: Path) -> None:
    """The first task sleeps over the failure of the second, and makes its file afterwards."""
    sleep = "reflect('java.lang.Thread', 'sleep', {}L)"
    first = f"id = 0 and {sleep.format(1500)} = ''"
    second = f"id = 9 and {sleep.format(300)} <> ''"
    lake.sql(f"create table {name} (a bigint, p bigint) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} select if({first}, 0, if({second}, 1, id)), id % 2 from range(0, 10, 1, 2)")
    before = set((warehouse / "default" / name).rglob("*"))
    rows = f"select if({first}, 0, if({second}, raise_error('no more'), id)), id % 2 from range(0, 10, 1, 2)"
    with pytest.raises(InvalidInput, match="no more"):
        lake.sql(f"insert into {name} {rows}")
    time.sleep(2)
    assert set((warehouse / "default" / name).rglob("*")) == before
