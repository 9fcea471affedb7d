"""One schedule, four policies: who lets which anomaly through, and which check stops it elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from commit_cases import COW, SER, SHAPE, F, answered, at, change, file, snapshot

from lakeproof.commit import (
    POLICIES,
    Answer,
    Command,
    Commit,
    CommitWith,
    Refuse,
    RunAgain,
    TableChange,
    check_list,
    checks_of,
    follow,
    followed_all,
    open_window,
    validate,
)
from lakeproof.commit.policy import ICEBERG_SPARK, LAKEPROOF
from lakeproof.filters import ALWAYS, Compare
from lakeproof.format import Bounds, DataFile, DeleteContent, DeleteFile, Operation, Snapshot, TableState

MINE = DeleteFile("mine", positions=at(f=[0]))
MOR_DELETE = change(Command.DELETE, added_delete_files=(MINE,), required_data_files=("f",))
UPDATE_OF_MY_ROW = snapshot(2, deletes=at(f=[0]), adds=(file("g", (0, "blue")),))
COW_UPDATE = change(
    Command.UPDATE, mode=COW, removed_data_files=(F,), added_data_files=(file("n", (0, "x"), (1, "b")),), kept=at(f=[1])
)
GUARDED = change(Command.DELETE, added_delete_files=(MINE,), required_data_files=("f",), isolation=SER, reads=at(f=[1]))


def word(answer: Answer) -> str:
    """An answer as a scenario would say it."""
    if isinstance(answer, Refuse):
        return f"conflict {answer.conflict.check} snapshot {answer.conflict.snapshot}"
    return f"run again {answer.conflict.check}" if isinstance(answer, RunAgain) else "ok"


@pytest.mark.parametrize(
    ("wanted", "unseen", "expected"),
    [
        pytest.param(
            MOR_DELETE,
            (UPDATE_OF_MY_ROW,),
            {
                "iceberg-spark": "ok",
                "iceberg-spark-fixed": "conflict no_new_delete_files snapshot 2",
                "lakeproof": "run again target_rows",
            },
            id="the undelete: a DELETE over an UPDATE that it did not see",
        ),
        pytest.param(
            MOR_DELETE._replace(isolation=SER),
            (UPDATE_OF_MY_ROW,),
            {
                "iceberg-spark": "conflict added_data_files snapshot 2",
                "iceberg-spark-fixed": "conflict no_new_delete_files snapshot 2",
                "lakeproof": "run again new_rows_match",
            },
            id="the same under serializable",
        ),
        pytest.param(
            GUARDED,
            (snapshot(2, deletes=at(f=[1])),),
            {
                "iceberg-spark": "ok",
                "iceberg-spark-fixed": "conflict no_new_delete_files snapshot 2",
                "lakeproof": "run again rows_read",
            },
            id="write skew: a DELETE guarded by a row that somebody else deleted",
        ),
        pytest.param(
            COW_UPDATE._replace(conflict_filter=Compare("k", "=", 9)),
            (snapshot(2, deletes=at(f=[1])), snapshot(3, adds=(file("z", (7, "z")),))),
            {
                "iceberg-spark": "conflict no_new_deletes_for_data_files snapshot 2",
                "iceberg-spark-fixed": "conflict no_new_deletes_for_data_files snapshot 2",
                "pyiceberg": "ok",
                "lakeproof": "ok",
            },
            id="the lost delete: PyIceberg looks at the newest snapshot alone; lakeproof carries the delete over",
        ),
        pytest.param(
            COW_UPDATE,
            (snapshot(2, deletes=at(f=[1])),),
            {
                "iceberg-spark": "conflict no_new_deletes_for_data_files snapshot 2",
                "iceberg-spark-fixed": "conflict no_new_deletes_for_data_files snapshot 2",
                "pyiceberg": "conflict no_new_deletes_for_data_files_at_head snapshot 2",
                "lakeproof": "ok",
            },
            id="when the delete is the newest snapshot everybody sees it",
        ),
        pytest.param(
            COW_UPDATE,
            (snapshot(2, removes=(F,), adds=(file("p", (0, "a"), (1, "b")),), operation=Operation.REPLACE),),
            {
                "iceberg-spark": "conflict missing_delete_paths snapshot None",
                "iceberg-spark-fixed": "conflict missing_delete_paths snapshot None",
                "pyiceberg": "conflict deleted_data_files snapshot 2",
                "lakeproof": "run again target_rows",
            },
            id="a file that I replace is gone",
        ),
        pytest.param(
            change(Command.INSERT, targets=(), conflict_filter=ALWAYS),
            (UPDATE_OF_MY_ROW,),
            dict.fromkeys(POLICIES, "ok"),
            id="an INSERT commits everywhere",
        ),
    ],
)
def test_one_schedule_under_each_policy(
    wanted: TableChange, unseen: tuple[Snapshot, ...], expected: dict[str, str]
) -> None:
    assert {name: word(answered(wanted, *unseen, policy=POLICIES[name])) for name in expected} == expected


def test_a_file_that_was_never_there_is_missing_too() -> None:
    checks = checks_of(ICEBERG_SPARK, COW_UPDATE.command, COW, COW_UPDATE.isolation)
    window = followed_all(COW_UPDATE, (), checks, SHAPE, scanned=TableState(1, 1, ()))
    assert window.gone == ("f",)
    assert word(validate(COW_UPDATE, window, ICEBERG_SPARK, checks)) == "conflict missing_delete_paths snapshot None"


def test_a_file_that_a_rewrite_added_again_under_its_name_is_there() -> None:
    checks = check_list(("missing_delete_paths",))
    removed = snapshot(2, removes=(F,))
    back = snapshot(3, adds=(F,))
    assert followed_all(COW_UPDATE, (removed,), checks, SHAPE).gone == ("f",)
    assert followed_all(COW_UPDATE, (removed, back), checks, SHAPE).gone == ()


def test_a_window_is_a_fold() -> None:
    """Whoever follows one snapshot after the other knows what a reader of the whole window knows."""
    unseen = (snapshot(2, deletes=at(f=[1])), snapshot(3, adds=(file("g", (5, "x")),)), snapshot(4, deletes=at(f=[0])))
    for policy in (LAKEPROOF, ICEBERG_SPARK):
        checks = checks_of(policy, MOR_DELETE.command, MOR_DELETE.mode, MOR_DELETE.isolation)
        window = open_window(MOR_DELETE, checks, SHAPE)
        for each in unseen:
            window = follow(MOR_DELETE, window, each, checks, SHAPE)
        assert window == followed_all(MOR_DELETE, unseen, checks, SHAPE)


def test_what_is_wrong_with_the_change_itself_is_found_before_any_window() -> None:
    wrong = change(Command.UPDATE, removed_data_files=(F,), added_delete_files=(MINE,))
    assert word(answered(wrong, policy=ICEBERG_SPARK)) == "conflict no_deletes_in_removed_files snapshot None"


@pytest.mark.parametrize(
    ("policy", "more", "expected"),
    [
        pytest.param(LAKEPROOF, {}, RunAgain, id="lakeproof runs again"),
        pytest.param(LAKEPROOF, {"reruns_left": False}, Refuse, id="until no rerun is left"),
        pytest.param(ICEBERG_SPARK, {}, Refuse, id="Spark refuses at once"),
    ],
)
def test_what_follows_a_conflict(policy: Any, more: dict[str, bool], expected: type) -> None:
    wanted = change(Command.UPDATE, added_delete_files=(MINE,))
    assert isinstance(answered(wanted, UPDATE_OF_MY_ROW, policy=policy, **more), expected)


def test_a_commit_without_row_checks_is_as_it_was_written() -> None:
    assert answered(change(Command.DELETE), policy=ICEBERG_SPARK) == Commit()
    assert answered(change(Command.DELETE)) == CommitWith(at(f=[0]))


# ---------------------------------------------------------------- equality deletes by column ranges


def _column(lower: Any, upper: Any, **more: bool) -> Bounds:
    return Bounds("k", lower, upper, **{"has_nulls": False, **more})


@pytest.mark.parametrize(
    ("deletes", "data", "conflicts"),
    [
        pytest.param(_column(5, 9), _column(1, 4), False, id="above"),
        pytest.param(_column(5, 9), _column(10, 12), False, id="below"),
        pytest.param(_column(5, 9), _column(9, 12), True, id="they touch"),
        pytest.param(_column(5, 9, has_nulls=True), _column(1, 4, has_nulls=True), True, id="null is in both"),
        pytest.param(Bounds("k", has_values=False), _column(1, 4), False, id="deletes null alone, and there is none"),
        pytest.param(_column(5, 9), Bounds("k", has_values=False), False, id="all null, and null is not deleted"),
        pytest.param(_column(None, None), _column(1, 4), True, id="nobody knows the range"),
        pytest.param(_column(5, 9), _column("a", "b"), True, id="ranges of two types"),
        pytest.param(_column(5.0, 9.0), _column(1.0, 4.0), True, id="NaN may be in both, and bounds leave it out"),
        pytest.param(_column(5.0, 9.0, has_nans=False), _column(1.0, 4.0), False, id="NaN is not deleted"),
        pytest.param(Bounds("other", 5, 9, has_nulls=False), _column(1, 4), True, id="of another column"),
    ],
)
def test_an_equality_delete_concerns_files_whose_range_it_meets(
    deletes: Bounds, data: Bounds, *, conflicts: bool
) -> None:
    mine = DataFile("f", bounds=(data,), record_count=1)
    by_value = DeleteFile(
        "e", DeleteContent.EQUALITY, positions=None, equality_columns=("k",), equality_values=None, bounds=(deletes,)
    )
    seen = snapshot(2)._replace(operation=Operation.OVERWRITE, added_delete_files=(by_value,))
    wanted = change(Command.UPDATE, mode=COW, targets=(), removed_data_files=(mine,))
    checks = check_list(("no_new_deletes_for_data_files",))
    found = followed_all(wanted, [seen], checks, SHAPE)
    assert (found.conflict is not None) is conflicts
