"""Rows that need no job are written by the driver: nobody can tell the files from those of Spark's own writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakeproof.iceberg.pyiceberg_names import DataFile
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
COLUMNS = (
    "id bigint, n int, f float, d double, b boolean, s string, day date, at timestamp, here timestamp_ntz, "
    "small decimal(7,2), large decimal(30,4)"
)
VALUES = (
    "(1, 2, 1.5f, -2.25, true, 'null', date'2024-02-29', timestamp'2024-10-27 02:30:00.000001', "
    "timestamp_ntz'1969-12-31 23:59:59.999999', 12.34, 12345678901234567890.1234)",
    "(-1, null, null, null, null, null, null, null, null, null, null)",
    "(3, -7, 1e-30f, 1e300, false, 'a\\nb\"ä\U0001f600', date'1960-01-01', timestamp'2024-10-27 02:30:00 Z', "
    "timestamp_ntz'2024-03-31 02:30:00', -0.01, -0.0001)",
)
PARTITIONS = (
    "",
    "partitioned by (n, s)",
    "partitioned by (bucket(4, id), truncate(2, s), days(at), hours(here), months(day), bucket(3, large))",
)


def described(file: DataFile) -> dict[str, object]:
    """What the manifest says of a file, but for its name and the sizes, which belong to the writer."""
    names = ("record_count", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    return {name: getattr(file, name) for name in names} | {"partition": repr(file.partition), "spec": file.spec_id}


def file_of(lake: Lake, name: str) -> tuple[DataFile, pq.ParquetFile]:
    table = lake.engine.load(f"default.{name}")
    (task,) = table.scan().plan_files()
    return task.file, pq.ParquetFile(task.file.file_path.removeprefix("file://"))


@pytest.mark.parametrize("partitioned", PARTITIONS, ids=("unpartitioned", "by columns", "by transforms"))
@pytest.mark.parametrize("value", VALUES, ids=("plain", "nulls", "odd"))
def test_the_file_is_as_sparks_own(lake: Lake, rows: Rows, name: str, partitioned: str, value: str) -> None:
    lake.sql(f"create table {name} ({COLUMNS}) using iceberg {partitioned}")
    lake.sql(f"create table {name}_job ({COLUMNS}) using iceberg {partitioned}")
    lake.sql(f"insert into {name} values {value}")
    lake.sql(f"insert into {name}_job select /*+ repartition(1) */ * from values {value}")
    (ours, file), (sparks, job) = file_of(lake, name), file_of(lake, f"{name}_job")
    assert Path(sparks.file_path).name.startswith("part-"), "Spark's own writer must have written this one"
    assert not Path(ours.file_path).name.startswith("part-")
    assert described(ours) == described(sparks)
    kinds = [
        [(c.path, c.physical_type, str(c.logical_type)) for c in map(f.schema.column, range(11))] for f in (file, job)
    ]
    assert kinds[0] == kinds[1]
    assert [field.metadata[b"PARQUET:field_id"] for field in file.schema_arrow] == [b"%d" % n for n in range(1, 12)]
    assert rows(f"select * from {name}") == rows(f"select * from {name}_job")


def test_rows_fall_into_their_partitions_and_by_name(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} (p, id) values ('a', 1), ('b', 2), ('a', 3)")
    assert rows(f"select * from {name} order by id") == [(1, "a"), (2, "b"), (3, "a")]
    assert rows(f"select partition.p, record_count from `{name}$files` order by 1") == [("a", 2), ("b", 1)]
    lake.sql(f"insert overwrite {name} values (4, 'c')")
    assert rows(f"select * from {name}") == [(4, "c")]
    assert len(lake.table(name).snapshots()) == 2


@pytest.mark.parametrize(
    ("column", "value"),
    [("double", "double('NaN')"), ("binary", "X'00ff'"), ("array<int>", "array(1)"), ("struct<a: int>", "struct(1)")],
    ids=("NaN", "bytes", "a list", "a struct"),
)
def test_what_is_not_plain_is_left_to_spark(lake: Lake, rows: Rows, name: str, column: str, value: str) -> None:
    lake.sql(f"create table {name} (k int, x {column}) using iceberg")
    lake.sql(f"insert into {name} values (1, {value})")
    lake.sql(f"insert into {name} select /*+ repartition(1) */ * from values (1, {value})")
    first, second = rows(f"select x from {name}")
    assert str(first) == str(second)
    table = lake.engine.load(f"default.{name}")
    told = [described(task.file) for task in table.scan().plan_files()]
    assert told[0] == told[1]
