"""Expiry, orphans, manifests rewritten, files adopted, branches, tags, rollback, and the views of all that."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commit_hooks import compaction
from lakehouse import PEOPLE, Lakehouse, files_below, insert, path_of, people, rows_of, write
from test_snapshots_made import committed, head, merge_on_read

from lakeproof.commit import Command
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Compare
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append, delete_where, overwrite_where
from lakeproof.iceberg.pyiceberg_names import LongType, NestedField, Schema, StringType, Table
from lakeproof.iceberg.reading.aggregates import count_rows
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.metadata_views import VIEWS, view
from lakeproof.iceberg.tables.refs import (
    create_branch,
    create_tag,
    drop_ref,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
    snapshot_as_of,
    snapshot_of_version,
)
from lakeproof.iceberg.tables.tables import PartitionBy, create_table
from lakeproof.iceberg.upkeep.add_files import add_files
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests


def now() -> int:
    return time.time_ns() // 1_000_000


def soon() -> int:
    return now() + 1000


def history(lake: Lakehouse) -> tuple[Table, list[int]]:
    """Three snapshots; each overwrites the one before."""
    table = insert(lake.create(), people(1))
    for number in (2, 3):
        table = overwrite_where(table, ALWAYS, write(table, people(number))).table
    return table, [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


# ---- expiry


def test_expiry_removes_what_only_old_snapshots_need(lake: Lakehouse) -> None:
    table, ids = history(lake)
    data = {path_of(each).name for each in table.inspect.all_data_files()["file_path"].to_pylist()}
    assert len(data) == 3
    planned = expire_snapshots(table, older_than_ms=soon(), dry_run=True)
    assert (planned.snapshots, len(planned.content_files), len(planned.manifest_lists)) == (tuple(ids[:2]), 2, 2)
    assert len(lake.load().metadata.snapshots) == 3
    done = expire_snapshots(table, older_than_ms=soon())
    assert done._replace(table=planned.table) == planned
    assert [each.snapshot_id for each in lake.load().metadata.snapshots] == ids[2:]
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(3, "x")]
    left = files_below(table.location())
    assert len([name for name in left if name.startswith("data/")]) == 1
    assert len([name for name in left if name.endswith(".avro")]) == 2 + 1  # its list, and manifests of what it did
    assert remove_orphan_files(lake.load(), older_than_ms=soon(), dry_run=True).files == ()


def test_expiry_keeps_the_last_and_the_young(lake: Lakehouse) -> None:
    table, ids = history(lake)
    assert expire_snapshots(table, older_than_ms=soon(), retain_last=2, dry_run=True).snapshots == tuple(ids[:1])
    assert expire_snapshots(table).snapshots == ()  # younger than five days
    middle = table.metadata.snapshots[1].timestamp_ms
    assert expire_snapshots(table, older_than_ms=middle, dry_run=True).snapshots == tuple(ids[:1])
    with pytest.raises(InvalidInput, match="at least one snapshot"):
        expire_snapshots(table, retain_last=0)


def test_expiry_keeps_what_branches_and_tags_need(lake: Lakehouse) -> None:
    table, ids = history(lake)
    table = create_tag(table, "first", ids[0])
    done = expire_snapshots(table, older_than_ms=soon())
    assert done.snapshots == (ids[1],)
    assert rows_of(done.table, ids[0]) == [(1, "x")]
    with pytest.raises(InvalidInput, match="is the head of `first`"):
        expire_snapshots(done.table, snapshot_ids=[ids[0]])


def test_expiry_of_chosen_snapshots(lake: Lakehouse) -> None:
    table, ids = history(lake)
    assert expire_snapshots(table, snapshot_ids=[ids[1]]).snapshots == (ids[1],)
    assert rows_of(lake.load(), ids[0]) == [(1, "x")]
    with pytest.raises(InvalidInput, match="no snapshot 5"):
        expire_snapshots(lake.load(), snapshot_ids=[5])


def test_an_old_branch_goes_with_its_snapshots(lake: Lakehouse) -> None:
    table, ids = history(lake)
    table = create_branch(table, "old", ids[0], max_ref_age_ms=1)
    time.sleep(0.01)
    done = expire_snapshots(table, older_than_ms=soon())
    assert (done.refs, set(done.table.metadata.refs)) == (("old",), {"main"})
    assert done.snapshots == tuple(ids[:2])


def test_a_mapping_leaves_with_its_snapshot_and_is_no_orphan_before(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    change, files = compaction(table)
    table = committed(commit_change(table, change, files))
    mapping = f"metadata/mapping-{head(table)}.parquet"
    assert mapping in files_below(table.location())
    assert remove_orphan_files(table, older_than_ms=soon(), dry_run=True).files == ()
    table = insert(table, people(3))
    done = expire_snapshots(table, older_than_ms=soon())
    assert [path_of(each).name for each in done.mappings] == [mapping.removeprefix("metadata/")]
    assert mapping not in files_below(table.location())
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def test_files_stay_when_the_table_says_so(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={"gc.enabled": "false"}), people(1))
    table = overwrite_where(table, ALWAYS, write(table, people(2))).table
    before = files_below(table.location())
    assert len(expire_snapshots(table, older_than_ms=soon()).snapshots) == 1
    assert before <= files_below(table.location())


# ---- orphans


def test_orphans_are_named_then_removed(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    left = write(table, people(9))[0].file_path
    stray = Path(table.location().removeprefix("file://")) / "metadata" / "stray.avro"
    stray.write_bytes(b"")
    found = remove_orphan_files(table, older_than_ms=soon(), dry_run=True)
    assert {path_of(each) for each in found.files} == {path_of(left), stray}
    with pytest.raises(InvalidInput, match="younger than a day"):
        remove_orphan_files(table, older_than_ms=soon())
    assert remove_orphan_files(table, older_than_ms=soon(), allow_young=True).removed
    assert not stray.exists()
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x")]
    assert remove_orphan_files(table).files == ()


def test_a_checksum_beside_a_file_lives_as_long_as_the_file(lake: Lakehouse) -> None:
    """Hadoop's local file system, which other engines use, keeps one."""
    table = insert(lake.create(), people(1))
    file = path_of(plan(table).files["path"].to_pylist()[0])
    file.with_name(f".{file.name}.crc").write_bytes(b"crc")
    alone = file.with_name(".gone.parquet.crc")
    alone.write_bytes(b"crc")
    found = remove_orphan_files(table, older_than_ms=soon(), dry_run=True)
    assert [path_of(path) for path in found.files] == [alone]


