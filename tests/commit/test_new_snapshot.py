"""How a validated change becomes a snapshot: its files, their sequence numbers, and which delete files may go."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from commit_cases import COW, SHAPE, F, at, change, file, move

from lakeproof.commit import AlreadyCommitted, Command, Commit, CommitWith, NothingLeft, Policy, Stamp, TableChange
from lakeproof.commit.policy import ICEBERG_SPARK, ICEBERG_SPARK_FIXED, LAKEPROOF, PYICEBERG
from lakeproof.commit.snapshots import assigned_row_ids, new_snapshot
from lakeproof.filters import Compare
from lakeproof.format import (
    Bounds,
    DataFile,
    DeleteContent,
    DeleteFile,
    Operation,
    PartitionField,
    Snapshot,
    TableShape,
    TableState,
    visible,
)

V3 = SHAPE._replace(format_version=3)
OLD = F._replace(sequence_number=2)
YOUNG = file("g", (2, "c"), sequence_number=6)
HEAD = TableState(7, 7, (OLD, YOUNG), ())
N = file("n", (9, "new"))


def after(
    wanted: TableChange,
    answer: Commit | CommitWith = Commit(),  # noqa: B008
    *,
    head: TableState = HEAD,
    policy: Policy = LAKEPROOF,
    shape: TableShape = SHAPE,
) -> tuple[TableState, Snapshot]:
    """The head after the change, as snapshot 8."""
    return new_snapshot(head, wanted, answer, policy, shape, 8)


def insert(**more: Any) -> TableChange:
    """An INSERT of one file."""
    return change(Command.INSERT, targets=(), added_data_files=(N,), **more)


def compaction(**more: Any) -> TableChange:
    """A compaction of both files, which were read at sequence number 6."""
    known = {
        "mode": COW,
        "targets": (),
        "scan_sequence_number": 6,
        "removed_data_files": (OLD, YOUNG),
        "added_data_files": (file("n", (0, "a"), (1, "b"), (2, "c")),),
        "kept": at(f=[0, 1], g=[0]),
        "mapping": (move("f", [0, 1], "n"), move("g", [0], "n", 2)),
    }
    return change(Command.REWRITE, **{**known, **more})


def position_delete(number: int, path: str = "f", rows: int = 1, **more: Any) -> DeleteFile:
    """A delete file of the head."""
    return DeleteFile(f"d{number}", sequence_number=number, positions=((path, rows),), **more)


def equality_delete(number: int) -> DeleteFile:
    """An equality delete of key 0 in the head."""
    return DeleteFile(
        f"e{number}", DeleteContent.EQUALITY, sequence_number=number, equality_columns=("k",), equality_values=((0,),)
    )


# ---------------------------------------------------------------- stamps


def test_a_command_stamps_its_files_with_the_new_number() -> None:
    table, snapshot = after(insert())
    assert (snapshot.snapshot_id, snapshot.sequence_number, snapshot.parent_id) == (8, 8, 7)
    assert snapshot.operation is Operation.APPEND
    assert snapshot.command_id == "mine"
    assert snapshot.added_data_files == (N._replace(sequence_number=8),)
    assert table == TableState(8, 8, (OLD, YOUNG, N._replace(sequence_number=8)), ())


def test_an_empty_table_gets_number_one_and_no_parent() -> None:
    table, snapshot = after(insert(), head=TableState())
    assert (snapshot.sequence_number, snapshot.parent_id) == (1, None)
    assert table.data_files == (N._replace(sequence_number=1),)


@pytest.mark.parametrize(
    ("stamp", "number"),
    [
        pytest.param(Stamp.SCAN, 6, id="as old as its scan snapshot"),
        pytest.param(Stamp.NEW, 8, id="as new as its commit"),
        pytest.param(Stamp.MINIMUM, 2, id="as old as its oldest input"),
        pytest.param(Stamp.MAXIMUM, 6, id="as old as its youngest input"),
    ],
)
def test_the_output_of_a_compaction_is(stamp: Stamp, number: int) -> None:
    _, snapshot = after(compaction(), CommitWith(removed=("f", "g")), policy=replace(LAKEPROOF, compaction_stamp=stamp))
    assert [each.sequence_number for each in snapshot.added_data_files] == [number]
    assert snapshot.operation is Operation.REPLACE


def test_copy_on_write_output_is_new() -> None:
    wanted = change(Command.UPDATE, mode=COW, removed_data_files=(OLD,), added_data_files=(N,))
    _, snapshot = after(wanted, CommitWith(removed=("f",)))
    assert [each.sequence_number for each in snapshot.added_data_files] == [8]


def test_carried_deletes_are_new_and_so_reach_the_output_of_a_compaction() -> None:
    table, snapshot = after(compaction(), CommitWith(carried=at(n=[2]), removed=("f", "g")))
    assert snapshot.added_delete_files == (DeleteFile("delete-8-n", DeleteContent.POSITIONS, (), 0, 8, at(n=[2])),)
    assert visible(table, SHAPE.columns) == ((0, "a"), (1, "b"))


def test_positions_are_written_where_the_rows_are_now() -> None:
    table, snapshot = after(change(Command.DELETE), CommitWith(at(g=[0])))
    assert [delete.positions for delete in snapshot.added_delete_files] == [at(g=[0])]
    assert snapshot.operation is Operation.DELETE
    assert visible(table, SHAPE.columns) == ((0, "a"), (1, "b"))


def test_positions_of_a_file_that_is_gone_are_not_written() -> None:
    _, snapshot = after(change(Command.DELETE), CommitWith(at(gone=[0])))
    assert snapshot.added_delete_files == ()


def test_a_change_committed_as_it_is_keeps_its_own_delete_files() -> None:
    mine = position_delete(0)
    _, snapshot = after(change(Command.DELETE, added_delete_files=(mine,)), policy=ICEBERG_SPARK)
    assert snapshot.added_delete_files == (mine._replace(sequence_number=8),)


def test_an_adjusted_change_keeps_its_equality_deletes() -> None:
    mine = equality_delete(0)
    _, snapshot = after(change(Command.DELETE, added_delete_files=(mine, position_delete(0))), CommitWith(at(f=[1])))
    assert [(d.path, d.sequence_number) for d in snapshot.added_delete_files] == [("e0", 8), ("delete-8-f", 8)]


# ---------------------------------------------------------------- format v3


def test_two_vectors_of_one_file_in_one_change_become_one() -> None:
    def vector(name: str, path: str, rows: int) -> DeleteFile:
        return DeleteFile(name, DeleteContent.VECTOR, positions=((path, rows),))

    mine = (vector("v1", "f", 0b01), vector("v2", "g", 0b1), vector("v3", "f", 0b10))
    _, snapshot = after(change(Command.DELETE, added_delete_files=mine), policy=ICEBERG_SPARK, shape=V3)
    assert [(d.path, d.positions) for d in snapshot.added_delete_files] == [
        ("v1", (("f", 0b11),)),
        ("v2", (("g", 0b1),)),
    ]


def test_in_v3_a_vector_takes_in_the_older_deletes_of_its_file() -> None:
    older = position_delete(5, rows=0b01)._replace(content=DeleteContent.VECTOR)
    other = position_delete(6, path="g")._replace(content=DeleteContent.VECTOR)
    head = HEAD._replace(delete_files=(older, other))
    table, snapshot = after(change(Command.DELETE), CommitWith(at(f=[1])), head=head, shape=V3)
    vector = DeleteFile("delete-8-f", DeleteContent.VECTOR, (), 0, 8, at(f=[0, 1]))
    assert snapshot.added_delete_files == (vector,)
    assert snapshot.removed_delete_files == (older,)
    assert table.delete_files == (other, vector)


def test_in_v2_the_older_delete_file_stays_beside_the_new_one() -> None:
    head = HEAD._replace(delete_files=(position_delete(5),))
    table, snapshot = after(change(Command.DELETE), CommitWith(at(f=[1])), head=head)
    assert snapshot.removed_delete_files == ()
    assert [delete.path for delete in table.delete_files] == ["d5", "delete-8-f"]


# ---------------------------------------------------------------- aging


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        pytest.param(LAKEPROOF, ["e3"], id="lakeproof counts the files that the compaction adds"),
        pytest.param(ICEBERG_SPARK_FIXED, ["e3"], id="so does the mended Spark"),
        pytest.param(ICEBERG_SPARK, [], id="Spark does not, and drops a delete that its own output still needs"),
    ],
)
def test_a_delete_file_is_dropped_when_no_data_file_is_old_enough_for_it(policy: Policy, kept: list[str]) -> None:
    """f@2 was read at 2, an upsert e3 came at 3, all else is newer; the output of the compaction is as old as 2."""
    head = TableState(7, 7, (OLD, YOUNG), (equality_delete(3),))
    wanted = compaction(
        scan_sequence_number=2,
        removed_data_files=(OLD,),
        added_data_files=(file("n", *(OLD.rows or ())),),
        kept=at(f=[0, 1]),
        mapping=(move("f", [0, 1], "n"),),
    )
    answer: Commit | CommitWith = CommitWith(removed=("f",)) if policy is LAKEPROOF else Commit()
    table, snapshot = after(wanted, answer, head=head, policy=policy)
    assert [delete.path for delete in table.delete_files] == kept
    assert (0, "a") not in visible(table, SHAPE.columns) or policy is ICEBERG_SPARK
    assert ((0, "a") in visible(table, SHAPE.columns)) == (not kept), "an undelete, if the delete is gone"
    assert len(snapshot.removed_delete_files) == 1 - len(kept)


def test_a_delete_file_as_old_as_the_oldest_data_file_stays() -> None:
    head = TableState(7, 7, (OLD, YOUNG), (position_delete(1), position_delete(2), position_delete(6, "g")))
    table, _ = after(insert(), head=head)
    assert [delete.path for delete in table.delete_files] == ["d2", "d6"]


@pytest.mark.parametrize(
    ("policy", "shape", "kept"),
    [
        pytest.param(LAKEPROOF, SHAPE, ["both", "d6"], id="lakeproof drops what points nowhere any more"),
        pytest.param(ICEBERG_SPARK, SHAPE, ["d5", "both", "d6"], id="Spark leaves it in v2"),
        pytest.param(ICEBERG_SPARK, V3, ["both", "d6"], id="and drops it in v3"),
    ],
)
def test_dangling_deletes(policy: Policy, shape: TableShape, kept: list[str]) -> None:
    both = DeleteFile("both", sequence_number=5, positions=at(f=[0], g=[0]))
    old = file("z", (8, "z"), sequence_number=1)
    head = TableState(7, 7, (old, OLD, YOUNG), (position_delete(5), both, position_delete(6, "g")))
    wanted = change(Command.DELETE, mode=COW, removed_data_files=(OLD,))
    answer: Commit | CommitWith = CommitWith(removed=("f",)) if policy is LAKEPROOF else Commit()
    table, _ = after(wanted, answer, head=head, policy=policy, shape=shape)
    assert [delete.path for delete in table.delete_files] == kept


def test_delete_files_that_a_change_names_are_removed() -> None:
    gone = position_delete(5)
    head = HEAD._replace(delete_files=(gone,))
    table, snapshot = after(change(Command.REWRITE_DELETES, targets=(), removed_delete_files=(gone,)), head=head)
    assert snapshot.removed_delete_files == (gone,)
    assert snapshot.operation is Operation.REPLACE
    assert table.delete_files == ()


# ---------------------------------------------------------------- which files leave the table

BY_K = TableShape(("k", "v"), ((PartitionField("k"),),))
PART_0 = DataFile("p0", (0,), sequence_number=3, record_count=2)
PART_1 = DataFile("p1", (1,), sequence_number=3, record_count=2)
LATE_0 = DataFile("late", (0,), sequence_number=7, record_count=1)
PARTITIONED = TableState(
    7,
    7,
    (PART_0, PART_1, LATE_0),
    (position_delete(4, "p0", partition=(0,)), position_delete(5, "p1", partition=(1,))),
)


def test_an_overwrite_of_partitions_takes_what_is_there_now() -> None:
    """Also the file that came after the scan, and the delete files of the partition."""
    new = DataFile("n", (0,), record_count=1)
    wanted = change(Command.OVERWRITE_PARTITIONS, targets=(), added_data_files=(new,), replaced_partitions=((0, (0,)),))
    table, snapshot = after(wanted, head=PARTITIONED, policy=ICEBERG_SPARK, shape=BY_K)
    assert [each.path for each in snapshot.removed_data_files] == ["p0", "late"]
    assert [each.path for each in table.data_files] == ["p1", "n"]
    assert [each.path for each in table.delete_files] == ["d5"]
    assert snapshot.operation is Operation.OVERWRITE


def test_a_delete_by_filter_takes_the_files_that_match_whole() -> None:
    part = DataFile("part", sequence_number=3, record_count=5, bounds=(Bounds("k", 0, 5, has_nulls=False),))
    whole = part._replace(path="whole", bounds=(Bounds("k", 6, 9, has_nulls=False),))
    wanted = change(Command.METADATA_DELETE, targets=(), row_filter=Compare("k", ">", 4))
    table, snapshot = after(wanted, head=TableState(7, 7, (part, whole)), policy=ICEBERG_SPARK)
    assert [each.path for each in snapshot.removed_data_files] == ["whole"]
    assert [each.path for each in table.data_files] == ["part"]
    assert snapshot.operation is Operation.DELETE


def test_an_adjusted_change_removes_only_what_is_still_there() -> None:
    table, snapshot = after(compaction(), CommitWith(removed=("g",)))
    assert [each.path for each in snapshot.removed_data_files] == ["g"]
    assert [each.path for each in table.data_files] == ["f", "n"]


# ---------------------------------------------------------------- operation and mapping


@pytest.mark.parametrize(
    ("wanted", "operation"),
    [
        pytest.param(insert(), Operation.APPEND, id="files added"),
        pytest.param(change(Command.DELETE, mode=COW, removed_data_files=(OLD,)), Operation.DELETE, id="files removed"),
        pytest.param(
            change(Command.UPDATE, mode=COW, removed_data_files=(OLD,), added_data_files=(N,)),
            Operation.OVERWRITE,
            id="both",
        ),
        pytest.param(
            change(Command.UPDATE, added_data_files=(N,), added_delete_files=(position_delete(0),)),
            Operation.OVERWRITE,
            id="files and delete files added",
        ),
        pytest.param(
            change(Command.DELETE, added_delete_files=(position_delete(0),)), Operation.DELETE, id="delete files added"
        ),
        pytest.param(change(Command.MERGE, added_data_files=(N,)), Operation.APPEND, id="a MERGE that only inserts"),
    ],
)
def test_a_snapshot_says_what_it_did(wanted: TableChange, operation: Operation) -> None:
    assert after(wanted, policy=ICEBERG_SPARK)[1].operation is operation


@pytest.mark.parametrize(
    ("policy", "records"), [(LAKEPROOF, True), (ICEBERG_SPARK, False), (PYICEBERG, False)], ids=lambda p: str(p)[:20]
)
def test_only_lakeproof_records_where_rows_went(policy: Policy, records: bool) -> None:
    cow = change(Command.UPDATE, mode=COW, removed_data_files=(OLD,), mapping=(move("f", [1], "n"),))
    for wanted in (compaction(), cow):
        _, snapshot = after(wanted, CommitWith(removed=("f", "g")), policy=policy)
        assert snapshot.mapping == (wanted.mapping if records else None)
    assert after(insert(), policy=policy)[1].mapping is None


def test_answers_are_different_values() -> None:
    """A model that keeps its answer in a state must not take one for another."""
    answers = (Commit(), CommitWith(), AlreadyCommitted(), NothingLeft())
    assert [pair for pair in combinations(answers, 2) if pair[0] == pair[1]] == []


def test_manifests_without_row_ids_take_the_next_ones_in_list_order() -> None:
    assert assigned_row_ids(10, [(None, 3), (0, 7), (None, 2)]) == ((10, 0, 13), 15)


def test_entries_begin_at_their_manifest_and_those_with_an_id_take_none() -> None:
    assert assigned_row_ids(100, [(None, 5), (40, 9), (None, 0), (None, 1)]) == ((100, 40, 105, 105), 106)


def test_a_commit_without_new_manifests_leaves_the_next_row_id_alone() -> None:
    assert assigned_row_ids(10, [(0, 7)]) == ((0,), 10)
    assert assigned_row_ids(10, []) == ((), 10)
