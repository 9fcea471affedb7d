"""The shipped model agrees with the specification read word for word, and that with the public checker's own count."""

from __future__ import annotations

from typing import Any

import pytest
from paimon_literal import Constants, World, literal

from in_part import in_part
from lakeproof.checker.model import Model
from lakeproof.checker.search import check
from lakeproof.models.paimon import build

TWO_KEYS = ("jack", "sarah")
BUCKETS = {"buckets": 2, "one_writer_per_bucket": True, "col1": TWO_KEYS}

CONFIGURATIONS: list[dict[str, Any]] = [
    {"max_compactions": 1, "max_compactions_per_compactor": 1},
    {"max_compactions": 2, "max_write_ops": 1},
    {"max_compactions": 1, "dv_enabled": False},
    {"max_compactions": 1, "streaming_sink": True},
    {"max_compactions": 1, "prune_vectors": True},
    {"max_compactions": 1, "col3": ("A", "B")},
    {"max_compactions": 1, "col1": TWO_KEYS},
    {"compactors": 1, "max_compactions": 2, "allow_deletes": True},
    {"compactors": 1, "max_compactions": 2, "allow_deletes": True, "keep_deletes": True},
    {"compactors": 1, "max_compactions": 2, "allow_deletes": True, "keep_deletes": True, "read_vectors": True},
    {"compactors": 1, "max_compactions": 2, "allow_deletes": True, "dv_enabled": False},
    {"compactors": 1, "max_compactions": 2, "allow_deletes": True, "dv_enabled": False, "keep_deletes": True},
    {"compactors": 1, "max_compactions": 2, "streaming_sink": True},
    {"compactors": 1, "max_compactions": 2, "max_level": 1},
    {"writers": 2, "compactors": 0, "allow_deletes": True},
    {"writers": 2, "compactors": 1, "max_compactions": 1},
    {"writers": 2, "compactors": 1, "max_compactions": 1, "dv_enabled": False, "streaming_sink": True},
    {"writers": 2, "compactors": 0, "put_if_absent": False, "use_lock": True, "allow_deletes": True},
    {"writers": 2, "compactors": 0, "put_if_absent": False, **BUCKETS},
    {"writers": 2, "compactors": 0, "max_write_ops": 3, "allow_deletes": True, **BUCKETS},
    {"writers": 2, "compactors": 0, "put_if_absent": False, "use_lock": True, **BUCKETS},
    {"writers": 2, "compactors": 2, "max_compactions": 1, **BUCKETS},
    {"writers": 2, "compactors": 0, "partitions": 2, "buckets": 1, "one_writer_per_bucket": True, "col1": TWO_KEYS},
]
LARGER: list[dict[str, Any]] = [
    {"compactors": 1, "max_compactions_per_compactor": 3},
    {"compactors": 1, "max_compactions_per_compactor": 3, "prune_vectors": True},
    {"guards": True},
    {"guards": True, "prune_vectors": True},
]
NAMES = {
    "compactors": "num-compactors",
    "writers": "num-writers",
    "buckets": "num-buckets",
    "partitions": "num-partitions",
}
NAMES |= {"col1": "col1-values", "col2": "col2-values", "col3": "col3-values"}


def shipped(constants: Constants) -> Model:
    """The shipped model of the same configuration; it needs no guards."""
    given = {name: value for name, value in vars(constants).items() if name != "guards"}
    parameters = {"as-in-spec": "true"}
    for name, value in given.items():
        text = ",".join(value) if isinstance(value, tuple) else str(value).lower()
        parameters[NAMES.get(name, name.replace("_", "-"))] = text
    return build(parameters)


def broken(model: Model) -> set[str]:
    """The violated safety properties, after the whole space."""
    verdict = check(model)
    assert verdict.exhausted
    return {one.name for one in verdict.properties if one.kind == "always" and one.verdict == "violated"}


def test_the_literal_reading_has_the_public_checkers_number_of_states() -> None:
    verdict = check(literal(Constants(max_compactions=1, max_compactions_per_compactor=1)))
    assert (verdict.states, verdict.verdict, verdict.exhausted) == (1129, "holds", True)


@pytest.mark.parametrize("configuration", in_part(CONFIGURATIONS, every=3), ids=str)
def test_both_readings_violate_the_same(configuration: dict[str, Any]) -> None:
    constants = Constants(**configuration)
    assert broken(shipped(constants)) == broken(literal(constants))


def test_the_configurations_are_not_all_of_one_kind() -> None:
    found = [broken(shipped(Constants(**configuration))) for configuration in CONFIGURATIONS + LARGER]
    assert len(CONFIGURATIONS) >= 18
    assert {name for names in found for name in names} == {
        "consistent_read",
        "no_dangling_deletion_vectors",
        "one_valid_row_per_key",
    }
    assert 6 <= sum(not names for names in found) <= 20


@pytest.mark.slow
@pytest.mark.parametrize("configuration", LARGER, ids=str)
def test_both_readings_violate_the_same_where_vectors_dangle(configuration: dict[str, Any]) -> None:
    """With the guard clauses of its README the literal reading gets there; the shipped model has none."""
    constants = Constants(**configuration)
    names = broken(literal(constants))
    assert broken(shipped(constants)) == names
    if constants.guards:
        assert names == {"no_dangling_deletion_vectors", "one_valid_row_per_key"}


def committed_files(world: World) -> dict[str, tuple[str, int, int]]:
    """Every data file that any snapshot ever added: its bucket, its newest write and its level."""
    objects = dict(world.objects)
    found: dict[str, tuple[str, int, int]] = {}
    writes: dict[str, int] = {}
    for version in range(1, world.max_version + 1):
        (manifest,) = objects[objects[f"snapshot-{version}"][1]]
        entries = objects[manifest]
        (_, name, level), removed = entries[0], [entry[1] for entry in entries[1:]]
        bucket = name.split("_data")[0]
        if level:
            newest = max((found[old][1] for old in removed if old in found), default=0)
        else:
            newest = writes[bucket] = writes.get(bucket, 0) + 1
        if newest:  # the shipped model does not compact what is not there
            found[name] = (bucket, newest, level)
    return found


@pytest.mark.parametrize(
    "configuration",
    [
        {"max_compactions": 2, "max_write_ops": 1, "max_level": 2},
        {"compactors": 1, "max_compactions": 2, "allow_deletes": True},
        {"writers": 2, "compactors": 2, "max_compactions": 1, **BUCKETS},
        pytest.param({"guards": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_file_is_known_by_its_newest_write_and_its_level(configuration: dict[str, Any]) -> None:
    """The shipped model names files so; in the literal one every file has a name of its own to compare with."""
    model = literal(Constants(**configuration))
    seen, todo = {model.shared}, [model.shared]
    while todo:
        world = todo.pop()
        files = committed_files(world)  # type: ignore[arg-type]
        assert len(set(files.values())) == len(files)
        for step in model.steps:
            for outcome in step.run(world, "runs"):  # type: ignore[union-attr]
                if outcome.shared not in seen:
                    seen.add(outcome.shared)
                    todo.append(outcome.shared)
    assert len(seen) > 100
