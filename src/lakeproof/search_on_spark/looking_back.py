"""Questions to a partition once the states are found: what came before a state, and whether a run can go round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lakeproof.checker.fast.cycles import is_acyclic, parts_of
from lakeproof.checker.fast.jit import I64, U64
from lakeproof.search_on_spark.partition import Partition, World


def predecessors(part: Partition, level: int, worlds: list[World]) -> dict[int, World]:
    """For each of these states (by its place in the list) one of the level that leads to it, where there is one here.

    States keep no link to where they came from, so the level is expanded again.
    """
    wanted = np.array([_numbers(part, world) for world in worlds]).T
    states = part.numbered([*part.written(level), wanted])
    targets, states = states[-len(worlds) :].copy(), states[: -len(worlds)].copy()
    found: dict[int, World] = {}

    def look(out: U64, work: U64, parents: I64) -> None:
        for place in [place for place in range(len(targets)) if place not in found]:
            hits = np.nonzero(out == targets[place])[0]
            if len(hits):
                columns = part.layout.columns(work[parents[hits[:1]]])
                found[place] = part.world(part.memo.state(columns[:, 0]))

    part.expand(states, look, alive=[targets], traced=True)
    return found


def _numbers(part: Partition, world: World) -> list[int]:
    shared, owns = world
    tables = part.tables
    return [tables.shared(shared), *(tables.owns[kind](own) for kind, own in zip(tables.kinds, owns, strict=True))]


class Cycles(NamedTuple):
    """What one partition knows about runs that go round."""

    excluded: bool  # none goes round without changing the shared value
    links: I64  # two rows: which shared value leads to which other one, as numbers that all workers agree on


def cycles(part: Partition, level: int) -> Cycles:
    """A way round that keeps its shared value lies in one partition; the others are seen in the links of all."""
    part.catch_up(level)
    if not part.whole:
        for number in range(len(part.visited)):  # asks the model what other workers asked before
            part.expand(part.visited[number].states(), lambda out, work, parents: None)
        part.whole = True
    memo = part.memo
    _ = part.homes  # makes the places of all values known
    targets = memo.rows[: memo.row_count, 0]
    sources = memo.shared_of[memo.owner[: memo.row_count]]
    links = np.stack([part.places[sources], part.places[targets]])[:, sources != targets]
    return Cycles(is_acyclic(memo), np.unique(links, axis=1))


def none_goes_round(answers: list[Cycles]) -> bool:
    """Is it certain that no run goes round? Shared values never come back, and without them nothing does.

    Two shared values with the same number count as one here: that can only make a way round where there is none.
    """
    links = np.concatenate([answer.links for answer in answers], axis=1)
    if not all(answer.excluded for answer in answers) or (links[0] == links[1]).any():
        return False
    nodes, numbers = np.unique(links, return_inverse=True)
    numbers = numbers.reshape(links.shape).astype(np.int64)
    components = parts_of(len(nodes), numbers[0], numbers[1])
    return len(np.unique(components)) == len(nodes)
