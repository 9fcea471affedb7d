"""What Lakeproof writes, Apache Iceberg on Spark and PyIceberg read alike: rows, every snapshot, files, statistics."""

from __future__ import annotations

from typing import Any

import pytest
from both_engines import MERGE_ON_READ, Engines, Rows, ordered, snapshots_of

pytestmark = [pytest.mark.peer, pytest.mark.spark]

COLUMNS = """id int, b boolean, l bigint, f float, d double, price decimal(9,2), s string, raw binary, day date,
    ts timestamp, n timestamp_ntz, st struct<a:int,b:string>, arr array<int>, m map<string,int>"""
VALUES = """
    (1, true, 10, 1.5, 2.5, 1.25, 'anna', X'01ff', date'2024-01-01', timestamp'2024-01-01 10:00:00',
     timestamp_ntz'2024-01-01 10:00:00', named_struct('a', 1, 'b', 'x'), array(1, 2), map('k', 1)),
    (2, false, 20, cast('nan' as float), cast('nan' as double), -3.5, 'bert, whose name is longer than sixteen', null,
     date'2024-02-01', timestamp'2024-02-01 10:00:00.123456', timestamp_ntz'1969-12-31 23:00:00',
     named_struct('a', null, 'b', null), array(), map()),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (4, true, 40, -7.25, 1e300, 9999999.99, 'annegret', X'', date'1969-12-31', timestamp'1969-12-31 23:59:59.999999',
     timestamp_ntz'2024-01-01 10:00:00', named_struct('a', 4, 'b', 'y'), array(null, 7), map('z', null))"""
FILES = """content, file_path, file_format, spec_id, record_count, file_size_in_bytes, column_sizes, value_counts,
    null_value_counts, nan_value_counts, lower_bounds, upper_bounds, equality_ids"""
PREDICATES = (
    "id = 4",
    "s like 'ann%'",
    "ts >= timestamp'2024-01-01 00:00:00'",
    "day < date'1970-01-01'",
    "d > 0",
    "isnan(d)",
    "price between -4 and 2",
    "st.a = 4",
    "b is null",
    "l in (20, 40)",
)


@pytest.fixture(scope="module")
def made_here(engines: Engines) -> str:
    """A table of ours: every type, three transforms, evolved, rows deleted and updated by position, compacted."""
    ours, name = engines.ours, "made_here"
    ours.sql(
        f"create table {name} ({COLUMNS}) using iceberg partitioned by (bucket(4, id), truncate(2, s), days(ts)) "
        f"tblproperties ({MERGE_ON_READ})"
    )
    ours.sql(f"insert into {name} values {VALUES}")
    ours.sql(f"alter table {name} add columns (extra string, more int after id)")
    ours.sql(f"alter table {name} rename column l to large")
    ours.sql(f"alter table {name} alter column id type bigint")
    ours.sql(f"alter table {name} drop column raw")
    ours.sql(
        f"insert into {name} (id, s, extra, ts) values (5, 'zoe', 'e', timestamp'2024-01-01 11:00:00'), "
        "(6, 'annabel', 'f', timestamp'2024-01-01 11:00:00'), (9, 'anne', 'g', timestamp'2024-01-01 12:00:00')"
    )
    ours.sql(f"alter table {name} add partition field bucket(2, extra)")
    ours.sql(
        f"insert into {name} select id + 100, more, b, large, f, d, price, s, day, ts, n, st, arr, m, 'new spec' "
        f"from {name} where id < 5"
    )
    ours.sql(f"delete from {name} where id in (1, 6)")
    ours.sql(f"update {name} set extra = 'again', st.b = 'z' where id in (4, 9)")
    ours.sql(f"delete from {name} where s like 'bert%' and id = 2")
    return name


def test_the_rows_are_equal(engines: Engines, made_here: str) -> None:
    rows = engines.rows(made_here)
    assert sorted(row[0] for row in rows) == [3, 4, 5, 9, 101, 102, 103, 104]
    assert {row[0]: row[-1] for row in rows if row[0] in (4, 9, 5, 104)} == {
        4: "again",
        9: "again",
        5: "e",
        104: "new spec",
    }


def test_the_rows_of_every_snapshot_are_equal(engines: Engines, made_here: str) -> None:
    counts = [len(engines.rows_at(made_here, snapshot)) for snapshot in snapshots_of(engines.table(made_here))]
    assert counts == [4, 7, 11, 9, 9, 8]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_statistics_and_partitions_keep_the_rows_that_match(engines: Engines, made_here: str, predicate: str) -> None:
    predicate = predicate.replace("l in", "large in")
    query = f"select id from {made_here} where {predicate} order by id"
    theirs = engines.theirs.sql(query)
    assert theirs == engines.ours.sql(query)
    assert theirs  # each predicate has its rows


