"""The readable engine on models that can be counted by hand."""

from __future__ import annotations

import pytest
from checker_runs import assert_all_shown, assert_shows, words
from toys import clock, lease, letters, peterson, retry_loop

from lakeproof.checker import Model, Outcome, Process, Step, always, always_of_all, broken_promises, check, eventually
from lakeproof.errors import InvalidInput, ModelError


def test_clock_goes_round() -> None:
    verdict = check(clock(12))
    assert (verdict.states, verdict.transitions, verdict.depth) == (12, 12, 11)
    assert (verdict.verdict, verdict.exhausted, verdict.cut_by) == ("holds", True, None)
    assert verdict.statistics.steps["tick"] == (12, 12)
    assert verdict.statistics.terminals == 0


def test_clock_strikes_the_bad_hour_after_the_shortest_way() -> None:
    model = clock(12, bad=7)
    verdict = check(model)
    assert verdict.verdict == "violated"
    assert verdict.exhausted
    assert verdict.states == 12
    bad = verdict.property("not_bad")
    assert (bad.depth, bad.alone) == (7, True)
    assert bad.trace is not None
    assert [change.to_json() for change in bad.trace.steps[-1].changes] == [{"path": "shared", "before": 6, "after": 7}]
    assert bad.trace.steps[0].caption == "The hand moves on"
    assert verdict.to_json()["trace"] == bad.trace.to_json()


@pytest.mark.parametrize(
    ("writers", "limit", "states", "reduced", "each"),
    [
        pytest.param(2, None, 15, 9, "violated", id="two writers that retry for ever starve each other"),
        pytest.param(3, None, 63, 19, "violated", id="three too"),
        pytest.param(2, 0, 15, 9, "holds", id="without a retry everybody finishes"),
        pytest.param(2, 1, 33, 18, "holds", id="with one retry everybody finishes"),
        pytest.param(3, 1, 279, 64, "holds", id="three writers with one retry too"),
    ],
)
def test_endless_retries_starve(writers: int, limit: int | None, states: int, reduced: int, each: str) -> None:
    model = retry_loop(writers, limit)
    for reductions, count in ((False, states), (True, reduced)):
        verdict = check(model, reductions=reductions)
        assert verdict.states == count
        assert words(verdict)["each_finishes"] == each
        assert words(verdict)["some_finishes"] == "holds"
        assert verdict.unreached == ("some_third_state",)
        assert_all_shown(model, verdict)


def test_starvation_is_a_loop_in_which_the_others_work() -> None:
    verdict = check(retry_loop(2))
    trace = verdict.property("each_finishes").trace
    assert trace is not None
    assert trace.loop_start is not None
    assert [step.step for step in trace.steps[trace.loop_start :]].count("swap") == 1
    assert verdict.property("each_finishes").alone is False
    assert verdict.property("each_finishes").to_json()["loop_start"] == trace.loop_start


def test_a_lease_that_runs_out_needs_a_fence() -> None:
    open_door, fenced = check(lease(fenced=False)), check(lease(fenced=True))
    assert words(open_door)["no_stale_write"] == "violated"
    assert words(fenced)["no_stale_write"] == "holds"
    assert open_door.unreached == ("some_refusal",)
    assert fenced.unreached == ()
    stale = open_door.property("no_stale_write")
    assert (stale.depth, stale.alone) == (4, False)
    assert_shows(lease(fenced=False), stale)
    assert fenced.verdict == "holds", "one_believer is violated, but does not count"
    assert words(fenced)["one_believer"] == "violated"
    assert dict(fenced.statistics.marks) == {"refused": 3, "write": 6}


def test_a_property_can_be_required() -> None:
    assert check(lease(fenced=True), require=["one_believer"]).verdict == "violated"
    assert check(lease(fenced=False), require=["some_refusal"]).property("some_refusal").counts
    with pytest.raises(InvalidInput, match="no_stale_rite") as error:
        check(lease(fenced=True), require=["no_stale_rite"])
    assert error.value.hint == "did you mean no_stale_write?"


def test_peterson_excludes_and_lets_everybody_in() -> None:
    verdict = check(peterson())
    assert (verdict.verdict, verdict.states, verdict.transitions) == ("holds", 20, 34)


def test_without_the_turn_both_wait_for_ever() -> None:
    model = peterson(with_turn=False)
    verdict = check(model)
    assert words(verdict) == {"exclusion": "holds", "each_gets_in": "violated", "no_deadlock": "violated"}
    assert verdict.statistics.terminals == 2
    assert verdict.property("no_deadlock").depth == 4
    assert_all_shown(model, verdict)


@pytest.mark.parametrize(
    ("reductions", "states", "transitions", "depth"),
    [
        ((), 375, 740, 13),
        (("processes",), 225, 444, 13),
        (("values",), 200, 400, 13),
        (("private",), 135, 264, 8),
        (("processes", "values", "private"), 48, 96, 8),
    ],
)
def test_each_reduction_shrinks_the_space_and_no_verdict_changes(
    reductions: tuple[str, ...], states: int, transitions: int, depth: int
) -> None:
    model = letters()
    verdict = check(model, reductions=reductions)
    assert verdict.reductions == reductions
    assert (verdict.states, verdict.transitions, verdict.depth) == (states, transitions, depth)
    assert words(verdict) == words(check(model, reductions=False))
    assert verdict.property("not_full_of_one").depth == 9
    assert_all_shown(model, verdict)
    assert broken_promises(model) == []


