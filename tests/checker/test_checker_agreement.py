"""Random models: both engines, with and without each reduction, against an oracle that shares no code with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from checker_runs import assert_all_shown, words
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_models import Size, explored, random_model, verdicts

from lakeproof.checker import Model, Verdict, broken_promises, check
from lakeproof.checker.search import REDUCTIONS, Engine

sizes = st.builds(
    Size,
    shared=st.integers(2, 4),
    places=st.integers(2, 3),
    events=st.just(3),
    kinds=st.sampled_from([(1,), (2,), (1, 1), (3,), (2, 1)]),
    density=st.sampled_from([0.2, 0.35, 0.5]),
    private=st.booleans(),
    mirrored=st.booleans(),
    ends=st.booleans(),
    restless=st.booleans(),
)
LARGEST = 120  # states; the oracle's liveness is cubic
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)  # to explain, Hypothesis would trace every line


def assert_agrees(model: Model, engine: Engine) -> None:
    """The engine's counts, depths and verdicts are the oracle's, whatever is reduced, and its traces are real."""
    space = explored(model, LARGEST)
    if space is None:
        return
    expected = verdicts(model, space)
    plain = check(model, engine=engine, reductions=False)
    assert (plain.states, plain.transitions, plain.depth) == (
        len(space.depth),
        len(space.edges),
        max(space.depth.values()),
    )
    assert plain.statistics.terminals == len(space.depth.keys() - {source for source, *_ in space.edges})
    assert dict(plain.statistics.marks) == Counter(mark for *_, marks in space.edges for mark in marks)
    assert sum(count.taken for count in plain.statistics.steps.values()) == len(space.edges)
    for verdict in (plain, *reduced(model, engine)):
        assert words(verdict) == {name: word for name, (word, _) in expected.items()}
        assert verdict.states <= plain.states
        assert_all_shown(model, verdict)
    for p in plain.properties:
        assert p.depth == expected[p.name][1] or p.trace is None or p.trace.loop_start is not None


def reduced(model: Model, engine: Engine) -> Iterator[Verdict]:
    """The verdicts with each reduction, and with all."""
    for names in (*((name,) for name in REDUCTIONS), REDUCTIONS):
        yield check(model, engine=engine, reductions=names)


@settings(max_examples=150, phases=PHASES)
@given(st.integers(0, 10_000), sizes)
def test_readable_engine_agrees_with_the_oracle(seed: int, size: Size) -> None:
    assert_agrees(random_model(seed, size), "readable")


@pytest.mark.slow
@settings(max_examples=120, phases=PHASES)
@given(st.integers(0, 10_000), sizes)
def test_fast_engine_agrees_with_the_oracle(seed: int, size: Size) -> None:
    assert_agrees(random_model(seed, size), "fast")


@settings(max_examples=150, phases=PHASES)
@given(st.integers(0, 10_000), sizes)
def test_random_models_keep_their_promises(seed: int, size: Size) -> None:
    assert broken_promises(random_model(seed, size), max_states=300) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_engines_agree_on_larger_models(seed: int) -> None:
    size = Size(
        shared=4,
        places=3,
        kinds=((2, 1), (3,), (1, 1, 1))[seed % 3],
        density=0.45,
        restless=seed % 2 == 1,
        ends=seed % 4 == 2,
    )
    model = random_model(seed, size)
    for reductions in ((), ("processes", "values"), REDUCTIONS):
        readable, fast = (check(model, engine=engine, reductions=reductions) for engine in ("readable", "fast"))
        assert words(fast) == words(readable)
        assert (fast.states, fast.transitions, fast.depth) == (readable.states, readable.transitions, readable.depth)
        assert fast.statistics == readable.statistics
        assert [p.alone for p in fast.properties] == [p.alone for p in readable.properties]
        if "private" not in reductions:  # how many private steps lie on a way is not minimised
            assert [p.depth for p in fast.properties] == [p.depth for p in readable.properties]
        assert_all_shown(model, fast)
