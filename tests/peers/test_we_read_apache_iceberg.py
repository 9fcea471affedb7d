"""What Apache Iceberg writes, Lakeproof reads, extends and hands back, through one live catalog; PyIceberg agrees."""

from __future__ import annotations

import pytest
from both_engines import MERGE_ON_READ, Engines, Rows, ordered

from lakeproof.errors import InvalidInput

pytestmark = [pytest.mark.peer, pytest.mark.spark]
COPY_ON_WRITE = MERGE_ON_READ.replace("merge-on-read", "copy-on-write")
LAYOUTS = [
    pytest.param(f"'format-version'='1', {COPY_ON_WRITE}", id="v1 copy-on-write"),
    pytest.param(f"'format-version'='2', {COPY_ON_WRITE}", id="v2 copy-on-write"),
    pytest.param(f"'format-version'='2', {MERGE_ON_READ}", id="v2 merge-on-read, a delete file per data file"),
    pytest.param(
        f"'format-version'='2', {MERGE_ON_READ}, 'write.delete.granularity'='partition'",
        id="v2 merge-on-read, a delete file per partition",
    ),
]


def made_there(engines: Engines, name: str, properties: str) -> None:
    """Thirty rows of theirs, some overwritten, deleted, updated and merged."""
    theirs = engines.theirs
    theirs.sql(
        f"create table {name} (id bigint, name string, day date) using iceberg "
        f"partitioned by (days(day), bucket(3, id)) tblproperties ({properties})"
    )
    days = "date_add(date'2024-01-01', cast(id % 3 as int))"
    for start in (0, 15):
        theirs.sql(f"insert into {name} select id, concat('n', id), {days} from range({start}, {start + 15})")
    theirs.sql(f"delete from {name} where id % 5 = 1")
    theirs.sql(f"update {name} set name = 'up' where id % 7 = 2")
    theirs.sql(
        f"merge into {name} t using (select id, 'merged' name from range(28, 32)) s on t.id = s.id "
        "when matched then update set name = s.name "
        "when not matched then insert (id, name, day) values (s.id, s.name, date'2024-01-04')"
    )


def ids(rows: Rows) -> list[int]:
    return sorted(row[0] for row in rows)


@pytest.mark.parametrize("properties", LAYOUTS)
def test_their_table_is_read_extended_and_handed_back(engines: Engines, name: str, properties: str) -> None:
    ours, theirs = engines.ours, engines.theirs
    made_there(engines, name, properties)
    kept = [n for n in range(30) if n % 5 != 1] + [30, 31]
    assert ids(engines.rows(name)) == kept

    ours.sql(f"insert into {name} values (100, 'ours', date'2024-02-01'), (101, 'ours', null)")
    assert ids(engines.rows(name)) == [*kept, 100, 101]
    ours.sql(f"delete from {name} where id in (0, 9, 30)")
    ours.sql(f"update {name} set name = 'mine' where id in (2, 3, 100)")
    ours.sql(
        f"merge into {name} t using (select 4l id union all select 200l) s on t.id = s.id "
        "when matched then delete when not matched then insert (id, name) values (s.id, 'new')"
    )
    left = [n for n in kept if n not in (0, 4, 9, 30)]
    rows = engines.rows(name)
    assert ids(rows) == [*left, 100, 101, 200]
    assert [row[0] for row in rows if row[1] == "mine"] == [100, 2, 3]

    theirs.sql(f"delete from {name} where id in (2, 101)")
    theirs.sql(f"update {name} set name = 'back' where id = 100")
    ours.sql(f"delete from {name} where day = date'2024-01-01'")
    rows = engines.rows(name)
    assert ids(rows) == [n for n in left if n % 3 and n != 2] + [100, 200]
    assert (100, "back", "2024-02-01") in rows
    ours.sql(f"insert overwrite {name} select id, name, day from {name} where id = 100")
    assert engines.rows(name) == [(100, "back", "2024-02-01")]
    theirs.sql(f"insert into {name} values (1, 'end', null)")
    assert ids(engines.rows(name)) == [1, 100]


@pytest.mark.parametrize(
    "procedure",
    [
        "rewrite_data_files(table => '{0}', options => map('rewrite-all', 'true'))",
        "rewrite_position_delete_files(table => '{0}', options => map('rewrite-all', 'true'))",
        "rewrite_manifests(table => '{0}')",
    ],
    ids=lambda text: text.partition("(")[0],
)
def test_their_maintenance_between_our_commands(engines: Engines, name: str, procedure: str) -> None:
    made_there(engines, name, f"'format-version'='2', {MERGE_ON_READ}")
    engines.ours.sql(f"delete from {name} where id in (3, 4)")
    before = engines.rows(name)
    engines.theirs.sql(f"call lakeproof.system.{procedure.format(f'default.{name}')}")
    assert engines.rows(name) == before
    engines.ours.sql(f"delete from {name} where id in (5, 7)")
    engines.ours.sql(f"update {name} set name = 'x' where id = 8")
    rows = engines.rows(name)
    assert ids(rows) == [n for n in ids(before) if n not in (5, 7)]
    assert [row[0] for row in rows if row[1] == "x"] == [8]


