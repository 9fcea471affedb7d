"""Random finite models, with promises kept by construction, and an oracle that shares no code with the search.

An own value is (place, pending, colour). While pending, the only step open is the private one, which picks a colour:
nobody sees that. Events move places and nothing else, so they commute with it. In symmetric models tables are closed
under the mirror: place p becomes last - p, and likewise shared values and events.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from lakeproof.checker import (
    Model,
    Outcome,
    Process,
    Step,
    ValueSymmetry,
    always,
    always_of_all,
    always_of_each,
    eventually,
    eventually_each,
    never,
    reachable,
)


class Own(NamedTuple):
    """Where a process stands."""

    place: int
    pending: bool = False
    colour: int = 0


class Size(NamedTuple):
    """How large a random model is."""

    shared: int = 3
    places: int = 3
    events: int = 3
    kinds: tuple[int, ...] = (2, 1)  # processes of each kind
    density: float = 0.35
    private: bool = True
    mirrored: bool = False
    ends: bool = False  # shared values only grow: every run ends
    restless: bool = False  # every process can always move: no run ends


def random_model(seed: int, size: Size) -> Model:
    """The model of a seed."""
    chance = random.Random(seed)
    tables = {f"kind {kind}": table(chance, size) for kind in range(len(size.kinds))}
    heard = [[chance.randrange(size.places) for _ in range(size.events)] for _ in range(size.places)]

    def observe(own: Own, event: int) -> Own:
        mirror = (size.places - 1 - own.place, size.events - 1 - event)
        if not size.mirrored or (own.place, event) < mirror:
            return own._replace(place=heard[own.place][event])
        if (own.place, event) == mirror:
            return own
        return own._replace(place=size.places - 1 - heard[mirror[0]][mirror[1]])

    restless = {1, size.places - 2} if size.mirrored else {1}
    processes = tuple(
        Process(f"p{kind}{number}", Own(chance.randrange(size.places)) if not size.mirrored else Own(0), f"kind {kind}")
        for kind, count in enumerate(size.kinds)
        for number in range(count)
    )
    return Model(
        f"random {seed}",
        0,
        processes,
        {name: steps(rows, size) for name, rows in tables.items()},
        properties(chance, size),
        observe,
        value_symmetries=(mirror_of(size),) if size.mirrored else (),
        is_final=lambda shared, own: own.place not in restless,
    )


Table = dict[tuple[int, Own], list[tuple[int, Own, int | None, tuple[str, ...]]]]


def table(chance: random.Random, size: Size) -> Table:
    """What a process of one kind may do, per shared and own value."""
    rows: Table = {}
    for shared in range(size.shared):
        for place in range(size.places):
            for colour in range(2):
                outcomes: list[tuple[int, Own, int | None, tuple[str, ...]]] = []
                while chance.random() < size.density or (size.restless and not outcomes):
                    low = shared + 1 if size.ends else 0
                    if low >= size.shared:
                        break
                    after = Own(
                        chance.randrange(size.places), size.private and chance.random() < 0.4, chance.randrange(2)
                    )
                    event = chance.randrange(size.events) if chance.random() < 0.4 else None
                    marks = ("red",) if chance.random() < 0.1 else ("blue",) if chance.random() < 0.05 else ()
                    outcomes.append((chance.randrange(low, size.shared), after, event, marks))
                rows[shared, Own(place, False, colour)] = outcomes
    return rows


def steps(rows: Table, size: Size) -> tuple[Step, ...]:
    """The table as two steps (outcomes without and with an event), and the private one that picks a colour."""

    def all_rows(shared: int, own: Own) -> list[tuple[int, Own, int | None, tuple[str, ...]]]:
        found = list(rows.get((shared, own), ()))
        if size.mirrored:
            mirror = mirror_of(size)
            for after, own_after, event, marks in rows.get((mirror.shared(shared), mirror.own(own)), ()):
                seen = None if event is None else size.events - 1 - event
                found.append((mirror.shared(after), mirror.own(own_after), seen, marks))
        return found

    def silent(shared: int, own: Own) -> Iterator[Outcome]:
        for after, own_after, event, marks in all_rows(shared, own):
            if event is None:
                yield Outcome(after, own_after, None, f"{after} {own_after}", marks)

    def loud(shared: int, own: Own) -> Iterator[Outcome]:
        for after, own_after, event, marks in all_rows(shared, own):
            if event is not None:
                yield Outcome(after, own_after, event, f"{after} {own_after} {event}", marks)

    def pick(shared: int, own: Own) -> Iterator[Outcome]:
        if own.pending:
            yield Outcome(shared, Own(own.place, False, 0), label="0")
            yield Outcome(shared, Own(own.place, False, 1), label="1")

    return (Step("silent", silent), Step("loud", loud), Step("pick", pick, private=True, reads_shared=False))


def mirror_of(size: Size) -> ValueSymmetry:
    """Everything counted from the other end."""
    return ValueSymmetry(
        lambda shared: size.shared - 1 - shared, lambda own: own._replace(place=size.places - 1 - own.place)
    )


def properties(chance: random.Random, size: Size) -> tuple[Any, ...]:
    """One property of each kind, closed under the mirror where there is one."""

    def both(value: int, last: int) -> frozenset[int]:
        return frozenset({value, last - value} if size.mirrored else {value})

    bad, goal = (
        both(chance.randrange(size.shared), size.shared - 1),
        both(chance.randrange(size.shared), size.shared - 1),
    )
    place, other = (
        both(chance.randrange(size.places), size.places - 1),
        both(chance.randrange(size.places), size.places - 1),
    )
    return (
        always("not_bad", lambda shared: shared not in bad),
        always_of_each("not_there", lambda shared, own: not (shared in goal and own.place in place)),
        always_of_all("not_all", lambda shared, owns: not all(own.place in other for own in owns), symmetric=True),
        never("never_red", "red"),
        reachable("blue", "blue"),
        reachable("goal", lambda shared: shared in goal),
        eventually("goal_comes", lambda shared, owns: shared in goal, symmetric=True),
        eventually("all_there", lambda shared, owns: all(own.place in place for own in owns), symmetric=True),
        eventually_each("each_there", lambda shared, own: own.place in place),
    )


class Space(NamedTuple):
    """The whole unreduced space, found the simplest way."""

    depth: dict[Any, int]
    edges: list[tuple[Any, Any, int, tuple[str, ...]]]  # from, to, by whom, marks


def explored(model: Model, most: int = 10_000) -> Space | None:
    """Every state and transition, by following every step of every process; None: there are more states than that."""
    start = (model.shared, tuple(process.own for process in model.processes))
    depth, edges, queue = {start: 0}, [], [start]
    for state in queue:
        if len(queue) > most:
            return None
        for number, process in enumerate(model.processes):
            for step in model.steps_of(process.kind):
                for after, own, event, _, marks in step.run(state[0], state[1][number]):
                    owns = [o if event is None else model.observe(o, event) for o in state[1]]
                    owns[number] = own
                    target = (after, tuple(owns))
                    edges.append((state, target, number, marks))
                    if target not in depth:
                        depth[target] = depth[state] + 1
                        queue.append(target)
    return Space(depth, edges)


def verdicts(model: Model, space: Space) -> dict[str, tuple[str, int | None]]:
    """Each property's verdict and the depth of its first hit, from the definitions."""
    answers: dict[str, tuple[str, int | None]] = {}
    moved = {source for source, *_ in space.edges}
    for claim in model.claims():
        hits = [space.depth[source] + 1 for source, _, _, marks in space.edges if claim.mark and claim.mark in marks]
        wanted = claim.kind == "reachable"
        for (shared, owns), depth in space.depth.items():
            test = claim.test
            at_rest = (shared, owns) not in moved
            if claim.subject == "rest":
                hit = at_rest and not all(model.is_final(shared, own) for own in owns)  # type: ignore[misc]
            elif test is None:
                continue
            elif claim.kind == "eventually":
                here = test(shared, owns) if claim.subject == "all" else all(test(shared, own) for own in owns)
                hit = at_rest and not here
            elif claim.subject == "each":
                hit = any(test(shared, own) == wanted for own in owns)
            else:
                hit = (test(shared) if claim.subject == "shared" else test(shared, owns)) == wanted
            hits += [depth] if hit else []
        endless = claim.kind == "eventually" and not hits and goes_round(model, space, claim)
        word = ("holds" if hits else "violated") if wanted else ("violated" if hits or endless else "holds")
        answers[claim.name] = (word, min(hits, default=None))
    return answers


