"""What cuts a search short, what it says meanwhile, and random walks."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from checker_runs import assert_shows, words
from toys import clock, lease, letters, retry_loop

from lakeproof.checker import Model, Outcome, Process, Progress, Step, always, check, never
from lakeproof.checker.limits import remaining


def counter(bad: int = -1) -> Model:
    """Two processes that count for ever, so that no search comes to an end."""

    def count(shared: int, own: int) -> list[Outcome]:
        return [Outcome(shared + 1, own + 1)]

    properties = (always("not_bad", lambda shared: shared != bad),)
    return Model("counter", 0, (Process("a", 0), Process("b", 0)), (Step("count", count),), properties)


def test_max_states_cuts_as_soon_as_there_are_more() -> None:
    verdict = check(counter(), max_states=1000)
    assert (verdict.verdict, verdict.exhausted, verdict.cut_by) == ("unknown", False, "max-states")
    assert verdict.states == 1001
    assert verdict.property("not_bad").reason == "cut by max-states"


def test_max_seconds_cuts() -> None:
    verdict = check(counter(), max_seconds=0.1)
    assert (verdict.verdict, verdict.cut_by) == ("unknown", "max-seconds")
    assert 0.1 <= verdict.seconds < 2


def test_a_violation_before_the_cut_counts() -> None:
    verdict = check(counter(bad=5), max_states=1000)
    assert (verdict.verdict, verdict.exhausted, verdict.cut_by) == ("violated", False, "max-states")
    assert verdict.property("not_bad").depth == 5


def test_first_stops_at_the_first_violation() -> None:
    verdict = check(counter(bad=5), first=True)
    assert (verdict.verdict, verdict.exhausted, verdict.cut_by) == ("violated", False, "first violation")
    assert verdict.depth == 5


def test_a_limit_that_is_not_reached_cuts_nothing() -> None:
    verdict = check(clock(12), max_states=12, max_seconds=60)
    assert (verdict.verdict, verdict.exhausted, verdict.cut_by) == ("holds", True, None)


def test_without_exhaustion_nothing_holds_and_nothing_is_unreachable() -> None:
    verdict = check(lease(4, 4, fenced=False), max_states=3)
    assert set(words(verdict).values()) == {"unknown"}
    assert verdict.unreached == ("some_refusal",)


def test_ctrl_c_gives_the_verdict_so_far() -> None:
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    verdict = check(counter(bad=5), engine="readable", max_seconds=30)
    timer.join()
    assert (verdict.verdict, verdict.cut_by) == ("violated", "Ctrl-C")
    assert verdict.property("not_bad").trace is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_says_where_the_search_stands() -> None:
    seen: list[Progress] = []
    verdict = check(counter(), max_seconds=0.8, engine="readable", progress=seen.append)
    assert seen
    assert [p.states for p in seen] == sorted(p.states for p in seen)
    last = seen[-1]
    assert last.states <= verdict.states
    assert last.rate == pytest.approx(last.states / last.seconds)
    assert last.memory_mb > 5
    assert last.depth > 0
    assert last.frontier > 0
    assert last.remaining_states is None
    assert last.outlook == "no estimate: the frontier still grows"


def test_the_estimate_is_given_only_while_levels_shrink() -> None:
    assert remaining([1, 2, 4, 8]) is None
    assert remaining([8, 4, 2]) is None
    assert remaining([100, 800, 400, 200, 100]) == 100
    assert remaining([100, 50, 60, 30, 15]) is None


def test_random_walks_find_a_violation_or_nothing() -> None:
    model = lease(3, 3, fenced=False)
    verdict = check(model, simulate=50, seed=7)
    assert (verdict.verdict, verdict.cut_by, verdict.engine, verdict.seed) == (
        "violated",
        "simulation",
        "simulation",
        7,
    )
    assert_shows(model, verdict.property("no_stale_write"))
    assert words(check(lease(3, 3, fenced=True), simulate=50, seed=7))["no_stale_write"] == "unknown"
    assert verdict.states <= check(model, reductions=False).states


def test_random_walks_repeat_with_their_seed() -> None:
    def told(seed: int) -> dict[str, object]:
        told = check(letters(3), simulate=20, seed=seed).to_json()
        return {name: told[name] for name in ("states", "transitions", "depth", "properties", "statistics")}

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_walks_that_do_not_end_are_left() -> None:
    verdict = check(retry_loop(2), simulate=2)
    assert verdict.depth == 1000
    assert verdict.transitions == 2000


def test_simulated_marks_are_found() -> None:
    model = retry_loop(2)
    found = Model(
        "marks", model.shared, model.processes, model.steps, (never("no_second_try", "tried again"),), model.observe
    )
    verdict = check(found, simulate=5, first=True)
    assert verdict.cut_by == "first violation"
    assert_shows(found, verdict.property("no_second_try"))
