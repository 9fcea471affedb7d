"""Procedures of Iceberg's pages: what was staged is published once, branches move, files are adopted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakeproof.audit.audit import audit
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.iceberg.committing.commit import ATTEMPTING, METADATA_WRITTEN
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def nothing_is_wrong(lake: Lake, name: str) -> None:
    found = audit(lake.engine.load(f"default.{name}"), named_policy("lakeproof"), name=name)
    assert found.findings == ()


@contextmanager
def staging(lake: Lake, wap_id: str) -> Iterator[None]:
    lake.spark.conf.set("spark.wap.id", wap_id)
    try:
        yield
    finally:
        lake.spark.conf.unset("spark.wap.id")


def create(lake: Lake, name: str) -> None:
    lake.sql(
        f"create table {name} (id int, p string) using iceberg partitioned by (p) "
        "tblproperties ('write.wap.enabled' = 'true', 'lakeproof.max-reruns' = '0')"
    )
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")


def last(lake: Lake, name: str) -> int:
    return lake.table(name).snapshots()[-1].snapshot_id


def at_phase(lake: Lake, phase: str, other: str) -> Lake:
    """The lake, and what somebody else does when a statement of it first comes to a phase."""
    waiting = [other]

    def hook(now: str) -> None:
        if now == phase and waiting:
            lake.sql(waiting.pop())

    return lake.watched(on_phase=hook)


def test_what_was_staged_is_published_once(lake: Lake, rows: Rows, name: str) -> None:
    create(lake, name)
    with staging(lake, "w1"):
        lake.sql(f"insert into {name} values (3, 'a')")
    staged = last(lake, name)
    assert rows(f"select count(*) from {name}") == [(2,)]
    assert rows(f"call spark_catalog.system.publish_changes('{name}', 'w1')") == [(staged, staged)]
    assert rows(f"select count(*) from {name}") == [(3,)]
    with staging(lake, "w2"):
        lake.sql(f"insert into {name} values (4, 'b')")
    staged = last(lake, name)
    lake.sql(f"insert into {name} values (5, 'b')")
    found = rows(f"call system.publish_changes(wap_id => 'w2', table => 'default.{name}')")
    assert found == [(staged, last(lake, name))]
    assert found[0][1] != staged
    summary = lake.table(name).snapshots()[-1].summary
    assert (summary["published-wap-id"], summary["source-snapshot-id"]) == ("w2", str(staged))
    assert rows(f"select id from {name} order by id") == [(1,), (2,), (3,), (4,), (5,)]
    for again in (f"publish_changes('{name}', 'w2')", f"cherrypick_snapshot('{name}', {staged})"):
        with pytest.raises(InvalidInput, match="already"):
            lake.sql(f"call system.{again}")
    with pytest.raises(InvalidInput, match="no snapshot waits under the id `w9`"):
        lake.sql(f"call system.publish_changes('{name}', 'w9')")
    nothing_is_wrong(lake, name)


@pytest.mark.parametrize("phase", [ATTEMPTING, METADATA_WRITTEN])
def test_of_two_who_publish_at_once_one_does(lake: Lake, rows: Rows, name: str, phase: str) -> None:
    """The second hears of it in its own attempt, before the files or after the lost swap."""
    create(lake, name)
    with staging(lake, "w"):
        lake.sql(f"insert into {name} values (3, 'a')")
    lake.sql(f"insert into {name} values (4, 'a')")
    call = f"call system.publish_changes('{name}', 'w')"
    with pytest.raises(InvalidInput, match="is on main already"):
        at_phase(lake, phase, call).sql(call)
    assert rows(f"select id from {name} order by id") == [(1,), (2,), (3,), (4,)]
    nothing_is_wrong(lake, name)


def test_replaced_partitions_are_picked_unless_somebody_changed_them(lake: Lake, rows: Rows, name: str) -> None:
    create(lake, name)
    conf = lake.spark.conf
    conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        with staging(lake, "w"):
            lake.sql(f"insert overwrite {name} values (9, 'a')")
    finally:
        conf.unset("spark.sql.sources.partitionOverwriteMode")
    staged = last(lake, name)
    lake.sql(f"insert into {name} values (5, 'b')")
    call = f"call system.cherrypick_snapshot('{name}', {staged})"
    with pytest.raises(CommitConflict) as error:
        at_phase(lake, METADATA_WRITTEN, f"insert into {name} values (6, 'a')").sql(call)
    assert getattr(error.value.conflict, "check", "") == "new_rows_match"
    lake.sql(f"delete from {name} where id = 6")
    lake.sql(call)
    assert rows(f"select id, p from {name} order by id") == [(2, "b"), (5, "b"), (9, "a")]
    nothing_is_wrong(lake, name)


def test_what_read_or_changed_its_head_is_not_moved_onto_another(lake: Lake, rows: Rows, name: str) -> None:
    create(lake, name)
    for text in (f"insert into {name} select max(id) + 10, 'a' from {name}", f"delete from {name} where id = 1"):
        with staging(lake, f"w of {text[:6]}"):
            lake.sql(text)
        staged = last(lake, name)
        lake.sql(f"insert into {name} values (7, 'c')")
        with pytest.raises(InvalidInput, match="cannot be moved onto the head"):
            lake.sql(f"call system.cherrypick_snapshot('{name}', {staged})")
    assert rows(f"select count(*) from {name}") == [(4,)]
    nothing_is_wrong(lake, name)


def test_a_branch_is_fast_forwarded_to_one_ahead_of_it(lake: Lake, rows: Rows, name: str) -> None:
    create(lake, name)
    first = last(lake, name)
    lake.sql(f"alter table {name} create branch b retain 7 days")
    lake.sql(f"insert into {name}.branch_b values (3, 'a')")
    ahead = last(lake, name)
    assert rows(f"call system.fast_forward('{name}', 'main', 'b')") == [("main", first, ahead)]
    assert rows(f"call system.fast_forward('{name}', 'new', 'b')") == [("new", None, ahead)]
    lake.sql(f"insert into {name} values (4, 'a')")
    lake.sql(f"insert into {name}.branch_b values (5, 'a')")
    with pytest.raises(InvalidInput, match="its head is not an ancestor of `b`"):
        lake.sql(f"call system.fast_forward('{name}', 'main', 'b')")
    with pytest.raises(InvalidInput, match="there is no branch `nope`"):
        lake.sql(f"call system.fast_forward('{name}', 'main', 'nope')")
    assert rows(f"select id from {name} order by id") == [(1,), (2,), (3,), (4,)]
    snapshots = {each.snapshot_id: each.timestamp_ms for each in lake.table(name).snapshots()}
    last_of_main = lake.engine.load(f"default.{name}").metadata.current_snapshot_id or 0
    line = [last_of_main, ahead, first]
    assert rows(f"call system.ancestors_of('{name}')") == [(each, snapshots[each]) for each in line]
    assert rows(f"call system.ancestors_of('{name}', {first})") == [(first, snapshots[first])]
    assert last_of_main != last(lake, name)
    nothing_is_wrong(lake, name)


def test_a_table_without_a_name_is_registered(lake: Lake, rows: Rows, name: str, tmp_path: Path) -> None:
    create(lake, name)
    table = lake.engine.load(f"default.{name}")
    lake.sql(f"drop table {name}")
    told = f"table => '{name}_again', metadata_file => '{table.metadata_location}'"
    assert rows(f"call system.register_table({told})") == [(table.metadata.current_snapshot_id, 2, 2)]
    assert rows(f"select count(*) from {name}_again") == [(2,)]
    (tmp_path / "x.json").write_text("{}")
    for wrong, message in (
        (told, "there is already a table"),
        (f"'{name}_2', '{tmp_path}/nope.json'", "nope.json"),
        (f"'{name}_2', '{tmp_path}/x.json'", "x.json"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lake.sql(f"call system.register_table({wrong})")


def test_files_of_sparks_tables_are_adopted(lake: Lake, rows: Rows, name: str, tmp_path: Path) -> None:
    lake.sql(f"create table {name} (id int, p string) using parquet partitioned by (p)")
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    assert rows(f"call system.snapshot('{name}', '{name}_s', '{tmp_path}/s', map('k', 'v'))") == [(2,)]
    lake.sql(f"insert into {name}_s values (3, 'c')")
    told: dict[str, str] = dict(rows(f"show tblproperties {name}_s"))
    assert (told["gc.enabled"], told["snapshot"], told["k"]) == ("false", "true", "v")
    assert (rows(f"select count(*) from {name}_s"), rows(f"select count(*) from {name}")) == ([(3,)], [(2,)])
    lake.sql(f"create table {name}_f (id int, p string) using iceberg partitioned by (p)")
    only_a = f"call system.add_files(table => '{name}_f', source_table => '{name}', partition_filter => map('p', 'a'))"
    assert rows(only_a) == [(1, None)]
    assert rows(f"select * from {name}_f") == [(1, "a")]
    with pytest.raises(InvalidInput, match="are in the table already"):
        lake.sql(only_a)
    with pytest.raises(InvalidInput, match="is a managed table"):
        lake.sql(f"call system.add_files('{name}_f', '{name}_s')")
    assert rows(f"call system.migrate('{name}', map('foo', 'bar'))") == [(2,)]
    assert rows(f"select * from {name} order by id") == rows(f"select * from {name}_BACKUP_ order by id")
    assert ("foo", "bar") in rows(f"show tblproperties {name}")
    nothing_is_wrong(lake, f"{name}_s")


def test_upkeep_takes_the_options_of_icebergs_pages(lake: Lake, rows: Rows, name: str) -> None:
    told = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update"))
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p) tblproperties ({told})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 'a' from range(10)")
    lake.sql(f"insert into {name} values (20, 'b')")
    lake.sql(f"delete from {name} where id = 3")
    lake.sql(f"delete from {name} where id = 4")
    call = f"call system.rewrite_position_delete_files(table => '{name}', where => \"p = '{{}}'\")"
    assert rows(call.format("b")) == [(0, 0, 0, 0)]
    assert rows(call.format("a"))[0][:2] == (2, 1)
    sorted_by = f"table => '{name}', use_caching => false, spec_id => 0, sort_by => array('p')"
    assert rows(f"call system.rewrite_manifests({sorted_by})") == [(2, 1)]
    assert rows(f"call system.rewrite_manifests('{name}')") == [(0, 0)]
    lake.sql(f"alter table {name} add column v int")
    lake.sql(f"insert into {name} values (30, 'b', 1)")
    far = "timestamp '2099-01-01 00:00:00'"
    expire = f"older_than => {far}, max_concurrent_deletes => 4, stream_results => true, clean_expired_metadata => true"
    assert rows(f"call system.expire_snapshots(table => '{name}', {expire})")[0][:3] == (0, 2, 0)
    assert len(lake.engine.load(f"default.{name}").metadata.schemas) == 1
    location = lake.engine.load(f"default.{name}").location()
    dry = f"call system.remove_orphan_files(table => '{name}', location => '{{}}', dry_run => true)"
    assert rows(dry.format(f"{location}/data")) == []
    for wrong, message in (
        (dry.format("/tmp"), "the folder is not the table's"),
        (f"call system.rewrite_manifests('{name}', spec_id => 7)", "there is no partition spec 7"),
        (f"call system.rewrite_manifests('{name}', sort_by => array('x'))", "there is no partition field `x`"),
        (f"call system.expire_snapshots('{name}', max_concurrent_deletes => 0)", "must be at least 1"),
        (f"call system.expire_snapshots('{name}', stream_results => 1)", "must be true or false"),
        (f"call system.remove_orphan_files('{name}', file_list_view => 'v')", "`file_list_view` is not supported"),
        ("call system.ancestors_of(5)", "`table` must be a string"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lake.sql(wrong)
    assert rows(f"select count(*), sum(id) from {name}") == [(10, 88)]
    nothing_is_wrong(lake, name)


def test_a_table_is_staged_for_another_place(lake: Lake, rows: Rows, name: str, tmp_path: Path) -> None:
    lake.sql(f"create table {name} (id int) using iceberg tblproperties ('write.delete.mode'='merge-on-read')")
    lake.sql(f"insert into {name} values (1), (2), (3)")
    lake.sql(f"delete from {name} where id = 2")
    here, there = lake.engine.load(f"default.{name}").location(), f"file://{tmp_path}/there"
    call = f"call system.rewrite_table_path('{name}', '{here}', '{there}'"
    latest, listed, manifests, deletes = rows(f"{call})")[0]
    assert (manifests, deletes) == (2, 1)
    for line in Path(listed.removeprefix("file://")).read_text().splitlines():
        source, target = (Path(each.removeprefix("file://")) for each in line.split(","))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    lake.sql(f"call system.register_table('{name}c', '{there}/metadata/{latest}')")
    assert sorted(rows(f"select id from {name}c")) == [(1,), (3,)]
    assert rows(f"{call}, create_file_list => false)")[0][1] == "N/A"
    with pytest.raises(InvalidInput, match=r"there is no metadata file `x\.json`"):
        lake.sql(f"{call}, start_version => 'x.json')")
