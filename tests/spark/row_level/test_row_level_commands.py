"""DELETE, UPDATE and MERGE on real tables: each command in both modes beside a plain Python oracle and PyIceberg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake
from lakeproof.spark.row_level import new_rows

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]
Rows = list[Row]
MODES = ("merge-on-read", "copy-on-write")


def as_pyiceberg_reads(warehouse: Path, name: str) -> Rows:
    catalog = load_catalog("lakeproof", type="sql", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    return in_order(tuple(row.values()) for row in catalog.load_table(f"default.{name}").scan().to_arrow().to_pylist())


def in_order(rows: Any) -> Rows:
    return sorted((tuple(row) for row in rows), key=repr)


def create(lake: Lake, name: str, mode: str, *, by: str = "", more: str = "") -> None:
    modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    parts = f"partitioned by ({by})" if by else ""
    lake.sql(f"create table {name} (id int, name string, v int) using iceberg {parts} tblproperties ({modes}{more})")


def summary(lake: Lake, name: str) -> dict[str, str]:
    return lake.table(name).snapshots()[-1].summary


STEPS: list[tuple[str, Callable[[Rows], Rows], str]] = [
    ("delete from {t} where id = 3", lambda rows: [r for r in rows if r[0] != 3], "delete"),
    (
        "update {t} set v = v + 100, name = upper(name) where id < 3 or name = 'n7'",
        lambda rows: [(i, n.upper(), v + 100) if i < 3 or n == "n7" else (i, n, v) for i, n, v in rows],
        "overwrite",
    ),
    (
        "delete from {t} as x where x.v in (select max(v) from {t}) and x.id is not null",
        lambda rows: [r for r in rows if r[2] != max(v for _, _, v in rows)],
        "delete",
    ),
    (
        "update {t} set {t}.v = (select count(*) from {t}) where v % 2 = 0",
        lambda rows: [(i, n, len(rows) if v % 2 == 0 else v) for i, n, v in rows],
        "overwrite",
    ),
    (
        """merge into {t} using (values (1, 'one', 1), (5, 'five', 5), (20, 'new', 20), (21, 'no', 21))
           as s(id, name, v) on {t}.id = s.id
           when matched and s.v = 5 then delete
           when matched then update set name = s.name
           when not matched and s.name <> 'no' then insert *
           when not matched by source and {t}.id = 8 then update set v = 0
           when not matched by source and {t}.id = 9 then delete""",
        lambda rows: [
            *((i, "one" if i == 1 else n, 0 if i == 8 else v) for i, n, v in rows if i not in (5, 9)),
            (20, "new", 20),
        ],
        "overwrite",
    ),
    (
        "merge into {t} t using (select id + 100 as id, name, v from {t} where id < 2) s on t.id = s.id "
        "when matched then update set * when not matched then insert (v, id) values (s.v, s.id)",
        lambda rows: [*rows, *((i + 100, None, v) for i, _, v in rows if i < 2)],
        "append",
    ),
    ("delete from {t}", lambda rows: [], "delete"),
]


@pytest.mark.parametrize("partition", ["", "bucket(2, id)"], ids=["unpartitioned", "in two buckets"])
@pytest.mark.parametrize("mode", MODES)
def test_each_command_does_what_the_oracle_says(
    lake: Lake, name: str, warehouse: Path, mode: str, partition: str
) -> None:
    create(lake, name, mode, by=partition)
    lake.sql(f"insert into {name} select cast(id as int), concat('n', id), cast(id as int) from range(10)")
    expected: Rows = [(i, f"n{i}", i) for i in range(10)]
    for number, (text, oracle, operation) in enumerate(STEPS, 2):
        lake.sql(text.format(t=name))
        expected = oracle(expected)
        assert in_order(lake.table(name).scan().collect()) == in_order(expected), text
        assert as_pyiceberg_reads(warehouse, name) == in_order(expected), text
        snapshots = lake.table(name).snapshots()
        assert len(snapshots) == number
        # A file may lose all its rows, and then nothing replaces it.
        copied = mode == "copy-on-write" and "added-data-files" in snapshots[-1].summary
        removes = "deleted-data-files" in snapshots[-1].summary
        assert snapshots[-1].operation == ("overwrite" if copied and removes else operation), text
        total = int(snapshots[-1].summary["total-records"]) - int(snapshots[-1].summary["total-position-deletes"])
        assert total == len(expected), text


def test_a_summary_says_who_did_what_from_where(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read", more=", 'write.delete.isolation-level' = 'snapshot'")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 'x', 1 from range(5)")
    before = lake.table(name).snapshots()[-1]
    lake.sql(f"delete from {name} where id = 2")
    said = summary(lake, name)
    assert said["lakeproof.command"] == "DELETE"
    assert said["lakeproof.read-snapshot-id"] == str(before.snapshot_id)
    assert (said["lakeproof.isolation"], said["lakeproof.policy"]) == ("snapshot", "lakeproof")
    assert said["lakeproof.conflict-filter"] == "id = 2"
    assert len(said["lakeproof.command-id"]) == 36
    assert "lakeproof.reruns" not in said
    assert (said["added-position-deletes"], said["added-delete-files"]) == ("1", "1")


def test_a_delete_of_whole_files_opens_none(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read", by="name")
    lake.sql(f"insert into {name} values (1, 'a', 1), (2, 'b', 2), (3, 'b', 3)")
    lake.sql(f"delete from {name} where name = 'b'")
    said = summary(lake, name)
    assert (said["deleted-data-files"], said["deleted-records"], said["total-data-files"]) == ("1", "2", "1")
    assert "added-delete-files" not in said
    assert lake.table(name).snapshots()[-1].operation == "delete"


def test_what_hits_nothing_commits_nothing(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read")
    lake.sql(f"insert into {name} values (1, 'a', 1), (5, 'a', 1)")
    for text in ("delete from {t} where id = 3", "update {t} set v = 2 where id = 3", "delete from {t} where id > 100"):
        lake.sql(text.format(t=name))
    lake.sql(f"merge into {name} t using (values (3)) as s(id) on t.id = s.id when matched then delete")
    assert len(lake.table(name).snapshots()) == 1


def test_the_keys_of_a_source_are_the_conflict_filter_of_a_merge(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read")
    lake.sql(f"insert into {name} select cast(id as int), 'x', 1 from range(5)")
    merge = "merge into {t} t using {s} s on t.id = s.id when matched then update set v = s.v"
    lake.sql(merge.format(t=name, s="(values (1, 7), (2, 8)) as q(id, v)").replace("q(id, v) s", "s(id, v)"))
    assert summary(lake, name)["lakeproof.conflict-filter"] == "id IN (1, 2)"
    lake.sql(merge.format(t=name, s="(select id, cast(9 as int) as v from range(3, 400))"))
    assert summary(lake, name)["lakeproof.conflict-filter"] == "id >= 3 AND id <= 399"
    lake.sql(f"{merge.format(t=name, s='(select 1 as id, 1 as v)')} when not matched by source then delete")
    assert summary(lake, name)["lakeproof.conflict-filter"] == "true"


def test_two_source_rows_may_not_rewrite_one_row(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read")
    lake.sql(f"insert into {name} values (1, 'a', 1), (2, 'b', 2)")
    twice = f"merge into {name} t using (values (1, 7), (1, 8)) as s(id, v) on t.id = s.id when matched then "
    with pytest.raises(InvalidInput, match="two source rows of the MERGE match one row"):
        lake.sql(f"{twice} update set v = s.v")
    assert len(lake.table(name).snapshots()) == 1
    lake.sql(f"{twice} delete")  # both say the same
    assert [row.id for row in lake.table(name).scan().collect()] == [2]


def test_mistakes_are_named(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read")
    lake.sql(f"insert into {name} values (1, 'a', 1)")
    with pytest.raises(InvalidInput, match="`nme` cannot be resolved"):
        lake.sql(f"update {name} set nme = 'x'")
    with pytest.raises(InvalidInput, match="Multiple assignments for 'v'"):
        lake.sql(f"update {name} set v = 1, v = 2")
    with pytest.raises(InvalidInput, match=r"nme.*cannot be resolved"):
        lake.sql(f"delete from {name} where nme = 'x'")
    with pytest.raises(InvalidInput, match="`name` cannot be resolved"):
        lake.sql(f"merge into {name} t using (values (1)) as s(id) on t.id = s.id when not matched then insert *")
    assert len(lake.table(name).snapshots()) == 1


def test_a_required_column_stays_filled(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int not null, v int) using iceberg")
    lake.sql(f"insert into {name} values (1, 1), (2, 2)")
    with pytest.raises(InvalidInput, match="column id may not be null"):
        lake.sql(f"update {name} set id = null where v = 1")
    assert len(lake.table(name).snapshots()) == 1


@pytest.mark.parametrize("mode", MODES)
def test_structs_lists_and_maps_survive(lake: Lake, name: str, warehouse: Path, mode: str) -> None:
    lake.sql(
        f"create table {name} (id int, s struct<a: int, b: string>, l array<int>, m map<string, int>) using iceberg "
        f"tblproperties ('write.update.mode' = '{mode}', 'write.delete.mode' = '{mode}')"
    )
    lake.sql(
        f"insert into {name} select cast(id as int), named_struct('a', cast(id as int), 'b', 'x'), "
        "array(1, cast(id as int)), map('k', cast(id as int)) from range(4)"
    )
    lake.sql(f"update {name} set s.b = 'y', l = array(7) where id = 1")
    lake.sql(f"delete from {name} where s.a = 2")
    expected = [(0, (0, "x"), [1, 0], {"k": 0}), (1, (1, "y"), [7], {"k": 1}), (3, (3, "x"), [1, 3], {"k": 3})]
    found = [(r.id, tuple(r.s), r.l, r.m) for r in lake.table(name).scan().orderBy("id").collect()]
    assert found == expected
    read = as_pyiceberg_reads(warehouse, name)
    assert [(i, tuple(s.values()), ls, dict(m)) for i, s, ls, m in sorted(read, key=lambda row: row[0])] == expected


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"SMALL_BYTES": -1}, id="few rows come to the driver"),
        pytest.param({"SMALL_BYTES": -1, "FEW_ROWS": 0}, id="a write tells the places"),
        pytest.param({"SMALL_BYTES": -1, "FEW_ROWS": 0, "MOST_TOLD": -1}, id="Spark keeps the rows"),
    ],
)
def test_many_rows_are_written_by_spark_and_few_by_the_driver(
    lake: Lake, name: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    create(lake, name, "merge-on-read", by="truncate(1, name)")
    lake.sql(f"insert into {name} select cast(id as int), concat(char(97 + id % 3), id), 0 from range(12)")
    for limit, value in limits.items():
        monkeypatch.setattr(new_rows, limit, value)
    lake.sql(f"update {name} set name = concat('z', id), v = id where id % 4 = 0")
    lake.sql(
        f"merge into {name} t using (select id * 2 as id, 'm' as name, 5 as v from range(8)) s on t.id = s.id "
        "when matched and t.id = 2 then delete when matched and t.id <> 10 then update set v = s.v "
        "when not matched then insert *"
    )
    twice = f"merge into {name} t using (select id div 2 as id from range(8)) s on t.id = s.id when matched then "
    files = {path.name for path in (warehouse / "default" / name / "data").rglob("*.parquet")}
    with pytest.raises(InvalidInput, match="two source rows of the MERGE match one row"):
        lake.sql(f"{twice} update set v = 9")
    assert {path.name for path in (warehouse / "default" / name / "data").rglob("*.parquet")} == files
    assert not lake.spark.catalog._jcatalog.isCached(name)
    named = {i: f"z{i}" if i % 4 == 0 else f"{'abc'[i % 3]}{i}" for i in range(12)}
    kept = [i for i in (*range(12), 12, 14) if i != 2]
    expected = [(i, named.get(i, "m"), 5 if i % 2 == 0 and i != 10 else 0) for i in kept]
    assert as_pyiceberg_reads(warehouse, name) == in_order(expected)


def test_a_merge_of_many_keys_finds_every_match_and_no_null(lake: Lake, name: str, warehouse: Path) -> None:
    create(lake, name, "merge-on-read", by="bucket(2, id)")
    lake.sql(f"insert into {name} select cast(id as int), concat('n', id), 0 from range(0, 1500, 2)")
    source = "select id, if(id % 100 = 0, null, concat('n', id)) as name, 1 as v from range(1000)"
    lake.sql(
        f"merge into {name} t using ({source}) s on t.id = s.id and s.name = t.name "
        "when matched then update set v = s.v when not matched then insert *"
    )
    old = [(i, f"n{i}", 1 if i < 1000 and i % 100 else 0) for i in range(0, 1500, 2)]
    new = [(i, f"n{i}" if i % 100 else None, 1) for i in range(1000) if i % 2 or i % 100 == 0]
    assert as_pyiceberg_reads(warehouse, name) == in_order(old + new)
    assert summary(lake, name)["added-position-deletes"] == "490"


def test_old_columns_and_old_partitions_are_read_and_kept(lake: Lake, name: str, warehouse: Path) -> None:
    create(lake, name, "copy-on-write", by="name")
    lake.sql(f"insert into {name} values (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    lake.sql(f"alter table {name} add column w string")
    lake.sql(f"alter table {name} drop partition field name")
    lake.sql(f"insert into {name} values (4, 'a', 4, 'w'), (5, 'c', 5, 'w')")
    lake.sql(f"delete from {name} where id = 1")
    lake.sql(f"alter table {name} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    lake.sql(f"delete from {name} where id in (3, 4) and w is null")
    lake.sql(f"update {name} set w = 'new' where id = 2")
    expected = [(2, "a", 2, "new"), (4, "a", 4, "w"), (5, "c", 5, "w")]
    assert as_pyiceberg_reads(warehouse, name) == in_order(expected)
    assert in_order(lake.table(name).scan().collect()) == in_order(expected)


def test_what_cannot_be_written_is_refused_before_any_work(lake: Lake, name: str) -> None:
    create(lake, name, "merge-on-read", more=", 'format-version' = '1'")
    lake.sql(f"insert into {name} values (1, 'a', 1), (2, 'b', 2)")
    with pytest.raises(InvalidInput, match="format version 1 has no delete files"):
        lake.sql(f"update {name} set v = 5 where id = 1")
    lake.sql(f"alter table {name} set tblproperties ('write.update.mode' = 'copy-on-write')")
    lake.sql(f"update {name} set v = 5 where id = 1")
    assert in_order(lake.table(name).scan().collect()) == [(1, "a", 5), (2, "b", 2)]
