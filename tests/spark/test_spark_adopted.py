"""Files that somebody else wrote: adopted Parquet files, ORC tables, and deletes of other engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.pointer import stage, swap
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.pyiceberg_names import DataFile, DataFileContent, FileFormat, Record
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.tables.branches import MAIN
from lakeproof.spark.lake import Lake
from lakeproof.spark.reading import deletes

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_adopted_files_are_read_by_name_with_their_folder_s_values(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, v string, day int, p string) using parquet partitioned by (day, p)")
    lake.sql(
        f"insert into {name} select id, concat('v', id), cast(20240131 + id % 2 as int), "
        "if(id % 3 = 0, null, concat('p', id % 3)) from range(0, 12, 1, 1)"
    )
    before = sorted(rows(f"select * from {name}"), key=str)
    assert rows(f"call system.migrate('{name}')") == [(6,)]
    assert sorted(rows(f"select * from {name}"), key=str) == before
    assert rows(f"select count(*), min(id), max(v) from {name} where p = 'p1' and day = 20240131") == [(2, 4, "v4")]
    pruned = lake.sql(f"select id from {name} where p = 'p1' and day = 20240131")
    assert sorted(row.id for row in pruned.collect()) == [4, 10]
    assert rows(f"select count(id) from {name} where p is null and id >= 6") == [(2,)]
    assert rows(f"select count(id) from {name} where p = 'p1' or id = 0") == [(5,)]
    lake.sql(f"alter table {name} rename column v to w")
    lake.sql(f"alter table {name} add column extra int first")
    lake.sql(f"insert into {name} values (7, 100, 'new', 20240201, 'p1')")
    assert rows(f"select extra, id, w, p from {name} where id >= 11 order by id") == [
        (None, 11, "v11", "p2"),
        (7, 100, "new", "p1"),
    ]
    assert rows(f"select count(*) from {name} where w = 'v3' and extra is null") == [(1,)]
    assert rows(f"select count(id) from {name}") == [(13,)]
    assert lake.engine.load(f"default.{name}").scan().to_arrow().num_rows == 13


def test_add_files_adopts_a_folder_as_one_snapshot(lake: Lake, rows: Rows, name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"id": [3]}), tmp_path / "two.parquet")
    lake.sql(f"create table {name} (id bigint, v string) using iceberg")
    assert rows(f"call system.add_files('{name}', '{tmp_path}')") == [(2, None)]
    assert rows(f"select * from {name} order by id") == [(1, "a"), (2, "b"), (3, None)]
    assert rows(f"select id from {name} where v = 'b'") == [(2,)]
    with pytest.raises(InvalidInput, match="already"):
        lake.sql(f"call system.add_files('{name}', '{tmp_path}/one.parquet')")
    with pytest.raises(InvalidInput, match="there is no such file"):
        lake.sql(f"call system.add_files('{name}', '{tmp_path}/nothing')")


def test_what_adopted_files_cannot_do_they_can_once_they_are_written_anew(
    lake: Lake, rows: Rows, name: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "one.parquet")
    lake.sql(f"create table {name} (id bigint, v string) using iceberg tblproperties ('format-version'='3')")
    lake.sql(f"call system.add_files('{name}', '{tmp_path}')")
    asked = f"select _row_id, id, v from {name} order by id"
    rewrite = f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    for text in (asked, f"update {name} set v = 'c' where id = 2", rewrite):
        with pytest.raises(InvalidInput, match="INSERT OVERWRITE the table with SELECT"):
            lake.sql(text)
    lake.sql(f"insert overwrite {name} select * from {name}")
    before = {key: number for number, key, _ in rows(asked)}
    lake.sql(f"update {name} set v = 'c' where id = 2")
    assert rows(asked) == [(before[1], 1, "a"), (before[2], 2, "c")]


def test_an_orc_table_is_managed_and_pruned_by_partition_only(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (id bigint, p string) using orc options (addTableManagement 'true') partitioned by (p)"
    )
    lake.sql(f"insert into {name} select id, concat('p', id % 2) from range(10)")
    assert rows(f"select sum(id) from {name} where p = 'p1'") == [(25,)]
    assert len(lake.table(name).plan("p = 'p1'").files) < len(lake.table(name).plan().files)
    assert len(lake.table(name).plan("id = 1000").files) == len(lake.table(name).plan().files)
    assert all(file.path.endswith(".orc") for file in lake.table(name).plan().files)
    with pytest.raises(InvalidInput, match="by name"):
        lake.sql(f"alter table {name} rename column id to number")


@pytest.mark.parametrize("by_bitmap", [True, False], ids=["bitmap", "anti-join"])
def test_position_deletes_leave_their_rows_out(
    lake: Lake, rows: Rows, name: str, by_bitmap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_bitmap:
        monkeypatch.setattr(deletes, "FILES_LIMIT", 0)
    lake.sql(f"create table {name} (id bigint, v string) using iceberg")
    lake.sql(f"insert into {name} select id, concat('v', id) from range(0, 100, 1, 1)")
    lake.sql(f"insert into {name} select id, concat('v', id) from range(100, 200, 1, 1)")
    table = lake.engine.load(f"default.{name}")
    files = {row["path"]: row for row in lake.table(name).plan().scan.files.to_pylist()}
    path = next(p for p in files if "v5" in str(pq.read_table(p.removeprefix("file://"), partitioning=None)["v"][5]))
    gone = np.array([0, 5, 6, 7, 13, 14, 99], np.int64)
    commit_deletes(table, write_position_deletes(table, path, gone))
    assert rows(f"select count(id), sum(id) from {name}") == [(193, sum(range(200)) - int(gone.sum()))]
    assert rows(f"select id from {name} where id between 4 and 8 order by id") == [(4,), (8,)]
    assert rows(f"select count(*) from {name}") == [(193,)]
    assert rows(f"select v from {name} where id = 113") == [("v113",)]


def test_equality_deletes_of_another_engine_are_applied(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, v string, p string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} values (1, 'a', 'x'), (2, null, 'x'), (3, 'a', 'y'), (4, 'b', 'x')")
    table = lake.engine.load(f"default.{name}")
    commit_deletes(table, equality_delete(table, {"v": ["a", None]}, ids=(2,), partition=("x",)))
    lake.sql(f"insert into {name} values (5, 'a', 'x')")
    assert rows(f"select id from {name} order by id") == [(3,), (4,), (5,)]
    assert rows(f"select count(*) from {name} where v = 'a'") == [(2,)]
    assert rows(f"select id from {name} where p = 'x' order by id") == [(4,), (5,)]


def test_an_equality_delete_is_joined_only_with_files_that_can_hold_its_values(
    lake: Lake, rows: Rows, name: str
) -> None:
    lake.sql(f"create table {name} (id bigint, v string, p string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} values (1, 'a', 'x'), (2, 'c', 'x')")
    lake.sql(f"insert into {name} values (3, 'm', 'x'), (4, null, 'x')")
    table = lake.engine.load(f"default.{name}")
    made = equality_delete(table, {"v": ["b", "c"]}, ids=(2,), partition=("x",), lower={2: b"b"}, upper={2: b"c"})
    commit_deletes(table, made)
    planned = lake.table(name).plan().scan
    assert sorted(map(len, planned.files["delete_files"].to_pylist())) == [0, 1]
    assert rows(f"select id from {name} order by id") == [(1,), (3,), (4,)]
    lake.sql(f"delete from {name} where id = 3")
    assert rows(f"select id from {name} order by id") == [(1,), (4,)]


def commit_deletes(table: Any, *files: DataFile) -> None:
    """One snapshot that adds delete files, as another engine would make it."""
    head = table.current_snapshot()
    snapshot = Producer(table).produce(table, head, FileChange("delete", added_delete_files=files))
    swap(table, stage(table, snapshot, MAIN, []))


def equality_delete(
    table: Any, values: dict[str, list[Any]], *, ids: tuple[int, ...], partition: tuple[Any, ...],
    lower: dict[int, bytes] | None = None, upper: dict[int, bytes] | None = None,
) -> DataFile:  # fmt: skip
    """A delete file that names values of columns."""
    path = f"{table.location()}/data/equality-{len(values)}.parquet"
    fields = [
        pa.field(name, pa.string(), True, {"PARQUET:field_id": str(i)}) for name, i in zip(values, ids, strict=True)
    ]
    found = pa.table(list(values.values()), schema=pa.schema(fields))
    with table.io.new_output(path).create() as stream:
        pq.write_table(found, stream)
    file = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=found.num_rows,
        file_size_in_bytes=len(table.io.new_input(path)),
        equality_ids=list(ids),
        column_sizes={}, value_counts={}, nan_value_counts={}, lower_bounds=lower or {}, upper_bounds=upper or {},
        null_value_counts=dict.fromkeys(lower or {}, 0),
    )  # fmt: skip
    file.spec_id = table.spec().spec_id
    return file


def test_folders_of_every_type_become_partition_values(lake: Lake, rows: Rows, name: str) -> None:
    """Spark writes a value of any type as text; a timestamp in the time zone of the session."""
    columns = (
        "i bigint, d date, ts timestamp, plain timestamp_ntz, m decimal(7,2), b boolean, f double, s string, n tinyint"
    )
    parts = "d, ts, plain, m, b, f, s, n"
    lake.sql(f"create table {name} ({columns}) using parquet partitioned by ({parts})")
    lake.sql(
        f"insert into {name} values "
        "(1, date'2024-01-31', timestamp'2024-01-31 12:30:00', timestamp_ntz'2024-01-31 12:30:00.25', "
        "12.30, true, 1.5, 'a/b =c%', 7), "
        "(2, date'1969-12-31', timestamp'1969-12-31 23:59:59.999999', timestamp_ntz'1969-07-20 20:17:40', "
        "-0.05, false, -1e300, 'ä', -7), "
        "(3, null, null, null, null, null, null, null, null)"
    )
    before = rows(f"select * from {name} order by i")
    assert rows(f"call system.migrate('{name}')") == [(3,)]
    assert rows(f"select * from {name} order by i") == before
    others = lake.engine.load(f"default.{name}").scan().to_arrow().to_pylist()
    assert {row["i"]: (row["d"], row["m"], row["s"]) for row in others} == {r[0]: (r[1], r[4], r[7]) for r in before}
    for file in lake.table(name).plan().files:
        if "d=2024-01-31" not in file.path:
            Path(file.path.removeprefix("file://")).unlink()  # whoever still needs it fails
    for where in (
        "d = date'2024-01-31'",
        "ts = timestamp'2024-01-31 12:30:00'",
        "plain = timestamp_ntz'2024-01-31 12:30:00.25'",
        "m = 12.30",
        "b",
        "f = 1.5",
        "s = 'a/b =c%'",
        "n = 7",
    ):
        assert rows(f"select i from {name} where {where}") == [(1,)], where
