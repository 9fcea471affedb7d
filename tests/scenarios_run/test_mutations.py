"""Breaking any single check or row rule makes scenarios fail; each mutant names those that must notice it.

One piece so that what is broken stands beside who notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from scenario_corpus import NAMES, forget_checks, found

from lakeproof.commit import POLICIES, Command, Conflict, Stamp, rows, validation, window
from lakeproof.commit.checks import (
    ALL_CHECKS,
    CHANGE_CHECKS,
    HEAD_CHECKS,
    NEWEST_ONLY,
    ROW_CHECKS,
    SNAPSHOT_CHECKS,
    WINDOW_CHECKS,
)
from lakeproof.commit.rows import RowMemory, Touched, Walked
from lakeproof.format import rows_of

Mutate = Callable[[pytest.MonkeyPatch], None]

NEVER_CONFLICTS = {
    "added_data_files": ("core_rowdelta_validate_no_conflicts", "seed_001_undelete_serializable"),
    "data_files_exist": (
        "core_rowdelta_validate_data_files_exist_validate_deletes",
        "seed_004_fig11_cow_delete_against_mor_update",
    ),
    "data_files_exist_skipping_deletes": (
        "core_rowdelta_validate_data_files_exist_defaults",
        "core_rowdelta_validate_data_files_exist_rewrite",
    ),
    "no_new_delete_files": ("core_rowdelta_concurrent_conflict_without_append_validation", "undelete"),
    "no_new_deletes_for_data_files": ("core_overwrite_concurrent_conflicting_position_deletes", "lost_delete"),
    "no_new_position_deletes_for_data_files": (
        "core_rowdelta_position_deletes_and_rewrite_that_keeps_the_sequence_number",
        "lost_delete_by_compaction",
    ),
    "deleted_data_files": ("core_overwrite_by_filter_conflicting_file_delete", "replace_partitions_deleted_data_files"),
    "added_vectors": ("core_rowdelta_concurrent_vectors_in_the_same_partition", "undelete_v3"),
    "no_new_deletes_for_data_files_at_head": ("lost_delete_needs_a_later_commit",),
    "no_deletes_in_removed_files": ("core_rowdelta_validate_file_delete_and_row_delete_same_file",),
    "delete_files_fit_format_version": (
        "core_rowdelta_no_vector_in_v2",
        "core_rowdelta_staged_position_delete_cannot_commit_to_v3",
    ),
    "added_files_match_overwrite_filter": ("overwrite_added_files_match_the_filter",),
    "missing_delete_paths": ("seed_004_fig7_cow_against_cow", "seed_004_fig10_missing_delete_paths_fails"),
    "whole_files_match": ("delete_files_by_filter_part_of_a_file",),
    "target_rows": ("rule_01_delete_looks_at_the_new_version", "rule_02_update_does_not_bring_back_a_deleted_row"),
    "replaced_files": ("rule_12_two_compactions_of_the_same_files", "rule_13_moved_rows_are_not_gone"),
    "new_rows_match": ("rule_03_inserted_row_is_seen", "write_skew_insert_select_sum"),
    "history_known": ("lakeproof_window_expired", "core_overwrite_incompatible_expiration_validated"),
    "row_ids_given": ("lakeproof_rows_of_an_upgraded_table_get_ids",),
    "rows_read": ("rule_04_rows_read_and_not_written", "write_skew", "write_skew_insert_select_count"),
}

ALWAYS_CONFLICTS = {
    "added_data_files": ("core_overwrite_compatible_addition_validated",),
    "data_files_exist": ("core_rowdelta_files_exist_with_conflict_filter",),
    "data_files_exist_skipping_deletes": ("undelete",),
    "no_new_delete_files": ("core_rowdelta_concurrent_non_conflicting",),
    "no_new_deletes_for_data_files": ("rewrite_files_added_data_is_no_conflict",),
    "no_new_position_deletes_for_data_files": ("core_rowdelta_and_rewrite_that_keeps_the_sequence_number",),
    "deleted_data_files": ("core_overwrite_by_filter_non_conflicting_file_delete",),
    "added_vectors": ("core_rowdelta_concurrent_vectors_in_different_partitions",),
    "no_new_deletes_for_data_files_at_head": ("lost_delete",),
    "no_deletes_in_removed_files": ("core_rowdelta_only_delete_files_is_a_delete",),
    "delete_files_fit_format_version": ("undelete_v3",),
    "added_files_match_overwrite_filter": ("core_overwrite_by_filter_inherits_the_conflict_filter",),
    "missing_delete_paths": ("seed_004_fig9_missing_delete_paths_passes",),
    "whole_files_match": ("delete_files_by_filter_whole_files",),
    "history_known": ("lakeproof_scan_snapshot_expired", "core_overwrite_compatible_expiration_validated"),
    "row_ids_given": ("lakeproof_rows_not_files", "lakeproof_rows_of_an_upgraded_table_get_ids"),
}


@pytest.fixture(autouse=True)
def _checks_are_looked_up_anew() -> Iterator[None]:
    forget_checks()
    yield
    forget_checks()


def never(*_: Any, **__: Any) -> None:
    return None


def silenced(name: str, patch: pytest.MonkeyPatch) -> None:
    """The check never says no."""
    for table in (SNAPSHOT_CHECKS, NEWEST_ONLY):
        if name in table:
            patch.setitem(table, name, (never, table[name][1]))
    if name in CHANGE_CHECKS:
        patch.setitem(CHANGE_CHECKS, name, never)
    if name in HEAD_CHECKS:
        patch.setattr(validation, name, never)
    if name in WINDOW_CHECKS:
        patch.setattr(window, name, never)
    if name in ROW_CHECKS:
        patch.setattr(window, "followed", _deaf_to(name, rows.followed, asked_at=3))
        patch.setattr(validation, "conflict_now", _deaf_to(name, validation.conflict_now, asked_at=2))


def _deaf_to(name: str, function: Callable[..., Any], *, asked_at: int) -> Callable[..., Any]:
    def without(*arguments: Any) -> Any:
        asked = arguments[asked_at] - {name}
        return function(*arguments[:asked_at], asked, *arguments[asked_at + 1 :])

    return without


def test_every_check_has_a_mutant() -> None:
    assert set(NEVER_CONFLICTS) == set(ALL_CHECKS)
    assert set(ALWAYS_CONFLICTS) == set(ALL_CHECKS) - set(ROW_CHECKS)


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_a_check_that_never_conflicts_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silenced(name, monkeypatch)
    assert [one for one in NEVER_CONFLICTS[name] if not found(one)] == []


@pytest.mark.parametrize("name", ALWAYS_CONFLICTS)
def test_a_check_that_always_conflicts_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def always(*_: Any) -> Conflict:
        return Conflict(name)

    for table in (SNAPSHOT_CHECKS, NEWEST_ONLY):
        if name in table:
            monkeypatch.setitem(table, name, (always, table[name][1]))
    if name in CHANGE_CHECKS:
        monkeypatch.setitem(CHANGE_CHECKS, name, always)
    if name in HEAD_CHECKS:
        monkeypatch.setattr(window, "_gone", lambda change, gone, snapshot: ("x",))
        monkeypatch.setattr(validation, name, always)
    if name in WINDOW_CHECKS:
        monkeypatch.setattr(window, name, always)
    assert [one for one in ALWAYS_CONFLICTS[name] if not found(one)] == []


# ---------------------------------------------------------------- the fate of a row


def fates(change: Callable[[Walked], Walked]) -> Mutate:
    """Every walk ends otherwise."""
    walk = rows.walked
    return lambda patch: patch.setattr(rows, "walked", lambda which, by: change(walk(which, by)))


def mapping(change: Callable[[str, int], tuple[list[tuple[str, int]], int]]) -> Mutate:
    """Every mapping leads elsewhere."""
    return lambda patch: patch.setattr(rows, "moved", lambda mapping, file, bits: change(file, bits))


def memory(**fields: Any) -> Mutate:
    """A writer forgets a part of what it should remember."""
    follow = rows.followed

    def forgetful(*arguments: Any) -> RowMemory | Conflict:
        after = follow(*arguments)
        return after if isinstance(after, Conflict) else after._replace(**fields)

    return lambda patch: patch.setattr(window, "followed", forgetful)


def touched(**fields: Any) -> Mutate:
    """A part of what a snapshot did to rows is overlooked."""
    look = rows.touched
    return lambda patch: patch.setattr(rows, "touched", lambda snapshot: look(snapshot)._replace(**fields))


def of_rows(name: str, value: Any) -> Mutate:
    return lambda patch: patch.setattr(rows, name, value)


def as_if_a_compaction(patch: pytest.MonkeyPatch) -> None:
    carried = rows._carried
    patch.setattr(rows, "_carried", lambda change, *rest: carried(change._replace(command=Command.REWRITE), *rest))


def nothing_is_deleted_again(patch: pytest.MonkeyPatch) -> None:
    unseen = rows._still_unseen

    def kept(change: Any, before: Any, by: Touched, *rest: Any) -> Any:
        return unseen(change, before, by._replace(positions={}, equality={}), *rest)

    patch.setattr(rows, "_still_unseen", kept)


def moved_targets_are_gone(patch: pytest.MonkeyPatch) -> None:
    now = validation.conflict_now
    patch.setattr(
        validation, "conflict_now", lambda change, memory, asked: now(change, memory._replace(targets=()), asked)
    )


def carried_in_place(patch: pytest.MonkeyPatch) -> None:
    carried = rows._carried

    def unshifted(change: Any, *rest: Any) -> Any:
        mapping = tuple(move._replace(start=0) for move in change.mapping or ())
        return carried(change._replace(mapping=mapping), *rest)

    patch.setattr(rows, "_carried", unshifted)


def only_the_newest_start(patch: pytest.MonkeyPatch) -> None:
    def newest(missed: Any, targets: Walked, unseen: Any, by: Touched) -> Any:
        if (missed is None and not targets.updated) or not unseen:
            return None
        return frozenset({unseen})

    patch.setattr(rows, "_missed", newest)


ROW_RULES: dict[str, tuple[Mutate, tuple[str, ...]]] = {
    "a deleted row is still here": (
        fates(lambda w: w._replace(here=rows_of((*w.here, *w.deleted)), deleted=())),
        ("rule_02_update_does_not_bring_back_a_deleted_row",),
    ),
    "a deleted row was updated": (
        fates(lambda w: w._replace(updated=(*w.updated, *w.deleted), deleted=())),
        ("lakeproof_two_deletes_and_an_insert",),
    ),
    "a deleted row was lost": (
        fates(lambda w: w._replace(lost=(*w.lost, *w.deleted), deleted=())),
        ("lakeproof_two_deletes_agree", "lakeproof_two_deletes_of_a_whole_file_agree"),
    ),
    "an updated row was deleted": (
        fates(lambda w: w._replace(deleted=(*w.deleted, *w.updated), updated=())),
        ("rule_01_delete_looks_at_the_new_version", "rule_14_the_window_knows_who_removed_a_row", "undelete"),
    ),
    "an updated row is still here": (
        fates(lambda w: w._replace(here=rows_of((*w.here, *w.updated)), updated=())),
        ("rule_05_run_again_means_new_files", "lakeproof_upsert_of_the_updated_row"),
    ),
    "an updated row was lost": (
        fates(lambda w: w._replace(lost=(*w.lost, *w.updated), updated=())),
        ("lakeproof_updated_row_leaves_the_filter",),
    ),
    "a lost row was deleted": (
        fates(lambda w: w._replace(deleted=(*w.deleted, *w.lost), lost=())),
        ("lakeproof_lost_rows_run_again", "lakeproof_lost_rows_of_a_foreign_copy_on_write"),
    ),
    "a lost row was updated": (
        fates(lambda w: w._replace(updated=(*w.updated, *w.lost), lost=())),
        ("lakeproof_lost_rows_run_again",),
    ),
    "a lost row is still here": (
        fates(lambda w: w._replace(here=rows_of((*w.here, *w.lost)), lost=())),
        ("lakeproof_lost_rows_run_again", "lakeproof_lost_read_rows"),
    ),
    "a moved row stays at its place": (
        mapping(lambda file, bits: ([(file, bits)], 0)),
        ("rule_07_mapping_is_followed_on_every_attempt", "lakeproof_compaction_brings_no_new_rows"),
    ),
    "a moved row keeps its position": (
        lambda patch: patch.setattr(
            rows, "moved", lambda mapping, file, bits: ([(mapping[0].new_file, bits)] if mapping else [], 0)
        ),
        ("rule_08_followed_rows_are_shifted", "rule_08_positions_close_ranks"),
    ),
    "a moved row was not kept": (
        mapping(lambda file, bits: ([], bits)),
        ("rule_08_followed_rows_are_shifted", "lakeproof_read_rows_are_followed"),
    ),
    "position deletes are overlooked": (
        touched(positions={}),
        ("rule_02_update_does_not_bring_back_a_deleted_row", "rule_06_compaction_carries_deletes_over"),
    ),
    "equality deletes are overlooked": (
        touched(equality={}),
        ("lakeproof_upsert_of_the_updated_row", "rule_15_copy_on_write_carries_equality_deletes"),
    ),
    "deletes that nobody can follow hit nothing": (
        touched(unknown_positions=False, unknown_equality=False),
        ("lakeproof_deletes_that_nobody_can_follow",),
    ),
    "removed files are overlooked": (
        touched(removed=frozenset()),
        ("rule_12_two_compactions_of_the_same_files", "lakeproof_update_of_a_dropped_file"),
    ),
    "every commit is a pure delete": (touched(pure_delete=True), ("rule_01_delete_looks_at_the_new_version",)),
    "no commit is a pure delete": (
        touched(pure_delete=False),
        ("lakeproof_two_deletes_and_an_insert", "lakeproof_foreign_drop_of_a_whole_file"),
    ),
    "two deletes do not agree": (of_rows("ONLY_REMOVES", frozenset()), ("lakeproof_two_deletes_agree",)),
    "an update agrees with a delete": (
        of_rows("ONLY_REMOVES", frozenset(Command)),
        ("rule_02_update_does_not_bring_back_a_deleted_row",),
    ),
    "nothing is carried over": (
        memory(carried=()),
        (
            "rule_06_compaction_carries_deletes_over",
            "rule_06_copy_on_write_carries_deletes_over",
            "rule_07_carry_over_is_computed_on_every_attempt",
        ),
    ),
    "copy-on-write does not carry equality deletes": (
        as_if_a_compaction,
        ("rule_15_copy_on_write_carries_equality_deletes",),
    ),
    "a carried delete keeps its position": (carried_in_place, ("rule_08_carried_deletes_are_shifted",)),
    "moved targets of copy-on-write are gone": (moved_targets_are_gone, ("rule_13_moved_rows_are_not_gone",)),
    "a gone input with kept rows is fine": (
        of_rows("replaced_conflict", never),
        ("rule_12_two_compactions_of_the_same_files", "rule_13_input_with_kept_rows_is_gone"),
    ),
    "new rows are forgotten": (memory(unseen=()), ("rule_03_inserted_row_is_seen",)),
    "a new row that was deleted again counts": (
        nothing_is_deleted_again,
        ("lakeproof_inserted_and_deleted_in_the_window",),
    ),
    "kept rows are new rows": (
        of_rows("images", lambda mapping, file: 0),
        ("lakeproof_kept_neighbours_are_no_new_rows",),
    ),
    "every new row matches": (
        of_rows("matching_rows", lambda change, file, shape: file.all_rows),
        ("lakeproof_other_rows_inserted", "lakeproof_unknown_rows_by_statistics"),
    ),
    "rows that nobody knows do not match": (
        of_rows("may_match_file", lambda *_: False),
        ("lakeproof_unknown_rows_by_statistics",),
    ),
    "no version is missed": (
        of_rows("_missed", never),
        ("rule_01_delete_looks_at_the_new_version", "rule_14_the_window_knows_who_removed_a_row"),
    ),
    "only the newest start is tried": (only_the_newest_start, ("lakeproof_delete_started_in_between",)),
    "rows that were read are forgotten": (memory(reads=()), ("lakeproof_subquery_restart",)),
    "a later start reads the same": (memory(restarted=False), ("lakeproof_subquery_restart",)),
}


@pytest.mark.parametrize("wrong", ROW_RULES)
def test_a_wrong_row_rule_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, killers = ROW_RULES[wrong]
    mutate(monkeypatch)
    assert [one for one in killers if not found(one)] == []


# ---------------------------------------------------------------- what Lakeproof does beside asking

SWITCHES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "conflicts abort": ({"runs_again": False}, ("undelete", "rule_05_run_again_means_new_files")),
    "deletes are not carried over": (
        {"carries_deletes": False},
        ("rule_06_compaction_carries_deletes_over", "lost_delete"),
    ),
    "compactions record no mapping": ({"maps_rewrites": False}, ("rule_08_followed_rows_are_shifted",)),
    "copy-on-write records no mapping": (
        {"maps_copy_on_write": False},
        ("lakeproof_kept_neighbours_are_no_new_rows", "seed_004_fig11_cow_delete_against_mor_update"),
    ),
    "copy-on-write stays copy-on-write": (
        {"falls_back_to_merge_on_read": False},
        ("lakeproof_copy_on_write_falls_back",),
    ),
    "nobody looks for its own commit": (
        {"finds_own_commit": False},
        ("rule_17_lost_answer_is_looked_up", "rule_17_own_id_is_looked_for_on_every_attempt"),
    ),
    "dangling deletes stay": ({"drops_dangling_deletes": False}, ("lakeproof_compaction_of_a_dead_file",)),
    "a compaction's output is new": (
        {"compaction_stamp": Stamp.NEW},
        ("rule_10_compaction_keeps_the_age_of_its_rows",),
    ),
    "a compaction's output is as old as its oldest input": (
        {"compaction_stamp": Stamp.MINIMUM},
        ("rule_10_compaction_is_not_older_than_its_rows",),
    ),
    "aging overlooks the files added": (
        {"aging_counts_added_files": False},
        ("rule_11_aging_counts_the_rewritten_files",),
    ),
    "only the target's predicate counts": ({"filters_by_all_reads": False}, ("write_skew_insert_select_sum",)),
}


@pytest.mark.parametrize("wrong", SWITCHES)
def test_a_switch_of_lakeproof_set_wrong_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields, killers = SWITCHES[wrong]
    monkeypatch.setitem(POLICIES, "lakeproof", replace(POLICIES["lakeproof"], **fields))
    assert [one for one in killers if not found(one)] == []


def test_every_scenario_that_must_notice_exists() -> None:
    tables = (*NEVER_CONFLICTS.values(), *ALWAYS_CONFLICTS.values())
    killers = {one for table in (ROW_RULES, SWITCHES) for _, names in table.values() for one in names}
    assert {one for names in tables for one in names} | killers <= set(NAMES)
