"""The literal twin is the public specification: its counts, its counterexample, its artefacts."""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

import pytest
from literal_twin import (
    ALWAYS,
    AT_THE_END,
    KNOWN_ARTEFACTS,
    Configuration,
    LiteralTwin,
    Snapshot,
    World,
    configurations,
    verdicts,
)

FINISH = ("read data files", "write data files", "write metadata files", "commit")
UNDELETE = (
    "w0 start INSERT jack red A",
    "w0 write data files",
    "w0 write metadata files",
    "w0 commit",
    "w0 start UPDATE SET blue WHERE jack",
    "w1 start DELETE WHERE jack",
    "w0 read data files",
    "w1 read data files",
    "w0 write data files",
    "w1 write data files",
    "w0 write metadata files",
    "w0 commit",
)


def follow(twin: LiteralTwin, world: World, *names: str) -> World:
    """The world after those steps, each of which must be possible."""
    for name in names:
        possible = dict(twin.steps(world))
        assert name in possible, f"{name} is not among {sorted(possible)}"
        world = possible[name]
    return world


def run_alone(twin: LiteralTwin, *commands: str) -> World:
    """The world after the first writer has run those commands one after the other."""
    world = twin.start()
    for command in commands:
        steps = FINISH[1:] if command.startswith("INSERT") else FINISH
        world = follow(twin, world, f"w0 start {command}", *(f"w0 {step}" for step in steps))
    return world


def violated(twin: LiteralTwin, world: World) -> set[str]:
    """The invariants that do not hold in the world."""
    return {name for name, holds in ALWAYS.items() if not holds(twin, world)}


def rows(world: World) -> list[object]:
    """What a reader finds now."""
    return [row for _, _, row in world.scan(world.catalog, (None, None, None))]


@pytest.mark.parametrize(
    ("configuration", "states", "found"),
    [
        pytest.param({"delete_check": True}, 2_741, {}, id="with the DELETE check, as its own checker counts"),
        pytest.param({"isolation": "serializable"}, 2_801, {}, id="serializable, as its own checker counts"),
        pytest.param({}, 2_861, {"ConsistentRead": 14}, id="the undelete, and what comes after it"),
    ],
)
def test_the_published_configuration(configuration: dict[str, Any], states: int, found: dict[str, int]) -> None:
    result = verdicts(**configuration)
    assert (result.states, result.violated, result.exhausted) == (states, found, True)


def test_the_published_counterexample_step_by_step() -> None:
    twin = LiteralTwin(Configuration())
    world = follow(twin, twin.start(), *UNDELETE, "w1 write metadata files")
    assert violated(twin, world) == set()
    world = follow(twin, world, "w1 commit")
    assert len(UNDELETE) + 2 == 14
    assert violated(twin, world) == {"ConsistentRead"}
    assert rows(world) == [("jack", "blue", "A")]
    assert world.deletes.files == (("delete-1", (("data-1", 0),)), ("delete-2", (("data-1", 0),)))
    before, now = world.table().snapshots[1:]
    statuses = [
        [(e.path, e.status, e.sequence) for e in world.entries(now, content)] for content in ("data", "deletes")
    ]
    assert statuses == [
        [("data-1", "existing", 1), ("data-2", "existing", 2)],
        [("delete-1", "existing", 2), ("delete-2", "added", 3)],
    ]
    assert [name for name, _ in world.manifests.files] == [f"manifest-{number}" for number in range(1, 6)]
    assert (before.manifest_list, now.manifest_list) == ("manifestlist-2", "manifestlist-3")


@pytest.mark.parametrize(
    ("configuration", "check"),
    [
        pytest.param(Configuration(delete_check=True), "no_new_delete_files", id="the DELETE check"),
        pytest.param(Configuration(isolation="serializable"), "added_data_files", id="serializable isolation"),
        pytest.param(Configuration(update_mode="copy-on-write"), "data_files_exist", id="the file is gone"),
        pytest.param(
            Configuration(delete_mode="copy-on-write"), "no_new_deletes_for_removed_files", id="the file has deletes"
        ),
    ],
)
def test_what_refuses_the_same_delete_elsewhere(configuration: Configuration, check: str) -> None:
    twin = LiteralTwin(configuration)
    world = follow(twin, twin.start(), *UNDELETE, f"w1 abort {check}")
    assert violated(twin, world) == set()
    assert rows(world) == [("jack", "blue", "A")]
    assert world.aborts == 1


def test_a_lost_swap_cleans_up_its_metadata_and_validates_again() -> None:
    twin = LiteralTwin(Configuration(num_keys=2))
    both = [f"w{writer} {step}" for step in FINISH[1:3] for writer in (0, 1)]
    world = follow(twin, twin.start(), "w0 start INSERT jack red A", "w1 start INSERT sarah red A", *both, "w0 commit")
    assert [name for name, _ in world.metadata.files] == ["metadata-0", "metadata-1-uuid1", "metadata-1-uuid2"]
    world = follow(twin, world, "w1 lose the swap")
    assert [name for name, _ in world.metadata.files] == ["metadata-0", "metadata-1-uuid1"]
    assert [name for name, _ in world.manifests.files] == ["manifest-1"]
    world = follow(twin, world, "w1 write metadata files", "w1 commit")
    assert world.catalog == "metadata-2-uuid1"
    assert [name for name, _ in world.manifests.files] == ["manifest-1", "manifest-3"]
    assert rows(world) == [("jack", "red", "A"), ("sarah", "red", "A")]


