"""Every kind of commit makes one snapshot that PyIceberg reads, with the counters of Apache Iceberg."""

import copy
import uuid
from typing import Any

import numpy as np
import pytest
from lakehouse import PEOPLE, Lakehouse, insert, people, rows_of, write
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)

from lakeproof.commit import Command, Mode, TableChange
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.filters import ALWAYS, Compare
from lakeproof.format import Move, all_rows, row_set
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.pointer import stage, swap, with_snapshot
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import data_file_values
from lakeproof.iceberg.committing.whole_file_commits import (
    CommitOptions,
    append,
    delete_where,
    overwrite_partitions,
    overwrite_where,
    whole_files,
)
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.branches import MAIN
from lakeproof.iceberg.tables.tables import PartitionBy

BY_NAME = (PartitionBy("name"),)


def summary(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}


def head(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def committed(answer: object) -> Table:
    assert isinstance(answer, Committed)
    return answer.table


def test_an_append(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, name="a"), *people(3, name="b")], command_id="c-1")
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "a"), (2, "a"), (3, "b")]
    said = summary(table)
    size = plan(table).bytes_kept
    assert {key: value for key, value in said.items() if not key.startswith("manifests-")} == {
        "operation": "append",
        "added-data-files": "2",
        "added-records": "3",
        "added-files-size": str(size),
        "changed-partition-count": "2",
        "total-data-files": "2",
        "total-records": "3",
        "total-files-size": str(size),
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
        "lakeproof.command-id": "c-1",
        "lakeproof.command": "INSERT",
        "lakeproof.isolation": "snapshot",
        "lakeproof.policy": "lakeproof",
        "lakeproof.conflict-filter": "true",
    }


def test_the_statistics_are_those_that_pyiceberg_writes(lake: Lakehouse) -> None:
    ours = insert(lake.create("ours"), people(3, 1, 2))
    theirs = lake.create("theirs")
    theirs.append(ours.scan().to_arrow())
    columns = ["record_count", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds", "split_offsets"]
    assert ours.inspect.files().select(columns).to_pylist() == theirs.inspect.files().select(columns).to_pylist()


def test_dynamic_overwrite_replaces_the_partitions_it_writes(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(2, name="b")])
    table = overwrite_partitions(table, write(table, people(9, name="b"))).table
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "a"), (9, "b")]
    said = summary(table)
    assert (said["operation"], said["added-data-files"], said["deleted-data-files"]) == ("overwrite", "1", "1")
    assert (said["total-data-files"], said["total-records"]) == ("2", "2")


def test_static_overwrite_replaces_what_the_predicate_takes(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(2, 3, name="b")])
    table = overwrite_where(table, Compare("NAME", "=", "b"), write(table, people(7, name="b"))).table
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "a"), (7, "b")]
    table = overwrite_where(table, ALWAYS, write(table, people(8, name="c"))).table
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(8, "c")]
    assert summary(table)["deleted-data-files"] == "2"
    assert summary(table)["total-data-files"] == "1"


def test_a_static_overwrite_refuses_rows_outside_its_part(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), people(1, name="a"))
    with pytest.raises(InvalidInput, match="outside the overwritten part"):
        overwrite_where(table, Compare("name", "=", "a"), write(table, people(7, name="b")))
    assert rows_of(lake.load()) == [(1, "a")]


def test_a_predicate_that_cuts_files_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    with pytest.raises(InvalidInput, match="only some rows of 1 files"):
        delete_where(table, Compare("id", ">", 1))
    found = whole_files(table, Compare("id", ">=", 1))
    assert (len(found.whole), len(found.partial)) == (1, 0)


def test_a_delete_of_whole_files_is_metadata_only(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(2, name="b")])
    table = delete_where(table, Compare("name", "=", "a")).table
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(2, "b")]
    assert summary(table)["operation"] == "delete"
    assert summary(table)["deleted-records"] == "1"


def test_removed_files_carry_the_status_deleted_and_keep_their_age(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(2, name="b")])
    table = delete_where(table, Compare("name", "=", "a")).table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = {
        entry.data_file.partition[0]: (entry.status, entry.sequence_number, entry.snapshot_id == snapshot.snapshot_id)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    }
    assert entries == {"a": (ManifestEntryStatus.DELETED, 1, True), "b": (ManifestEntryStatus.EXISTING, 1, False)}


