"""The engine to read: breadth first, one state after the other. Small spaces run on it, and tests believe it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from lakeproof.checker.limits import Watch
from lakeproof.checker.tables import Rows, State, Tables
from lakeproof.checker.verdicts.ledger import Ledger, PropertyHit

LOOK_EVERY = 256  # states between two looks at the clock


@dataclass
class Counts:
    """How often each step was open to a process and taken, and how often each mark was met."""

    enabled: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, tables: Tables, rows: Rows, times: int) -> None:
        """Count the outcomes of one pair that was expanded so many times."""
        moves = [tables.moves.values[row[3]] for row in rows[1]]
        for name in {name for steps, _ in moves for name in steps}:
            self.enabled[name] += times
        for steps, marks in moves:
            for name in steps:
                self.taken[name] += times
            for mark in marks:
                self.marks[mark] += times


@dataclass
class Exploration:
    """What a search saw."""

    states: int
    transitions: int
    depth: int  # the longest of the shortest ways to a state, in transitions
    terminals: int
    cut_by: str  # empty: everything was explored
    acyclic: bool | None  # None: not known
    counts: Counts
    path_to: Callable[[PropertyHit], list[State]]  # a shortest way from the initial state to where something was found
    compile_seconds: float = 0.0
    seconds_in: dict[str, float] = field(default_factory=dict)  # where the time went, as far as the engine knows


class Successors:
    """The transitions of the (reduced) state graph."""

    def __init__(self, tables: Tables, *, symmetric: bool, movers: frozenset[int] | None = None) -> None:
        self.tables = tables
        self.positions = range(1, len(tables.kinds) + 1)
        self.movers = self.positions if movers is None else [i for i in self.positions if i in movers]
        self.groups = groups(tables.kinds) if symmetric else []
        self.visits: list[Counter[int]] = [Counter() for _ in tables.steps]  # expansions of each pair
        self.at_rest = False  # nobody at all can move in the state last asked about

    def canonical(self, state: State) -> State:
        """The state with the own values of interchangeable processes in order."""
        for start, stop in self.groups:
            state = (*state[:start], *sorted(state[start:stop]), *state[stop:])
        return state

    def of(self, state: State) -> list[tuple[int, int, State]]:
        """Every transition out of a state: position of the process, move, next state."""
        tables, kinds, base = self.tables, self.tables.kinds, state[0] << 32
        answers = [tables.rows_of(kinds[i - 1], base | state[i]) for i in self.positions]
        self.at_rest = not any(rows for _, rows in answers)
        movers = self.movers
        for i in movers:
            if answers[i - 1][0]:  # private steps only: nobody else need move first
                movers = [i]
                break
        found = []
        for i in movers:
            self.visits[kinds[i - 1]][base | state[i]] += 1
            for shared, own, event, move in answers[i - 1][1]:
                after = list(state)
                after[0] = shared
                if event:
                    for j in self.positions:
                        after[j] = tables.observed(kinds[j - 1], event << 32 | after[j])
                after[i] = own
                for start, stop in self.groups:
                    after[start:stop] = sorted(after[start:stop])
                found.append((i, move, tuple(after)))
        return found

    def counts(self) -> Counts:
        """How often what happened, over all states asked about."""
        counts = Counts()
        for kind, visits in enumerate(self.visits):
            for key, times in visits.items():
                counts.add(self.tables, self.tables.rows[kind][key], times)
        return counts


def groups(kinds: tuple[int, ...]) -> list[tuple[int, int]]:
    """Where in a state the processes of one kind lie, for kinds with more than one."""
    spans = [(kinds.index(kind) + 1, kinds.index(kind) + kinds.count(kind) + 1) for kind in dict.fromkeys(kinds)]
    return [(start, stop) for start, stop in spans if stop - start > 1]


def explore(successors: Successors, ledger: Ledger, watch: Watch, enough: Collection[str] = ()) -> Exploration:
    """Visit every state once, nearest first, until all are seen, a limit cuts, or all of `enough` is found."""
    start = successors.canonical(successors.tables.initial())
    states, index, parents = [start], {start: 0}, [-1]
    ledger.check_state(start, 0)
    transitions = depth = terminals = at = 0
    acyclic, cut, most = True, "", watch.cut.states or sys.maxsize
    while at < len(states) and not cut:
        end = len(states)
        watch.widths.append(end - at)
        while at < end and not cut:
            state = states[at]
            moves = successors.of(state)
            terminals += successors.at_rest
            if successors.at_rest:
                ledger.note(ledger.at_rest(state), depth, state)
            transitions += len(moves)
            for i, move, after in moves:
                names = ledger.of_move(move)
                if names:
                    ledger.note(names, depth + 1, state, move, i)
                known = index.setdefault(after, len(states))
                if known == len(states):
                    states.append(after)
                    parents.append(at)
                    ledger.check_state(after, depth + 1)
                elif known < end:
                    acyclic = False  # perhaps: a way that does not lead on to the next level
            at += 1
            if at % LOOK_EVERY == 0 or at == end or len(states) > most:
                cut = watch.look(len(states), transitions, depth, len(states) - at)
            if ledger.found and (
                (watch.cut.first and ledger.violated) or (enough and ledger.found.keys() >= set(enough))
            ):
                cut = "first violation"
        depth += len(states) > end
    if at == len(states):
        cut = ""  # a limit that came together with the end cuts nothing
    return Exploration(
        states=len(states),
        transitions=transitions,
        depth=depth,
        terminals=terminals,
        cut_by=cut,
        acyclic=True if acyclic and not cut else None,
        counts=successors.counts(),
        path_to=lambda finding: way_back(states, parents, index[finding.state]),
    )


def way_back(states: list[State], parents: list[int], at: int) -> list[State]:
    """The states from the initial one to number `at`."""
    path = []
    while at >= 0:
        path.append(states[at])
        at = parents[at]
    return path[::-1]
