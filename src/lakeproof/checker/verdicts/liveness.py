"""What must happen eventually: runs that go round for ever without it, under weak fairness.

A run is weakly fair if no process is able to move from some moment on and yet never does. Where nothing goes round,
every run ends, and only the states at rest matter; those the search itself looks at. Otherwise the whole graph is built
without reductions: they forget which process is which, and fairness asks exactly that.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from lakeproof.checker.limits import Watch
from lakeproof.checker.model import Property
from lakeproof.checker.readable import LOOK_EVERY, Successors, way_back
from lakeproof.checker.tables import State
from lakeproof.checker.verdicts.ledger import lives

GRAPH_LIMIT = 1_000_000  # states of a graph that is kept with all its transitions


class TooLarge(Exception):
    """The graph has more states than may be kept with their transitions, or more than there was time for."""


class Lasso(NamedTuple):
    """A run to a state and a fair way round from there back to it."""

    path: list[State]
    movers: list[int]  # position of the process that moves, per step
    loop_start: int  # the steps from this number on are the way round


class Graph:
    """Every state with every transition, numbered in the order of a search level by level."""

    def __init__(self, successors: Successors, limit: int = GRAPH_LIMIT, watch: Watch | None = None) -> None:
        self.tables = successors.tables
        start = successors.canonical(self.tables.initial())
        self.states, self.parents, self.arrived = [start], [-1], array("b", [0])
        self.first, self.to, self.by = array("q", [0]), array("q"), array("b")
        index = {start: 0}
        for at, state in enumerate(self.states):  # grows while it is walked
            for position, _, after in successors.of(state):
                number = index.setdefault(after, len(self.states))
                if number == len(self.states):
                    self.states.append(after)
                    self.parents.append(at)
                    self.arrived.append(position)
                self.to.append(number)
                self.by.append(position)
            self.first.append(len(self.to))
            if len(self.states) > limit:
                raise TooLarge("the space is too large to look for runs that never end")
            if watch is not None and at % LOOK_EVERY == 0 and (cut := watch.out_of_time()):
                raise TooLarge(f"cut by {cut} while looking for runs that never end")

    def ways(self, state: int) -> Iterator[tuple[int, int]]:
        """Where a state leads, and by whom."""
        span = range(self.first[state], self.first[state + 1])
        return ((self.to[edge], self.by[edge]) for edge in span)

    def movable(self, state: int) -> set[int]:
        """The positions of all processes that are able to move."""
        shared, *owns = self.states[state]
        pairs = enumerate(zip(self.tables.kinds, owns, strict=True), 1)
        return {position for position, (kind, own) in pairs if self.tables.rows_of(kind, shared << 32 | own)[1]}

    def endless(self, among: Iterable[int]) -> set[int]:
        """Of these states, those from which a run can go on for ever inside them."""
        left = set(among)
        sources: dict[int, list[int]] = {}
        degree: dict[int, int] = {}
        for state in left:
            targets = [to for to, _ in self.ways(state) if to in left]
            degree[state] = len(targets)
            for to in targets:
                sources.setdefault(to, []).append(state)
        dead = [state for state in left if not degree[state]]
        while dead:
            state = dead.pop()
            left.discard(state)
            for source in sources.get(state, ()):
                degree[source] -= 1
                if not degree[source]:
                    dead.append(source)
        return left

    def components(self, among: set[int]) -> list[set[int]]:
        """The strongly connected sets of these states in which one can go round (Tarjan, without recursion)."""
        order: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        found: list[set[int]] = []
        for root in sorted(among):
            if root in order:
                continue
            work = [(root, self._enter(root, among, order, low, stack, on_stack))]
            while work:
                state, targets = work[-1]
                for to in targets:
                    if to not in order:
                        work.append((to, self._enter(to, among, order, low, stack, on_stack)))
                        break
                    if to in on_stack:
                        low[state] = min(low[state], order[to])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[state])
                    if low[state] == order[state]:
                        found.append(_popped(state, stack, on_stack))
        return [part for part in found if len(part) > 1 or any(to in part for to, _ in self.ways(min(part)))]

    def _enter(
        self,
        state: int,
        among: set[int],
        order: dict[int, int],
        low: dict[int, int],
        stack: list[int],
        on_stack: set[int],
    ) -> Iterator[int]:
        order[state] = low[state] = len(order)
        stack.append(state)
        on_stack.add(state)
        return (to for to, _ in self.ways(state) if to in among)

    def is_fair(self, part: set[int]) -> bool:
        """Every process moves somewhere in this set, or is unable to move somewhere in it."""
        movers = {by for state in part for to, by in self.ways(state) if to in part}
        always_able = set(range(1, len(self.tables.kinds) + 1))
        for state in part:
            always_able &= self.movable(state)
        return always_able <= movers

    def lasso(self, bad: Iterable[int]) -> Lasso | None:
        """A fair run that goes round inside the bad states, with the shortest way there; None: there is none."""
        parts = [part for part in self.components(self.endless(bad)) if self.is_fair(part)]
        if not parts:
            return None
        part = min(parts, key=min)
        start = min(part)
        numbers, movers = self._way_round(part, start)
        prefix = way_back(self.states, self.parents, start)
        by, at = list[int](), start
        while at:
            by.append(self.arrived[at])
            at = self.parents[at]
        return Lasso(prefix + [self.states[number] for number in numbers], by[::-1] + movers, len(prefix) - 1)

    def _way_round(self, part: set[int], start: int) -> tuple[list[int], list[int]]:
        """States and movers of a closed walk in which every process moves or is once unable to."""
        at, numbers, movers = start, list[int](), list[int]()
        for position in range(1, len(self.tables.kinds) + 1):
            passed = [start, *numbers]
            if position in movers or any(position not in self.movable(state) for state in passed):
                continue
            steps = self._walk(part, at, lambda to, by, p=position: by == p or p not in self.movable(to))  # type: ignore[misc]
            numbers += [to for to, _ in steps]
            movers += [by for _, by in steps]
            at = numbers[-1]
        if at != start or not numbers:
            steps = self._walk(part, at, lambda to, by: to == start)
            numbers += [to for to, _ in steps]
            movers += [by for _, by in steps]
        return numbers, movers

    def _walk(self, part: set[int], at: int, done: Callable[[int, int], bool]) -> list[tuple[int, int]]:
        """The shortest walk inside the set whose last transition is the wanted one."""
        queue: deque[tuple[int, tuple[tuple[int, int], ...]]] = deque([(at, ())])
        passed = {at}
        while queue:
            state, walk = queue.popleft()
            for to, by in self.ways(state):
                if to in part and done(to, by):
                    return [*walk, (to, by)]
                if to in part and to not in passed:
                    passed.add(to)
                    queue.append((to, (*walk, (to, by))))
        raise AssertionError("a strongly connected set has a walk to each of its states")


def lasso_of(graph: Graph, claim: Property) -> Lasso | None:
    """A fair run of the unreduced graph that goes round for ever without what must come eventually."""
    tables = graph.tables
    if claim.subject == "all":
        return graph.lasso(n for n, state in enumerate(graph.states) if not lives(claim, *tables.values_of(state)))
    assert claim.test is not None
    for position, kind in enumerate(tables.kinds, 1):
        pairs = {(state[0], state[position]) for state in graph.states}
        shared, owns = tables.shared.values, tables.owns[kind].values
        failing = {(s, own) for s, own in pairs if not claim.test(shared[s], owns[own])}
        lasso = graph.lasso(n for n, state in enumerate(graph.states) if (state[0], state[position]) in failing)
        if lasso is not None:
            return lasso
    return None


def _popped(state: int, stack: list[int], on_stack: set[int]) -> set[int]:
    part = set()
    while True:
        top = stack.pop()
        on_stack.discard(top)
        part.add(top)
        if top == state:
            return part