def test_the_files_are_those_that_apache_iceberg_lists(engines: Engines, made_here: str) -> None:
    ours = ordered(engines.ours.sql(f"select {FILES} from `{made_here}$files`"))
    theirs = ordered(engines.theirs.sql(f"select {FILES} from lakeproof.default.{made_here}.files"))
    assert theirs == ours
    assert {row[0] for row in ours} == {0, 1}  # data files and position deletes
    assert {row[3] for row in ours} == {0, 1}  # of both partition specs


def test_the_partitions_are_those_that_apache_iceberg_lists(engines: Engines, name: str) -> None:
    """Of one spec: with two, PyIceberg (whose view we show) and Apache Iceberg fill the missing fields differently."""
    engines.ours.sql(
        f"create table {name} (id int, s string, ts timestamp) using iceberg partitioned by "
        f"(bucket(4, id), truncate(2, s), days(ts)) tblproperties ({MERGE_ON_READ})"
    )
    engines.ours.sql(
        f"insert into {name} select cast(id as int), concat('s', id % 3), "
        "timestamp'2024-01-01 00:00:00' + make_dt_interval(cast(id % 4 as int)) from range(100)"
    )
    engines.ours.sql(f"delete from {name} where id % 10 = 7")
    columns = """partition, record_count, file_count, total_data_file_size_in_bytes, position_delete_record_count,
        position_delete_file_count, equality_delete_file_count"""
    ours = ordered(engines.ours.sql(f"select {columns} from `{name}$partitions`"))
    theirs = ordered(engines.theirs.sql(f"select {columns} from lakeproof.default.{name}.partitions"))
    assert theirs == ours
    assert sum(row[1] for row in ours) == 100
    assert sum(row[4] for row in ours) == 10
    assert len(engines.rows(name)) == 90


NULLS, LOWER = 3, 4  # where they stand in a row of the metadata table `files`


def test_the_statistics_are_those_that_apache_iceberg_would_have_written(engines: Engines) -> None:
    rows = f"select /*+ coalesce(1) */ * from values {VALUES}"
    found = []
    for engine in (engines.ours, engines.theirs):
        name = f"statistics_{engine.engine.replace('-', '_')}"
        engine.sql(f"create table {name} ({COLUMNS}) using iceberg partitioned by (truncate(2, s))")
        engine.sql(f"insert into {name} {rows}")
        columns = "partition, record_count, value_counts, null_value_counts, lower_bounds, upper_bounds"
        found.append(engines.theirs.sql(f"select {columns} from lakeproof.default.{name}.files order by 1"))
    ours, theirs = ([_of_plain_columns(row) for row in rows] for rows in found)
    for mine, other in zip(ours, theirs, strict=True):
        # Spark's writer tells nothing of a FLOAT or DOUBLE that holds nothing but NaN, and so we count no nulls in it.
        left_out = other[NULLS].keys() - mine[NULLS].keys()
        assert left_out <= {"4", "5"}
        assert all(field not in mine[LOWER] for field in left_out)
        for field in left_out:
            del other[NULLS][field]
    assert ours == theirs
    assert len(ours) == 3


def _of_plain_columns(row: tuple[Any, ...]) -> list[Any]:
    """Without elements of lists and maps: Apache Iceberg counts none, and nobody reads such counts."""
    nested = {"17", "18", "19"}
    return [
        {key: value for key, value in cell.items() if key not in nested} if isinstance(cell, dict) else cell
        for cell in row
    ]


def test_a_compacted_table_is_read_alike_and_its_deletes_are_gone(engines: Engines, name: str) -> None:
    ours = engines.ours
    ours.sql(f"create table {name} (id bigint, v string) using iceberg tblproperties ({MERGE_ON_READ})")
    for at in range(3):
        ours.sql(f"insert into {name} select id + {10 * at}, 'v' from range(10)")
    ours.sql(f"delete from {name} where id % 5 = 0")
    before = engines.rows(name)
    ours.sql(f"call system.rewrite_data_files('{name}')")
    assert engines.rows(name) == before
    contents: Rows = engines.theirs.sql(f"select content, record_count from lakeproof.default.{name}.files")
    assert {content for content, _ in contents} == {0}
    assert sum(count for _, count in contents) == 24


def test_branches_and_tags_of_ours_are_theirs(engines: Engines, name: str) -> None:
    ours, theirs = engines.ours, engines.theirs
    ours.sql(f"create table {name} (id int) using iceberg")
    ours.sql(f"insert into {name} values (1)")
    ours.sql(f"call system.create_tag('{name}', 'first')")
    ours.sql(f"insert into {name} values (2)")
    assert theirs.sql(f"select * from {name} version as of 'first'") == [(1,)]
    theirs.sql(f"alter table {name} create branch side")
    theirs.sql(f"insert into lakeproof.default.{name}.branch_side values (3)")
    assert ordered(ours.sql(f"select * from {name} version as of 'side'")) == [(1,), (2,), (3,)]
    assert engines.rows(name) == [(1,), (2,)]
