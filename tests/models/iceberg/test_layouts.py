"""Under `lakeproof` every layout holds, the whole space explored: modes, isolations, files, partitions, and what the
format has besides. State counts are pinned where a change of the model should be seen in review."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, holds, searched

from in_part import in_part
from lakeproof.commit.change import Command

ISOLATIONS = ("snapshot", "serializable")
MODES = tuple(product(("merge-on-read", "copy-on-write"), repeat=2))
LAYOUTS: dict[str, dict[str, Any]] = {
    "one-file": {"initial": "one-file"},
    "two-files": {"initial": "two-files"},
    "partitioned": {"initial": "two-files", "partitioned": True},
}
SHORT = {"merge-on-read": "MOR", "copy-on-write": "COW"}
BASE = {"num_keys": 2, "duplicates": True, "predicates": "id", "measure_aborts": False, "initial": "one-file"}
CORE = "insert,update,delete,merge"
SMALL = {"max_write_ops": 2, "max_compactions": 1}
FULL = {"max_write_ops": 3, "max_compactions": 1}


def in_modes(update_mode: str, delete_mode: str, isolation: str) -> dict[str, str]:
    """The three parameters that every layout is tried with."""
    return {"update_mode": update_mode, "delete_mode": delete_mode, "isolation": isolation}


def cases(modes: Any = MODES) -> list[Any]:
    """Both isolations and these mode mixes, as test cases."""
    return [
        pytest.param(in_modes(u, d, i), id=f"{SHORT[u]} updates, {SHORT[d]} deletes, {i}")
        for i, (u, d) in product(ISOLATIONS, modes)
    ]


ALL_MODES, SAME_MODES = cases(), cases(MODES[::3])


@pytest.mark.parametrize("modes", in_part(ALL_MODES, every=3))
def test_two_commands_and_a_compaction(modes: dict[str, str]) -> None:
    assert holds(searched(**{**BASE, **SMALL, **modes, "commands": CORE}))


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("modes", ALL_MODES)
def test_three_commands_and_a_compaction(modes: dict[str, str], layout: str) -> None:
    duplicates = modes["update_mode"] == modes["delete_mode"]  # where each id is inserted once, the space is smaller
    verdict = searched(**{**BASE, **FULL, **modes, **LAYOUTS[layout], "commands": CORE, "duplicates": duplicates})
    assert holds(verdict)
    assert verdict.statistics.marks["REWRITE commits"]
    assert verdict.statistics.marks["re-run"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({**FULL, "predicates": "any", "isolation": "serializable"}, id="predicates on any column"),
        pytest.param({**FULL, "max_compactions": 2, "duplicates": False}, id="two compactions"),
        pytest.param({**FULL, "num_writers": 3}, id="three writers"),
        pytest.param({**FULL, "num_writers": 3, "isolation": "serializable"}, id="three writers, serializable"),
        pytest.param({**FULL, "max_write_ops": 4, "duplicates": False}, id="four commands"),
        pytest.param(
            {"max_write_ops": 4, "max_compactions": 2, "initial": "empty", "duplicates": False},
            id="from an empty table",
        ),
    ],
)
def test_larger_spaces(parameters: dict[str, Any]) -> None:
    assert holds(searched(**{**BASE, "commands": CORE, **parameters}))


# ---------------------------------------------------------------- what the format has besides


@pytest.mark.slow
@pytest.mark.parametrize("modes", ALL_MODES)
def test_equality_deletes(modes: dict[str, str]) -> None:
    assert holds(searched(**{**BASE, **SMALL, **modes, "commands": "insert,update,delete,upsert"}))


@pytest.mark.slow
@pytest.mark.parametrize("modes", SAME_MODES)
def test_equality_deletes_and_two_compactions_of_two_files(modes: dict[str, str]) -> None:
    sizes = {"max_write_ops": 2, "max_compactions": 2, "initial": "two-files"}
    assert holds(searched(**{**BASE, **sizes, **modes, "commands": "insert,update,delete,upsert"}))


@pytest.mark.slow
@pytest.mark.parametrize("modes", cases(MODES[:3]))
def test_deletion_vectors(modes: dict[str, str]) -> None:
    by_age = {"format_version": 3, "names": "by-age"}
    assert holds(searched(**{**BASE, **SMALL, **modes, **by_age, "commands": CORE}))


@pytest.mark.slow
@pytest.mark.parametrize("modes", SAME_MODES)
@pytest.mark.parametrize(
    "commands",
    [
        pytest.param({"commands": "insert,update,delete-exists"}, id="DELETE with a subquery"),
        pytest.param(
            {"commands": "insert,update,delete-exists", **LAYOUTS["partitioned"]}, id="the same in partitions"
        ),
        pytest.param({"commands": "update,delete,insert-select"}, id="INSERT SELECT"),
    ],
)
def test_commands_that_read_more_than_they_write(commands: dict[str, str], modes: dict[str, str]) -> None:
    assert holds(searched(**{**BASE, **FULL, **modes, **commands}))


PLANNED = LAKEPROOF
AT_THE_HEAD = replace(LAKEPROOF, replaces_by_filter=True)
REPLACING = "overwrite,overwrite-partition,overwrite-dynamic,metadata-delete"
REPLACING_COMMANDS = (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS, Command.METADATA_DELETE)


@pytest.mark.slow
@pytest.mark.parametrize("modes", SAME_MODES)
@pytest.mark.parametrize(
    "policy", [pytest.param(PLANNED, id="files as planned"), pytest.param(AT_THE_HEAD, id="what matches at the head")]
)
def test_overwrites_and_deletes_of_whole_files(policy: Any, modes: dict[str, str]) -> None:
    partitioned = {**BASE, **SMALL, **modes, "partitioned": True, "commands": f"{CORE},{REPLACING}"}
    assert holds(searched(policy, **partitioned))


@pytest.mark.parametrize("isolation", in_part(ISOLATIONS, every=2))
@pytest.mark.parametrize(
    "policy", [pytest.param(PLANNED, id="files as planned"), pytest.param(AT_THE_HEAD, id="what matches at the head")]
)
def test_an_overwrite_of_the_whole_table(policy: Any, isolation: str) -> None:
    assert holds(searched(policy, **{**BASE, **SMALL, "isolation": isolation, "commands": f"{CORE},overwrite"}))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_overwrites_among_themselves(isolation: str) -> None:
    among = {"partitioned": True, "max_write_ops": 3, "num_writers": 3, "isolation": isolation}
    assert holds(searched(PLANNED, **{**BASE, **among, "commands": REPLACING}))


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_who_replaces_what_matches_at_the_head_need_ask_nothing(isolation: str) -> None:
    """Its effect is that of a command that ran after everybody else, so even serializable asks nothing of it."""
    lines = tuple(
        line._replace(commands=tuple(c for c in line.commands if c not in REPLACING_COMMANDS))
        for line in LAKEPROOF.lines
    )
    silent = replace(AT_THE_HEAD, lines=(*lines, LAKEPROOF.lines[0]._replace(commands=REPLACING_COMMANDS)))
    partitioned = {**BASE, **SMALL, "partitioned": True, "isolation": isolation, "lean": False}
    assert holds(searched(silent, **{**partitioned, "commands": f"{CORE},{REPLACING}"}))


@pytest.mark.slow
@pytest.mark.parametrize("modes", SAME_MODES)
@pytest.mark.parametrize(
    ("mishap", "mark"),
    [
        pytest.param({"unknown_outcomes": True}, "found its own commit", id="answers are lost, requests late"),
        pytest.param({"max_crashes": 1}, "crash", id="a writer dies"),
        pytest.param({"max_expiries": 1}, "snapshots expired", id="snapshots are expired"),
        pytest.param({"unknown_outcomes": True, "max_expiries": 1}, "outcome unknown", id="lost answers and expiry"),
    ],
)
def test_mishaps(mishap: dict[str, Any], mark: str, modes: dict[str, str]) -> None:
    verdict = searched(**{**BASE, **SMALL, **modes, **mishap, "commands": "insert,update,delete"})
    assert holds(verdict)
    assert verdict.statistics.marks[mark]


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_compaction_of_delete_files_beside_compaction_of_data_files(isolation: str) -> None:
    sizes = {**FULL, "max_delete_rewrites": 1, "duplicates": False, "isolation": isolation}
    verdict = searched(**{**BASE, **sizes, "commands": "insert,update,delete"})
    assert holds(verdict)
    assert verdict.statistics.marks["REWRITE of delete files commits"]
    assert verdict.statistics.marks["refused by missing_delete_paths"]


# ---------------------------------------------------------------- rules that may be left out


@pytest.mark.slow
@pytest.mark.parametrize("modes", SAME_MODES)
@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(LAKEPROOF, maps_copy_on_write=False), id="copy-on-write without a mapping"),
        pytest.param(replace(LAKEPROOF, maps_copy_on_write=False, maps_rewrites=False), id="no mapping at all"),
        pytest.param(replace(LAKEPROOF, falls_back_to_merge_on_read=False), id="copy-on-write runs again as such"),
    ],
)
def test_less_precise_rules_are_sound_too(policy: Any, modes: dict[str, str]) -> None:
    assert holds(searched(policy, **{**BASE, **SMALL, **modes, "commands": CORE, "initial": "two-files"}))


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("parameters", "states", "depth"),
    [
        pytest.param({"preset": "undelete"}, 282, 9, id="undelete"),
        pytest.param({"preset": "two-keys"}, 1_113, 9, id="two-keys"),
        pytest.param({"preset": "three-writers"}, 138, 9, id="three-writers, whose two colours can change places"),
    ],
)
def test_pinned_state_counts(parameters: dict[str, str], states: int, depth: int) -> None:
    verdict = searched(**parameters)
    assert (verdict.states, verdict.depth, verdict.exhausted) == (states, depth, True)