def test_a_private_step_that_reads_what_others_change_is_a_broken_promise() -> None:
    def put(shared: int, own: int) -> list[Outcome]:
        return [Outcome(shared, shared + 1)] if own == 0 else []

    def add(shared: int, own: int) -> list[Outcome]:
        return [Outcome(shared + own, 0)] if own and shared < 3 else []

    steps = (Step("put", put, private=True), Step("add", add))
    model = Model("liar", 0, (Process("a", 0), Process("b", 0)), steps)
    word = "a private step does not commute with a step of another process, with 0 beside 0"
    assert broken_promises(model, most=1) == [word]
    verdict = check(model)
    assert verdict.reductions == ("processes",)
    assert verdict.notes == (f"private steps are taken one by one: {word}",)
    assert verdict.states == check(model, reductions=("processes",)).states


def test_settling_stops_where_another_step_is_open() -> None:
    """A process may rest half-way, shout there, or go on: who settles past that place misses the shout."""

    def start(shared: int, own: str) -> list[Outcome]:
        return [Outcome(shared, "half")] if own == "new" else []

    def go_on(shared: int, own: str) -> list[Outcome]:
        return [Outcome(shared, "done")] if own == "half" else []

    def shout(shared: int, own: str) -> list[Outcome]:
        return [Outcome(1, "done", label="shout")] if own == "half" else []

    steps = (Step("start", start), Step("go on", go_on, private=True), Step("shout", shout))
    quiet = always("nobody shouts", lambda shared: shared == 0)
    model = Model("half-way", 0, (Process("a", "new"), Process("b", "new")), steps, (quiet,))
    assert words(check(model)) == words(check(model, reductions=False)) == {"nobody shouts": "violated"}


def test_private_steps_that_go_round_are_refused() -> None:
    def flip(shared: None, own: bool) -> list[Outcome]:
        return [Outcome(shared, not own)]

    with pytest.raises(ModelError, match="never ends"):
        check(Model("flip", None, (Process("a", False),), (Step("flip", flip, private=True),)))


def test_a_property_that_tells_processes_apart_switches_symmetry_off() -> None:
    def go(shared: int, own: bool) -> list[Outcome]:
        return [] if own else [Outcome(shared + 1, True)]

    def model(symmetric: bool) -> Model:
        first = always_of_all("first_before_second", lambda shared, owns: owns[0] or not owns[1], symmetric=symmetric)
        return Model("race", 0, (Process("a", False), Process("b", False)), (Step("go", go),), (first,))

    verdict = check(model(symmetric=False))
    assert words(verdict) == {"first_before_second": "violated"}
    assert verdict.reductions == ()
    assert "first_before_second may tell processes apart" in verdict.notes[0]
    assert verdict.states == 4
    with pytest.raises(ModelError, match="first_before_second is hit in the reduced space but not in the run"):
        check(model(symmetric=True))


def test_eventually_asks_for_it_from_every_state() -> None:
    def step(shared: str, own: None) -> list[Outcome]:
        ways = {"start": ["good"], "good": ["left", "right"], "left": ["good"], "right": ["right"]}
        return [Outcome(to, None) for to in ways[shared]]

    comes = eventually("good_comes", lambda shared, owns: shared == "good", symmetric=True)
    verdict = check(Model("way", "start", (Process("p", None),), (Step("step", step),), (comes,)))
    found = verdict.property("good_comes")
    assert found.verdict == "violated"
    assert found.trace is not None
    assert [step.shared for step in found.trace.steps] == ["good", "right", "right"]
    assert found.trace.loop_start == 2


def test_a_run_that_leaves_somebody_out_for_ever_does_not_count() -> None:
    def spin(shared: str, own: str) -> list[Outcome]:
        return [Outcome(shared, own)] if own == "spinner" else []

    def finish(shared: str, own: str) -> list[Outcome]:
        return [Outcome("done", own)] if own == "finisher" and shared != "done" else []

    comes = eventually("done_comes", lambda shared, owns: shared == "done", symmetric=True)
    processes = (Process("a", "spinner"), Process("b", "finisher"))
    steps = (Step("spin", spin), Step("finish", finish))
    assert check(Model("fair", "", processes, steps, (comes,))).verdict == "holds"
    assert check(Model("alone", "", processes[:1], steps, (comes,))).verdict == "violated"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param(lambda: Model("m", 0, (), ()), "has no process", id="no process"),
        pytest.param(
            lambda: Model("m", 0, (Process("a", 0), Process("a", 0)), ()), "more than one process named 'a'", id="twins"
        ),
        pytest.param(
            lambda: Model("m", 0, (Process("a", 0, "x"),), {"y": ()}),
            "kind 'x' but no steps",
            id="a kind without steps",
        ),
        pytest.param(
            lambda: check(Model("m", 0, (Process("a", 0),), (Step("s", lambda s, o: [Outcome([s], o)]),))),  # type: ignore[arg-type]
            "not immutable",
            id="a list in the state",
        ),
        pytest.param(
            lambda: check(Model("m", 0, (Process("a", 0),), (Step("s", lambda s, o: None),))),  # type: ignore[arg-type,return-value]
            "yields something that is not an Outcome: 'NoneType' object is not iterable",
            id="a step that returns nothing",
        ),
        pytest.param(
            lambda: check(Model("m", 0, (Process("a", 0),), (Step("s", lambda s, o: [(s, o)]),))),  # type: ignore[list-item]
            "yields something that is not an Outcome",
            id="a step that yields a pair",
        ),
        pytest.param(
            lambda: check(Model("m", 0, (Process("a", 0),), (), (always("x", lambda shared: 1 / shared > 0),))),
            r"raised ZeroDivisionError: division by zero\n  at    .*test_checker_toys.py:\d+",
            id="a test that raises",
        ),
    ],
)
def test_a_wrong_model_is_a_model_error(build: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()  # type: ignore[operator]


def test_unknown_reduction_is_bad_input() -> None:
    with pytest.raises(InvalidInput, match="no reduction 'proceses'"):
        check(clock(), reductions={"proceses"})
