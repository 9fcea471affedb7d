"""What a trace must be: a real run of the plain model that ends in what it is said to show."""

from __future__ import annotations

from lakeproof.checker import Model, PropertyVerdict, Trace, Verdict
from lakeproof.checker.runs import World, enabled, follow, start_of


def worlds_of(model: Model, trace: Trace) -> list[World]:
    """The states along a trace, found by following its steps on the model; an impossible step raises."""
    run = follow(model, trace.moves)
    worlds = [start_of(model), *(part.world for part in run)]
    assert [(step.shared, step.owns) for step in trace.steps] == [tuple(world) for world in worlds[1:]]
    return worlds


def assert_shows(model: Model, verdict: PropertyVerdict) -> None:
    """The trace of a violated property is a real run, and its end (or its loop) violates the property."""
    claim = next(claim for claim in model.claims() if claim.name == verdict.name)
    assert verdict.trace is not None
    assert verdict.depth == len(verdict.trace.steps)
    worlds = worlds_of(model, verdict.trace)
    end = worlds[-1]
    if verdict.trace.loop_start is not None:
        assert_fair_loop(model, verdict, worlds)
    elif claim.subject == "mark":
        assert claim.mark in verdict.trace.steps[-1].marks
        assert not any(claim.mark in step.marks for step in verdict.trace.steps[:-1])
    elif claim.subject == "rest":
        assert model.is_final is not None
        assert not list(enabled(model, end))
        assert not all(model.is_final(end.shared, own) for own in end.owns)
    else:
        assert claim.test is not None
        holds = {
            "shared": lambda: claim.test(end.shared),
            "each": lambda: all(claim.test(end.shared, own) for own in end.owns),
            "all": lambda: claim.test(*end),
        }[claim.subject]()
        assert not holds
        assert claim.kind == "always" or not list(enabled(model, end))


def assert_fair_loop(model: Model, verdict: PropertyVerdict, worlds: list[World]) -> None:
    """The loop closes, every process moves in it or is unable to somewhere in it, and the test fails all along."""
    claim = next(claim for claim in model.claims() if claim.name == verdict.name)
    trace = verdict.trace
    assert trace is not None
    assert trace.loop_start is not None
    assert claim.test is not None
    assert worlds[trace.loop_start] == worlds[-1]
    loop = worlds[trace.loop_start :]
    assert len(loop) > 1
    movers = {step.actor for step in trace.steps[trace.loop_start :]}
    for number, process in enumerate(model.processes):
        unable = any(all(way.process != number for way in enabled(model, world)) for world in loop)
        assert process.name in movers or unable
    if claim.subject == "all":
        assert not any(claim.test(*world) for world in loop)
    else:
        assert any(
            not any(claim.test(world.shared, world.owns[number]) for world in loop)
            for number in range(len(model.processes))
        )


def assert_all_shown(model: Model, verdict: Verdict) -> None:
    """Every violation of the verdict is shown by its trace."""
    for property_verdict in verdict.properties:
        if property_verdict.verdict == "violated" and property_verdict.kind != "reachable":
            assert_shows(model, property_verdict)


def words(verdict: Verdict) -> dict[str, str]:
    """Each property's verdict."""
    return {p.name: p.verdict for p in verdict.properties}