def test_a_refused_writer_leaves_its_data_files_as_garbage() -> None:
    twin = LiteralTwin(Configuration(max_compactions=1, update_mode="copy-on-write"))
    alone = run_alone(twin, "INSERT jack red A")
    starts = ("w0 start UPDATE SET blue WHERE jack", "w1 start REWRITE")
    work = [f"w{writer} {step}" for step in FINISH[:2] for writer in (0, 1)]
    world = follow(
        twin, alone, *starts, *work, "w0 write metadata files", "w0 commit", "w1 abort removed_files_were_live"
    )
    assert [name for name, _ in world.data.files] == ["data-1", "data-2", "data-3"]
    assert [entry.path for entry in world.live(world.table(), "data")] == ["data-2"]
    assert [name for name, _ in world.manifests.files] == ["manifest-1", "manifest-2"]
    assert world.manifests.named == 3


TWO_ROWS_IN_A_FILE = ("INSERT jack red A", "INSERT sarah red A", "REWRITE", "DELETE WHERE jack")


@pytest.mark.parametrize("spec_artefacts", [True, False])
def test_copy_on_write_forgets_delete_files_in_the_specification(spec_artefacts: bool) -> None:
    twin = LiteralTwin(
        Configuration(
            num_writers=1,
            max_write_ops=4,
            max_compactions=1,
            num_keys=2,
            update_mode="copy-on-write",
            spec_artefacts=spec_artefacts,
        )
    )
    world = run_alone(twin, *TWO_ROWS_IN_A_FILE, "UPDATE SET blue WHERE sarah")
    jack_is_back = [("jack", "red", "A")] * spec_artefacts
    assert rows(world) == [*jack_is_back, ("sarah", "blue", "A")]
    assert ("ConsistentRead" in violated(twin, world)) is spec_artefacts


def test_one_writer_leaves_a_dangling_delete_file_until_it_ages_out() -> None:
    twin = LiteralTwin(Configuration(num_writers=1, max_write_ops=6, max_compactions=2, num_keys=2))
    commands = (*TWO_ROWS_IN_A_FILE, "REWRITE")
    later = ("INSERT jack red A", "DELETE WHERE jack", "INSERT jack red A")
    assert violated(twin, run_alone(twin, *commands)) == {"NoDanglingDeleteFiles"}
    assert violated(twin, run_alone(twin, *commands, *later[:2])) == {"NoDanglingDeleteFiles"}
    world = run_alone(twin, *commands, *later)
    assert violated(twin, world) == set()
    assert [entry.path for entry in world.live(world.table(), "deletes")] == ["delete-2"]


def test_a_gap_in_the_sequence_numbers_is_seen() -> None:
    twin = LiteralTwin(Configuration())
    world = run_alone(twin, "INSERT jack red A")
    metadata = world.table()
    gap = metadata._replace(snapshots=(*metadata.snapshots, Snapshot(3, 2, "append", "manifestlist-1")))
    assert violated(twin, world) == set()
    assert violated(twin, world._replace(metadata=world.metadata.write("metadata-2-uuid1", gap))) == {
        "SequentialSequenceNumbers"
    }


def test_an_end_with_a_stuck_writer_or_too_few_snapshots_is_seen() -> None:
    twin = LiteralTwin(Configuration(max_write_ops=1))
    started = follow(twin, twin.start(), "w0 start INSERT jack red A")
    done = run_alone(twin, "INSERT jack red A")
    wrong = [{name for name, holds in AT_THE_END.items() if not holds(twin, end)} for end in (started, done)]
    assert wrong == [set(AT_THE_END), set()]


def test_a_cut_search_says_so() -> None:
    result = verdicts(max_states=500)
    assert not result.exhausted
    assert result.violated == {}


def test_there_are_enough_configurations_and_each_is_another_one() -> None:
    listed = list(configurations())
    assert len(listed) == len(set(listed)) == 115
    assert set(KNOWN_ARTEFACTS) <= set(listed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("configuration", "states"),
    [
        pytest.param({"max_compactions": 1}, 23_231, id="a compaction"),
        pytest.param({"num_keys": 2}, 28_225, id="two keys"),
        pytest.param({"num_writers": 3}, 13_785, id="three writers"),
        pytest.param({"max_write_ops": 4}, 19_173, id="four write operations"),
    ],
)
def test_larger_spaces_with_the_delete_check_hold(configuration: dict[str, int], states: int) -> None:
    result = verdicts(delete_check=True, **configuration)
    assert (result.states, result.violated, result.exhausted) == (states, {}, True)


def undelete_is_possible(c: Configuration) -> bool:
    """A DELETE that misses a concurrent UPDATE, or two that miss each other and an INSERT between them."""
    unchecked = c.delete_mode == "merge-on-read" and c.isolation == "snapshot" and not c.delete_check
    commands = 3 if c.update_mode == "merge-on-read" and c.allow_updates else 4
    return unchecked and c.allow_deletes and c.num_writers > 1 and c.max_write_ops >= commands


STRIDE = 1 if os.environ.get("LAKEPROOF_WHOLE") else 4
"""`make check-all` takes every configuration."""


@pytest.mark.slow
def test_every_configuration_violates_what_its_races_and_known_artefacts_explain() -> None:
    for configuration in islice(configurations(), None, None, STRIDE):
        result = verdicts(**configuration._asdict())
        explained = set(KNOWN_ARTEFACTS.get(configuration, ()))
        if undelete_is_possible(configuration):
            explained.add("ConsistentRead")
        assert (set(result.violated), result.exhausted) == (explained, True), configuration


@pytest.mark.slow
def test_without_its_artefacts_no_writer_alone_reads_wrong_rows() -> None:
    alone = [configuration for configuration in KNOWN_ARTEFACTS if configuration.num_writers == 1]
    assert len(alone) == 6
    for configuration in alone:
        result = verdicts(**configuration._replace(spec_artefacts=False)._asdict())
        assert set(result.violated) == {"NoDanglingDeleteFiles"}, configuration
