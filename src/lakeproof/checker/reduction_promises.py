"""What a model promises and the reductions rely on, tested on everything that a plain search reaches.

`broken_promises` belongs in the tests of every model that declares private steps or value symmetries: a broken
promise makes a reduced search miss states. Every search that relies on one tests it on a sample (`broken_on_a_sample`),
and does without that reduction if it is broken there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import cycle, islice
from typing import Any

from lakeproof.checker.limits import Cut, Watch
from lakeproof.checker.model import Model, Outcome, ValueSymmetry
from lakeproof.checker.readable import Successors, explore
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger


def broken_promises(model: Model, *, max_states: int = 100_000, most: int = 10) -> list[str]:
    """Promises that the model breaks in what it reaches within so many states; empty: none was found broken."""
    tables = Tables(model, private=False, values=False)
    explore(Successors(tables, symmetric=False), Ledger(tables), Watch(Cut(states=max_states)))
    reached = Reached(tables)
    return list(islice(dict.fromkeys([*_private(reached), *_symmetric(reached), *_heard_alike(reached)]), most))


def broken_on_a_sample(model: Model, names: Collection[str]) -> dict[str, str]:
    """Of these reductions, those whose promise is broken where a few short random walks come by, and how."""
    tests = {"private": _private, "values": _symmetric_in_places}
    asked = [name for name in names if name in tests]
    reached = _sampled(model) if asked else None
    broken = {name: next(tests[name](reached), "") for name in asked if reached is not None}
    return {name: how for name, how in broken.items() if how}


def _sampled(model: Model) -> Reached:
    """What a few short random walks come by."""
    tables = Tables(model, private=False, values=False)
    successors, chance = Successors(tables, symmetric=False), random.Random(0)
    for _ in range(SAMPLED_WALKS):
        state = tables.initial()
        for _ in range(SAMPLED_STEPS):
            moves = successors.of(state)
            if not moves:
                break
            state = chance.choice(moves)[2]
    return Reached(tables)


EVENTS_OF_A_PAIR = 6
SAMPLED_WALKS, SAMPLED_STEPS, SAMPLED_PAIRS, SAMPLED_RENAMINGS = 4, 12, 6, 3


class Reached:
    """The values that a plain search met, and which of them met each other."""

    def __init__(self, tables: Tables) -> None:
        self.model, self.tables = tables.model, tables
        values = tables.shared.values
        self.pairs = [
            (kind, values[key >> 32], tables.owns[kind].values[key & 0xFFFFFFFF])
            for kind, rows in enumerate(tables.rows)
            for key in rows
        ]
        self.beside: dict[Any, list[tuple[int, Any]]] = {}  # shared value -> own values met with it
        for kind, shared, own in self.pairs:
            self.beside.setdefault(shared, []).append((kind, own))

    def outcomes(self, kind: int, shared: Any, own: Any, *, private: bool | None = None) -> list[Outcome]:
        """All outcomes of a pair, or those of its private (or other) steps."""
        steps = [step for step in self.tables.steps[kind] if private in (None, step.private)]
        return [outcome for step in steps for outcome in step.run(shared, own)]

    def after(self, own: Any, outcome: Outcome) -> Any:
        """What somebody else's own value becomes by an outcome."""
        return own if outcome.event is None else self.model.observe(own, outcome.event)

    def at_once(self, kind: int, shared: Any, own: Any) -> list[Outcome]:
        """The private steps that a search takes at once: those open where nothing else is."""
        if self.outcomes(kind, shared, own, private=False):
            return []
        return self.outcomes(kind, shared, own, private=True)

    def settled(self, kind: int, shared: Any, own: Any) -> frozenset[Any]:
        """Where a process comes to rest when it takes its private steps at once."""
        ends, passed, waiting = set(), {own}, [own]
        while waiting:
            here = waiting.pop()
            further = {outcome.own for outcome in self.at_once(kind, shared, here)}
            if not further:
                ends.add(here)
            waiting += further - passed
            passed |= further
        return frozenset(ends)


def _private(reached: Reached) -> Iterator[str]:
    for kind, shared, own in reached.pairs:
        quiet = reached.at_once(kind, shared, own)
        if not quiet:
            continue
        where = f"with {own!r} beside {shared!r}"
        if any(outcome.shared != shared or outcome.event is not None for outcome in quiet):
            yield f"a private step changes the shared value or is seen by others, {where}"
        if any(_told_apart(reached.model, shared, own, outcome.own) for outcome in quiet):
            yield f"a property sees a private step, {where}"
        settled = reached.settled(kind, shared, own)
        for other_kind, other in reached.beside[shared]:
            for outcome in reached.outcomes(other_kind, shared, other):
                later = reached.settled(kind, outcome.shared, reached.after(own, outcome))
                ends = (reached.settled(kind, outcome.shared, reached.after(end, outcome)) for end in settled)
                if frozenset().union(*ends) != later:
                    yield f"a private step does not commute with a step of another process, {where}"


