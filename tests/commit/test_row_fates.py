"""What became of rows, and what follows for the command that read them: the rules of `lakeproof`, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from commit_cases import COW, MOR, SER, F, answered, at, change, file, move, snapshot

from lakeproof.commit import (
    AlreadyCommitted,
    Answer,
    Command,
    Commit,
    CommitWith,
    Conflict,
    NothingLeft,
    Refuse,
    RunAgain,
    TableChange,
)
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.commit.rows import Walked, touched, walked
from lakeproof.filters import ALWAYS
from lakeproof.format import Bounds, DataFile, Operation, Rows, Snapshot

NEW_0 = file("g", (0, "a'"))
NEW_9 = file("g", (9, "moved away"))
PACKED = file("p", (1, "b"), (0, "a"))
PACKING = (move("f", [1], "p", 0), move("f", [0], "p", 1))
HERE = Walked(at(f=[0]), (), (), ())


@pytest.mark.parametrize(
    ("seen", "fates"),
    [
        pytest.param(snapshot(2, adds=(NEW_0,)), HERE, id="an append leaves it here"),
        pytest.param(snapshot(2, deletes=at(f=[1])), HERE, id="a delete of another row of the file leaves it here"),
        pytest.param(
            snapshot(2, deletes=at(f=[0])), Walked((), at(f=[0]), (), ()), id="deleted, if no data file is added"
        ),
        pytest.param(
            snapshot(2, deletes=at(f=[0]), adds=(NEW_0,)),
            Walked((), (), at(f=[0]), ()),
            id="updated, if a data file is added",
        ),
        pytest.param(
            snapshot(2, equality=at(f=[0])), Walked((), at(f=[0]), (), ()), id="an equality delete alone deletes it"
        ),
        pytest.param(
            snapshot(2, equality=at(f=[0]), adds=(NEW_0,)),
            Walked((), (), at(f=[0]), ()),
            id="an upsert updates it: the key may be back",
        ),
        pytest.param(
            snapshot(2, removes=(F,)), Walked((), at(f=[0]), (), ()), id="its file dropped, nothing added: deleted"
        ),
        pytest.param(
            snapshot(2, removes=(F,), adds=(PACKED,), mapping=PACKING, operation=Operation.REPLACE),
            Walked(at(p=[1]), (), (), ()),
            id="its file rewritten with a mapping: it is at its new place",
        ),
        pytest.param(
            snapshot(2, removes=(F,), adds=(NEW_0,), mapping=(move("f", [1], "g"),)),
            Walked((), (), at(f=[0]), ()),
            id="its file rewritten and it is not in the mapping: updated",
        ),
        pytest.param(
            snapshot(2, removes=(F,), adds=(PACKED,), mapping=PACKING, deletes=at(f=[0])),
            Walked((), (), at(f=[0]), ()),
            id="deleted and its file rewritten in one commit: the delete counts",
        ),
        pytest.param(
            snapshot(2, removes=(F,), adds=(PACKED,), operation=Operation.REPLACE),
            Walked((), (), (), at(f=[0])),
            id="its file rewritten without a mapping: lost",
        ),
        pytest.param(
            snapshot(2, equality=None, adds=(NEW_0,)),
            Walked((), (), (), at(f=[0])),
            id="an equality delete that nobody can follow: lost",
        ),
        pytest.param(snapshot(2, deletes=None), Walked((), (), (), at(f=[0])), id="positions that nobody knows: lost"),
        pytest.param(
            snapshot(2, deletes=at(f=[0]), operation=Operation.OVERWRITE),
            Walked((), at(f=[0]), (), ()),
            id="content decides, not the snapshot's own word",
        ),
    ],
)
def test_the_fate_of_a_row(seen: Snapshot, fates: Walked) -> None:
    assert walked(at(f=[0]), touched(seen)) == fates


# ---------------------------------------------------------------- who asks what

DELETE, UPDATE, MERGE = change(Command.DELETE), change(Command.UPDATE), change(Command.MERGE)
INSERT = change(Command.INSERT, targets=(), conflict_filter=ALWAYS)
PURE_DELETE = snapshot(2, deletes=at(f=[0]))
UPDATED_0 = snapshot(2, deletes=at(f=[0]), adds=(NEW_0,))
UPDATED_AWAY = snapshot(2, deletes=at(f=[0]), adds=(NEW_9,))
COMPACTED = snapshot(2, removes=(F,), adds=(PACKED,), mapping=PACKING, operation=Operation.REPLACE)
FOREIGN_COMPACTION = COMPACTED._replace(mapping=None)
INSERTED_0 = snapshot(2, adds=(NEW_0,))


def serializable(wanted: TableChange, **more: Any) -> TableChange:
    """The same command under serializable isolation."""
    return wanted._replace(isolation=SER, **more)


def copy_on_write(wanted: TableChange, **more: Any) -> TableChange:
    """The same command, replacing `f` by `n`, which keeps row 1 of it."""
    known = {
        "mode": COW,
        "removed_data_files": (F,),
        "added_data_files": (file("n", (1, "b")),),
        "kept": at(f=[1]),
        "mapping": (move("f", [1], "n"),),
    }
    return wanted._replace(**{**known, **more})


COMPACTION = copy_on_write(
    change(Command.REWRITE, targets=()),
    added_data_files=(file("n", (0, "a"), (1, "b")),),
    kept=at(f=[0, 1]),
    mapping=(move("f", [0, 1], "n"),),
)
ONLY_ROW = file("f", (0, "a"))
COW_DELETE_OF_ALL = copy_on_write(DELETE, removed_data_files=(ONLY_ROW,), added_data_files=(), kept=(), mapping=())


def again(check: str, number: int | None, *files: str, fate: str, mode: Any = MOR) -> RunAgain:
    """Run again, because of this conflict."""
    return RunAgain(Conflict(check, number, files, fate), mode)


@pytest.mark.parametrize(
    ("wanted", "unseen", "expected"),
    [
        pytest.param(UPDATE, (), CommitWith(at(f=[0])), id="an empty window lets everybody commit"),
        pytest.param(
            DELETE, (snapshot(2, command_id="mine"),), AlreadyCommitted(), id="my own command id is in the window: done"
        ),
        pytest.param(INSERT, (UPDATED_0, COMPACTED), Commit(), id="an INSERT of values conflicts with nothing"),
        pytest.param(
            change(Command.UPSERT, targets=()), (UPDATED_0,), Commit(), id="an equality-delete upsert neither"
        ),
        pytest.param(DELETE, (PURE_DELETE,), CommitWith(), id="two DELETEs of one row agree"),
        pytest.param(
            DELETE,
            (UPDATED_0,),
            again("target_rows", None, "g", fate="updated"),
            id="a DELETE whose row was updated runs again if the new version matches",
        ),
        pytest.param(
            DELETE, (UPDATED_AWAY,), CommitWith(), id="and commits if the new version does not match: it came too late"
        ),
        pytest.param(
            DELETE,
            (UPDATED_0, snapshot(3, deletes=at(g=[0]))),
            CommitWith(),
            id="and commits if the new version is gone too",
        ),
        pytest.param(
            DELETE,
            (UPDATED_0, snapshot(3, deletes=at(g=[0])), snapshot(4, adds=(file("h", (0, "new")),))),
            CommitWith(),
            id="and is not disturbed by a row that came after that",
        ),
        pytest.param(
            DELETE,
            (UPDATED_0, snapshot(3, deletes=at(g=[0]), adds=(file("h", (0, "a''")),))),
            again("target_rows", None, "h", fate="updated"),
            id="a row updated twice is asked for by its last version",
        ),
        pytest.param(
            change(Command.DELETE, targets=at(f=[0, 1]), conflict_filter=ALWAYS),
            (
                UPDATED_0,
                snapshot(3, deletes=at(f=[1]), adds=(file("h", (1, "b'")),)),
                snapshot(4, deletes=at(g=[0])),
            ),
            again("target_rows", None, "h", fate="updated"),
            id="nor can a DELETE of two rows count as started before the second of them was updated",
        ),
        pytest.param(
            UPDATE,
            (PURE_DELETE,),
            again("target_rows", 2, "f", fate="deleted"),
            id="an UPDATE whose row was deleted runs again",
        ),
        pytest.param(
            MERGE,
            (UPDATED_AWAY,),
            again("target_rows", 2, "f", fate="updated"),
            id="a MERGE whose row was updated runs again, wherever the row went",
        ),
        pytest.param(
            UPDATE,
            (snapshot(2, deletes=at(f=[1]), adds=(NEW_9,)),),
            CommitWith(at(f=[0])),
            id="other rows of the same file do not matter",
        ),
        pytest.param(UPDATE, (COMPACTED,), CommitWith(at(p=[1])), id="a compaction moves my positions along"),
        pytest.param(
            UPDATE,
            (FOREIGN_COMPACTION,),
            again("target_rows", 2, "f", fate="lost"),
            id="without a mapping nobody knows where the row went",
        ),
        pytest.param(
            UPDATE,
            (snapshot(2, removes=(F,), adds=(file("c", (0, "a"), (1, "b'")),), mapping=(move("f", [0], "c"),)),),
            CommitWith(at(c=[0])),
            id="a copy-on-write rewrite that kept my row moves it along too",
        ),
        pytest.param(
            UPDATE,
            (COMPACTED, snapshot(3, deletes=at(p=[1]))),
            again("target_rows", 3, "p", fate="deleted"),
            id="a row is followed through a compaction to its end",
        ),
        pytest.param(
            DELETE,
            (snapshot(2, equality=None, adds=(file("u", (5, "upserted")),)),),
            again("target_rows", 2, "f", fate="lost"),
            id="a DELETE does not take an equality delete that nobody can follow for its own",
        ),
        pytest.param(
            DELETE,
            (snapshot(2, deletes=None),),
            again("target_rows", 2, "f", fate="lost"),
            id="nor positions that nobody knows",
        ),
        pytest.param(UPDATE, (INSERTED_0,), CommitWith(at(f=[0])), id="snapshot isolation allows phantoms"),
        pytest.param(
            serializable(UPDATE),
            (INSERTED_0,),
            again("new_rows_match", None, "g", fate="added"),
            id="serializable does not",
        ),
        pytest.param(
            serializable(UPDATE),
            (snapshot(2, adds=(NEW_9,)),),
            CommitWith(at(f=[0])),
            id="a new row that does not match is none",
        ),
        pytest.param(
            serializable(UPDATE),
            (INSERTED_0, snapshot(3, deletes=at(g=[0]))),
            CommitWith(at(f=[0])),
            id="nor one that came and went inside the window",
        ),
        pytest.param(
            serializable(DELETE),
            (UPDATED_0,),
            again("new_rows_match", None, "g", fate="added"),
            id="under serializable a DELETE answers for the new version",
        ),
        pytest.param(serializable(DELETE), (UPDATED_AWAY,), CommitWith(), id="and not for one that left its predicate"),
        pytest.param(
            serializable(UPDATE),
            (COMPACTED,),
            CommitWith(at(p=[1])),
            id="a compaction brings no new row, under serializable either",
        ),
        pytest.param(
            serializable(change(Command.UPDATE, targets=at(x=[0]))),
            (FOREIGN_COMPACTION,),
            CommitWith(at(x=[0])),
            id="nor does another engine's, of files that I do not write to",
        ),
        pytest.param(
            serializable(change(Command.UPDATE, targets=at(x=[0]), conflict_filter=ALWAYS)),
            (snapshot(2, removes=(F,), adds=(file("c", (1, "b")),), mapping=(move("f", [1], "c"),)),),
            CommitWith(at(x=[0])),
            id="a row that a copy-on-write rewrite only kept is not new",
        ),
        pytest.param(
            serializable(UPDATE),
            (snapshot(2, adds=(DataFile("s", record_count=3, bounds=(Bounds("k", 5, 9),)),)),),
            CommitWith(at(f=[0])),
            id="values unknown: statistics say that no new row matches",
        ),
        pytest.param(
            serializable(UPDATE),
            (snapshot(2, adds=(DataFile("s", record_count=3, bounds=(Bounds("k", 0, 9),)),)),),
            again("new_rows_match", None, "s", fate="added"),
            id="values unknown: statistics say that one may",
        ),
        pytest.param(
            serializable(DELETE, reads=at(f=[1])),
            (snapshot(2, deletes=at(f=[1])),),
            again("rows_read", 2, "f", fate="deleted"),
            id="serializable: a row that only a subquery read must still be here",
        ),
        pytest.param(
            change(Command.DELETE, reads=at(f=[1])),
            (snapshot(2, deletes=at(f=[1])),),
            CommitWith(at(f=[0])),
            id="snapshot isolation allows that write skew",
        ),
        pytest.param(
            change(Command.DELETE, reads=at(f=[1])),
            (UPDATED_AWAY, snapshot(3, deletes=at(f=[1]))),
            again("rows_read", None, "f", fate="updated"),
            id="but not if the DELETE counts as started after the row it read changed",
        ),
        pytest.param(
            serializable(change(Command.INSERT_SELECT, targets=(), reads=at(f=[0]))),
            (PURE_DELETE,),
            again("rows_read", 2, "f", fate="deleted"),
            id="INSERT … SELECT must not insert what it no longer reads",
        ),
        pytest.param(
            copy_on_write(UPDATE),
            (snapshot(2, deletes=at(f=[1])),),
            CommitWith(carried=at(n=[0]), removed=("f",)),
            id="copy-on-write carries the delete of a kept row over to its new file",
        ),
        pytest.param(
            copy_on_write(UPDATE),
            (snapshot(2, equality=at(f=[1]), adds=(NEW_9,)),),
            CommitWith(carried=at(n=[0]), removed=("f",)),
            id="an equality delete becomes a position delete on the way",
        ),
        pytest.param(
            copy_on_write(change(Command.DELETE, targets=())),
            (snapshot(2, equality=None, adds=(NEW_9,)),),
            again("replaced_files", 2, "f", fate="lost"),
            id="and if nobody knows which rows it hits, the command runs again",
        ),
        pytest.param(
            copy_on_write(UPDATE),
            (COMPACTED,),
            again("replaced_files", 2, "f", fate="moved"),
            id="copy-on-write that lost its file runs again, as merge-on-read",
        ),
        pytest.param(
            COW_DELETE_OF_ALL,
            (snapshot(2, removes=(ONLY_ROW,)),),
            CommitWith(),
            id="a file that somebody dropped whole is gone as the DELETE wished",
        ),
        pytest.param(
            COW_DELETE_OF_ALL,
            (snapshot(2, removes=(ONLY_ROW,), adds=(PACKED,), mapping=PACKING, operation=Operation.REPLACE),),
            again("replaced_files", None, "p", fate="moved"),
            id="a file that a compaction replaced is not: its row lives on elsewhere",
        ),
        pytest.param(
            COMPACTION,
            (snapshot(2, deletes=at(f=[1])),),
            CommitWith(carried=at(n=[1]), removed=("f",)),
            id="a compaction carries deletes over",
        ),
        pytest.param(
            COMPACTION,
            (snapshot(2, deletes=at(f=[1])), snapshot(3, deletes=at(f=[0]))),
            CommitWith(carried=at(n=[0, 1]), removed=("f",)),
            id="of every snapshot in the window",
        ),
        pytest.param(
            COMPACTION,
            (snapshot(2, equality=at(f=[0]), adds=(NEW_0,)),),
            CommitWith(removed=("f",)),
            id="but not equality deletes: its output keeps its age",
        ),
        pytest.param(
            COMPACTION,
            (snapshot(2, equality=None, adds=(NEW_0,)),),
            CommitWith(removed=("f",)),
            id="whichever rows they hit",
        ),
        pytest.param(
            COMPACTION,
            (snapshot(2, deletes=None),),
            again("replaced_files", 2, "f", fate="lost", mode=COW),
            id="positions that nobody knows cannot be carried",
        ),
        pytest.param(
            COMPACTION,
            (COMPACTED,),
            again("replaced_files", 2, "f", fate="moved", mode=COW),
            id="a compaction whose input is gone plans again",
        ),
        pytest.param(
            COMPACTION._replace(kept=(), added_data_files=(), mapping=()),
            (snapshot(2, removes=(F,)),),
            NothingLeft(),
            id="unless that input gave no row: then nothing is left to do",
        ),
    ],
)
def test_who_asks_what(wanted: TableChange, unseen: tuple[Snapshot, ...], expected: Answer) -> None:
    answer = answered(wanted, *unseen)
    assert (type(answer), answer) == (type(expected), expected)


def test_when_no_rerun_is_left_the_user_sees_the_conflict() -> None:
    assert answered(UPDATE, PURE_DELETE, reruns_left=False) == Refuse(Conflict("target_rows", 2, ("f",), "deleted"))


def test_a_conflict_stays_however_the_window_grows() -> None:
    later = snapshot(3, adds=(file("z", (7, "z")),))
    assert answered(UPDATE, PURE_DELETE, later) == answered(UPDATE, PURE_DELETE)


@pytest.mark.parametrize(
    ("check", "wanted", "unseen"),
    [
        pytest.param("target_rows", UPDATE, PURE_DELETE, id="target_rows"),
        pytest.param("target_rows", serializable(UPDATE), PURE_DELETE, id="target_rows beside other row checks"),
        pytest.param("target_rows", DELETE, UPDATED_0, id="target_rows of a DELETE"),
        pytest.param(
            "replaced_files",
            copy_on_write(UPDATE),
            snapshot(2, removes=(F,), adds=(PACKED,), mapping=PACKING),
            id="replaced_files",
        ),
        pytest.param("new_rows_match", serializable(UPDATE), INSERTED_0, id="new_rows_match"),
        pytest.param(
            "rows_read", serializable(DELETE, reads=at(f=[1])), snapshot(2, deletes=at(f=[1])), id="rows_read"
        ),
        pytest.param(
            "row_ids_given",
            UPDATE._replace(before_row_ids=True, added_data_files=(file("new", (1, "new")),)),
            snapshot(2, adds=(file("z", (7, "z")),))._replace(gives_row_ids=True),
            id="row_ids_given",
        ),
    ],
)
def test_a_check_that_is_not_asked_never_says_no(check: str, wanted: TableChange, unseen: Snapshot) -> None:
    asked = answered(wanted, unseen)
    assert isinstance(asked, RunAgain)
    assert asked.conflict.check == check
    assert isinstance(answered(wanted, unseen, policy=LAKEPROOF.without(check)), Commit | CommitWith)


@pytest.mark.parametrize("rows", [at(f=[0]), at(f=[0], g=[3], h=[1, 2])], ids=["one file", "three files"])
def test_rows_of_many_files_are_followed_together(rows: Rows) -> None:
    seen = snapshot(2, deletes=at(g=[3]), removes=(file("h"),), adds=(file("i"),), mapping=(move("h", [2], "i", 5),))
    fates = walked(rows, touched(seen))
    if len(rows) == 1:
        assert fates == Walked(at(f=[0]), (), (), ())
    else:
        assert fates == Walked(at(f=[0], i=[5]), (), (*at(g=[3]), *at(h=[1])), ())
