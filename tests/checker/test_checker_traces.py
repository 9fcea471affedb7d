"""Traces: differences, plain data, ITF out and in, replayed on the model."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from checker_runs import worlds_of
from toys import clock, lease, letters, retry_loop

from lakeproof.checker import Model, Trace, check, from_itf, replayed, to_itf
from lakeproof.checker.runs import MoveName, follow
from lakeproof.checker.verdicts.trace import differences, plain
from lakeproof.errors import InvalidInput


def traces() -> list[tuple[Model, Trace]]:
    """The counterexamples of the toy models."""
    models = [clock(bad=3), lease(fenced=False), letters(3), retry_loop(3)]
    return [(model, p.trace) for model in models for p in check(model).properties if p.trace is not None]


def test_itf_goes_out_and_comes_back() -> None:
    assert len(traces()) == 6
    for model, trace in traces():
        text = to_itf(trace)
        read = from_itf(text)
        assert to_itf(read) == text
        assert read.moves == trace.moves
        assert [step.changes for step in read.steps] == [step.changes for step in trace.steps]
        assert read.loop_start == trace.loop_start
        assert replayed(model, read) == trace


def test_itf_is_what_the_format_asks_for() -> None:
    trace = check(lease(fenced=False)).property("no_stale_write").trace
    assert trace is not None
    document = json.loads(to_itf(trace))
    assert document["#meta"]["format"] == "ITF"
    assert set(document["vars"]) == set(document["states"][0]) - {"#meta"}
    assert [state["#meta"]["index"] for state in document["states"]] == list(range(len(trace.steps) + 1))
    assert document["states"][1]["state"]["shared"] == {"ticket": {"#bigint": "1"}, "held": True}
    assert (document["states"][0]["actor"], document["states"][1]["actor"]) == ("", "c1")
    assert "loop" not in document


def test_a_loop_is_in_the_itf() -> None:
    trace = check(retry_loop(2)).property("each_finishes").trace
    assert trace is not None
    assert json.loads(to_itf(trace))["loop"] == trace.loop_start == 0


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("{", "not JSON", "line 1, column 2"),
        ("[]", "lacks what lakeproof writes", ""),
        ('{"#meta": {}, "states": [{"state": 1}, {"state": 2}]}', "lacks what lakeproof writes", ""),
        (
            '{"#meta": {"actors": []}, "states": [{"state": 1}, {"state": 2, "actor": "", "step": "s"}]}',
            "names no actor",
            "states[1]",
        ),
    ],
)
def test_a_broken_itf_is_bad_input(text: str, message: str, place: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        from_itf(text)
    assert error.value.place == place


def test_a_step_that_is_not_open_is_named_with_what_is() -> None:
    moves = [MoveName("c1", "take"), MoveName("c2", "take")]
    with pytest.raises(InvalidInput, match="step 2, 'c2 take', is not open there") as error:
        follow(lease(fenced=True), moves)
    assert error.value.hint == "open is c1 run out; c1 write"


def test_a_reduced_search_tells_the_run_of_the_plain_model() -> None:
    """Symmetry renames processes and letters on the way; the trace must not."""
    model = letters(3)
    reduced = check(model)
    assert reduced.reductions == ("processes", "values", "private")
    trace = reduced.property("not_full_of_one").trace
    assert trace is not None
    worlds = worlds_of(model, trace)
    assert set(worlds[-1].shared) in ({"a"}, {"b"})
    assert [step.step for step in trace.steps].count("copy") == 3
    assert {step.actor for step in trace.steps} <= {"j1", "j2", "j3"}


def test_witnesses_of_reachable_properties_on_request() -> None:
    model = lease(fenced=True)
    assert check(model).property("some_refusal").trace is None
    witness = check(model, witnesses=True).property("some_refusal").trace
    assert witness is not None
    assert witness.steps[-1].marks == ("refused",)
    worlds_of(model, witness)


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class File:
    name: str
    rows: frozenset[int]


class Table(NamedTuple):
    head: int | None
    files: tuple[File, ...]


def test_values_become_plain_data() -> None:
    value = Table(None, (File("a", frozenset({3, 1, 2})),))
    assert plain(value) == {"head": None, "files": [{"name": "a", "rows": [1, 2, 3]}]}
    assert plain({"c": Colour.RED, 1: 2.5}) == {"c": "RED", "1": 2.5}


def test_differences_name_the_places() -> None:
    before = {"head": 1, "files": ["a", "b"], "phase": "x", "gone": True}
    after = {"head": 1, "files": ["a", "c", "d"], "phase": None, "new": 0}
    assert [change.to_json() for change in differences(before, after)] == [
        {"path": "files[1]", "before": "b", "after": "c"},
        {"path": "files[2]", "after": "d"},
        {"path": "phase", "before": "x", "after": None},
        {"path": "gone", "before": True},
        {"path": "new", "after": 0},
    ]
    assert differences(1, True) != [], "equal for Python, but not the same thing"
