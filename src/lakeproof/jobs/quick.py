"""The model of a file's jobs made quick: what nobody can see is left out, and nothing is computed twice.

Reading and writing private files, and the time between validation and swap, change nothing that a commit check or the
judge could see: a lost swap validates again. So a command here has two steps: it starts, and it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, Outcome, Step, StepFunction
from lakeproof.models.iceberg import starting, steps
from lakeproof.models.iceberg.properties import JUDGED
from lakeproof.models.iceberg.world import COMMITTING, COMPACTION, Conflicted, Op, Own, Ready, Shared, Writer


class Memory(NamedTuple):
    """What was computed already for one policy, and the kinds of writers that found something to do or committed."""

    steps: dict[str, tuple[Step, ...]]
    observed: dict[str, Callable[[Any, Any], Any]]
    started: set[str]
    committed: set[str]


def quickened(model: Model, memory: Memory) -> Model:
    """A fused model with two steps per command, only the properties of single commits, and a memory.

    The memory is for one file and one policy: writers of one kind do the same in every choice of writers.
    """
    assert isinstance(model.steps, Mapping)
    for kind, some in model.steps.items():
        if kind not in memory.steps:
            writer: Writer = _writer(some[0])
            memory.steps[kind] = (
                Step("start", _remembered(partial(start, writer), kind, memory)),
                Step("commit", _remembered(partial(end, writer), kind, memory)),
            )
    kept = tuple(one for one in model.properties if one.name in JUDGED)
    observe = memory.observed.setdefault("", cache(model.observe))
    steps_of = {kind: memory.steps[kind] for kind in model.steps}
    return replace(model, steps=steps_of, properties=kept, is_final=None, observe=observe)


def _writer(step: Step) -> Any:
    assert isinstance(step.run, partial)
    return step.run.args[0]


def start(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts its next command and writes its files."""
    if not isinstance(own, Ready):
        return
    yield from map(_written, starting.start(writer, shared, own))
    if COMPACTION in writer.choices(own):
        yield from map(_written, starting.start_compaction(writer, shared, own))


def end(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer commits, is refused, runs again, or finds nothing left to do."""
    if isinstance(own, Ready):
        return
    ways: tuple[Callable[[Writer, Shared, Own], Iterator[Outcome]], ...] = (steps.swap, steps.refuse, steps.finish)
    for way in (steps.refuse,) if isinstance(own, Conflicted) else ways:
        found = [_written(outcome) for outcome in way(writer, shared, own)]
        if found:
            yield from found
            return


def _written(outcome: Outcome) -> Outcome:
    own = outcome.own
    return outcome._replace(own=own._replace(stage=COMMITTING)) if isinstance(own, Op) else outcome


def _remembered(run: StepFunction, kind: str, memory: Memory) -> StepFunction:
    known: dict[tuple[object, object], tuple[Outcome, ...]] = {}

    def remembered(shared: object, own: object) -> tuple[Outcome, ...]:
        key = (shared, own)
        if key not in known:
            known[key] = tuple(run(shared, own))
            for outcome in known[key]:
                if outcome.event is not None:
                    memory.committed.add(kind)
                if not isinstance(outcome.own, Ready):
                    memory.started.add(kind)
        return known[key]

    return remembered
