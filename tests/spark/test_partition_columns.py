"""Identity partition columns are Spark's own: the same rows as of an unpartitioned twin, whatever is asked of them."""

from __future__ import annotations

import pytest

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
VALUES = {
    "int": ["1", "-5", "null"],
    "bigint": ["1", "9223372036854775807", "null"],
    "boolean": ["true", "false", "null"],
    "string": ["''", "'a'", "'[x,1]'", "'null'", "'__HIVE_DEFAULT_PARTITION__'", "'é b/c=d%20'", "null"],
    "date": ["date'0001-01-01'", "date'2024-02-29'", "null"],
    "timestamp": ["timestamp'1900-01-01 00:00:00.000001'", "timestamp'2024-01-01 00:00:00'", "null"],
    "timestamp_ntz": ["timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'2024-01-01 00:00:00'", "null"],
    "double": ["0.0D", "-0.0D", "double('nan')", "null"],
}
NAMES = tuple(f"c{number}" for number in range(len(VALUES)))
ASKED = (
    "1 = 1",
    "{c} = {v}",
    "{c} <=> {v}",
    "not ({c} = {v})",
    "{c} is null or id = 1",
    "coalesce(cast({c} as string), 'none') like '%1%'",
    "{c} in ({v}, null) and id < 5",
    "{c} >= {v} and length(cast({c} as string)) > 1",
)


def rows(lake: Lake, text: str) -> list[str]:
    return sorted(str(tuple(row)) for row in lake.collect(lake.sql(text)))


@pytest.fixture
def twins(lake: Lake, name: str) -> tuple[str, str]:
    """A table partitioned by every column of `VALUES`, and one that is not; some rows are deleted by position."""
    columns = ", ".join(f"{c} {kind}" for c, kind in zip(NAMES, VALUES, strict=True))
    count = max(len(values) for values in VALUES.values())
    given = ", ".join(
        f"({n}, {', '.join(f'cast({v[n % len(v)]} as {kind})' for kind, v in VALUES.items())})" for n in range(count)
    )
    for table, by in ((f"{name}_by", f"partitioned by ({', '.join(NAMES)})"), (f"{name}_plain", "")):
        lake.sql(
            f"create table {table} (id int, {columns}) using iceberg {by} "
            "tblproperties ('write.delete.mode'='merge-on-read')"
        )
        lake.sql(
            f"insert into {table} select v.id + 10 * r.id, {', '.join(NAMES)} from (values {given}) "
            f"v(id, {', '.join(NAMES)}) cross join range(2) r"
        )
    return f"{name}_by", f"{name}_plain"


def test_filters_on_partition_columns_find_the_same_rows(lake: Lake, twins: tuple[str, str]) -> None:
    for deleted in (False, True):
        for table in twins if deleted else ():
            lake.sql(f"delete from {table} where id in (1, 12)")
        for c, values in zip(NAMES, VALUES.values(), strict=True):
            wanted = [f"({asked.format(c=c, v=values[1])})" for asked in ASKED]
            tests = ", ".join(f"collect_list(case when {one} then id end)" for one in wanted)
            expected = lake.collect(lake.sql(f"select {tests} from {twins[1]}"))[0]
            for one, ids in zip(wanted, expected, strict=True):
                found = [row["id"] for row in lake.collect(lake.sql(f"select id from {twins[0]} where {one}"))]
                assert sorted(found) == sorted(ids), (c, one)
        asked = "select * from {} where not (id <=> 3)"
        assert rows(lake, asked.format(twins[0])) == rows(lake, asked.format(twins[1]))


def test_a_join_prunes_partitions_and_a_filter_leaves_the_plan(lake: Lake, twins: tuple[str, str]) -> None:
    by, plain = twins
    joined = f"select t.id from {{}} t join {plain} s on t.c0 = s.c0 where s.id = 1"
    assert rows(lake, joined.format(by)) == rows(lake, joined.format(plain))
    told = str(lake.collect(lake.sql(f"explain {joined.format(by)}"))[0][0])
    assert "dynamicpruning" in told
    told = str(lake.collect(lake.sql(f"explain select id from {by} where c0 = 1"))[0][0])
    assert "PartitionFilters: [isnotnull(" in told
    assert "Filter (" not in told
    assert "Iceberg filter: c0 IS NOT NULL AND c0 = 1" in told


def test_a_column_is_one_where_every_file_has_its_value(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int, p int, s string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} select id, id % 2, 'x' from range(4)")
    lake.sql(f"alter table {name} add partition field s")
    lake.sql(f"insert into {name} select id, id % 2, 'y' from range(4)")
    assert rows(lake, f"select id from {name} where s = 'x' and p = 1") == ["(1,)", "(3,)"]
    lake.sql(f"alter table {name} drop partition field p")
    lake.sql(f"insert into {name} select id, id % 2, 'z' from range(4)")
    lake.sql(f"alter table {name} rename column p to q")
    lake.sql(f"alter table {name} alter column q type bigint")
    assert rows(lake, f"select s, id from {name} where q = 1 and id < 2") == ["('x', 1)", "('y', 1)", "('z', 1)"]


def test_bytes_that_are_no_text_stay_as_they_are(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} select id, cast(X'FF41' as string) from range(60)")
    assert rows(lake, f"select distinct hex(p) from {name}") == ["('FF41',)"]
