"""Rows have ids (format v3): handed out at every try, kept by every move, never given twice; wrong rules are found."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, READS, forget_everything, holds, searched, violated

from in_part import in_part
from lakeproof.commit import writing
from lakeproof.commit.policy import Policy
from lakeproof.errors import InvalidInput
from lakeproof.format import Snapshot, TableState, inherited, positions
from lakeproof.models.iceberg import committing
from lakeproof.models.iceberg.judging import ROW_IDS

snapshots = import_module("lakeproof.commit.snapshots")  # the package gives the function of that name
FORMS = int(os.environ.get("LAKEPROOF_FORMS", "12"))
SEED = int(os.environ.get("LAKEPROOF_FORMS_SEED", "1"))
V3: dict[str, Any] = {"format_version": 3, "row_ids": True}
TWO_ROWS: dict[str, Any] = {"num_keys": 2, "initial": "one-file", "max_write_ops": 2}
COPIES: dict[str, Any] = {"update_mode": "copy-on-write", "delete_mode": "copy-on-write"}
SPACES: list[tuple[dict[str, Any], int]] = [
    ({}, 282),
    ({**TWO_ROWS, "max_compactions": 1}, 1955),
    ({**TWO_ROWS, "max_compactions": 1, "measure_aborts": False, **COPIES}, 348),
    ({**TWO_ROWS, "duplicates": True, "commands": "insert,merge", "isolation": "serializable"}, 405),
]


@pytest.fixture(autouse=True)
def _no_answer_outlives_its_rule() -> Iterator[None]:
    forget_everything()
    yield
    forget_everything()


@pytest.mark.parametrize("modes", [{}, COPIES, {"max_compactions": 1, "commands": "insert,delete"}])
def test_rows_of_an_upgraded_table_keep_the_ids_that_the_first_commit_gives(modes: dict[str, Any]) -> None:
    """Whoever scanned before that commit stored no ids for the rows that it wrote again."""
    space = {**V3, **TWO_ROWS, **modes, "initial": "two-files", "row_ids": "after-upgrade"}
    right = searched(**space)
    assert holds(right)
    assert right.property("some commit is refused by row_ids_given").verdict == "holds"
    assert violated(searched(LAKEPROOF.without("row_ids_given"), **space)) == {"row_ids_are_kept"}


@pytest.mark.parametrize(("space", "states"), SPACES)
def test_ids_are_given_kept_and_never_given_again_and_make_no_new_state(space: dict[str, Any], states: int) -> None:
    with_ids, without = searched(**V3, **space), searched(format_version=3, **space)
    assert holds(with_ids)
    assert {test.__name__ for test in ROW_IDS} <= {p.name for p in with_ids.properties}
    assert (with_ids.states, without.states) == (states, states)
    reached = {p.name: p.verdict for p in with_ids.properties if "id" in p.name.split() and p.kind == "reachable"}
    assert reached
    assert set(reached.values()) == {"holds"}


def test_rows_have_ids_in_format_v3_alone() -> None:
    with pytest.raises(InvalidInput, match="format v3 alone"):
        searched(row_ids=True)


# ---------------------------------------------------------------- wrong rules


def ids_before_the_retry(patch: pytest.MonkeyPatch) -> Policy:
    """New rows are numbered at the first try, and keep their numbers when the swap was lost."""
    return replace(LAKEPROOF, row_ids_at_first_try=True)


def update_mints(patch: pytest.MonkeyPatch) -> Policy:
    """An UPDATE gives the rows that it changes new ids."""
    return replace(LAKEPROOF, mints_row_ids=True)


def moves_mint(patch: pytest.MonkeyPatch) -> None:
    """A compaction stores no ids, so its rows inherit new ones."""
    patch.setattr(writing, "with_lineage", lambda done, table, *, mints=False: done)


def update_keeps_the_last_change(patch: pytest.MonkeyPatch) -> None:
    """An UPDATE copies the number of the last change too, so the row looks as if it had only moved."""
    right = writing.with_lineage

    def stored(done: Any, table: TableState, *, mints: bool = False) -> Any:
        known = {(f.path, p): pair for f in table.data_files for p, pair in enumerate(inherited(f))}
        done = right(done, table, mints=mints)
        files = (
            f._replace(lineage=tuple(known.get(origin, (None, None)) for origin in origins))
            for f, origins in zip(done.change.added_data_files, done.origins, strict=True)
        )
        return done._replace(change=done.change._replace(added_data_files=tuple(files)))

    patch.setattr(writing, "with_lineage", stored)


def ids_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A commit hands out ids and leaves the table's next one as it is."""
    right = snapshots.with_row_ids
    patch.setattr(snapshots, "with_row_ids", lambda first, *files: (*right(first, *files)[:2], first))


