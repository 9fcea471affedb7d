"""Scans read what metadata says and nothing else, and every shape of query gets the same rows."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm.paths import from_spark
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_a_pruned_query_answers_while_the_other_partitions_files_are_away(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, p string, v string) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} select id, concat('p', id % 3), concat('v', id) from range(30)")
    for file in lake.table(name).plan("p != 'p1'").files:
        path = Path(file.path.removeprefix("file://"))
        shutil.move(path, path.with_suffix(".away"))
    assert rows(f"select count(v), sum(id) from {name} where p = 'p1'") == [(10, 145)]
    plan = lake.table(name).plan("p = 'p1'")
    assert sum(file.rows for file in plan.files) == 10
    assert all(file.bytes > 0 for file in plan.files)
    with pytest.raises(InvalidInput):
        rows(f"select count(v) from {name}")


def test_pruning_never_loses_a_row(lake: Lake, name: str) -> None:
    """Random predicates over random rows with nulls and NaN: the pruned answer is the unpruned one."""
    chance = random.Random(7)
    values = [
        (n, chance.choice([None, *range(20)]), chance.choice([None, float("nan"), *(i / 2 for i in range(20))]),
         chance.choice([None, "", "a", "ab", "abc", "b", "é"]), chance.randint(0, 4))
        for n in range(400)
    ]  # fmt: skip
    lake.sql(
        f"create table {name} (id int, i int, f double, s string, k int, h int) using iceberg "
        "partitioned by (k, truncate(1, s)) options (columnDependencies 'i=h:truncate[5]')"
    )
    frame = lake.spark.createDataFrame(values, "id int, i int, f double, s string, k int")
    frame = frame.withColumn("h", F.expr("i - pmod(i, 5)")).repartition(3, "i").sortWithinPartitions("f")
    lake.table(name).append(frame)
    scan = lake.table(name).scan()
    predicates = [predicate(chance, 2) for _ in range(60)]
    truths = [F.coalesce(F.expr(one), F.lit(False)) for one in predicates]
    matching: dict[str, list[bool]] = {}
    for row in scan.select(F.input_file_name().alias("file"), F.array(*truths).alias("truths")).collect():
        before = matching.setdefault(from_spark(row.file, "file://"), [False] * len(predicates))
        matching[from_spark(row.file, "file://")] = [a or b for a, b in zip(before, row.truths, strict=True)]
    assert len(matching) > 20
    spared = 0
    for number, one in enumerate(predicates):
        planned = next(iter(lake.scans(scan.filter(one))), None)
        kept = set() if planned is None else set(planned.plan.files["path"].to_pylist())
        assert {file for file, truths in matching.items() if truths[number]} <= kept, one
        spared += len(kept) < len(matching)
    assert spared > 30, "the predicates hardly prune: the test says nothing"


def predicate(chance: random.Random, depth: int) -> str:
    """A random predicate over the columns of the test above."""
    if depth and chance.random() < 0.6:
        inner = [predicate(chance, depth - 1) for _ in range(2)]
        joined = chance.choice([" and ", " or "]).join(inner)
        return f"({joined})" if chance.random() < 0.8 else f"not ({inner[0]})"
    operator = chance.choice(["=", "!=", "<", "<=", ">", ">=", "<=>"])
    return chance.choice(
        [
            f"i {operator} {chance.randint(-1, 21)}",
            f"f {operator} {chance.randint(-1, 11)}D",
            f"f {operator} double('nan')",
            f"s {operator} '{chance.choice(['', 'a', 'ab', 'abd', 'z'])}'",
            f"k {operator} {chance.randint(0, 5)}",
            f"i in ({', '.join(str(chance.randint(0, 25)) for _ in range(chance.choice([2, 12])))})",
            f"s like '{chance.choice(['a', 'ab', 'b'])}%'",
            f"{chance.choice('ifs')} is {chance.choice(['', 'not '])}null",
            "isnan(f)",
            f"i % 3 = {chance.randint(0, 2)}",
            "s in ('a', null, 'b')",
        ]
    )


def test_queries_of_every_shape(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, k int, v string) using iceberg partitioned by (k)")
    lake.sql(f"insert into {name} select cast(id as int), cast(id % 4 as int), concat('v', id) from range(20)")
    lake.sql(f"create table {name}_own using parquet as select id k, concat('name', id) label from range(4)")
    lake.sql(f"create view {name}_view as select k, count(*) n from {name} group by k")
    for query, expected in (
        (f"select label, count(*) from {name} t join {name}_own o on t.k = o.k where o.k < 2 group by 1 order by 1",
         [("name0", 5), ("name1", 5)]),
        (f"with b as (select * from {name} where id > 15) select sum(x.id) from b x join b y using (id)", [(70,)]),
        (f"select id from {name} where id in (select max(id) from {name} where k = 2)", [(18,)]),
        (f"select sum(n) from {name}_view", [(20,)]),
        (f"select k, row_number() over (partition by k order by id) r from {name} where id < 2 order by k",
         [(0, 1), (1, 1)]),
        (f"select count(*) from (select id from {name} union all select id from {name} union select 99)", [(21,)]),
        (f"select count(*) from {name} t where exists (select 1 from {name} u where u.id = t.id + 1)", [(19,)]),
    ):  # fmt: skip
        assert rows(query) == expected, query
    lake.sql("set spark.sql.adaptive.enabled=false")
    assert rows(f"select /*+ merge(b) */ count(*) from {name} a join {name} b on a.id = b.id and a.k = 1") == [(5,)]
    lake.sql("set spark.sql.adaptive.enabled=true")


def test_one_query_reads_one_snapshot_and_the_next_query_the_next(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    query = lake.sql(f"select (select count(*) from {name}) a, count(*) b from {name} where id > 0")
    lake.sql(f"insert into {name} select id + 1 from {name}")
    assert [tuple(row) for row in query.collect()] == [(1, 1)]
    snapshots = {scan.plan.snapshot_id for scan in lake.scans(query)}
    assert snapshots == {lake.table(name).snapshots()[0].snapshot_id}
    assert rows(f"select (select count(*) from {name}) a, count(*) b from {name} where id > 0") == [(2, 2)]


def test_time_travel(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, old string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'x')")
    lake.sql(f"alter table {name} create tag first_day")
    lake.sql(f"alter table {name} drop column old")
    lake.sql(f"insert into {name} values (2)")
    lake.sql(f"alter table {name} create branch side")
    first, second = lake.table(name).snapshots()
    assert rows(f"as of '{first.timestamp_ms}' select * from {name}") == [(1, "x")]
    assert rows(f"as of {second.timestamp_ms} select * from {name} order by id") == [(1,), (2,)]
    instant = rows(f"select cast(timestamp_millis({first.timestamp_ms}) as string)")[0][0]
    assert rows(f"as of '{instant}' select id from {name}") == [(1,)]
    assert rows(f"select * from {name} timestamp as of '{instant}'") == [(1, "x")]
    assert rows(f"select * from {name} version as of {first.snapshot_id}") == [(1, "x")]
    assert rows(f"select * from {name} version as of 'first_day'") == [(1, "x")]
    assert rows(f"select id from {name} version as of 'side' order by id") == [(1,), (2,)]
    assert lake.table(name).scan(version="first_day").columns == ["id", "old"]
    lake.table(name).append(lake.spark.createDataFrame([(3,)], "id int"), branch="side")
    assert rows(f"select count(*) from {name} version as of 'side'") == [(3,)]
    assert rows(f"select count(*) from {name}") == [(2,)]
    with pytest.raises(InvalidInput, match="had no snapshot") as caught:
        lake.sql(f"as of '1999-12-31' select * from {name}")
    assert str(first.snapshot_id) in caught.value.hint
    with pytest.raises(InvalidInput, match="is not a time"):
        lake.sql(f"as of 'yesterday-ish' select * from {name}")
    with pytest.raises(InvalidInput, match="no snapshot, branch or tag `nope`"):
        lake.sql(f"select * from {name} version as of 'nope'")


def test_as_of_reaches_every_managed_table_and_no_other(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"create table {name}_own (id int) using parquet")
    lake.sql(f"create view {name}_view as select id from {name}")
    lake.sql(f"create temp view {name}_temp as select id from {name}")
    lake.sql(f"insert into {name} values (1)")
    lake.sql(f"insert into {name}_own values (10)")
    then = lake.table(name).snapshots()[-1].timestamp_ms
    lake.sql(f"insert into {name} values (2)")
    lake.sql(f"insert into {name}_own values (20)")
    counts = (
        f"with c as (select * from {name}) select (select count(*) from c), (select count(*) from {name}_view), "
        f"(select count(*) from {name}_temp), (select count(*) from {name}), (select count(*) from {name}_own)"
    )
    assert rows(f"as of '{then}' {counts}") == [(1, 1, 1, 1, 2)]
    assert rows(counts) == [(2, 2, 2, 2, 2)]


def test_counts_and_ends_come_from_metadata(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, p string, n decimal(6, 2)) using iceberg partitioned by (p)")
    lake.sql(f"insert into {name} select id, concat('p', id % 2), id / 4 from range(100)")
    for file in lake.table(name).plan().files:  # no file is opened
        path = Path(file.path.removeprefix("file://"))
        shutil.move(path, path.with_suffix(".away"))
    assert rows(f"select count(*) from {name}") == [(100,)]
    assert rows(f"select count(1) as n from {name} where p = 'p1'") == [(50,)]
    found = lake.sql(f"select min(id) low, max(id), max(n), count(*) from {name}")
    assert found.columns == ["low", "max(id)", "max(n)", "count(1)"]
    assert [tuple(map(str, row)) for row in found.collect()] == [("0", "99", "24.75", "100")]
    with pytest.raises(InvalidInput):
        rows(f"select count(*) from {name} where id < 10")


def test_metadata_views(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    for view in ("snapshots", "snapshots_view", "history", "files", "manifests", "partitions", "refs", "entries"):
        assert rows(f"select * from `{name}${view}`") == []
    assert lake.sql(f"select * from `{name}$snapshots`").columns == [
        "id", "parentId", "timeMillis", "numAddedFiles", "numDeletedFiles", "manifestListLocation",
    ]  # fmt: skip
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    lake.sql(f"insert into {name} values (3, 'a')")
    first, second = rows(f"select id, parentId, numAddedFiles, numdDeletedFiles from {name}$snapshots")
    assert (first[1:], second[1:]) == ((-1, 2, 0), (first[0], 1, 0))
    assert rows(f"select count(*), sum(record_count) from {name}$files") == [(3, 3)]
    assert rows(f"select name, snapshot_id from {name}$refs") == [("main", second[0])]
    joined = f"select count(*) from {name}$snapshots s join {name}$history h on s.id = h.snapshot_id"
    assert rows(joined) == [(2,)]
    assert sorted(rows(f"select partition.p, file_count from {name}$partitions")) == [("a", 2), ("b", 1)]
    assert rows(f"select count(*) from {name}$entries where status = 1") == [(3,)]
    assert rows(f"select sum(added_data_files_count) from {name}$manifests") == [(3,)]
    with pytest.raises(InvalidInput, match="there is no view"):
        lake.sql(f"select * from `{name}$nope`")


def test_explain_writes_dates_and_instants_as_sql_does(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (d date, t timestamp, n timestamp_ntz, b binary, s string) using iceberg")
    lake.sql(f"insert into {name} values (date'2026-01-02', timestamp'2026-01-02 03:04:05Z', null, null, null)")
    where = "d = date'2026-01-02' and t < timestamp'2026-01-02 12:00:00Z' and n > timestamp_ntz'1969-12-31 23:59:59.5'"
    plan = rows(f"explain select * from {name} where {where} and b = X'00ff' and s = \"it's\"")[0][0]
    assert "d = DATE '2026-01-02'" in plan
    assert "t < TIMESTAMP '2026-01-02 12:00:00+00:00'" in plan
    assert "n > TIMESTAMP_NTZ '1969-12-31 23:59:59.500000'" in plan
    assert "b = X'00FF'" in plan
    assert "s = 'it''s'" in plan


def test_explain_shows_what_a_scan_reads_and_why(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (d string, m string) using iceberg options (columnDependencies 'd=m:truncate[2]') "
        "partitioned by (m)"
    )
    lake.sql(f"insert into {name} values ('0101', '01'), ('0202', '02')")
    for mode in ("", "extended", "formatted"):
        plan = rows(f"explain {mode} select * from {name} where d = '0202'")[0][0]
        assert "Iceberg filter: d IS NOT NULL AND d = '0202'" in plan
        assert "m = '02'" in plan
        assert "Files: 1 of 2" in plan
    assert "Files: 2 of 2" in rows(f"explain select * from {name}")[0][0]


def test_a_table_is_loaded_by_its_format_and_its_name(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    before = lake.table(name).snapshots()[-1].snapshot_id
    lake.sql(f"insert into {name} values (2)")
    reader = lake.spark.read
    assert (
        reader.format("iceberg").load(name).count() == lake.spark.read.load(f"default.{name}", "ICEBERG").count() == 2
    )
    assert lake.spark.read.format("iceberg").option("snapshot-id", before).load(name).count() == 1
    for wrong in (f"/some/folder/{name}", None):
        with pytest.raises(InvalidInput, match="loaded by its name alone"):
            lake.spark.read.format("iceberg").load(wrong)
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        lake.spark.read.format("parquet").load("/nowhere")