def test_their_evolution_of_columns_and_partitions(engines: Engines, name: str) -> None:
    ours, theirs = engines.ours, engines.theirs
    theirs.sql(
        f"create table {name} (id int, s struct<a:int,b:string>, p string, ts timestamp) using iceberg "
        f"partitioned by (p) tblproperties ({MERGE_ON_READ})"
    )
    theirs.sql(
        f"insert into {name} values (1, named_struct('a', 1, 'b', 'x'), 'p', timestamp'2024-01-01 00:00:00'), "
        "(2, null, 'q', null)"
    )
    for change in (
        "add column s.c double",
        "rename column s.a to aa",
        "alter column id type bigint",
        "add column first string first",
        "replace partition field p with truncate(1, p)",
        "add partition field hours(ts)",
    ):
        theirs.sql(f"alter table {name} {change}")
    three = "('f', 3, named_struct('aa', 3, 'b', 'y', 'c', 1.5), 'pq', timestamp'2024-05-01 00:00:00')"
    theirs.sql(f"insert into {name} values {three}")
    ours.sql(f"insert into {name} values ('g', 4, null, 'xx', timestamp'2024-05-01 03:00:00')")
    ours.sql(f"update {name} set s.c = 9.5 where id in (1, 3)")
    ours.sql(f"delete from {name} where id = 2")
    assert engines.rows(name) == ordered(
        [
            (None, 1, {"aa": 1, "b": "x", "c": 9.5}, "p", "2024-01-01 00:00:00"),
            ("f", 3, {"aa": 3, "b": "y", "c": 9.5}, "pq", "2024-05-01 00:00:00"),
            ("g", 4, None, "xx", "2024-05-01 03:00:00"),
        ]
    )


def test_a_v1_table_whose_partition_field_was_dropped(engines: Engines, name: str) -> None:
    """Version 1 keeps the field with the transform `void`."""
    ours, theirs = engines.ours, engines.theirs
    theirs.sql(
        f"create table {name} (id int, p string) using iceberg partitioned by (p) tblproperties ('format-version'='1')"
    )
    theirs.sql(f"insert into {name} values (1, 'a')")
    theirs.sql(f"alter table {name} drop partition field p")
    theirs.sql(f"insert into {name} values (2, 'b')")
    ours.sql(f"insert into {name} values (3, 'c')")
    assert engines.rows(name) == [(1, "a"), (2, "b"), (3, "c")]
    ours.sql(f"alter table {name} set tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read')")
    ours.sql(f"delete from {name} where id = 1")
    assert engines.rows(name) == [(2, "b"), (3, "c")]


def test_a_v3_table_with_deletion_vectors_is_read_and_written(engines: Engines, name: str) -> None:
    theirs = engines.theirs
    theirs.sql(
        f"create table {name} (id bigint, v string) using iceberg tblproperties ('format-version'='3', {MERGE_ON_READ})"
    )
    theirs.sql(f"insert into {name} select id, 'a' from range(100)")
    theirs.sql(f"delete from {name} where id % 3 = 0")
    theirs.sql(f"delete from {name} where id % 3 = 1 and id < 50")
    found = ordered(engines.ours.sql(f"select * from {name}"))
    assert found == ordered(theirs.sql(f"select * from {name}"))
    assert len(found) == 49
    engines.ours.sql(f"insert into {name} values (1000, 'b')")
    assert len(engines.rows(name)) == 50


def test_orc_files_of_theirs_are_read_by_name_and_refused_after_a_rename(engines: Engines, name: str) -> None:
    ours, theirs = engines.ours, engines.theirs
    theirs.sql(f"create table {name} (id int, v string) using iceberg tblproperties ('write.format.default'='orc')")
    theirs.sql(f"insert into {name} values (1, 'a'), (2, null)")
    assert engines.rows(name) == [(1, "a"), (2, None)]
    with pytest.raises(InvalidInput, match="without field ids"):
        ours.sql(f"insert into {name} values (3, 'c')")
    ours.sql(f"alter table {name} set tblproperties ('write.format.default'='parquet')")
    ours.sql(f"insert into {name} values (3, 'c')")
    assert engines.rows(name) == [(1, "a"), (2, None), (3, "c")]
    theirs.sql(f"alter table {name} rename column v to w")
    with pytest.raises(InvalidInput, match="column `v` was renamed"):
        ours.sql(f"select * from {name}")