def test_files_that_a_folder_held_before_are_never_orphans(lake: Lakehouse, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    for place in ("data", "metadata", "ss=1", ""):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "old.parquet").write_bytes(b"theirs")
        os.utime(folder / place / "old.parquet", (1, 1))
    table = create_table(lake.catalog, "sales", PEOPLE, location=str(folder))
    table = insert(table, people(1))
    (folder / "ss=1" / "new.parquet").write_bytes(b"theirs too, and not in a folder of ours")
    assert remove_orphan_files(table, older_than_ms=soon(), allow_young=True).files == ()
    assert len(files_below(folder) & {f"{place}old.parquet" for place in ("data/", "metadata/", "ss=1/", "")}) == 4


# ---- manifests


def test_rewritten_manifests_hold_the_same_files(lake: Lakehouse) -> None:
    table = lake.create(by=[PartitionBy("name")])
    for number in range(5):
        table = insert(table, [*people(number, name="a"), *people(number, name="b")])
    table = delete_where(table, Compare("name", "=", "b")).table
    before = plan(table).files.sort_by("path")
    done = rewrite_manifests(table)
    assert (done.rewritten, done.added) == (5, 1)
    assert plan(done.table).files.sort_by("path") == before
    snapshot = done.table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "replace"
    assert snapshot.summary["total-data-files"] == "5"
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(number, "a") for number in range(5)]


# ---- adoption


def adopted_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "existing"
    for day in ("01", "02", "__HIVE_DEFAULT_PARTITION__"):
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), folder / f"day={day}" / "part-0.parquet")
    (folder / "_SUCCESS").write_text("")
    return folder


DAYS = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))


def test_a_folder_of_parquet_files_is_adopted(lake: Lakehouse, tmp_path: Path) -> None:
    folder = adopted_folder(tmp_path)
    table = create_table(lake.catalog, "t", DAYS, partition_by=[PartitionBy("day")])
    table = add_files(table, [str(folder)]).table
    assert plan(table).partitions() == [("01",), ("02",), (None,)]
    assert sorted(plan(table).files["record_count"].to_pylist()) == [2, 2, 2]
    assert rows_of(lake.as_pyiceberg_opens_it()) == sorted(
        [(n, day) for n in (1, 2) for day in ("01", "02", None)], key=repr
    )
    with pytest.raises(InvalidInput, match="3 of the files are in the table already"):
        add_files(table, [str(folder)])
    assert count_rows(table, Compare("day", "=", "01")) == 2


def test_a_file_whose_rows_have_one_value_needs_no_folder(lake: Lakehouse, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "day": ["01", "01"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"id": [1, 2], "day": ["01", "02"]}), tmp_path / "two.parquet")
    table = create_table(lake.catalog, "t", DAYS, partition_by=[PartitionBy("day")])
    table = add_files(table, [str(tmp_path / "one.parquet")]).table
    assert plan(table).partitions() == [("01",)]
    with pytest.raises(InvalidInput, match="value of the partition field `day` is not known"):
        add_files(table, [str(tmp_path / "two.parquet")])


@pytest.mark.parametrize(
    ("name", "message"),
    [("nothing", "no such file or folder"), ("more.parquet", "columns that the table does not have: color")],
)
def test_what_cannot_be_adopted(lake: Lakehouse, tmp_path: Path, name: str, message: str) -> None:
    pq.write_table(pa.table({"id": [1], "color": ["red"]}), tmp_path / "more.parquet")
    table = lake.create()
    with pytest.raises(InvalidInput, match=message):
        add_files(table, [str(tmp_path / name)])
    assert lake.load().current_snapshot() is None


