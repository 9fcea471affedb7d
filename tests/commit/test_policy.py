"""What each engine asks of each command: the policy tables, compared word for word with how the engines behave."""

from __future__ import annotations

from itertools import product

import pytest

from lakeproof.commit import POLICIES, Command, Isolation, Mode, Policy, Stamp, check_list, checks_of
from lakeproof.commit.checks import ALL_CHECKS, CHANGE_CHECKS, HEAD_CHECKS, ROW_CHECKS, Part, describe_check
from lakeproof.commit.policy import LAKEPROOF, Line

ROW_LEVEL = {Command.DELETE, Command.UPDATE, Command.MERGE}
OVERWRITES = {Command.OVERWRITE, Command.OVERWRITE_PARTITIONS}
EVERYTHING = list(product(POLICIES, Command, Mode, Isolation, (2, 3)))


def spark(command: Command, mode: Mode, isolation: Isolation, version: int) -> set[str]:
    """What Apache Iceberg on Spark enables, from its sources."""
    serializable = {"added_data_files"} if isolation is Isolation.SERIALIZABLE else set()
    if command in ROW_LEVEL and mode is Mode.COPY_ON_WRITE:
        return {"no_new_deletes_for_data_files", "missing_delete_paths"} | serializable
    if command in ROW_LEVEL:
        every_row_delta = {"no_deletes_in_removed_files", "delete_files_fit_format_version"} | serializable
        every_row_delta |= {"added_vectors"} if version == 3 else set()
        if command is Command.DELETE:
            return every_row_delta | {"data_files_exist_skipping_deletes"}
        return every_row_delta | {"data_files_exist", "missing_delete_paths", "no_new_delete_files"}
    return {
        Command.METADATA_DELETE: {"whole_files_match"},
        Command.OVERWRITE: {"whole_files_match"},
        Command.REWRITE: {"missing_delete_paths", "no_new_position_deletes_for_data_files"},
        Command.REWRITE_DELETES: {"missing_delete_paths"},
    }.get(command, set())


def spark_fixed(command: Command, mode: Mode, isolation: Isolation, version: int) -> set[str]:
    """The same, but a merge-on-read DELETE asks what an UPDATE asks."""
    asks_as = Command.UPDATE if command is Command.DELETE and mode is Mode.MERGE_ON_READ else command
    return spark(asks_as, mode, isolation, version)


def pyiceberg(command: Command, mode: Mode, isolation: Isolation, version: int) -> set[str]:
    """PyIceberg writes copy-on-write whatever the table says, and never validates an append."""
    if command in (Command.INSERT, Command.INSERT_SELECT, Command.UPSERT):
        return set()
    if command is Command.REWRITE_DELETES:
        return {"missing_delete_paths"}
    always = {"no_new_deletes_for_data_files_at_head", "deleted_data_files", "missing_delete_paths"}
    if command in {Command.DELETE, Command.METADATA_DELETE} | OVERWRITES:  # by a filter, not file by file
        always |= {"no_new_delete_files", "whole_files_match"}
    return always | ({"added_data_files"} if isolation is Isolation.SERIALIZABLE else set())


def lakeproof(command: Command, mode: Mode, isolation: Isolation, version: int) -> set[str]:
    """Rows that are written, files that are replaced and, under serializable, everything that was read."""
    reads = {"rows_read", "new_rows_match"} if isolation is Isolation.SERIALIZABLE else set()
    if command in ROW_LEVEL and mode is Mode.MERGE_ON_READ:
        return {"target_rows", "delete_files_fit_format_version", "row_ids_given"} | reads
    if command in ROW_LEVEL | OVERWRITES | {Command.METADATA_DELETE}:
        more = {"row_ids_given"} if command in ROW_LEVEL else {"whole_files_match"}
        return {"target_rows", "replaced_files"} | reads | more
    return {
        Command.INSERT_SELECT: reads,
        Command.REWRITE: {"replaced_files", "row_ids_given"},
        Command.REWRITE_DELETES: {"missing_delete_paths"},
    }.get(command, set())


EXPECTED = {
    "iceberg-spark": spark,
    "iceberg-spark-fixed": spark_fixed,
    "pyiceberg": pyiceberg,
    "lakeproof": lakeproof,
}


@pytest.mark.parametrize(("name", "command"), list(product(POLICIES, Command)))
def test_a_policy_asks_exactly_this(name: str, command: Command) -> None:
    for mode, isolation, version in product(Mode, Isolation, (2, 3)):
        asked = checks_of(POLICIES[name], command, mode, isolation, version).names
        expected = EXPECTED[name](command, mode, isolation, version)
        of_the_window = expected - {*CHANGE_CHECKS, "whole_files_match"}  # then all of it must be there
        assert set(asked) == expected | ({"history_known"} if of_the_window else set()), (mode, isolation, version)
        assert len(set(asked)) == len(asked)


