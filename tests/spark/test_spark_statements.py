"""CREATE, ALTER, DROP, SHOW, DESCRIBE and CALL on managed tables; Spark's own tables stay Spark's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark_files import files_below

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.tables.tables import create_namespace
from lakeproof.spark.engine import AppendRows, OverwritePartitions
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_create_describe_and_show(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (id bigint not null comment 'the key', ts timestamp, st struct<a: int>, p string) "
        "using parquet options (addTableManagement 'true', columnDependencies 'p=p2:truncate[1]') "
        "partitioned by (days(ts), bucket(4, id), p2 string) tblproperties ('write.parquet.compression-codec'='snappy')"
    )
    lake.sql(f"create table if not exists {name} (other int) using iceberg")
    assert rows(f"describe {name}") == [
        ("id", "bigint", "the key"), ("ts", "timestamp", None), ("st", "struct<a:int>", None), ("p", "string", None),
        ("p2", "string", None), ("# Partitioning", "", ""), ("Part 0", "days(ts)", ""), ("Part 1", "bucket(4, id)", ""),
        ("Part 2", "p2", ""),
    ]  # fmt: skip
    assert ("Provider", "iceberg", "") in rows(f"describe extended {name}")
    lake.sql(
        f"insert into {name} values (34, timestamp'2024-01-31 12:00:00', null, 'xy', 'x'), (1, null, null, null, null)"
    )
    assert rows(f"show partitions {name}") == [
        ("ts_day=2024-01-31/id_bucket=3/p2=x",), ("ts_day=null/id_bucket=0/p2=null",),
    ]  # fmt: skip
    statement = rows(f"show create table {name}")[0][0]
    assert "PARTITIONED BY (days(ts), bucket(4, id), p2)" in statement
    assert "columnDependencies 'p=p2:truncate[1]'" in statement
    lake.sql(statement.replace(name, f"{name}_twin").replace(f"/{name}'", f"/{name}_twin'"))
    assert rows(f"describe {name}_twin") == rows(f"describe {name}")
    assert rows(f"show columns in {name}") == [("id",), ("ts",), ("st",), ("p",), ("p2",)]
    assert ("default", name, False) in rows("show tables")
    assert ("write.parquet.compression-codec", "snappy") in rows(f"show tblproperties {name}")


def test_create_table_as_select_is_one_snapshot_or_no_table(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} using iceberg partitioned by (k) as select id, id % 2 k, 'x' n from range(4)")
    assert rows(f"select sum(id), count(distinct k) from {name}") == [(6, 2)]
    assert [each.operation for each in lake.table(name).snapshots()] == ["append"]
    with pytest.raises(InvalidInput, match="no luck"):
        lake.sql(f"create table {name}_bad using iceberg as select cast(raise_error('no luck') as int) x from range(2)")
    with pytest.raises(InvalidInput, match="there is no table"):
        lake.table(f"{name}_bad")
    assert files_below(warehouse / "default" / f"{name}_bad") == set()


def test_alter_and_drop(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (a int, b string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'x')")
    lake.sql(f"alter table {name} add columns (c int comment 'new', d struct<e: int> first)")
    lake.sql(f"alter table {name} add column d.f string")
    assert lake.table(name).columns == ["d", "a", "b", "c"]
    lake.sql(f"alter table {name} add partition field bucket(2, a) as shard")
    lake.sql(f"insert into {name} values (named_struct('e', 1, 'f', 'g'), 2, 'y', 3)")
    assert rows(f"show partitions {name}") == [("shard=0",)] or rows(f"show partitions {name}") == [("shard=1",)]
    lake.sql(f"alter table {name} replace partition field shard with truncate(1, b)")
    lake.sql(f"insert into {name} values (null, 3, 'zz', 3)")
    assert ("b_trunc_1=z",) in rows(f"show partitions {name}")
    lake.sql(f"alter table {name} set tblproperties ('a.b' = 'c')")
    lake.sql(f"alter table {name} unset tblproperties ('a.b')")
    assert rows(f"select a, d.f from {name} where c = 3 order by a") == [(2, "g"), (3, None)]
    lake.sql(f"alter table {name} rename to {name}_new")
    assert rows(f"select count(*) from {name}_new") == [(3,)]
    with pytest.raises(InvalidInput, match="NOT NULL"):
        lake.sql(f"alter table {name}_new add column x int not null")
    with pytest.raises(InvalidInput, match="no such ALTER TABLE"):
        lake.sql(f"alter table {name}_new set serde 'x'")
    with pytest.raises(InvalidInput):
        lake.sql(f"alter table {name}_new alter column a type string")
    lake.sql(f"truncate table {name}_new")
    assert rows(f"select * from {name}_new") == []
    lake.sql(f"drop table {name}_new purge")
    lake.sql(f"drop table if exists {name}_new")
    assert not {file for file in files_below(warehouse / "default" / name) if file.endswith(".parquet")}
    with pytest.raises(InvalidInput, match="cannot be found"):
        lake.sql(f"drop table {name}_new")


def test_snapshots_are_managed_by_calls(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    for number in range(4):
        lake.sql(f"insert into {name} values ({number})")
    first, second, _, fourth = [each.snapshot_id for each in lake.table(name).snapshots()]
    assert rows(f"call system.rollback_to_snapshot('{name}', {second})") == [(fourth, second)]
    assert rows(f"select count(*) from {name}") == [(2,)]
    assert rows(f"call system.set_current_snapshot(table => '{name}', snapshot_id => {fourth})") == [(second, fourth)]
    assert rows(f"call system.create_tag('{name}', 'keep', {first})") == [("keep", first)]
    assert rows(f"call system.create_branch('{name}', 'side')") == [("side", fourth)]
    assert rows(f"call system.set_current_snapshot('{name}', ref => 'keep')") == [(fourth, first)]
    assert rows(f"call system.set_current_snapshot('{name}', ref => 'side')") == [(first, fourth)]
    assert rows(f"call system.drop_branch('{name}', 'side')") == []
    far = "timestamp '2099-01-01 00:00:00'"
    dry = rows(f"call system.expire_snapshots('{name}', older_than => {far}, retain_last => 1, dry_run => true)")
    assert len(lake.table(name).snapshots()) == 4
    assert rows(f"call system.expire_snapshots('{name}', older_than => {far}, retain_last => 1)") == dry
    assert [each.snapshot_id for each in lake.table(name).snapshots()] == [first, fourth]
    assert rows(f"select id from {name} version as of 'keep'") == [(0,)]
    assert rows(f"call system.rewrite_manifests('{name}')") == [(4, 1)]
    assert rows(f"select sum(id) from {name}") == [(6,)]
    assert rows(f"call system.drop_tag('{name}', 'keep')") == []
    for wrong, message in (
        ("nope('t')", "there is no procedure `nope`"),
        (f"rollback_to_snapshot('{name}')", "needs snapshot_id"),
        (f"rollback_to_snapshot('{name}', 'x')", "must be a whole number"),
        (f"rollback_to_snapshot('{name}', 12, 13)", "has no parameter 3"),
        (f"rollback_to_snapshot('{name}', 12)", "there is no snapshot 12"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lake.sql(f"call system.{wrong}")


def test_orphans_are_found_and_a_folder_that_held_files_before_is_left_alone(
    lake: Lake, rows: Rows, name: str, tmp_path: Path
) -> None:
    old = tmp_path / "there" / "part-00000.parquet"
    old.parent.mkdir()
    old.write_bytes(b"somebody else's")
    lake.sql(f"create table {name} (id int) using iceberg location '{old.parent}'")
    lake.sql(f"insert into {name} values (1)")
    assert rows(f"select * from {name}") == [(1,)]
    stray = old.parent / "data" / "stray.parquet"
    stray.write_bytes(b"left behind")
    far = "timestamp '2099-01-01 00:00:00'"
    call = f"call system.remove_orphan_files(table => '{name}', older_than => {far}, allow_young => true"
    assert rows(f"{call}, dry_run => true)") == [(f"file://{stray}",)]
    assert rows(f"{call})") == [(f"file://{stray}",)]
    assert old.exists()
    assert not stray.exists()
    assert rows(f"select * from {name}") == [(1,)]


def test_what_a_managed_table_cannot_be_is_refused_with_the_reason(lake: Lake, name: str, warehouse: Path) -> None:
    for statement, message in (
        (f"create table {name} (a int) using iceberg clustered by (a) into 4 buckets", "cannot be clustered by"),
        (f"create table {name} (a interval day) using iceberg", "no type for `interval day`"),
        (f"create table {name} (a foo) using iceberg", "`foo` is not a type"),
        (f"create table {name} (a int, A string) using iceberg", "is there twice"),
        (f"create table {name} (a int) using iceberg partitioned by (b)", "there is no column `b`"),
        (f"create table {name} (a int) using iceberg partitioned by (days(a))", "cannot be applied"),
        (f"create table {name} (a int) using csv options (addTableManagement 'true')", "cannot be written as `csv`"),
        (f"create table {name} (a int) using avro options (addTableManagement 'true')", "as `avro`.*\n.*\n.*field ids"),
        (f"replace table {name}_none (a int) using iceberg", "there is no table .* to replace"),
        (f"create table {name} using iceberg", "needs columns or a query"),
        (f"create table {name} (a int default 3) using iceberg", "no defaults"),
        (f"create table {name} (a int, b string) using iceberg options (columnDependencies 'a=b:truncate[2],x=b:foo')",
         "`foo` is not a transform.*`a=b:truncate\\[2\\]`: it gives int"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            lake.sql(statement)
    assert not (warehouse / "default" / name).exists()


def test_spark_s_own_tables_stay_its_own(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (a int, b string) using parquet partitioned by (b)")
    lake.sql(f"insert into {name} values (1, 'x')")
    lake.sql(f"alter table {name} add column c int")
    lake.sql(f"msck repair table {name}")
    assert rows(f"show partitions {name}") == [("b=x",)]
    assert rows(f"select * from {name}") == [(1, None, "x")]
    assert list((warehouse / "spark-warehouse" / name).glob("b=x/*.parquet"))
    lake.sql(f"create or replace temp view {name}_v as select a from {name}")
    lake.sql(f"analyze table {name} compute statistics")
    lake.sql(f"cache table {name}")
    lake.sql(f"uncache table {name}")
    lake.sql(f"truncate table {name}")
    lake.sql("create database if not exists other")
    lake.sql("use other")
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (5)")
    assert rows(f"select * from {name}") == [(5,)]
    lake.sql("use default")
    assert rows(f"select * from {name}") == []
    assert rows(f"select * from other.{name}") == [(5,)]
    assert rows(f"select id from spark_catalog.other.{name}") == [(5,)]
    with pytest.raises(InvalidInput, match="Spark itself has a table"):
        lake.sql(f"create table {name} (id int) using iceberg")
    with pytest.raises(InvalidInput, match="already a managed table"):
        lake.sql(f"create table other.{name} (id int) using parquet")
    lake.sql(f"drop table {name}")
    assert rows("set spark.sql.shuffle.partitions") == [("spark.sql.shuffle.partitions", "2")]


def test_names_are_found_in_any_case_as_spark_does(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name.upper()} (Id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    lake.sql(f"insert into {name.upper()} (ID) values (2)")
    assert rows(f"select sum(iD) from default.{name.upper()}") == [(3,)]
    assert rows(f"select count(*) from `{name.upper()}$snapshots`") == [(2,)]
    assert lake.table(name.upper()).name == f"default.{name}"
    with pytest.raises(InvalidInput, match=f"the managed table `{name}` has no such statement"):
        lake.sql(f"msck repair table {name}")


def test_namespaces_that_another_process_made_can_be_used(lake: Lake, rows: Rows, name: str) -> None:
    create_namespace(lake.engine.catalog, f"space_{name}")
    lake.reconnect()
    assert (f"space_{name}",) in rows("show databases")
    lake.sql(f"use space_{name}")
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql("use default")
    assert (f"space_{name}", name, False) in rows(f"show tables in space_{name}")
    assert rows(f"select * from space_{name}.{name}") == []


def test_a_table_whose_metadata_cannot_be_read_can_still_be_listed_and_dropped(
    lake: Lake, rows: Rows, name: str, warehouse: Path
) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    for file in (warehouse / "default" / name / "metadata").glob("*.json"):
        file.write_text("junk")
    with pytest.raises(InvalidInput, match="the file is damaged"):
        rows(f"select * from {name}")
    assert ("default", name, False) in rows("show tables")
    lake.sql(f"drop table {name}")
    assert ("default", name, False) not in rows("show tables")
    with pytest.raises(InvalidInput, match="cannot be found"):
        lake.sql(f"drop table {name}")
    lake.sql(f"drop table if exists {name}")


def test_a_folder_of_a_namespace_is_refused(lake: Lake, rows: Rows, name: str) -> None:
    said = "a namespace has no folder of its own"
    with pytest.raises(InvalidInput, match=said):
        lake.sql(f"create namespace {name} location '/tmp/{name}'")
    assert (name,) not in rows("show namespaces")
    lake.sql(f"create namespace {name} comment 'ours' with properties (k = 'v')")
    lake.sql(f"alter namespace {name} set properties (k = 'w')")
    with pytest.raises(InvalidInput, match=said):
        lake.sql(f"alter namespace {name} set location '/tmp/{name}'")
    assert ("Properties", "((k,w))") in rows(f"describe namespace extended {name}")
    lake.sql(f"drop namespace {name}")


def test_ways_to_write_are_told_apart() -> None:
    append: Any = AppendRows()
    assert append != OverwritePartitions()
    assert AppendRows() == AppendRows()
