"""One partition of the search, in the memory of one worker: all states whose shared value belongs to it.

It works level by level, like the local engine and with its kernels. Successors with a shared value of its own stay
here; only those of other partitions are written for others to read. Nothing in here is needed: all of it can be made
again from the folder, by any worker.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lakeproof.checker.fast.engine import BUFFER, NONE, Worker
from lakeproof.checker.fast.expand import N_NEW, N_OUT, N_PAIRS, N_PUT_OFF, N_REST, N_SEEN, NUMBER, OWN, expand
from lakeproof.checker.fast.jit import I64, U64
from lakeproof.checker.fast.judge import Judge
from lakeproof.checker.fast.layout import Layout
from lakeproof.checker.fast.memo import Memo
from lakeproof.checker.fast.sorted_runs import SortedRun, add_run, unique
from lakeproof.checker.fast.statistics import counts_of
from lakeproof.checker.limits import peak_memory_mb
from lakeproof.checker.model import Model
from lakeproof.checker.verdicts.ledger import Ledger, PropertyHit
from lakeproof.search_on_spark.files import GROUP, Packed, StatesReader, StatesWriter
from lakeproof.search_on_spark.folder import STATES, Folder, Found, LevelDone
from lakeproof.search_on_spark.stable_hash import SteadyTables, number_of

NOTHING = np.empty(0, np.uint64)

Take = Callable[[U64, U64, I64], None]  # successors, the states they come from, and which of those each comes from
World = tuple[Any, tuple[Any, ...]]  # shared value, own values in the order of the tables


class SearchPlan(NamedTuple):
    """What every worker must know to take part."""

    model: str
    search: str  # the search's own name: what a worker remembers of another search is forgotten
    folder: str
    parts: int
    reductions: tuple[str, ...]


class Partition:
    """The partition's tables, visited states, and the successors that wait for the next level."""

    def __init__(self, plan: SearchPlan, number: int, model: Model, *, buffer: int = BUFFER) -> None:
        self.plan, self.number, self.folder = plan, number, Folder(plan.folder)
        self.tables = SteadyTables(model, private="private" in plan.reductions, values="values" in plan.reductions)
        self.memo = Memo(self.tables, symmetric="processes" in plan.reductions)
        self.layout = Layout(self.memo.widths())
        self.packed = Packed(self.tables)
        self.judge = Judge(Ledger(self.tables))
        self.worker = Worker(buffer)
        self.places = np.empty(0, np.int64)  # per shared value: its number in all workers
        self.visited: list[SortedRun] = []
        self.level = -1  # the last level that is visited
        self.whole = True  # the model was asked about all that is visited
        self.ahead = NOTHING  # successors of that level that belong here and are not visited
        self.home: list[U64] = []
        self.away: list[U64] = []

    def visits(self) -> I64:
        """How often each pair was expanded here."""
        found = np.zeros(self.memo.known.count, np.int64)
        known = self.worker.visits[: len(found)]
        found[: len(known)] = known
        return found

    # ------------------------------------------------------------ one level

    def search(self, level: int) -> None:
        """Find the states of a level, judge them, and put them and their successors into the folder."""
        self.catch_up(level - 1)
        states = self.arrivals(level)
        if len(states):
            add_run(self.visited, SortedRun.of(states))
        before, known = self.visits(), set(self.judge.ledger.found)
        self.judge.states(self, states, level)
        transitions, terminals = self.expand(states, self.sort_out, level=level)
        self.judge.moves(self, states, level)
        self.level, self.ahead, away = level, unite_states(self.home), unite_states(self.away)
        self.home, self.away = [], []
        visits = self.visits()
        visits[: len(before)] -= before
        folder = self.folder.new_part(level, self.number)
        self.write(folder, states, away)
        done = LevelDone(
            states=len(states),
            ahead=len(self.ahead) + len(away),
            transitions=transitions,
            terminals=terminals,
            counts=counts_of(self.memo, visits),
            found={name: self.told(at) for name, at in self.judge.ledger.found.items() if name not in known},
            worker=worker_name(),
            memory_mb=peak_memory_mb(),
            level=level,
            part=self.number,
            files={},
        )
        self.folder.put(folder, level, self.number, done)

    def arrivals(self, level: int) -> U64:
        """The states of the level: what waited here and what others sent, without what was visited before."""
        if level == 0:
            initial = self.memo.fields(self.tables.initial())
            states = np.array([self.layout.pack(initial)], np.uint64)
            return states if self.owners(states)[0] == self.number else NOTHING
        senders = [self.folder.part(level - 1, part) for part in range(self.plan.parts) if part != self.number]
        name = f"to-{self.number:03d}.parquet"
        sent = [group for sender in senders for group in StatesReader(sender, self.packed).read(name)]
        arrived = self.numbered(sent)
        states, self.ahead = unite_states([self.ahead, arrived]), NOTHING
        return states[: self.unvisited(states)].copy()

    def sort_out(self, out: U64, work: U64, parents: I64) -> None:
        """Keep the successors that belong here and are new, and those that belong to others."""
        mine = self.owners(out) == self.number
        home, away = out[mine], out[~mine]
        home.sort()
        count = self.unvisited(home[: unique(home)])
        if count:
            self.home.append(home[:count].copy())
        if len(away):
            away.sort()
            self.away.append(away[: unique(away)].copy())

    def unvisited(self, states: U64) -> int:
        """Drop from sorted states those visited before, in place; the number left."""
        count = len(states)
        for run in self.visited:
            count = run.without(states, count)
        return count

    def owners(self, states: U64) -> I64:
        """The partition of each state."""
        owners: I64 = self.homes[(states >> self.layout.shifts[0]).astype(np.int64)]
        return owners

    # ------------------------------------------------------------ expansion

    def expand(
        self,
        states: U64,
        take: Take,
        *,
        level: int | None = None,
        alive: Sequence[U64] = (),
        traced: bool = False,
    ) -> tuple[int, int]:
        """Hand all successors to `take`; the number of transitions, and of states at rest.

        The model is asked where needed, and then the layout may change: of the states, of those `alive`, and of all
        that is kept here. With a level, states at rest are judged; `traced` says where each successor comes from.
        """
        work, worker, transitions, terminals = states, self.worker, 0, 0
        while len(work):
            worker.begin(len(work), self.memo.known.count)
            transitions += self.pass_over(work, take, traced)
            resting = work[worker.rest[: worker.counts[N_REST]]]
            terminals += len(resting)
            if level is not None:
                self.judge.at_rest(self, resting, level)
            work = work[worker.put_off[: worker.counts[N_PUT_OFF]]]
            if len(work):
                self.ask([states, work, *alive])
        return transitions, terminals

    def pass_over(self, work: U64, take: Take, traced: bool) -> int:
        """Expand what can be expanded without asking; the number of transitions."""
        worker, layout, answers, at, transitions = self.worker, self.layout, self.memo.answers(), 0, 0
        buffers = (worker.put_off, worker.rest, worker.missing, worker.counts)
        while at < len(work):
            worker.counts[N_OUT] = 0
            out, parents = worker.out, np.empty(len(worker.out), np.int64) if traced else NONE
            places = at, len(work), layout.shifts, layout.masks
            reached = expand(work, *places, answers, worker.visits, out, parents, *buffers)
            count = int(worker.counts[N_OUT])
            transitions += count
            if count:
                take(out[:count], work, parents[:count])
            if reached == at:
                worker.widen()
            at = reached
        return transitions

    def ask(self, alive: list[U64]) -> None:
        """Ask the model for what the kernel missed; `alive` are states that are still needed."""
        missing, counts, memo = self.worker.missing, self.worker.counts, self.memo
        pairs, seen, new = (
            np.unique(missing[kind][: counts[count]]) for kind, count in enumerate((N_PAIRS, N_SEEN, N_NEW))
        )
        memo.ask(pairs)
        memo.ask_seen(seen)
        memo.add_pairs(new)
        self.widen(alive)

    def widen(self, alive: list[U64]) -> None:
        """Make the fields of states wide enough for all values known by now, in everything that is kept."""
        needed = self.memo.widths()
        if self.layout.holds(needed):
            return
        old, self.layout = self.layout, Layout(needed)
        for states in {id(one): one for one in (*alive, *self.home, *self.away, self.ahead)}.values():
            self.layout.rewritten(states, old)
        self.visited = [SortedRun.of(self.layout.rewritten(run.states(), old)) for run in self.visited]

    @property
    def homes(self) -> I64:
        """The partition of each shared value."""
        values = self.tables.shared.values
        if len(self.places) < len(values):
            new = [number_of(value) for value in values[len(self.places) :]]
            self.places = np.concatenate([self.places, np.array(new, np.int64)])
        return self.places % self.plan.parts

    # ------------------------------------------------------------ to and from the folder

    def catch_up(self, level: int) -> None:
        """Make this the partition as it is after a level, from what others wrote about it."""
        if level <= self.level:
            return
        states = NOTHING
        for missed in range(self.level + 1, level + 1):
            states = self.numbered(self.written(missed))
            states.sort()
            if len(states):
                add_run(self.visited, SortedRun.of(states))
        self.whole = False
        self.expand(states, self.sort_out)
        self.ahead, self.level = unite_states(self.home), level
        self.home, self.away = [], []

    def written(self, level: int) -> list[I64]:
        """The states of one level as they were written."""
        folder = self.folder.part(level, self.number)
        return list(StatesReader(folder, self.packed).read(STATES))

    def write(self, folder: Path, states: U64, away: U64) -> None:
        """Write the new states, and what belongs to others."""
        writer, owners = StatesWriter(folder, self.packed), self.owners(away)
        if len(states):
            writer.write(STATES, self.columns(states))
        for part in np.unique(owners).tolist():
            writer.write(f"to-{part:03d}.parquet", self.columns(away[owners == part]))
        writer.close()

    def columns(self, states: U64) -> Iterator[I64]:
        """States as groups of columns in the numbers of the tables."""
        for begin in range(0, len(states), GROUP):
            fields = self.layout.columns(states[begin : begin + GROUP])
            yield np.concatenate([fields[:1], self.memo.pairs[self.memo.pairs_in(fields), OWN]])

    def numbered(self, groups: list[I64]) -> U64:
        """States given as columns, in the numbers used here; interchangeable processes are put in order."""
        if not groups:
            return NOTHING
        columns, memo = np.concatenate(groups, axis=1), self.memo
        keys = memo.keys(columns[0][:, None], columns[1:].T).reshape(-1)
        memo.add_pairs(keys[memo.known.look(keys) < 0])
        self.widen([])
        numbers = memo.pairs[memo.known.look(keys), NUMBER].reshape(-1, len(memo.kinds)).T
        for first in np.unique(memo.same):
            group = memo.same == first
            numbers[group] = np.sort(numbers[group], axis=0)
        fields = np.concatenate([columns[:1], numbers]).astype(np.uint64)
        states: U64 = np.bitwise_or.reduce(fields << self.layout.shifts[:, None])
        return states

    def world(self, state: tuple[int, ...]) -> World:
        """A state as values."""
        owns = zip(self.tables.kinds, state[1:], strict=True)
        return self.tables.shared.values[state[0]], tuple(self.tables.owns[kind].values[own] for kind, own in owns)

    def told(self, finding: PropertyHit) -> Found:
        """A finding as values."""
        move = None if finding.move is None else self.tables.moves.values[finding.move]
        return Found(finding.depth, *self.world(finding.state), move, finding.by)


def unite_states(arrays: list[U64]) -> U64:
    """All states of these arrays, sorted, each once."""
    states = np.concatenate([NOTHING, *arrays])
    states.sort()
    return states[: unique(states)].copy()


def worker_name() -> str:
    """This process among all workers."""
    return f"{socket.gethostname()} {os.getpid()}"
