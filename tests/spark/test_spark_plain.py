"""Plain PySpark on a connected session: the same tables, one snapshot per write, and a sentence where it cannot be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from spark_files import files_below

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake, connect

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def operations(lake: Lake, name: str) -> list[str]:
    return [each.operation for each in lake.table(name).snapshots()]


def test_plain_sql_knows_every_statement_of_a_managed_table(lake: Lake, name: str) -> None:
    spark = lake.spark
    spark.sql(
        f"create table {name} (id int, p string) using parquet options (addTableManagement 'true') partitioned by (p)"
    )
    spark.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    spark.sql(f"insert overwrite {name} partition (p = 'a') values (3)")
    spark.sql(f"alter table {name} add column n int")
    spark.sql(f"create table {name}_copy using iceberg as select * from {name}")
    assert sorted(tuple(row) for row in spark.sql(f"select * from {name}_copy").collect()) == [
        (2, "b", None),
        (3, "a", None),
    ]
    assert operations(lake, name) == ["append", "overwrite"]
    assert spark.sql(f"select count(*) from {name} where id = :id", args={"id": 3}).collect()[0][0] == 1
    assert spark.sql(f"describe {name}").count() == 5
    assert [
        row.id
        for row in spark.sql(
            f"as of {lake.table(name).snapshots()[0].timestamp_ms} select id from {name} order by id"
        ).collect()
    ] == [1, 2]
    pruned = spark.table(name).filter("p = 'b'")
    assert [scan.plan.files.num_rows for scan in lake.scans(pruned)] == [1]
    assert SparkSession.getActiveSession().sql(f"select count(*) from `{name}$snapshots`").collect()[0][0] == 2
    assert name in [row.tableName for row in spark.sql("show tables").collect()]
    assert spark.catalog.tableExists(name)
    spark.sql(f"drop table {name}_copy")
    assert not spark.catalog.tableExists(f"{name}_copy")


def test_dataframe_writers_make_one_snapshot_each(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    spark = lake.spark
    spark.range(3).selectExpr("id", "id % 2 p").writeTo(name).using("iceberg").partitionedBy("p").create()
    one = spark.range(10, 11).selectExpr("id", "id % 2 p")
    one.writeTo(name).append()
    one.write.insertInto(name)
    one.write.mode("append").saveAsTable(name)
    assert rows(f"select count(*), max(id) from {name}") == [(6, 10)]
    one.writeTo(name).overwritePartitions()
    assert rows(f"select id from {name} order by id") == [(1,), (10,)]
    one.write.mode("overwrite").saveAsTable(name)
    one.write.mode("ignore").saveAsTable(name)
    assert rows(f"select id from {name}") == [(10,)]
    assert operations(lake, name) == ["append"] * 4 + ["overwrite"] * 2
    with pytest.raises(InvalidInput, match="there is already a table"):
        one.write.saveAsTable(name)
    one.write.format("iceberg").saveAsTable(f"{name}_new")
    assert operations(lake, f"{name}_new") == ["append"]
    assert not (warehouse / "spark-warehouse" / name).exists()


def test_what_spark_checks_it_still_checks(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int not null, p string) using iceberg")
    for wrong in ("values ('x', 'y')", "values (1)", "values (1, 'a', 2)"):
        with pytest.raises(AnalysisException):
            lake.spark.sql(f"insert into {name} {wrong}")
        with pytest.raises(InvalidInput):
            lake.sql(f"insert into {name} {wrong}")
    with pytest.raises(PySparkException, match="NULL"):
        lake.spark.sql(f"insert into {name} values (null, 'a')")
    lake.sql(f"insert into {name} by name select 'a' p, 7 id")
    lake.sql(f"insert into {name} (id) values (8)")
    assert rows(f"select * from {name} order by id") == [(7, "a"), (8, None)]


def test_what_cannot_be_caught_says_lake_sql(lake: Lake, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    before = files_below(warehouse / "default" / name)
    java = lake.spark._jsparkSession
    for statement in (
        f"analyze table {name} compute statistics",
        f"truncate table {name}",
        f"alter table {name} add column x int",
        f"update {name} set id = 2",
        f"msck repair table {name}",
    ):
        with pytest.raises(PySparkException, match=r"lake\.sql|cannot be found"):
            java.sql(statement)  # as a cell of Scala, or a JDBC client, would
    for statement in (f"analyze table {name} compute statistics", f"msck repair table {name}"):
        with pytest.raises(InvalidInput, match=r"lake\.sql"):
            lake.spark.sql(statement)
    assert files_below(warehouse / "default" / name) == before


def test_an_other_session_is_left_alone(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    other = lake.spark.newSession()
    with pytest.raises(AnalysisException, match="cannot be found"):
        other.sql(f"select * from {name}")
    with pytest.raises(PySparkException):
        other.sql("as of 5 select 1")


def test_threads_at_once(lake: Lake, rows: Rows, name: str) -> None:
    """Two threads insert and one reads: every insert is a snapshot, every read sees a whole number of them."""
    lake.sql(f"create table {name} (id int, n int) using iceberg")
    problems: list[BaseException] = []

    def insert(number: int) -> None:
        try:
            for at in range(4):
                lake.sql(f"insert into {name} values ({number}, {at}), ({number}, {at})")
        except BaseException as error:
            problems.append(error)

    def read() -> None:
        try:
            for _ in range(6):
                assert rows(f"select count(id) % 2 from {name}") == [(0,)]
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=insert, args=(n,)) for n in (1, 2)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(lake.table(name).snapshots()) == 8
    assert rows(f"select count(id), count(distinct id, n) from {name}") == [(16, 8)]


def test_two_lakes_on_one_session_each_know_their_own_tables(
    lake: Lake, rows: Rows, name: str, warehouse: Path, tmp_path: Path
) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    other = connect(lake.spark, catalog=f"sqlite:///{tmp_path}/other.db", warehouse=str(tmp_path))
    try:
        other.sql(f"create table {name} (id int) using iceberg")
        other.sql(f"insert into {name} values (2)")
        then = lake.table(name).snapshots()[-1].timestamp_ms
        lake.sql(f"insert into {name} select id + 10 from {name}")
        assert rows(f"select id from {name} order by id") == [(1,), (11,)]
        assert rows(f"as of {then} select id from {name}") == [(1,)]
        assert [row.id for row in other.sql(f"select id from {name}").collect()] == [2]
        assert [row.id for row in lake.spark.sql(f"select id from {name}").collect()] == [2]
    finally:
        other.close()
        lake.reconnect()
    assert [row.id for row in lake.spark.sql(f"select id from {name} order by id").collect()] == [1, 11]
