"""A commit beside others that changed the same rows: it lands, is carried over, runs again or is refused."""

import time

import pytest
from commit_hooks import compaction, copy_on_write
from lakehouse import Lakehouse, insert, people, rows_of, write
from test_snapshots_made import committed, head, merge_on_read

from lakeproof.commit import Command, Conflict, Isolation, Mode, RunAgain, TableChange
from lakeproof.errors import CommitConflict
from lakeproof.filters import Compare
from lakeproof.format import row_set
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.upkeep.expire import expire_snapshots


def test_two_rewrites_of_one_file_cannot_both_commit(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    committed(copy_on_write(table, [*people(2), *people(1, name="new")], kept=[1], targets=[0]))
    again = copy_on_write(stale, [*people(2), *people(1, name="other")], kept=[1], targets=[0], reruns_left=True)
    assert isinstance(again, RunAgain)
    assert (again.conflict.check, again.mode) == ("target_rows", Mode.MERGE_ON_READ)
    with pytest.raises(CommitConflict) as caught:
        copy_on_write(stale, [*people(2), *people(1, name="other")], kept=[1], targets=[0])
    assert "UPDATE on default.t was not committed" in str(caught.value)
    assert isinstance(caught.value.conflict, Conflict)
    assert rows_of(lake.load()) == [(1, "new"), (2, "x")]


def test_a_rewrite_carries_over_a_delete_that_came_between(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [2]}, [])
    new_rows = [*people(2), *people(3), *people(1, name="new")]
    committed(copy_on_write(stale, new_rows, kept=[1, 2], targets=[0]))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "new"), (2, "x")]


def test_a_compaction_lands_beside_a_delete(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3, 4))
    change, files = compaction(table)
    path = sorted(plan(table).files["path"].to_pylist())
    merge_on_read(lake.load(), Command.DELETE, {path[1]: [0]}, [])
    gone = rows_of(lake.load())
    table = committed(commit_change(table, change, files))
    assert rows_of(lake.as_pyiceberg_opens_it()) == gone
    assert len(gone) == 3
    assert plan(table).files.num_rows == 1
    assert plan(table).delete_files.num_rows == 1  # the one carried over; the old one points nowhere and is gone


def test_a_late_delete_follows_its_row_through_a_compaction(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3, 4))
    stale = lake.load()
    first = plan(stale).files["path"][0].as_py()
    change, files = compaction(table)
    committed(commit_change(table, change, files))
    answer = merge_on_read(stale, Command.DELETE, {first: [1]}, [])
    assert len(rows_of(lake.as_pyiceberg_opens_it())) == 3
    assert plan(answer).delete_files["referenced_file"].to_pylist() == [files.data_files[0].file_path]


def test_two_deletes_of_one_row_agree(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [0, 1]}, [])
    merge_on_read(stale, Command.DELETE, {path: [1, 2]}, [])
    assert rows_of(lake.as_pyiceberg_opens_it()) == []


def test_an_update_of_a_deleted_row_runs_again(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [0]}, [])
    with pytest.raises(CommitConflict) as caught:
        merge_on_read(stale, Command.UPDATE, {path: [0]}, people(1, name="new"))
    assert isinstance(caught.value.conflict, Conflict)
    assert (caught.value.conflict.check, caught.value.conflict.files) == ("target_rows", (path,))


@pytest.mark.parametrize(
    ("meanwhile", "conflict"),
    [
        pytest.param((7, 8), None, id="the bounds rule it out"),
        pytest.param((0, 5), None, id="the bounds allow it, the rows do not"),
        pytest.param((0, 1), "new_rows_match", id="a row that the command would have read"),
    ],
)
def test_serializable_asks_about_rows_that_came_between(
    lake: Lakehouse, meanwhile: tuple[int, ...], conflict: str | None
) -> None:
    stale = insert(lake.create(), people(1, 2))
    change = TableChange(
        Command.UPDATE,
        isolation=Isolation.SERIALIZABLE,
        command_id="u",
        scan_snapshot=head(stale),
        targets=((plan(stale).files["path"][0].as_py(), row_set([0])),),
        conflict_filter=Compare("id", "=", 1),
    )
    files = NewFiles(tuple(write(stale, people(1, name="new"))))
    insert(lake.load(), people(*meanwhile))
    if conflict is None:
        committed(commit_change(stale, change, files))
        assert len(rows_of(lake.as_pyiceberg_opens_it())) == 4
    else:
        with pytest.raises(CommitConflict) as caught:
            commit_change(stale, change, files)
        assert isinstance(caught.value.conflict, Conflict)
        assert caught.value.conflict.check == conflict


def test_a_window_with_an_expired_snapshot_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    for number in range(3, 6):
        table = insert(table, people(number))
    expire_snapshots(table, older_than_ms=time.time_ns() // 1_000_000 + 1, retain_last=1)
    with pytest.raises(CommitConflict) as caught:
        merge_on_read(stale, Command.DELETE, {path: [0]}, [])
    assert isinstance(caught.value.conflict, Conflict)
    assert caught.value.conflict.check == "history_known"
