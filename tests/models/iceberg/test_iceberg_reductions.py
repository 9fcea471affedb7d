"""What makes the space smaller changes no verdict: reductions, one-step commits, lean ghosts, canonical names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from iceberg_runs import searched, violated, words

from lakeproof.checker.model import Model
from lakeproof.checker.readable import Successors
from lakeproof.checker.reduction_promises import broken_promises
from lakeproof.checker.search import REDUCTIONS, check
from lakeproof.checker.tables import State, Tables
from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import build
from lakeproof.models.iceberg.world import READY

MODES = (
    {"update_mode": "merge-on-read", "delete_mode": "merge-on-read"},
    {"update_mode": "copy-on-write", "delete_mode": "merge-on-read"},
    {"update_mode": "copy-on-write", "delete_mode": "copy-on-write"},
)
TWO_ROWS: dict[str, Any] = {
    "num_keys": 2,
    "initial": "one-file",
    "duplicates": True,
    "predicates": "id",
    "max_write_ops": 2,
}
SHAPES: dict[str, dict[str, Any]] = {
    "one key from nothing": {},
    "two rows and a compaction": {**TWO_ROWS, "max_compactions": 1},
}
MORE: list[tuple[str, dict[str, Any]]] = [
    ("iceberg-spark", {"preset": "write-skew"}),
    ("pyiceberg", {"preset": "lost-delete"}),
    ("lakeproof", {"preset": "lost-delete"}),
    ("iceberg-spark", {"num_writers": 3, "max_write_ops": 2, "num_keys": 2, "initial": "two-files"}),
    ("lakeproof", {**TWO_ROWS, "unknown_outcomes": True, "commands": "update,delete"}),
    ("lakeproof", {**TWO_ROWS, "max_crashes": 1}),
    ("iceberg-spark", {**TWO_ROWS, "partitioned": True, "commands": "insert,delete,overwrite-dynamic"}),
    ("iceberg-spark", {**TWO_ROWS, "isolation": "serializable", "commands": "update,delete,insert-select"}),
]
CONFIGURATIONS = [
    (policy, {**shape, **modes, "isolation": isolation})
    for policy, isolation, modes, shape in product(POLICIES, ("snapshot", "serializable"), MODES, SHAPES.values())
] + MORE
QUICK = CONFIGURATIONS[::20] + MORE[:2]


def found(policy: str, parameters: dict[str, Any], *, reductions: Any = True, **more: Any) -> set[str]:
    """The violated properties of the whole space."""
    model = build(words({"measure_aborts": False, **parameters, **more}), POLICIES[policy])
    verdict = check(model, reductions=reductions)
    assert verdict.exhausted
    return violated(verdict)


def same_however_it_is_searched(policy: str, parameters: dict[str, Any]) -> set[str]:
    """The violated properties, which must be the same with and without each reduction."""
    expected = found(policy, parameters)
    assert found(policy, parameters, reductions=()) == expected
    assert found(policy, parameters, fused=True) == expected
    assert found(policy, parameters, measure_aborts=True) == expected
    return expected


def test_there_are_enough_configurations() -> None:
    assert len(CONFIGURATIONS) >= 40


@pytest.mark.parametrize(("policy", "parameters"), QUICK)
def test_a_few_configurations_however_they_are_searched(policy: str, parameters: dict[str, Any]) -> None:
    same_however_it_is_searched(policy, parameters)


@pytest.mark.slow
def test_every_configuration_however_it_is_searched() -> None:
    stride = 1 if os.environ.get("LAKEPROOF_WHOLE") else 3  # `make check-all` takes every configuration
    verdicts = [same_however_it_is_searched(*configuration) for configuration in CONFIGURATIONS[::stride]]
    assert {"consistent_read" in verdict for verdict in verdicts} == {True, False}  # both answers were compared
    assert {frozenset(verdict) for verdict in verdicts} >= {frozenset(), frozenset({"isolation_kept"})}


@pytest.mark.slow
@pytest.mark.parametrize("name", REDUCTIONS)
def test_each_reduction_alone(name: str) -> None:
    for policy, parameters in (*CONFIGURATIONS[::6], *MORE):
        assert found(policy, parameters, reductions=(name,)) == found(policy, parameters), (policy, parameters)


@pytest.mark.slow
def test_names_by_age_give_the_same_verdicts() -> None:
    for policy, parameters in (*CONFIGURATIONS[::2], *MORE):
        by_age = found(policy, parameters, names="by-age")
        assert by_age == found(policy, parameters), (policy, parameters)


@pytest.mark.slow
def test_lean_ghosts_give_the_same_verdicts() -> None:
    """Only of the shipped rules: a ghost that is lean relies on them."""
    for policy, parameters in CONFIGURATIONS:
        if policy == "lakeproof":
            lean = found(policy, parameters, lean=True)
            assert lean == found(policy, parameters, lean=False) == set(), parameters


def test_reductions_do_reduce() -> None:
    states = [
        check(build(words({"preset": "three-writers"}), POLICIES["lakeproof"]), reductions=chosen).states
        for chosen in (True, ("private",), ())
    ]
    assert states == sorted(states)
    assert states[0] * 5 < states[2]


ANYBODY: dict[str, Any] = {"others": "anybody", "num_keys": 2, "predicates": "id"}
RENAMED: list[dict[str, Any]] = [
    {**ANYBODY, "others_may": "merge-on-read,compaction"},
    {**ANYBODY, "others_may": "copy-on-write,unmapped-copy-on-write", **MODES[2]},
    {**ANYBODY, "others_may": "merge-on-read", "isolation": "serializable", "commands": "insert,merge,delete-exists"},
    {**ANYBODY, "others_may": "merge-on-read,overwrite", "partitioned": True},
    {**TWO_ROWS, "max_compactions": 1, "measure_aborts": False},
    {"num_keys": 2, "max_compactions": 1, "measure_aborts": False},
]


@pytest.mark.parametrize("parameters", RENAMED)
def test_ids_and_colours_can_change_places(parameters: dict[str, Any]) -> None:
    model = build(words(parameters), POLICIES["lakeproof"])
    assert len(model.value_symmetries) == 3  # two ids, two colours, both
    assert broken_promises(model, max_states=120) == []


def test_a_rule_that_tells_ids_apart_is_searched_without_renaming_them() -> None:
    """A renaming that is no symmetry is noticed on a sample, and by `broken_promises` everywhere."""
    model = build(words({**ANYBODY, "others_may": "merge-on-read"}), POLICIES["lakeproof"])
    (others,) = model.steps_of("others")

    def not_sarah(shared: Any, own: Any) -> Any:
        return (one for one in others.run(shared, own) if "insert sarah" not in one.label)

    assert isinstance(model.steps, Mapping)
    wrong = replace(model, steps={**model.steps, "others": (others._replace(run=not_sarah),)})
    assert any("does not respect symmetry" in how for how in broken_promises(wrong, max_states=20))
    verdict = check(wrong)
    assert "values" not in verdict.reductions
    assert any(note.startswith("values are not renamed") for note in verdict.notes)


def test_whoever_has_validated_hears_of_a_commit_like_whoever_has_not() -> None:
    model = build(words({**ANYBODY, "others_may": "merge-on-read", "max_compactions": 0}), POLICIES["lakeproof"])
    assert broken_promises(model, max_states=60) == []
    wrong = replace(model, heard_as=lambda own: READY)
    assert any("not heard as promised" in how for how in broken_promises(wrong, max_states=60))


def distances(model: Model, *, values: bool) -> tuple[Tables, dict[State, int]]:
    """Every state and how far it is from the initial one."""
    tables = Tables(model, values=values)
    successors = Successors(tables, symmetric=False)
    found, waiting = {tables.initial(): 0}, [tables.initial()]
    for state in waiting:
        for _, _, after in successors.of(state):
            if after not in found:
                found[after] = found[state] + 1
                waiting.append(after)
    return tables, found


@pytest.mark.parametrize("parameters", RENAMED[:4])
def test_the_renamed_space_is_the_plain_one_with_each_renaming_once(parameters: dict[str, Any]) -> None:
    """Each plain state is renamed by every symmetry; one of its images, and no more, is there, and no farther away.

    States that differ in the order of unseen rows alone are one, which may be nearer than some of them.
    """
    model = build(words({**parameters, "isolation": "serializable"}), POLICIES["lakeproof"])
    (plain, far), (reduced, near) = (distances(model, values=values) for values in (False, True))
    left = {reduced.values_of(state): distance for state, distance in near.items()}
    assert len(left) < len(far) / 2
    met: set[Any] = set()
    for state, distance in far.items():
        shared, (own, others) = plain.values_of(state)
        own = model.own_form(own) if model.own_form is not None else own
        images = {(shared, (own, others))} | {
            (one.shared(shared), (one.rename(own, one.moves(shared)), others)) for one in model.value_symmetries
        }
        (there,) = [left[image] for image in images if image in left]
        assert there <= distance
        met.add(images.intersection(left).pop())
    assert met == left.keys()


def test_renaming_changes_no_verdict() -> None:
    for off in ("target_rows", "replaced_files", ""):
        policy = POLICIES["lakeproof"].without(off) if off else POLICIES["lakeproof"]
        for parameters in RENAMED[1:]:
            model = build(words(parameters), policy)
            plain, renamed = (check(model, reductions=names) for names in (("processes", "private"), True))
            assert "values" in renamed.reductions
            assert renamed.states < plain.states
            assert [(p.name, p.verdict) for p in renamed.properties] == [(p.name, p.verdict) for p in plain.properties]


def test_the_engines_count_the_same_when_one_writer_is_watched() -> None:
    model = build(words(RENAMED[0]), POLICIES["lakeproof"])
    readable, fast = (check(model, engine=engine) for engine in ("readable", "fast"))
    assert (readable.states, readable.transitions, readable.depth) == (fast.states, fast.transitions, fast.depth)


@pytest.mark.slow
def test_canonical_names_do_reduce() -> None:
    parameters = {**TWO_ROWS, "max_compactions": 1}
    assert searched(**parameters).states < searched(**parameters, names="by-age").states
