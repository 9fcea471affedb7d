"""REPLACE TABLE: the same table anew, in one commit; sorted files; columns that a write brings along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def made(lake: Lake, name: str) -> tuple[str, int]:
    """A table of two rows with a history: its identity and its first snapshot."""
    lake.sql(f"create table {name} (id int, data string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'a')")
    lake.sql(f"insert into {name} values (2, 'b')")
    table = lake.engine.load(f"default.{name}")
    return str(table.metadata.table_uuid), table.metadata.snapshots[0].snapshot_id


def test_a_replaced_table_keeps_its_identity_and_its_old_snapshots(lake: Lake, rows: Rows, name: str) -> None:
    uuid, first = made(lake, name)
    lake.sql(f"create or replace table {name} using iceberg partitioned by (more) as select id, 'x' more from {name}")
    table = lake.engine.load(f"default.{name}")
    head = table.current_snapshot()
    assert str(table.metadata.table_uuid) == uuid
    assert head is not None
    assert head.parent_snapshot_id is None
    assert (head.sequence_number, len(table.metadata.snapshots)) == (3, 3)
    assert [entry.snapshot_id for entry in table.metadata.snapshot_log] == [head.snapshot_id]
    assert rows(f"select * from {name} order by id") == [(1, "x"), (2, "x")]
    assert rows(f"select * from {name} version as of {first}") == [(1, "a")]
    lake.sql(f"insert into {name} values (3, 'y')")
    lake.sql(f"delete from {name} where id = 1")
    assert rows(f"select * from {name} order by id") == [(2, "x"), (3, "y")]
    lake.sql(f"replace table {name} (only bigint) using iceberg")
    assert rows(f"select * from {name}") == []
    assert rows(f"select * from {name} version as of {first}") == [(1, "a")]


def test_a_query_that_reads_what_it_replaces_runs_again(lake: Lake, rows: Rows, name: str) -> None:
    made(lake, name)
    meanwhile = [lambda: lake.sql(f"insert into {name} values (40, 'meanwhile')")]

    def interfere(phase: str) -> None:
        if phase == FILES_WRITTEN and meanwhile:
            meanwhile.pop()()

    watched = lake.watched(on_phase=interfere)
    watched.sql(f"create or replace table {name} using iceberg as select sum(id) id from {name}")
    assert rows(f"select * from {name}") == [(43,)]


def test_writers_replace_tables_and_do_not_overwrite_what_they_did_not_see(lake: Lake, rows: Rows, name: str) -> None:
    uuid, _ = made(lake, name)
    read = lake.spark.table(name)
    read.withColumn("n", F.lit(1)).writeTo(name).using("iceberg").createOrReplace()
    assert rows(f"select * from {name} order by id") == [(1, "a", 1), (2, "b", 1)]
    assert str(lake.engine.load(f"default.{name}").metadata.table_uuid) == uuid
    with pytest.raises((InvalidInput, CommitConflict)):
        read.writeTo(name).using("iceberg").replace()
    assert len(rows(f"select * from {name}")) == 2


def test_a_table_like_another_has_its_columns_partitions_and_order(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int not null, p string) using iceberg partitioned by (p, bucket(4, id))")
    lake.sql(f"alter table {name} write ordered by id desc nulls last")
    lake.sql(f"create table {name}_like like {name}")
    told = rows(f"show create table {name}_like")[0][0]
    assert "PARTITIONED BY (p, bucket(4, id))" in told
    assert "'sort-order' = 'id DESC NULLS LAST'" in told
    assert rows(f"describe {name}_like") == rows(f"describe {name}")


def test_rows_are_written_in_the_order_that_the_table_asks_for(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    lake.sql(f"alter table {name} write distributed by partition locally ordered by id desc")
    lake.sql(f"insert into {name} select cast(id * 7 % 101 as int), if(id % 2 = 0, 'a', 'b') from range(100)")
    found = rows(f"select _file, _pos, id from {name} order by _file, _pos")
    assert len({file for file, _, _ in found}) == 2
    for file in {each[0] for each in found}:
        ids = [row for where, _, row in found if where == file]
        assert ids == sorted(ids, reverse=True)
    assert {row[0] for row in rows(f"select sort_order_id from default.{name}.files")} == {1}


@pytest.mark.parametrize("order", ["id desc nulls last", "zorder(id, p)"])
def test_compaction_sorts_and_keeps_every_row(lake: Lake, rows: Rows, name: str, order: str) -> None:
    lake.sql(f"create table {name} (id int, p string) using iceberg")
    for start in range(3):
        lake.sql(f"insert into {name} select cast((id * 13 + {start}) % 50 as int), cast(id as string) from range(20)")
    lake.sql(f"delete from {name} where id = 7")
    before = sorted(rows(f"select * from {name}"))
    done = rows(f"call system.rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => '{order}')")
    assert done[0][1] == 1
    assert sorted(rows(f"select * from {name}")) == before
    if "desc" in order:
        found = rows(f"select _pos, id from {name} order by _pos")
        ids = [row for _, row in found]
        assert ids == sorted(ids, reverse=True)
    with pytest.raises(InvalidInput, match="no sort order"):
        lake.sql(f"call system.rewrite_data_files(table => '{name}', strategy => 'sort')")


def test_a_delete_beside_a_sorting_compaction_is_not_lost(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg tblproperties ('write.delete.mode'='merge-on-read')")
    lake.sql(f"insert into {name} select cast(id as int) from range(50)")
    lake.sql(f"insert into {name} select cast(id + 50 as int) from range(50)")
    meanwhile = [lambda: lake.sql(f"delete from {name} where id = 42")]

    def interfere(phase: str) -> None:
        if phase == FILES_WRITTEN and meanwhile:
            meanwhile.pop()()

    lake.watched(on_phase=interfere).sql(
        f"call system.rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => 'id desc')"
    )
    assert rows(f"select count(*), count(if(id = 42, 1, null)) from {name}") == [(99, 0)]


def test_columns_come_along_where_the_table_accepts_them(lake: Lake, rows: Rows, name: str) -> None:
    made(lake, name)
    wide = lake.spark.createDataFrame([(3, "c", 1.5)], "id int, data string, more double")
    with pytest.raises(InvalidInput, match="accepts any schema"):
        wide.writeTo(name).option("mergeSchema", "true").append()
    lake.sql(f"alter table {name} set tblproperties ('write.spark.accept-any-schema'='true')")
    wide.writeTo(name).option("mergeSchema", "true").append()
    assert rows(f"select * from {name} order by id") == [(1, "a", None), (2, "b", None), (3, "c", 1.5)]
    lake.sql(
        f"merge with schema evolution into {name} t using (select 3 id, 'z' data, 2.5D more, 'new' late) s "
        "on t.id = s.id when matched then update set * when not matched then insert *"
    )
    assert rows(f"select * from {name} where id = 3") == [(3, "z", 2.5, "new")]
    lake.sql(
        f"merge with schema evolution into {name} t using (select 3 id, 'y' data, 1 unused) s on t.id = s.id "
        "when matched then update set data = s.data"
    )
    assert lake.table(name).columns == ["id", "data", "more", "late"]


def test_writers_are_told_where_and_what(lake: Lake, rows: Rows, name: str) -> None:
    made(lake, name)
    lake.sql(f"alter table {name} create branch b")
    three = lake.spark.createDataFrame([(3, "c")], "id int, data string")
    three.writeTo(name).option("branch", "b").option("snapshot-property.why", "test").append()
    three.write.option("branch", "b").insertInto(name)
    assert rows(f"select count(*) from {name}.branch_b") == [(4,)]
    assert rows(f"select count(*) from {name}") == [(2,)]
    assert rows(f"select count(*) from default.{name}.snapshots where summary['why'] = 'test'") == [(1,)]
    three.writeTo(name).overwrite(F.col("id") == 1)
    assert rows(f"select id from {name} order by id") == [(2,), (3,)]
    lake.spark.createDataFrame([(9, "z")], "id int, data string").writeTo(name).overwrite(F.col("id") == 2)
    assert rows(f"select id from {name} order by id") == [(3,), (9,)]
    with pytest.raises(InvalidInput, match="write option `compression` is not supported"):
        three.writeTo(name).option("compression", "x").append()


def test_rows_that_were_appended_between_two_snapshots(lake: Lake, name: str) -> None:
    _, first = made(lake, name)
    lake.sql(f"insert into {name} values (3, 'c')")
    lake.sql(f"delete from {name} where id = 3")
    read = lake.spark.read.format("iceberg").option("start-snapshot-id", first).load(name)
    assert sorted(row.id for row in read.collect()) == [2, 3]
    with pytest.raises(InvalidInput, match="needs a start-snapshot-id"):
        lake.spark.read.option("end-snapshot-id", first).table(name)


def test_iceberg_s_functions(rows: Rows) -> None:
    asked = "system.bucket(16, 34), spark_catalog.system.truncate(10, 15), system.years(date'2024-01-01'), "
    asked += "system.days(timestamp'2024-01-01 12:00:00Z'), system.bucket(4, cast(null as string))"
    ((bucket, cut, years, days, none),) = rows(f"select {asked}")
    assert (bucket, cut, years, str(days), none) == (3, 10, 54, "2024-01-01", None)
    with pytest.raises(InvalidInput, match="takes no string"):
        rows("select system.years('x')")


def test_statistics_of_columns_are_in_the_metadata(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, s string, d decimal(9, 2), f double) using iceberg")
    lake.sql(
        f"insert into {name} select id, cast(id % 10 as string), cast(id % 7 as decimal(9, 2)), id / 2 from range(500)"
    )
    ((path,),) = rows(f"call system.compute_table_stats('{name}')")
    (known,) = lake.engine.load(f"default.{name}").metadata.statistics
    assert known.statistics_path == path
    assert [int((each.properties or {})["ndv"]) for each in known.blob_metadata] == [500, 10, 7, 500]
