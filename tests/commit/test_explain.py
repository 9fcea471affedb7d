"""A conflict in words."""

from __future__ import annotations

import pytest
from commit_cases import change

from lakeproof.commit import Command, Conflict
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.explain import because, explain_conflict, listed


def test_the_whole_message() -> None:
    conflict = Conflict("no_new_delete_files", 2, ("delete-1.parquet",))
    assert explain_conflict(conflict, change(Command.DELETE), table="db.people", head=2, scanned=1) == (
        "DELETE on db.people was not committed\n"
        "  check    no_new_delete_files\n"
        "  because  snapshot 2 added delete-1.parquet, which may delete rows that the DELETE reads\n"
        "  read at  snapshot 1; the table is now at snapshot 2\n"
        "  next     run the DELETE again; it will scan snapshot 2"
    )


def test_a_table_without_a_snapshot_is_called_empty() -> None:
    said = explain_conflict(Conflict("added_data_files", 1, ("a",)), change(), table="t", head=1, scanned=None)
    assert "  read at  an empty table; the table is now at snapshot 1" in said.splitlines()


@pytest.mark.parametrize("check", ALL_CHECKS)
def test_every_check_has_its_sentence(check: str) -> None:
    fate = "updated" if check == "target_rows" else ""
    said = because(Conflict(check, 2, ("f.parquet",), fate), "UPDATE")
    assert said != "the check said no"
    assert "{" not in said
    assert not said.endswith(".")
    assert ("f.parquet" in said) == (check not in ("history_known", "row_ids_given"))


@pytest.mark.parametrize(
    ("conflict", "said"),
    [
        (
            Conflict("target_rows", 7, ("f",), "updated"),
            "snapshot 7 updated rows of f that the UPDATE writes too",
        ),
        (
            Conflict("target_rows", 7, ("f",), "deleted"),
            "snapshot 7 deleted rows of f that the UPDATE rewrites",
        ),
        (
            Conflict("target_rows", 7, ("f",), "lost"),
            "snapshot 7 changed f without recording what became of its rows",
        ),
        (
            Conflict("target_rows", None, ("f",), "updated"),
            "somebody else updated rows of f that the UPDATE writes too",
        ),
        (
            Conflict("replaced_files", 7, ("f",), "moved"),
            "snapshot 7 replaced f, whose rows the UPDATE rewrites",
        ),
        (
            Conflict("replaced_files", 7, ("f",), "lost"),
            "snapshot 7 changed f without recording what became of its rows",
        ),
        (
            Conflict("new_rows_match", None, ("g",), "added"),
            "a row was added in g that the UPDATE would have read",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else f"{value.check}, {value.fate}, by {value.snapshot}",
)
def test_the_fate_of_rows_is_said(conflict: Conflict, said: str) -> None:
    assert because(conflict, "UPDATE") == said


@pytest.mark.parametrize(
    ("names", "said"),
    [((), "a file"), (("a",), "a"), (("a", "b", "c"), "a, b, c"), (("a", "b", "c", "d", "e"), "a, b, c and 2 more")],
)
def test_many_files_are_counted(names: tuple[str, ...], said: str) -> None:
    assert listed(names) == said
