"""A write is one snapshot of exactly the files of committed task attempts, or nothing at all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F
from spark_files import files_below

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.spark.lake import Lake
from lakeproof.spark.writing.transforms import decoded, encoded, transform_column

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_a_task_that_fails_once_leaves_no_row_twice(lake: Lake, name: str, warehouse: Path) -> None:
    def fails_once(number: int) -> int:
        context = TaskContext.get()
        if number % 50 == 49 and context is not None and context.attemptNumber() == 0:
            raise RuntimeError("the first attempt dies after it has written rows")
        return number

    lake.sql(f"create table {name} (id bigint, p bigint) using iceberg partitioned by (p)")
    given = lake.spark.range(0, 100, 1, 2).select(F.udf(fails_once, "bigint", useArrow=False)("id").alias("id"))
    lake.table(name).append(given.selectExpr("id", "id % 3 p"))
    assert sorted(row.id for row in lake.table(name).scan().collect()) == list(range(100))
    assert len(lake.table(name).snapshots()) == 1
    named = {file.path.removeprefix("file://") for file in lake.table(name).plan().files}
    there = {str(warehouse / "default" / name / file) for file in files_below(warehouse / "default" / name)}
    assert {file for file in there if "/data/" in file} == named


def test_a_file_that_no_committed_task_reported_is_not_in_the_snapshot(lake: Lake, name: str, warehouse: Path) -> None:
    """What a speculative attempt that lost the race, or a task killed in the middle, leaves in the folder."""
    data = warehouse / "default" / name / "data"

    def stray(number: int) -> int:
        for folder in data.iterdir():
            (folder / f"part-99999-{number}.c000.zstd.parquet").write_bytes(b"the loser's file")
        return number

    lake.sql(f"create table {name} (id bigint) using iceberg")
    given = lake.spark.range(0, 2, 1, 1).select(F.udf(stray, "bigint", useArrow=False)("id").alias("id"))
    lake.table(name).append(given)
    assert sorted(row.id for row in lake.table(name).scan().collect()) == [0, 1]
    assert len(lake.table(name).plan().files) == 1
    assert len([file for file in files_below(data) if "part-99999" in file]) == 2


def test_a_failed_insert_makes_no_snapshot_and_leaves_no_file(
    lake: Lake, rows: Rows, name: str, warehouse: Path
) -> None:
    lake.sql(f"create table {name} (id int, p int) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} values (1, 1)")
    before = files_below(warehouse / "default" / name)
    with pytest.raises(InvalidInput, match="no luck"):
        lake.sql(f"insert into {name} select if(id = 7, raise_error('no luck'), id), id % 2 from range(10)")
    with pytest.raises(InvalidInput, match="no luck"):
        lake.sql(f"insert overwrite {name} select if(id = 7, raise_error('no luck'), id), id % 2 from range(10)")
    assert files_below(warehouse / "default" / name) == before
    assert rows(f"select * from {name}") == [(1, 1)]


def test_an_insert_that_breaks_a_column_dependency_is_refused(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (day string, month string, ts timestamp, d date, n int, b int) using iceberg "
        "options (columnDependencies 'day=month:extract[2],ts=d:day,n=b:bucket[4]')"
    )
    good = "'0906', '09', timestamp'2024-03-31 00:30:00', date'2024-03-30', 34, 3"  # the day is counted in UTC
    lake.sql(f"insert into {name} values ({good}), (null, null, null, null, null, null)")
    assert rows(f"select count(*) from {name}") == [(2,)]
    for bad in (
        good.replace("'09'", "'10'"),
        good.replace("2024-03-30", "2024-03-31"),
        good.replace("34, 3", "34, 2"),
        good.replace("'09'", "null"),
    ):
        with pytest.raises(InvalidInput, match="a row breaks the column dependency"):
            lake.sql(f"insert into {name} values ({bad})")
    # The check looks at rows that are written, not at rows that a join drops before.
    bad = good.replace("'09'", "'xx'")
    lake.sql(
        f"insert into {name} select l.* from (select * from values ({bad}) as l(day, month, ts, d, n, b)) l "
        "join (select '0907' day) r on l.day = r.day"
    )
    assert rows(f"select count(*) from {name}") == [(2,)]


def test_values_land_in_the_partitions_that_iceberg_computes(lake: Lake) -> None:
    columns: dict[str, iceberg.IcebergType] = {
        "i": iceberg.IntegerType(), "l": iceberg.LongType(), "s": iceberg.StringType(),
        "n": iceberg.DecimalType(9, 2), "d": iceberg.DateType(), "tz": iceberg.TimestamptzType(),
        "ts": iceberg.TimestampType(), "b": iceberg.BinaryType(), "o": iceberg.BooleanType(), "f": iceberg.DoubleType(),
    }  # fmt: skip
    wanted = [("i", "bucket[16]"), ("l", "bucket[7]"), ("s", "bucket[16]"), ("n", "bucket[5]"), ("d", "bucket[9]"),
              ("tz", "bucket[9]"), ("ts", "bucket[9]"), ("b", "bucket[3]"), ("i", "truncate[10]"),
              ("l", "truncate[1000]"),
              ("s", "truncate[3]"), ("n", "truncate[50]"), ("b", "truncate[2]"), ("tz", "hour"), ("ts", "hour"),
              *((column, name) for column in ("d", "tz", "ts") for name in ("year", "month", "day")),
              *((column, "identity") for column in columns)]  # fmt: skip
    start = dt.datetime(1965, 3, 14, 1, 30, 0, 250)
    given = [
        (n, n * 10**10 - 5, None if n % 7 == 0 else f"s{n}é", Decimal(n * 37 - 500).scaleb(-2),
         dt.date(1960, 1, 1) + dt.timedelta(days=n * 97), start.replace(tzinfo=dt.UTC) + dt.timedelta(hours=n * 377),
         start + dt.timedelta(hours=n * 377), bytes([n % 256, 3, n % 17]), n % 2 == 0, n / 8)
        for n in range(-40, 60)
    ]  # fmt: skip
    schema = "i int, l bigint, s string, n decimal(9,2), d date, tz timestamp, ts timestamp_ntz, b binary, o boolean"
    frame = lake.spark.createDataFrame(given, f"{schema}, f double")
    texts = [encoded(transform_column(F.col(c), t, columns[c]), t, columns[c]).alias(f"{c}{t}") for c, t in wanted]
    found = frame.select(*texts).collect()
    for at, (column, transform) in enumerate(wanted):
        kind, source = columns[column], list(columns).index(column)
        expected = [iceberg.parse_transform(transform).transform(kind)(stored(row[source])) for row in given]
        decodeds = [None if row[at] is None else decoded(row[at], transform, kind) for row in found]
        assert decodeds == expected, (column, transform)


def stored(value: Any) -> Any:
    """A value as Iceberg stores it."""
    if isinstance(value, dt.datetime):
        utc = value.replace(tzinfo=dt.UTC)
        return (utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


def test_overwrite_static_dynamic_and_by_filter(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, p string, q int) using iceberg partitioned by (p, q)")
    lake.sql(f"insert into {name} values (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), (4, null, 1)")
    lake.sql(f"insert overwrite {name} partition (p = 'a', q) values (5, 3)")
    assert rows(f"select * from {name} order by id") == [(3, "b", 1), (4, None, 1), (5, "a", 3)]
    lake.sql("set spark.sql.sources.partitionOverwriteMode=dynamic")
    try:
        lake.sql(f"insert overwrite {name} values (6, 'b', 1), (7, 'c', 1)")
        lake.spark.createDataFrame([(8, None, 1)], "id int, p string, q int").write.insertInto(name, overwrite=True)
    finally:
        lake.sql("set spark.sql.sources.partitionOverwriteMode=static")
    assert rows(f"select * from {name} order by id") == [(5, "a", 3), (6, "b", 1), (7, "c", 1), (8, None, 1)]
    one = lake.spark.createDataFrame([(9, "c", 1)], "id int, p string, q int")
    one.writeTo(name).overwrite(F.col("p") == "c")
    one.writeTo(name).overwritePartitions()
    assert rows(f"select * from {name} order by id") == [(5, "a", 3), (6, "b", 1), (8, None, 1), (9, "c", 1)]
    with pytest.raises(InvalidInput, match="outside the overwritten part"):
        lake.table(name).overwrite(one, "id = 9 or id = 5")
    lake.sql(f"insert overwrite {name} values (10, 'z', 0)")
    assert rows(f"select * from {name}") == [(10, "z", 0)]
    assert [each.operation for each in lake.table(name).snapshots()] == ["append"] + ["overwrite"] * 6


def test_files_carry_statistics_that_pyiceberg_agrees_with(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, s string, n decimal(7, 2), f double, ts timestamp) using iceberg")
    lake.sql(
        f"insert into {name} select id, if(id = 3, null, concat('s', id)), id / 4, if(id = 5, double('nan'), id), "
        "timestamp_seconds(id) from range(10)"
    )
    table = lake.engine.load(f"default.{name}")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(10))
    assert table.scan(row_filter="id >= 5").to_arrow().num_rows == 5
    files = table.inspect.files().to_pylist()
    assert sum(file["record_count"] for file in files) == 10
    assert min(file["readable_metrics"]["id"]["lower_bound"] for file in files) == 0
    assert max(file["readable_metrics"]["id"]["upper_bound"] for file in files) == 9
    assert sum(file["readable_metrics"]["s"]["null_value_count"] for file in files) == 1
