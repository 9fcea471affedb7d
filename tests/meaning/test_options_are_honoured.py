"""What an option, a setting or a property asks for happens, or is refused in a sentence (M14 to M20)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
Settings = Callable[[str, str], None]


@contextmanager
def refusal_in_a_sentence() -> Iterator[list[str]]:
    """An error of ours is as good as doing it; the list says whether there was one."""
    said: list[str] = []
    try:
        yield said
    except LakeproofError as error:
        said.append(str(error).splitlines()[0])
        assert len(said[0].split()) > 3, "a sentence says what cannot be done"


def two_snapshots(lake: Lake, name: str) -> tuple[int, int]:
    """A table with one row at its first snapshot, a tag and a branch there, and two rows now."""
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    first = lake.table(name).snapshots()[0]
    lake.sql(f"alter table {name} create tag then")
    lake.sql(f"alter table {name} create branch side")
    lake.sql(f"insert into {name} values (2)")
    return first.snapshot_id, first.timestamp_ms


@pytest.mark.parametrize("option", ["snapshot-id", "as-of-timestamp", "branch", "tag"])
def test_m14_an_option_of_a_read_chooses_the_snapshot(lake: Lake, name: str, option: str) -> None:
    snapshot_id, timestamp = two_snapshots(lake, name)
    value = {"snapshot-id": snapshot_id, "as-of-timestamp": timestamp, "branch": "side", "tag": "then"}[option]
    with refusal_in_a_sentence():
        assert [row.id for row in lake.spark.read.option(option, value).table(name).collect()] == [1]


def on_main(rows: Rows, name: str) -> list[int]:
    return [row[0] for row in rows(f"select id from {name} order by id")]


def test_m15_an_option_of_a_write_chooses_the_branch(lake: Lake, rows: Rows, name: str) -> None:
    two_snapshots(lake, name)
    with refusal_in_a_sentence() as refused:
        lake.spark.range(3, 4).selectExpr("cast(id as int) id").writeTo(name).option("branch", "side").append()
    assert on_main(rows, name) == [1, 2]
    side = [row[0] for row in rows(f"select id from {name} version as of 'side' order by id")]
    assert side == ([1] if refused else [1, 3])


@pytest.mark.parametrize("setting", ["spark.wap.branch", "spark.wap.id"])
def test_m15_a_setting_keeps_a_write_off_main(
    lake: Lake, rows: Rows, name: str, settings: Settings, setting: str
) -> None:
    two_snapshots(lake, name)
    with refusal_in_a_sentence():
        lake.sql(f"alter table {name} set tblproperties ('write.wap.enabled' = 'true')")
        settings(setting, "staged")
        lake.sql(f"insert into {name} values (3)")
    lake.spark.conf.unset(setting)
    assert on_main(rows, name) == [1, 2]


@pytest.mark.parametrize("how", ["createOrReplace", "replace"])
def test_m16_a_replaced_table_keeps_its_history(lake: Lake, rows: Rows, name: str, how: str) -> None:
    two_snapshots(lake, name)
    before = lake.engine.load(f"default.{name}").metadata
    with refusal_in_a_sentence() as refused:
        rows_of_seven = lake.spark.range(7, 8).selectExpr("cast(id as int) id", "'x' s")
        getattr(rows_of_seven.writeTo(name).using("iceberg"), how)()
    after = lake.engine.load(f"default.{name}").metadata
    assert after.table_uuid == before.table_uuid
    assert [one.snapshot_id for one in after.snapshots][: len(before.snapshots)] == [
        one.snapshot_id for one in before.snapshots
    ]
    assert rows(f"select * from {name} order by id") == ([(1,), (2,)] if refused else [(7, "x")])


def test_m16_create_or_replace_keeps_the_history(lake: Lake, rows: Rows, name: str) -> None:
    two_snapshots(lake, name)
    before = lake.engine.load(f"default.{name}").metadata.table_uuid
    with refusal_in_a_sentence() as refused:
        lake.sql(f"create or replace table {name} using iceberg as select 7 id")
    assert lake.engine.load(f"default.{name}").metadata.table_uuid == before
    assert on_main(rows, name) == ([1, 2] if refused else [7])


def test_m17_a_namespace_with_tables_is_not_dropped(lake: Lake, rows: Rows) -> None:
    lake.sql("create namespace full_one")
    lake.sql("create table full_one.kept (id int) using iceberg")
    lake.sql("insert into full_one.kept values (1)")
    with pytest.raises((LakeproofError, PySparkException)):
        lake.sql("drop namespace full_one")
    assert rows("select * from full_one.kept") == [(1,)]
    assert "full_one" in {one.name for one in lake.spark.catalog.listDatabases()}
    lake.sql("drop namespace full_one cascade")
    assert "full_one" not in {one.name for one in lake.spark.catalog.listDatabases()}
    with pytest.raises((LakeproofError, PySparkException)):
        lake.spark.table("full_one.kept")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.delete.mode", "mor"),
        ("write.update.mode", "copy on write"),
        ("write.merge.mode", ""),
        ("write.delete.isolation-level", "none"),
        ("commit.retry.num-retries", "many"),
    ],
)
def test_m18_a_property_that_nobody_understands_is_refused(
    lake: Lake, rows: Rows, name: str, key: str, value: str
) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    with pytest.raises(LakeproofError, match=key):
        lake.sql(f"alter table {name} set tblproperties ('{key}' = '{value}')")
    with pytest.raises(LakeproofError, match=key):
        lake.sql(f"create table {name}_too (id int) using iceberg tblproperties ('{key}' = '{value}')")
    lake.sql(f"insert into {name} values (1), (2)")
    lake.sql(f"delete from {name} where id = 1")
    assert rows(f"select * from {name}") == [(2,)]


def test_m19_a_cached_dataframe_follows_the_table(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1), (2)")
    lake.sql(f"create table {name}_plain (id int) using parquet")
    lake.sql(f"insert into {name}_plain values (1), (2)")
    commands = {f"{name}_plain": f"insert overwrite {name}_plain values (2)", name: f"delete from {name} where id = 1"}
    for table, command in commands.items():  # Spark's own table first: it says what is expected
        cached = lake.spark.table(table).cache()
        assert cached.count() == 2
        lake.spark.sql(command)
        assert ids(lake.spark.table(table)) == [2]
        assert ids(cached) == [2], table
        cached.unpersist()


def ids(rows: DataFrame) -> list[int]:
    return [row.id for row in rows.collect()]


def test_m20_a_column_with_a_default_is_read_with_it(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1), (2)")
    give_default(lake, name, warehouse)
    with refusal_in_a_sentence():
        assert rows(f"select id, level from {name} order by id") == [(1, 7), (2, 7)]
        assert rows(f"select count(*) from {name} where level = 7") == [(2,)]
        assert rows(f"select id from {name} where level is null") == []
        assert rows(f"select min(level) from {name}") == [(7,)]


def give_default(lake: Lake, name: str, warehouse: Path) -> None:
    """Another engine upgrades the table to version 3 and adds a column whose old rows have the value 7."""
    table = lake.engine.load(f"default.{name}")
    old = Path(table.metadata_location.removeprefix("file://"))
    said = json.loads(old.read_text())
    schema = json.loads(json.dumps(said["schemas"][-1]))
    level = {"id": 2, "name": "level", "required": False, "type": "int", "initial-default": 7, "write-default": 7}
    schema |= {"schema-id": 1, "fields": [*schema["fields"], level]}
    said |= {"format-version": 3, "next-row-id": 0, "last-column-id": 2, "current-schema-id": 1}
    said["schemas"].append(schema)
    new = old.with_name("00009-aaaaaaaa-0000-4000-8000-000000000000.metadata.json")
    new.write_text(json.dumps(said))
    location = table.metadata_location.replace(old.name, new.name)
    with sqlite3.connect(warehouse / "catalog.db") as catalog:
        changed = catalog.execute(
            "update iceberg_tables set metadata_location = ? where table_name = ?", (location, name)
        )
        assert changed.rowcount == 1
