"""Real runs of a model, one step after the other, with values in place of numbers and no reduction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, Outcome, Step
from lakeproof.checker.readable import Successors
from lakeproof.checker.tables import State, Tables
from lakeproof.errors import InvalidInput, ModelError


class World(NamedTuple):
    """One state of a model as values: the shared one, and the own ones in the order of the processes."""

    shared: Any
    owns: tuple[Any, ...]


class TakenStep(NamedTuple):
    """One process took one step, and this is the state after it."""

    process: int
    step: Step
    outcome: Outcome
    world: World


Found = tuple[list[TakenStep], list[int]]


class MoveName(NamedTuple):
    """A step as a trace names it."""

    actor: str
    step: str
    label: str = ""


def start_of(model: Model) -> World:
    """The initial state."""
    return World(model.shared, tuple(process.own for process in model.processes))


def taken(model: Model, world: World, process: int, step: Step, outcome: Outcome) -> TakenStep:
    """The state after an outcome: everybody else observes its event."""
    owns = world.owns
    if outcome.event is not None:
        owns = tuple(model.observe(own, outcome.event) for own in owns)
    return TakenStep(
        process, step, outcome, World(outcome.shared, (*owns[:process], outcome.own, *owns[process + 1 :]))
    )


def enabled(model: Model, world: World) -> Iterator[TakenStep]:
    """Everything that can happen next."""
    for number, process in enumerate(model.processes):
        for step in model.steps_of(process.kind):
            for outcome in step.run(world.shared, world.owns[number]):
                yield taken(model, world, number, step, outcome)


def follow(model: Model, moves: Iterable[MoveName]) -> list[TakenStep]:
    """The run that takes these steps; a step that is not open there is bad input.

    Where several choices of a step have the same label, all are followed, and the first that gets to the end is taken.
    """
    names = list(moves)
    ways: list[dict[World, TakenStep | None]] = [{start_of(model): None}]
    came: list[dict[World, World]] = []
    for number, name in enumerate(names):
        reached: dict[World, TakenStep | None] = {}
        origins: dict[World, World] = {}
        for world in ways[-1]:
            for choice in enabled(model, world):
                if name_of(model, choice) == name and choice.world not in reached:
                    reached[choice.world], origins[choice.world] = choice, world
        if not reached:
            raise _not_open(model, number, name, ways[-1])
        ways.append(reached)
        came.append(origins)
    run, world = list[TakenStep](), next(iter(ways[-1]))
    for reached, origins in zip(reversed(ways[1:]), reversed(came), strict=True):
        last = reached[world]
        assert last is not None
        run.append(last)
        world = origins[world]
    return run[::-1]


def name_of(model: Model, choice: TakenStep) -> MoveName:
    """A step as a trace names it."""
    return MoveName(model.processes[choice.process].name, choice.step.name, choice.outcome.label)


def _not_open(model: Model, number: int, name: MoveName, worlds: Iterable[World]) -> InvalidInput:
    ways = dict.fromkeys(name_of(model, choice) for world in worlds for choice in enabled(model, world))
    hint = "; ".join(" ".join(filter(None, way)) for way in ways) or "nothing: nobody can move here"
    return InvalidInput(
        f"step {number + 1}, {' '.join(filter(None, name))!r}, is not open there", hint=f"open is {hint}"
    )


class Follower:
    """Finds the real run behind a path through the reduced state graph.

    The path forgets which process is which, which value was renamed, and the private steps taken at once. The run
    is found forwards: at each state, the transition of the unreduced model whose result the reduction would turn into
    the next state of the path. Only forward renamings are needed: all those met so far are applied to the result.
    """

    def __init__(self, tables: Tables, successors: Successors) -> None:
        self.tables, self.successors = tables, successors
        self.model = tables.model

    def run(self, path: list[State], last_move: int | None = None, movers: list[int] | None = None) -> list[TakenStep]:
        """The steps along the path, then one with the given move if there is one; `movers` says who takes each."""
        world, run, renamings = start_of(self.model), list[TakenStep](), list[int]()
        for number, target in enumerate(path[1:]):
            mover = None if movers is None else self.tables.order[movers[number] - 1]
            chain, more = self.leading_to(target, world, renamings, mover)
            renamings += more
            run += chain
            world = chain[-1].world
        if last_move is not None:
            wanted = self.tables.moves.values[last_move]
            run += next(chain for chain in self.chains(world) if move_of(chain) == wanted)
        return run

    def leading_to(self, target: State, world: World, renamings: list[int], mover: int | None) -> Found:
        """A transition out of this state that the reduction turns into the target, and the renamings it takes."""
        for chain in self.chains(world):
            state, more = self.reduced(chain[-1].world, renamings)
            if state == target and mover in (None, chain[0].process):
                return chain, more
        raise ModelError("a path cannot be run again: the model does not answer twice alike, or breaks a symmetry")

    def chains(self, world: World) -> Iterator[list[TakenStep]]:
        """Every transition out of a state, each with the private steps that its process takes at once after it."""
        numbers = dict(zip(self.tables.order, self.tables.kinds, strict=True))
        for first in enabled(self.model, world):
            kind = numbers[first.process]
            if not self.tables.quiet[kind]:
                yield [first]
                continue
            for rest in self.tables.settle(kind, first.outcome.shared, first.outcome.own):
                chain = [first]
                for step, outcome in zip(rest.steps, rest.outcomes, strict=True):
                    chain.append(taken(self.model, chain[-1].world, first.process, step, outcome))
                yield chain

    def reduced(self, world: World, renamings: list[int]) -> tuple[State, list[int]]:
        """The state of the reduced graph that stands for this one, and the last renamings that it took."""
        shared, owns = world
        if self.tables.form is not None:
            owns = tuple(map(self.tables.form, owns))
        for symmetry in renamings:
            shared, owns = self.rename(symmetry, shared, owns)
        number, symmetry = self.tables.representative(shared)
        if symmetry:
            _, owns = self.rename(symmetry, shared, owns)
        settled = [
            self.tables.settled_own(kind, number, self.tables.owns[kind](owns[process]))
            for kind, process in zip(self.tables.kinds, self.tables.order, strict=True)
        ]
        state = self.successors.canonical((number, *(own for own, _ in settled)))
        return state, [taken for taken in (symmetry, *(last for _, last in settled)) if taken]

    def rename(self, symmetry: int, shared: Any, owns: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The values under one symmetry."""
        maps = self.tables.symmetries[symmetry - 1]
        moves = maps.moves(shared)
        return maps.shared(shared), tuple(maps.rename(own, moves) for own in owns)


def move_of(chain: list[TakenStep]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and marks of steps taken together, as the tables keep them."""
    marks = tuple(mark for part in chain for mark in part.outcome.marks)
    return tuple(part.step.name for part in chain), marks
