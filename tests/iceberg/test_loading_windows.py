"""A commit window, loaded from manifests, becomes values."""

from commit_hooks import compaction
from lakehouse import Lakehouse, insert, people
from test_snapshots_made import committed, head, merge_on_read

from lakeproof.commit import Command
from lakeproof.commit.checks import Part
from lakeproof.filters import Compare
from lakeproof.format import Bounds, DeleteContent, Operation, row_set
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import delete_where
from lakeproof.iceberg.committing.window import load_window, unseen_snapshots
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.tables import PartitionBy

BY_NAME = [PartitionBy("name")]


def test_a_window_holds_what_each_commit_did(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, name="a"), *people(7, name="b")])
    scan = head(table)
    paths = dict(
        zip([part[0] for part in plan(table).partitions()], plan(table).files["path"].to_pylist(), strict=True)
    )
    table = insert(table, people(3, 5, name="b"), command_id="mine")
    table = merge_on_read(table, Command.DELETE, {paths["a"]: [1]}, [])
    table = delete_where(table, Compare("name", "=", "b")).table
    found = unseen_snapshots(table, scan_snapshot=scan, head_snapshot=head(table))
    assert found.missing is None
    window = load_window(table, found.unseen, Part(True, True, True), columns=("id",))
    appended, deleted, dropped = window
    assert [each.operation for each in window] == [Operation.APPEND, Operation.DELETE, Operation.DELETE]
    assert [each.sequence_number for each in window] == [2, 3, 4]
    assert appended.command_id == "mine"
    (added,) = appended.added_data_files
    assert (added.partition, added.record_count, added.sequence_number) == (("b",), 2, 2)
    assert added.bounds == (Bounds("id", 3, 5, has_nulls=False, has_values=True, has_nans=True),)
    (positions,) = deleted.added_delete_files
    assert (positions.content, positions.positions) == (DeleteContent.POSITIONS, ((paths["a"], row_set([1])),))
    assert {file.path for file in dropped.removed_data_files} == {paths["b"], added.path}
    assert sorted(file.sequence_number for file in dropped.removed_data_files) == [1, 2]
    assert dropped.adds_no_data


def test_only_what_is_asked_for_is_loaded(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    unseen = unseen_snapshots(table, scan_snapshot=None, head_snapshot=head(table)).unseen
    lake.cache.decoded = 0
    window = load_window(table, unseen, Part(), cache=ManifestCache(None))
    assert [each.added_data_files for each in window] == [(), ()]
    assert lake.cache.decoded == 0
    window = load_window(table, unseen, Part(added_data_files=True), cache=ManifestCache(None))
    assert [len(each.added_data_files) for each in window] == [1, 1]


def test_a_compaction_in_the_window_tells_where_its_rows_went(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3))
    scan = head(table)
    change, files = compaction(table)
    table = committed(commit_change(table, change, files))
    (seen,) = load_window(table, [head(table)], Part(True, True, True))
    assert seen.operation is Operation.REPLACE
    assert seen.mapping == change.mapping
    assert len(seen.removed_data_files) == 2
    assert scan != head(table)


def test_a_rolled_back_scan_is_not_in_the_history(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    second = head(table)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    table = insert(lake.load(), people(3))
    assert unseen_snapshots(table, scan_snapshot=second, head_snapshot=head(table)).missing == second