def vectors_unmerged(patch: pytest.MonkeyPatch) -> None:
    """A new deletion vector replaces the old one of its file without its positions."""
    right = snapshots.added_delete_files

    def added(head: TableState, *rest: Any) -> Any:
        files, replaced = right(head, *rest)
        new, _ = right(head._replace(delete_files=()), *rest)
        return (new if replaced else files), replaced

    patch.setattr(snapshots, "added_delete_files", added)


def vectors_removed_by_path(patch: pytest.MonkeyPatch) -> None:
    """All vectors of one commit are in one Puffin, and whoever replaces or drops one drops whatever has its path."""
    merged, dropped = snapshots.added_delete_files, snapshots.dropped_delete_files

    def of_one_puffin(head: TableState, paths: frozenset[str]) -> frozenset[str]:
        puffins = {file.sequence_number for file in head.delete_files if file.path in paths}
        return frozenset(file.path for file in head.delete_files if file.sequence_number in puffins)

    def added(head: TableState, *rest: Any) -> Any:
        files, replaced = merged(head, *rest)
        return files, of_one_puffin(head, replaced)

    patch.setattr(snapshots, "added_delete_files", added)
    patch.setattr(snapshots, "dropped_delete_files", lambda head, *rest: of_one_puffin(head, dropped(head, *rest)))


def rows_followed_by_id_alone(patch: pytest.MonkeyPatch) -> None:
    """Whoever follows rows by their ids takes a row that was changed for one that was moved."""
    right = committing.row_ids_of

    def without_changes(file: Any) -> Any:
        found = right(file)
        return found and found._replace(last_updated=found.last_updated * 0)

    patch.setattr(committing, "row_ids_of", without_changes)


BY_AGE = {"names": "by-age"}
SHARED_PUFFIN = {**BY_AGE, **TWO_ROWS, "initial": "two-files", "commands": "update,delete", "max_compactions": 1}
Break = Callable[[pytest.MonkeyPatch], Policy | None]
WRONG: list[tuple[Break, dict[str, Any], set[str]]] = [
    (ids_before_the_retry, {**TWO_ROWS, "initial": "empty"}, {"row_ids_are_never_reused", "row_ids_are_unique"}),
    (ids_before_the_retry, {**TWO_ROWS, "commands": "insert,merge", "duplicates": True}, {"row_ids_are_unique"}),
    (update_mints, TWO_ROWS, {"row_ids_are_kept"}),
    (update_mints, {**TWO_ROWS, **COPIES}, {"row_ids_are_kept"}),
    (moves_mint, {**TWO_ROWS, "max_compactions": 1, "commands": "delete"}, {"row_ids_are_kept"}),
    (update_keeps_the_last_change, TWO_ROWS, {"last_changes_are_told"}),
    (ids_are_not_counted, {**TWO_ROWS, "initial": "empty"}, {"row_ids_are_never_reused"}),
    (vectors_unmerged, TWO_ROWS, READS),
    (vectors_removed_by_path, SHARED_PUFFIN, READS),
    (rows_followed_by_id_alone, {**TWO_ROWS, "update_mode": "copy-on-write"}, {"isolation_kept"}),
]