def test_a_manifest_of_deleted_entries_alone_leaves_with_the_next_commit(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), people(1, name="a"))
    table = delete_where(table, ALWAYS).table
    table = insert(table, people(2, name="b"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert [m.deleted_files_count for m in snapshot.manifests(table.io)] == [0]


def merge_on_read(table: Table, command: Command, positions: dict[str, list[int]], rows: list[dict[str, Any]]) -> Table:
    """A row-level command as a runtime hands it over: positions as rows, new rows as files."""
    targets = tuple(sorted((path, row_set(found)) for path, found in positions.items()))
    change = TableChange(
        command,
        Mode.MERGE_ON_READ,
        command_id=str(uuid.uuid4()),
        scan_snapshot=head(table),
        targets=targets,
        required_data_files=tuple(positions),
    )
    return committed(commit_change(table, change, NewFiles(tuple(write(table, rows)))))


def test_a_merge_on_read_delete(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, 3, name="a"), *people(4, name="b")])
    paths = dict(zip([p[0] for p in plan(table).partitions()], plan(table).files["path"].to_pylist(), strict=True))
    table = merge_on_read(table, Command.DELETE, {paths["a"]: [0, 2]}, [])
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(2, "a"), (4, "b")]
    said = summary(table)
    assert said["operation"] == "delete"
    assert (said["added-delete-files"], said["added-position-delete-files"], said["added-position-deletes"]) == (
        "1",
        "1",
        "2",
    )
    assert (said["total-delete-files"], said["total-position-deletes"], said["total-records"]) == ("1", "2", "4")
    found = plan(table)
    assert found.files["delete_files"].to_pylist() == [[0] if p == ("a",) else [] for p in found.partitions()]
    assert found.delete_files["referenced_file"].to_pylist() == [paths["a"]]


def test_a_merge_on_read_update_is_one_snapshot(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    path = plan(table).files["path"][0].as_py()
    table = merge_on_read(table, Command.UPDATE, {path: [1]}, people(2, name="new"))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "new")]
    assert len(table.metadata.snapshots) == 2
    assert summary(table)["operation"] == "overwrite"
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert {m.content for m in snapshot.manifests(table.io)} == {ManifestContent.DATA, ManifestContent.DELETES}


def test_a_compaction_keeps_the_age_of_its_scan_and_drops_the_deletes_that_nothing_needs(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3))
    found = plan(table)
    old = dict(zip(found.files["record_count"].to_pylist(), found.files["path"].to_pylist(), strict=True))
    table = merge_on_read(table, Command.DELETE, {old[2]: [0]}, [])
    scan = table.current_snapshot()
    assert scan is not None
    inputs = tuple(data_file_values(table, plan(table).picked))
    files = write(table, people(2, 3))
    new_path = files[0].file_path
    change = TableChange(
        Command.REWRITE,
        command_id="r",
        scan_snapshot=scan.snapshot_id,
        scan_sequence_number=scan.sequence_number or 0,
        removed_data_files=inputs,
        kept=tuple(sorted([(old[2], row_set([1])), (old[1], all_rows(1))])),
        mapping=(Move(old[2], row_set([1]), new_path, 0), Move(old[1], all_rows(1), new_path, 1)),
    )
    table = committed(commit_change(table, change, NewFiles(tuple(files))))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(2, "x"), (3, "x")]
    said = summary(table)
    assert (said["operation"], said["total-data-files"], said["total-delete-files"]) == ("replace", "1", "0")
    assert said["removed-delete-files"] == "1"
    assert said["lakeproof.mapping"].endswith(f"/metadata/mapping-{head(table)}.parquet")
    assert plan(table).files["data_sequence_number"].to_pylist() == [scan.sequence_number]


def test_a_table_of_format_version_1(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME, properties={"format-version": "1"}), people(1, 2, name="a"))
    table = insert(table, people(3, name="b"))
    table = delete_where(table, Compare("name", "=", "a")).table
    assert table.format_version == 1
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(3, "b")]
    with pytest.raises(InvalidInput, match="format version 1 has no delete files"):
        merge_on_read(table, Command.DELETE, {plan(table).files["path"][0].as_py(): [0]}, [])


def test_a_table_of_an_unknown_format_version_is_not_made(lake: Lakehouse) -> None:
    with pytest.raises(InvalidInput, match="there is no format version 4"):
        lake.create(properties={"format-version": "4"})


