"""What a command means on rows, before any file."""

from __future__ import annotations

import pytest

from lakeproof.commit import Command
from lakeproof.commit.meaning import (
    AmbiguousMerge,
    Assignment,
    Effect,
    Exists,
    Merge,
    MergeClause,
    RowCommand,
    Select,
    Term,
    effect,
    read_filter,
    target_filter,
)
from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, In, IsNull, Or, any_of, matches
from lakeproof.format import Row

COLUMNS = ("k", "v", "note")
ROWS: tuple[Row, ...] = ((0, 10, "a"), (1, 11, None), (2, None, "c"))
KEY_0, KEY_1, KEY_9 = (Compare("k", "=", key) for key in (0, 1, 9))
NEW: Row = (9, 99, "new")

SET_FROM_SOURCE = (Assignment("v", Term(column="value", source=True)),)
INSERT_SOURCE = (Term(column="key", source=True), Term(column="value", source=True), Term("merged"))
MATCHED_UPDATE = MergeClause("matched", "update", assignments=SET_FROM_SOURCE)
MATCHED_DELETE = MergeClause("matched", "delete")
NOT_MATCHED = MergeClause("not matched", "insert", values=INSERT_SOURCE)
NO_SOURCE = MergeClause("not matched by source", "delete")


def merge(*clauses: MergeClause, source: tuple[Row, ...] = ((1, 100), (7, 700))) -> RowCommand:
    """A MERGE on k = key."""
    return RowCommand(Command.MERGE, merge=Merge(("key", "value"), source, (("k", "key"),), clauses))


def update(where: Expression, *assignments: Assignment) -> RowCommand:
    """UPDATE … SET … WHERE."""
    return RowCommand(Command.UPDATE, where, assignments)


def select(*terms: Term, where: Expression = ALWAYS, aggregates: tuple[str, ...] = ()) -> RowCommand:
    """INSERT … SELECT … WHERE."""
    return RowCommand(Command.INSERT_SELECT, select=Select(where, terms, aggregates))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(RowCommand(Command.INSERT, rows=(NEW, NEW)), Effect(added=(NEW, NEW)), id="INSERT adds its rows"),
        pytest.param(
            RowCommand(Command.DELETE, Or((KEY_0, IsNull("v")))),
            Effect(((0, None), (2, None))),
            id="DELETE removes what matches",
        ),
        pytest.param(RowCommand(Command.DELETE, KEY_9), Effect(), id="DELETE of nothing does nothing"),
        pytest.param(
            RowCommand(Command.METADATA_DELETE, KEY_1), Effect(((1, None),)), id="DELETE of whole files is a DELETE"
        ),
        pytest.param(
            update(KEY_0, Assignment("v", Term(5)), Assignment("note", Term(column="k"))),
            Effect(((0, (0, 5, 0)),)),
            id="UPDATE sets literals and columns",
        ),
        pytest.param(
            update(KEY_1, Assignment("v", Term(column="v", plus=1)), Assignment("k", Term(column="v"))),
            Effect(((1, (11, 12, None)),)),
            id="UPDATE reads the old row in every assignment",
        ),
        pytest.param(
            update(Compare("k", "=", 2), Assignment("v", Term(column="v", plus=1))),
            Effect(((2, (2, None, "c")),)),
            id="null plus one is null",
        ),
        pytest.param(
            merge(MATCHED_UPDATE, NOT_MATCHED),
            Effect(((1, (1, 100, None)),), ((7, 700, "merged"),)),
            id="MERGE updates what matches and inserts the rest",
        ),
        pytest.param(merge(MATCHED_DELETE), Effect(((1, None),)), id="MERGE … WHEN MATCHED THEN DELETE"),
        pytest.param(
            merge(MATCHED_DELETE._replace(condition=Compare("v", ">", 50)), MATCHED_UPDATE),
            Effect(((1, (1, 100, None)),)),
            id="the first clause whose condition holds counts",
        ),
        pytest.param(
            merge(NOT_MATCHED._replace(condition=Compare("value", "<", 500))),
            Effect(),
            id="WHEN NOT MATCHED AND … looks at the source row",
        ),
        pytest.param(
            merge(NO_SOURCE), Effect(((0, None), (2, None))), id="WHEN NOT MATCHED BY SOURCE takes the other rows"
        ),
        pytest.param(
            merge(
                MATCHED_UPDATE,
                MergeClause(
                    "not matched by source",
                    "update",
                    condition=IsNull("v"),
                    assignments=(Assignment("note", Term("gone")),),
                ),
                NOT_MATCHED,
            ),
            Effect(((1, (1, 100, None)), (2, (2, None, "gone"))), ((7, 700, "merged"),)),
            id="all three kinds of clauses at once",
        ),
        pytest.param(
            merge(NOT_MATCHED, source=((None, 1),)),
            Effect(added=((None, 1, "merged"),)),
            id="a null key matches nothing, so it is inserted",
        ),
        pytest.param(
            RowCommand(Command.DELETE, KEY_0, exists=(Exists(KEY_1),)),
            Effect(((0, None),)),
            id="EXISTS holds: the DELETE happens",
        ),
        pytest.param(
            RowCommand(Command.DELETE, KEY_0, exists=(Exists(KEY_9),)), Effect(), id="EXISTS fails: nothing happens"
        ),
        pytest.param(
            RowCommand(Command.INSERT, rows=(NEW,), exists=(Exists(KEY_9, negative=True),)),
            Effect(added=(NEW,)),
            id="NOT EXISTS holds: the row is inserted",
        ),
        pytest.param(
            RowCommand(Command.INSERT, rows=(NEW,), exists=(Exists(KEY_0), Exists(KEY_1, negative=True))),
            Effect(),
            id="every guard must hold",
        ),
        pytest.param(
            select(Term(column="k", plus=10), Term(1), Term(column="note"), where=Or((KEY_0, KEY_1))),
            Effect(added=((10, 1, "a"), (11, 1, None))),
            id="INSERT … SELECT adds a row for each match",
        ),
        pytest.param(
            select(Term(5), Term(plus=1), Term(column="v"), aggregates=("", "count", "sum")),
            Effect(added=((5, 4, 21),)),
            id="aggregates give one row; sum leaves null out, count does not",
        ),
        pytest.param(
            select(Term(), Term(column="v"), where=KEY_9, aggregates=("count", "sum")),
            Effect(added=((0, None),)),
            id="of no rows the count is 0 and the sum is null",
        ),
        pytest.param(select(Term(1), where=KEY_9), Effect(), id="without aggregates no match adds no row"),
        pytest.param(
            RowCommand(Command.OVERWRITE, rows=(NEW,)),
            Effect(((0, None), (1, None), (2, None)), (NEW,)),
            id="INSERT OVERWRITE replaces everything",
        ),
        pytest.param(
            RowCommand(Command.OVERWRITE_PARTITIONS, rows=((1, 5, "x"), (4, 5, "x")), partition_columns=("k",)),
            Effect(((1, None),), ((1, 5, "x"), (4, 5, "x"))),
            id="INSERT OVERWRITE of partitions replaces those that it writes to",
        ),
        pytest.param(
            RowCommand(Command.OVERWRITE_PARTITIONS, rows=((8, 8, None),), partition_columns=("note",)),
            Effect(((1, None),), ((8, 8, None),)),
            id="the null partition is one of them",
        ),
        pytest.param(RowCommand(Command.REWRITE), Effect(), id="a compaction changes no row"),
        pytest.param(RowCommand(Command.REWRITE_DELETES), Effect(), id="nor does a rewrite of delete files"),
        pytest.param(
            RowCommand(Command.UPSERT, KEY_0, rows=(NEW,)),
            Effect(((0, None),), (NEW,)),
            id="an upsert deletes and adds",
        ),
    ],
)
def test_effect(command: RowCommand, expected: Effect) -> None:
    assert effect(command, ROWS, COLUMNS) == expected