def goes_round(model: Model, space: Space, claim: Any) -> bool:
    """Is there a weakly fair way round on which the test never holds (of all, or of some one process)?"""
    processes = range(len(model.processes))
    able = {state: set[int]() for state in space.depth}
    for source, _, by, _ in space.edges:
        able[source].add(by)
    tests = (
        [lambda state: not claim.test(*state)]
        if claim.subject == "all"
        else [lambda state, n=n: not claim.test(state[0], state[1][n]) for n in processes]
    )
    for failing in tests:
        bad = [state for state in space.depth if failing(state)]
        reach = reaches(bad, space)
        for state in bad:
            part = {other for other in reach[state] if state in reach[other]}
            moves = {by for source, target, by, _ in space.edges if source in part and target in part}
            if part and moves and all(n in moves or any(n not in able[s] for s in part) for n in processes):
                return True
    return False


def reaches(among: list[Any], space: Space) -> dict[Any, set[Any]]:
    """For each of these states, those among them that can be reached from it in one step or more."""
    targets: dict[Any, set[Any]] = {state: set() for state in among}
    for source, target, _, _ in space.edges:
        if source in targets and target in targets:
            targets[source].add(target)
    found = {}
    for state in among:
        seen, queue = set[Any](), list(targets[state])
        while queue:
            other = queue.pop()
            if other not in seen:
                seen.add(other)
                queue += targets[other]
        found[state] = seen
    return found