@pytest.mark.parametrize(
    ("fault", "space", "found"), WRONG, ids=[f"{fault.__name__}-{i}" for i, (fault, _, _) in enumerate(WRONG)]
)
def test_a_wrong_rule_is_found_and_the_right_one_holds(
    fault: Break, space: dict[str, Any], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holds(searched(**V3, **space))
    forget_everything()
    policy = fault(monkeypatch) or LAKEPROOF
    assert violated(searched(policy, **V3, **space)) >= found


# ---------------------------------------------------------------- rows are followed by their ids


def test_ids_tell_what_a_recorded_mapping_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    right, asked = committing.followed_by_ids, list[int]()

    def compared(snapshot: Snapshot) -> Snapshot:
        found = right(snapshot)
        if snapshot.mapping is not None and snapshot.removed_data_files:
            assert _moves(found) == _moves(snapshot)
            asked.append(len(_moves(found)))
        return found

    monkeypatch.setattr(committing, "followed_by_ids", compared)
    for modes in ({}, COPIES):
        assert holds(searched(**V3, **TWO_ROWS, **modes, max_compactions=1))
    assert {0, 1, 2} <= {*asked}


def _moves(snapshot: Snapshot) -> set[tuple[str, int, str, int]]:
    moves = snapshot.mapping or ()
    return {(m.old_file, p, m.new_file, m.start + i) for m in moves for i, p in enumerate(positions(m.rows))}


def test_rows_are_followed_through_rewrites_that_record_nothing() -> None:
    """Without ids a row of a rewritten file is lost, and the command runs again; with them it never has to."""
    others = {"others": "anybody", "others_may": "unmapped-compaction", "commands": "delete", "predicates": "id"}
    lost = "some commit is refused by target_rows"
    for row_ids in (False, True):
        verdict = searched(format_version=3, row_ids=row_ids, **TWO_ROWS, **others)
        assert holds(verdict)
        assert verdict.property(lost).verdict == ("violated" if row_ids else "holds")


# ---------------------------------------------------------------- the form in which ids are explored


@pytest.mark.parametrize("seed", in_part(range(SEED, SEED + FORMS), every=3))
def test_the_forms_of_row_ids_agree(seed: int) -> None:
    dice = random.Random(f"row ids {seed}")
    kinds = ["insert", "update", "delete", "merge", "delete-exists", "overwrite", "metadata-delete"]
    flags: dict[str, Any] = dice.choice(
        ({}, {}, {"row_ids_at_first_try": True}, {"mints_row_ids": True}, {"carries_deletes": False})
    )
    policy: Any = replace(LAKEPROOF, **flags)
    partitioned = dice.random() < 0.3
    space = {
        **V3,
        "commands": ",".join(dice.sample(kinds if partitioned else kinds[:-1], 3)),
        "num_keys": 2,
        "initial": dice.choice(("one-file", "two-files", "empty")),
        "predicates": "id",
        "isolation": dice.choice(("snapshot", "serializable")),
        "update_mode": dice.choice(("merge-on-read", "copy-on-write")),
        "delete_mode": dice.choice(("merge-on-read", "copy-on-write")),
        "max_write_ops": 2,
        "max_compactions": dice.choice((0, 1)),
        "unknown_outcomes": dice.random() < 0.15,
        "partitioned": partitioned,
        "measure_aborts": False,
        "lean": False,
    }
    if not flags and dice.random() < 0.5:
        space |= {"num_writers": 1, "others": "anybody", "unknown_outcomes": False, "commands": dice.choice(kinds[:4])}
        space |= {"max_compactions": "unbounded", "col2_values": "red"}
    canonical = violated(searched(policy, **space))
    assert canonical == violated(searched(policy, reductions=(), **space)), (flags, space)
    if "others" not in space:
        assert canonical == violated(searched(policy, names="by-age", **space)), (flags, space)
