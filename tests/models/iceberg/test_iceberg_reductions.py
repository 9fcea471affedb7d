"""What makes the space smaller changes no verdict: reductions, one-step commits, lean ghosts, canonical names."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import pytest
from iceberg_runs import searched, violated, words

from lakeproof.checker.search import REDUCTIONS, check
from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import build

MODES = (
    {"update_mode": "merge-on-read", "delete_mode": "merge-on-read"},
    {"update_mode": "copy-on-write", "delete_mode": "merge-on-read"},
    {"update_mode": "copy-on-write", "delete_mode": "copy-on-write"},
)
TWO_ROWS = {"num_keys": 2, "initial": "one-file", "duplicates": True, "predicates": "id", "max_write_ops": 2}
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


@pytest.mark.slow
def test_canonical_names_do_reduce() -> None:
    parameters = {**TWO_ROWS, "max_compactions": 1}
    assert searched(**parameters).states < searched(**parameters, names="by-age").states
