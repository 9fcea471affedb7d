"""Metadata tables and metadata columns: their values are those that the files themselves show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.metadata_tables.metadata_tables import METADATA_TABLES, OF_A_SNAPSHOT
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def _busy_table(lake: Lake, name: str) -> None:
    """Two partition specs, deleted rows, a branch and a tag."""
    modes = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))
    lake.sql(
        f"create table {name} (id bigint, p string, v double) using iceberg partitioned by (p) tblproperties ({modes})"
    )
    lake.sql(f"insert into {name} select id, concat('p', id % 3), id / 2 from range(30)")
    lake.sql(f"delete from {name} where id in (4, 7, 9)")
    lake.sql(f"alter table {name} add partition field bucket(4, id)")
    lake.sql(f"insert into {name} select id, 'q', null from range(100, 110)")
    lake.sql(f"alter table {name} create tag g")
    lake.sql(f"update {name} set v = -1 where id = 105")


def test_metadata_tables_have_all_names_and_join_like_tables(lake: Lake, rows: Rows, name: str) -> None:
    _busy_table(lake, name)
    for each in METADATA_TABLES:
        assert rows(f"select count(*) from {name}.{each}") == [(lake.spark.table(f"default.{name}.{each}").count(),)]
    joined = f"from {name}.history h join default.{name}.snapshots s on h.snapshot_id = s.snapshot_id"
    said = rows(f"select s.operation, h.parent_id is null {joined} order by s.committed_at")
    assert said == [("append", True), ("delete", False), ("append", False), ("overwrite", False)]
    loaded = lake.spark.read.format("iceberg").load(f"default.{name}.files")
    assert loaded.count() == rows(f"select count(*) from spark_catalog.default.{name}.files")[0][0]
    assert rows(f"select name, type from {name}.refs order by name") == [("g", "TAG"), ("main", "BRANCH")]
    assert rows(f"select count(*), max(latest_sequence_number) from {name}.metadata_log_entries") == [(7, 4)]


def test_files_say_what_lies_in_them(lake: Lake, rows: Rows, name: str) -> None:
    """Judged by the Parquet files themselves."""
    _busy_table(lake, name)
    listed = rows(
        f"select file_path, record_count, file_size_in_bytes, readable_metrics.id.lower_bound, "
        f"readable_metrics.id.upper_bound, readable_metrics.v.null_value_count, partition.p, spec_id "
        f"from {name}.data_files"
    )
    assert len(listed) > 6
    for path, count, _size, low, high, nulls, p, spec_id in listed:
        read = pq.read_table(path.removeprefix("file://"))
        ids = read["id"].to_pylist()
        assert (count, low, high) == (len(ids), min(ids), max(ids))
        assert nulls == read["v"].null_count
        assert set(read["p"].to_pylist()) == {p}
        assert spec_id == (1 if p == "q" else 0)
    counted = rows(
        f"select partition.p, sum(record_count), sum(position_delete_record_count) from {name}.partitions group by 1"
    )
    assert {p: (live, dead) for p, live, dead in counted} == {"p0": (10, 1), "p1": (10, 2), "p2": (10, 0), "q": (11, 1)}
    entries = rows(f"select status, count(*) from {name}.all_entries group by 1")
    assert {1} <= {status for status, _ in entries}
    assert (
        rows(f"select count(*) from {name}.all_files where content = 1")[0][0]
        == rows(f"select count(*) from {name}.delete_files")[0][0]
    )


def test_metadata_tables_travel(lake: Lake, rows: Rows, name: str) -> None:
    _busy_table(lake, name)
    snapshots = rows(f"select snapshot_id from {name}.snapshots order by committed_at")
    first, last = snapshots[0][0], snapshots[-1][0]
    assert rows(f"select sum(record_count) from {name}.files version as of {first}") == [(30,)]
    assert rows(f"select sum(record_count) from {name}.data_files version as of 'g'") == [(40,)]
    assert rows(f"select count(*) from {name}.position_deletes version as of {first}") == [(0,)]
    assert rows(f"select count(*) from {name}.position_deletes version as of {last}") == [(4,)]
    for each in METADATA_TABLES:
        if each not in OF_A_SNAPSHOT:
            with pytest.raises(InvalidInput, match="not of one snapshot"):
                rows(f"select * from {name}.{each} version as of {first}")
    with pytest.raises(InvalidInput, match="cannot be written"):
        lake.sql(f"insert into {name}.files select 1")


def test_a_table_goes_before_a_metadata_table_of_that_name(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"create namespace {name}")
    lake.sql(f"create table {name}.files (mine int) using iceberg")
    assert lake.sql(f"select * from {name}.files").columns == ["mine"]
    assert "file_path" in lake.sql(f"select * from default.{name}.files").columns


def test_places_of_rows_are_where_the_rows_are(lake: Lake, rows: Rows, name: str) -> None:
    """`_file` and `_pos` of every row, looked up in the Parquet file; the other columns by the table of files."""
    _busy_table(lake, name)
    listed = rows(f"select file_path, partition, spec_id from {name}.data_files")
    partitions = {path: (partition, spec_id) for path, partition, spec_id in listed}
    found = rows(f"select id, p, v, _file, _pos, _spec_id, _partition from {name}")
    assert sorted(row[0] for row in found) == sorted({*range(30), *range(100, 110)} - {4, 7, 9})
    for number, p, v, path, position, spec_id, partition in found:
        read = pq.read_table(path.removeprefix("file://")).slice(position, 1).to_pylist()[0]
        assert (read["id"], read["p"], read["v"]) == (number, p, v)
        assert (partition, spec_id) == partitions[path]
    gone = rows(f"select id, _file, _pos from {name} where _deleted")
    assert {row[0] for row in gone} == {4, 7, 9, 105}
    assert sorted(row[1:] for row in gone) == sorted(rows(f"select file_path, pos from {name}.position_deletes"))


def test_metadata_columns_are_hidden_and_free(lake: Lake, rows: Rows, name: str) -> None:
    _busy_table(lake, name)
    assert lake.sql(f"select * from {name} where _pos >= 0").columns == ["id", "p", "v"]
    assert lake.sql(f"select *, _file from {name} x").columns == ["id", "p", "v", "_file"]
    assert rows(f"select count(*) from {name} a join {name} b on a._file = b._file and a._pos = b._pos") == [(37,)]
    assert rows(f"select count(*) from {name} where id in (select id from {name} where _partition.p = 'q')") == [(10,)]
    assert rows(f"select count(distinct _file) from {name} version as of 'g' where _spec_id = 0 and id < 3") == [(3,)]
    assert rows(f"with c as (select _pos n from {name} where id = 11) select n from c")[0][0] >= 0
    assert "Number" not in str(lake.sql(f"explain select id from {name} where id = 5").collect())
    lake.sql(f"create table {name}m (_file string, id int) using iceberg")
    lake.sql(f"insert into {name}m values ('mine', 1)")
    assert rows(f"select _file, _pos from {name}m") == [("mine", 0)]  # a column of the table hides the metadata column
    with pytest.raises(InvalidInput, match="_nothing"):
        lake.sql(f"select _nothing from {name}")