def test_the_policies_that_ship() -> None:
    assert list(POLICIES) == ["iceberg-spark", "iceberg-spark-fixed", "pyiceberg", "lakeproof"]
    assert [name for name, policy in POLICIES.items() if policy.name != name] == []


def test_the_undelete_is_the_one_difference_between_spark_and_its_fix() -> None:
    different = {
        (command, mode)
        for command, mode, isolation, version in product(Command, Mode, Isolation, (2, 3))
        if checks_of(POLICIES["iceberg-spark"], command, mode, isolation, version)
        != checks_of(POLICIES["iceberg-spark-fixed"], command, mode, isolation, version)
    }
    assert different == {(Command.DELETE, Mode.MERGE_ON_READ)}


def test_only_lakeproof_does_more_than_ask() -> None:
    switches = ("runs_again", "carries_deletes", "maps_rewrites", "falls_back_to_merge_on_read")
    for policy in POLICIES.values():
        assert {getattr(policy, switch) for switch in switches} == {policy is LAKEPROOF}
    stamps = {name: policy.compaction_stamp for name, policy in POLICIES.items()}
    assert {name for name, stamp in stamps.items() if stamp is not Stamp.SCAN} == {"pyiceberg"}


def test_every_check_is_asked_by_some_policy_or_by_the_table_api() -> None:
    asked = {name for policy, *rest in EVERYTHING for name in checks_of(POLICIES[policy], *rest).names}
    assert asked <= set(ALL_CHECKS)
    by_the_table_api = {"added_files_match_overwrite_filter"}
    assert set(ALL_CHECKS) - asked == by_the_table_api


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_a_check_says_its_question_in_one_sentence(name: str) -> None:
    said = describe_check(name)
    assert said.endswith(".")
    assert "\n" not in said


@pytest.mark.parametrize("check", ALL_CHECKS)
def test_a_policy_without_a_check_never_asks_it_and_asks_the_rest(check: str) -> None:
    for policy in POLICIES.values():
        less = policy.without(check)
        for command, mode, isolation, version in product(Command, Mode, Isolation, (2, 3)):
            before = checks_of(policy, command, mode, isolation, version).names
            after = checks_of(less, command, mode, isolation, version).names
            assert after == tuple(name for name in before if name != check)
        assert less.name == f"{policy.name} without {check}"


@pytest.mark.parametrize(
    ("names", "needs"),
    [
        pytest.param((), Part(), id="no check, nothing is loaded"),
        pytest.param(("added_data_files",), Part(added_data_files=True), id="added data files"),
        pytest.param(("data_files_exist",), Part(removed_data_files=True), id="removed data files"),
        pytest.param(("no_new_delete_files",), Part(added_delete_files=True), id="added delete files"),
        pytest.param(
            ("added_data_files", "no_new_delete_files"),
            Part(added_data_files=True, added_delete_files=True),
            id="two checks, both parts",
        ),
        pytest.param(("missing_delete_paths",), Part(removed_data_files=True), id="files that are gone"),
        pytest.param(("target_rows",), Part(True, True, True), id="rows need everything"),
        pytest.param(("delete_files_fit_format_version",), Part(), id="the change alone needs no window"),
    ],
)
def test_only_what_the_checks_look_at_is_loaded(names: tuple[str, ...], needs: Part) -> None:
    assert check_list(names).needs == needs


def test_checks_are_sorted_by_what_they_look_at() -> None:
    listed = check_list(ALL_CHECKS)
    assert listed.change == tuple(CHANGE_CHECKS)
    assert listed.head == frozenset(HEAD_CHECKS)
    assert listed.rows == frozenset(ROW_CHECKS)
    assert [name for name, _ in listed.newest] == ["no_new_deletes_for_data_files_at_head"]
    assert {name for name, _ in listed.snapshot} | {*listed.change, *listed.head, *listed.rows} == set(ALL_CHECKS) - {
        "no_new_deletes_for_data_files_at_head",
        "history_known",
    }


def test_the_first_line_that_fits_counts() -> None:
    lines = (Line((Command.DELETE,), Mode.MERGE_ON_READ, always=("target_rows",)), Line((Command.DELETE,)))
    policy = Policy("ours", "two lines", lines)
    assert checks_of(policy, Command.DELETE, Mode.MERGE_ON_READ, Isolation.SNAPSHOT).names == ("target_rows",)
    assert checks_of(policy, Command.DELETE, Mode.COPY_ON_WRITE, Isolation.SNAPSHOT).names == ()
    with pytest.raises(LookupError, match="policy ours says nothing of UPDATE"):
        checks_of(policy, Command.UPDATE, Mode.COPY_ON_WRITE, Isolation.SNAPSHOT)