def test_two_source_rows_for_one_target_row_are_refused() -> None:
    twice: tuple[Row, ...] = ((1, 100), (1, 200))
    with pytest.raises(AmbiguousMerge, match=r"source rows \[0, 1\] match one target row"):
        effect(merge(MATCHED_UPDATE, source=twice), ROWS, COLUMNS)
    untouched = MATCHED_UPDATE._replace(condition=Compare("v", ">", 50))
    assert effect(merge(untouched, source=twice), ROWS, COLUMNS) == Effect()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(RowCommand(Command.DELETE, KEY_0), KEY_0, id="DELETE: its WHERE"),
        pytest.param(RowCommand(Command.INSERT, rows=(NEW,)), NEVER, id="INSERT reads nothing"),
        pytest.param(merge(MATCHED_UPDATE), In("k", (1, 7)), id="MERGE: the keys of its source"),
        pytest.param(merge(MATCHED_UPDATE, NO_SOURCE), ALWAYS, id="MERGE with NOT MATCHED BY SOURCE: everything"),
        pytest.param(
            RowCommand(Command.DELETE, KEY_0, exists=(Exists(KEY_1),)), any_of([KEY_0, KEY_1]), id="and its subqueries"
        ),
        pytest.param(select(Term(1), where=KEY_9), KEY_9, id="INSERT … SELECT: the WHERE of the SELECT"),
    ],
)
def test_what_a_command_reads(command: RowCommand, expected: Expression) -> None:
    assert read_filter(command, COLUMNS) == expected


@pytest.mark.parametrize(
    "command",
    [
        update(KEY_0, Assignment("v", Term(1))),
        merge(MATCHED_UPDATE, NOT_MATCHED),
        merge(NO_SOURCE),
        RowCommand(Command.OVERWRITE_PARTITIONS, rows=(NEW, (0, 0, "x")), partition_columns=("k",)),
    ],
    ids=str,
)
def test_a_command_changes_only_rows_that_its_target_filter_matches(command: RowCommand) -> None:
    changed = {index for index, _ in effect(command, ROWS, COLUMNS).changed}
    targeted = {i for i, row in enumerate(ROWS) if matches(target_filter(command, COLUMNS), row, COLUMNS)}
    assert changed
    assert changed <= targeted