# ---- branches, tags, time


def test_branches_and_tags(lake: Lakehouse) -> None:
    table, ids = history(lake)
    table = create_tag(create_branch(table, "b", ids[0]), "t")
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == {
        "main": ids[2],
        "b": ids[0],
        "t": ids[2],
    }
    assert rows_of(append(table, write(table, people(8)), CommitOptions(branch="b")).table) == [(3, "x")]
    table = lake.load()
    assert rows_of(table, snapshot_of_version(table, "b").snapshot_id) == [(1, "x"), (8, "x")]
    table = drop_ref(table, "b", kind="branch")
    assert sorted(table.metadata.refs) == ["main", "t"]
    assert drop_ref(table, "b", kind="branch", if_exists=True) is table


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: create_branch(table, "main"), "already a branch or tag `main`"),
        (lambda table: create_tag(table, "t", 5), "no snapshot 5"),
        (lambda table: drop_ref(table, "main", kind="branch"), "cannot be dropped"),
        (lambda table: drop_ref(table, "nope", kind="tag"), "no tag `nope`"),
        (lambda table: set_current_snapshot(table, 5), "no snapshot 5"),
        (lambda table: snapshot_of_version(table, "nope"), "no snapshot, branch or tag `nope`"),
        (lambda table: snapshot_as_of(table, 5), "had no snapshot at 1970-01-01 00:00:00.005"),
        (lambda table: view(table, "nope"), "no view"),
    ],
)
def test_what_is_not_there(lake: Lakehouse, call, message: str) -> None:  # type: ignore[no-untyped-def]
    table, _ = history(lake)
    with pytest.raises(InvalidInput, match=message):
        call(table)


def test_rollback_goes_to_ancestors_only(lake: Lakehouse) -> None:
    table, ids = history(lake)
    assert rows_of(rollback_to_snapshot(table, ids[1])) == [(2, "x")]
    table = lake.load()
    with pytest.raises(InvalidInput, match="is not an ancestor"):
        rollback_to_snapshot(table, ids[2])
    assert rows_of(set_current_snapshot(table, ids[2])) == [(3, "x")]
    first = table.metadata.snapshots[0].timestamp_ms
    table = rollback_to_timestamp(lake.load(), first)
    assert rows_of(table) == [(1, "x")]
    assert rows_of(insert(table, people(7))) == [(1, "x"), (7, "x")]


def test_the_snapshot_at_an_instant_is_the_newest_at_or_before_it(lake: Lakehouse) -> None:
    table = lake.create()
    for number in range(3):
        table = insert(table, people(number))
        time.sleep(0.005)
    times = [(each.timestamp_ms, each.snapshot_id) for each in table.metadata.snapshots]
    for ms, snapshot_id in times:
        assert snapshot_as_of(table, ms).snapshot_id == snapshot_id
    assert snapshot_as_of(table, times[1][0] - 1).snapshot_id == times[0][1]
    assert snapshot_as_of(table, soon()).snapshot_id == times[2][1]
    with pytest.raises(InvalidInput) as caught:
        snapshot_as_of(table, times[0][0] - 1)
    assert f"the first snapshot is {times[0][1]}" in caught.value.hint


# ---- views


def test_the_snapshots_view_has_the_columns_of_old(lake: Lakehouse) -> None:
    table = lake.create(by=[PartitionBy("name")])
    assert view(table, "snapshots").to_pylist() == []
    table = insert(table, [*people(1, name="a"), *people(2, name="b")])
    table = overwrite_where(table, ALWAYS, write(table, people(3, name="c"))).table
    found = view(table, "SNAPSHOTS_VIEW")
    first, second = table.metadata.snapshots
    assert found.to_pylist() == [
        {
            "id": first.snapshot_id,
            "parentId": -1,
            "timeMillis": first.timestamp_ms,
            "numAddedFiles": 2,
            "numDeletedFiles": 0,
            "manifestListLocation": first.manifest_list,
        },
        {
            "id": second.snapshot_id,
            "parentId": first.snapshot_id,
            "timeMillis": second.timestamp_ms,
            "numAddedFiles": 1,
            "numDeletedFiles": 2,
            "manifestListLocation": second.manifest_list,
        },
    ]


def test_every_view_has_its_columns_before_the_first_insert(lake: Lakehouse) -> None:
    made = lake.create("e", by=[PartitionBy("name")])
    empty = {name: view(made, name) for name in VIEWS}
    assert {name: found.num_rows for name, found in empty.items()} == dict.fromkeys(VIEWS, 0)
    table = insert(lake.load("e"), people(1, name="a"))
    table = merge_on_read(table, Command.DELETE, {plan(table).files["path"][0].as_py(): [0]}, [])
    full = {name: view(table, name) for name in VIEWS}
    assert {name: found.num_rows for name, found in full.items()} == {
        "snapshots": 2,
        "history": 2,
        "files": 2,
        "manifests": 2,
        "partitions": 1,
        "refs": 1,
        "entries": 2,
    }
    for name in VIEWS:
        assert empty[name].schema.names == full[name].schema.names, name