def test_small_manifests_are_merged_when_there_are_enough(lake: Lakehouse) -> None:
    table = lake.create(properties={"commit.manifest.min-count-to-merge": "5"})
    counts = []
    for number in range(12):
        table = insert(table, people(number))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        counts.append(len(snapshot.manifests(table.io)))
    assert counts == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]
    assert rows_of(lake.as_pyiceberg_opens_it()) == sorted([(n, "x") for n in range(12)], key=repr)
    assert sorted(plan(table).files["data_sequence_number"].to_pylist()) == list(range(1, 13))


def test_merging_can_be_switched_off(lake: Lakehouse) -> None:
    properties = {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"}
    table = lake.create(properties=properties)
    for number in range(4):
        table = insert(table, people(number))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) == 4


def test_files_of_two_partition_specs_in_one_commit(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    with table.update_spec() as update:
        update.add_identity("name")
    table = lake.load()
    files = [*write(table, people(2), spec_id=0), *write(table, people(3, name="b"))]
    table = append(table, files).table
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "b")]
    assert sorted(plan(table).files["spec_id"].to_pylist()) == [0, 0, 1]


def test_a_snapshot_on_a_branch_leaves_main_alone(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    table.manage_snapshots().create_branch(head(table), "audit").commit()
    table = append(lake.load(), write(table, people(2)), CommitOptions(branch="audit")).table
    assert rows_of(table) == [(1, "x")]
    assert rows_of(table, table.metadata.refs["audit"].snapshot_id) == [(1, "x"), (2, "x")]


def test_a_branch_that_is_not_there_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    with pytest.raises(InvalidInput, match="no branch `nope`"):
        append(table, write(table, people(2)), CommitOptions(branch="nope"))


def test_the_metadata_is_what_pyiceberg_would_have_written(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    snapshot = Producer(table).produce(
        table, table.current_snapshot(), FileChange("append", tuple(write(table, people(2))))
    )
    ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot.snapshot_id}
    updates = (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate.model_validate(ref))
    theirs = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
    assert with_snapshot(table, snapshot).model_dump() == theirs.model_dump()
    swap(table, stage(table, snapshot, MAIN, []))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_removing_a_file_that_is_not_there_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    with pytest.raises(InvalidInput, match="1 files to remove are not in the table"):
        Producer(table).produce(table, table.current_snapshot(), FileChange("delete", removed_data_files=("nope",)))


def test_a_delete_file_names_its_rows_sorted_and_once(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    file = write_position_deletes(table, "file:///data", np.array([2, 0, 2]))
    assert file.record_count == 2
    assert file.lower_bounds == {2147483546: b"file:///data", 2147483545: (0).to_bytes(8, "little")}
    assert file.upper_bounds == {2147483546: b"file:///data", 2147483545: (2).to_bytes(8, "little")}


def test_an_overwrite_meets_a_file_added_meanwhile_that_it_takes_only_in_part(lake: Lakehouse) -> None:
    stale = insert(lake.create(schema=PEOPLE, by=BY_NAME), people(1, 2, name="a"))
    with lake.load().update_spec() as update:
        update.remove_field("name")
    insert(lake.load(), [*people(3, name="a"), *people(4, name="b")])
    with pytest.raises(CommitConflict) as caught:
        overwrite_where(stale, Compare("name", "=", "a"), write(stale, people(9, name="a")))
    assert caught.value.conflict is not None
    assert caught.value.conflict.check == "whole_files_match"  # type: ignore[attr-defined]
    assert len(rows_of(lake.load())) == 4


def test_the_manifest_of_many_new_files_rolls_at_the_target_size(lake: Lakehouse) -> None:
    table = lake.create(
        properties={"commit.manifest.target-size-bytes": "8000", "commit.manifest-merge.enabled": "false"}
    )
    (file,) = write(table, people(1))
    files = []
    for number in range(2000):
        copied = copy.copy(file)
        copied._data = [*file._data]
        copied._data[1] = f"{file.file_path}-{number}"
        files.append(copied)
    table = append(table, files).table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    sizes = [m.added_files_count for m in snapshot.manifests(table.io)]
    assert len(sizes) > 1
    assert sum(size or 0 for size in sizes) == 2000
    assert plan(table).files.num_rows == 2000