def _told_apart(model: Model, shared: Any, before: Any, after: Any) -> bool:
    return any(test(shared, before) != test(shared, after) for test in _tests_of_each(model))


def _tests_of_each(model: Model) -> list[Callable[..., bool]]:
    tests = [claim.test for claim in model.properties if claim.subject == "each"] + [model.is_final]
    return [test for test in tests if test is not None]


def _symmetric(reached: Reached) -> Iterator[str]:
    for number, renaming in enumerate(reached.model.value_symmetries, 1):
        for shared in reached.beside:
            yield from _told_apart_by(reached.model, number, renaming, shared)
        for pair in reached.pairs:
            yield from _not_respected(reached, number, renaming, *pair)


def _symmetric_in_places(reached: Reached) -> Iterator[str]:
    """The same of a few pairs of each kind, with a few renamings in turn."""
    renamings = cycle(enumerate(reached.model.value_symmetries, 1))
    few = min(SAMPLED_RENAMINGS, len(reached.model.value_symmetries))
    for kind in range(len(reached.tables.steps)):
        pairs = [pair for pair in reached.pairs if pair[0] == kind]
        for pair in pairs[:: 1 + len(pairs) // SAMPLED_PAIRS]:
            for number, renaming in islice(renamings, few):
                yield from _told_apart_by(reached.model, number, renaming, pair[1])
                yield from _not_respected(reached, number, renaming, *pair)


def _heard_alike(reached: Reached) -> Iterator[str]:
    """Own values that are said to be heard as another, and an event of which they make something else."""
    heard_as, observe = reached.model.heard_as, reached.model.observe
    if heard_as is None:
        return
    for kind, shared, own in reached.pairs:
        twins = [(other, heard_as(other)) for _, other in reached.beside[shared]]
        twins = [(other, twin) for other, twin in twins if twin != other]
        outcomes = reached.outcomes(kind, shared, own) if twins else []
        events = list(dict.fromkeys(outcome.event for outcome in outcomes if outcome.event is not None))
        for event in events[:: 1 + len(events) // EVENTS_OF_A_PAIR]:
            for other, twin in twins:
                if observe(twin, event) != observe(other, event):
                    yield f"an event is not heard as promised, with {other!r} beside {shared!r}"


def _told_apart_by(model: Model, number: int, renaming: ValueSymmetry, shared: Any) -> Iterator[str]:
    for claim in model.properties:
        if claim.subject == "shared" and claim.test and claim.test(shared) != claim.test(renaming.shared(shared)):
            yield f"{claim.name} tells values apart that symmetry {number} renames, at {shared!r}"


def _not_respected(
    reached: Reached, number: int, renaming: ValueSymmetry, kind: int, shared: Any, own: Any
) -> Iterator[str]:
    own = _form(reached.model)(own)
    new_shared, new_own = renaming.shared(shared), renaming.rename(own, renaming.moves(shared))
    if any(test(shared, own) != test(new_shared, new_own) for test in _tests_of_each(reached.model)):
        yield f"a property tells values apart that symmetry {number} renames, with {own!r} beside {shared!r}"
    here = reached.outcomes(kind, shared, own)
    there = reached.outcomes(kind, new_shared, new_own)
    renamed = Counter(_effect(reached, renaming, shared, outcome) for outcome in here)
    if renamed != Counter(_plain_effect(reached, renaming, shared, outcome) for outcome in there):
        yield f"a step does not respect symmetry {number}, with {own!r} beside {shared!r}"


def _effect(reached: Reached, renaming: ValueSymmetry, shared: Any, outcome: Outcome) -> Any:
    """An outcome, renamed: the values after it, and what it makes of everybody it may meet."""
    form, moves = _form(reached.model), renaming.moves(outcome.shared)
    owns = (outcome.own, *(reached.after(form(own), outcome) for _, own in reached.beside[shared]))
    return renaming.shared(outcome.shared), tuple(renaming.rename(form(own), moves) for own in owns), outcome.marks


def _plain_effect(reached: Reached, renaming: ValueSymmetry, shared: Any, outcome: Outcome) -> Any:
    """The same for an outcome of the renamed pair, which meets the renamed others."""
    form, moves = _form(reached.model), renaming.moves(shared)
    others = (reached.after(renaming.rename(form(own), moves), outcome) for _, own in reached.beside[shared])
    return outcome.shared, tuple(map(form, (outcome.own, *others))), outcome.marks


def _form(model: Model) -> Callable[[Any], Any]:
    return model.own_form or (lambda own: own)
