"""The search level by level in compiled kernels, with the verdicts and counts of the readable engine.

One level: workers expand slices of the frontier and scatter the successors into partitions by shared value; then each
partition is sorted, made unique, and reduced by what was visited before; the rest is new. A state for which the model
has not answered yet is put off, the model is asked, and it is expanded again in the same level. No state has a link to
its parent: all levels are kept, encoded, and a way to a state is found by walking back through them.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from lakeproof.checker.fast.expand import (
    N_NEW,
    N_OUT,
    N_PAIRS,
    N_PUT_OFF,
    N_REST,
    N_SEEN,
    Answers,
    Missing,
    expand,
    scatter,
)
from lakeproof.checker.fast.jit import I64, U64
from lakeproof.checker.fast.judge import Judge
from lakeproof.checker.fast.layout import Layout
from lakeproof.checker.fast.memo import Memo
from lakeproof.checker.fast.sorted_runs import SortedRun, add_run, unique
from lakeproof.checker.limits import Watch
from lakeproof.checker.readable import Successors
from lakeproof.checker.tables import State
from lakeproof.checker.verdicts.ledger import PropertyHit

PARTITION_BITS = 6
PARTITIONS = 1 << PARTITION_BITS
BUFFER = 1 << 19  # successors that a worker collects before they are sorted in
LIST = 1 << 16  # missing answers that a worker lists before the model is asked
NARROW = 1 << 14  # states below which a second worker costs more than it gives
NONE = np.empty(0, np.int64)  # nobody asks where a successor came from
NOTHING = np.empty(0, np.uint64)


class Level(NamedTuple):
    """All states of one depth, encoded, in the layout of their time."""

    layout: Layout
    runs: list[SortedRun]

    def states(self) -> U64:
        """All of them, decoded, run by run."""
        states, at = np.empty(sum(run.count for run in self.runs), np.uint64), 0
        for run in self.runs:
            run.read_into(states[at : at + run.count])
            at += run.count
        return states


class Worker:
    """The buffers of one thread."""

    def __init__(self, buffer: int) -> None:
        self.out, self.sorted = np.empty(buffer, np.uint64), np.empty(buffer, np.uint64)
        self.first = np.zeros(PARTITIONS + 1, np.int64)
        self.missing = Missing(*(np.empty(LIST, np.uint64) for _ in range(3)))
        self.put_off = self.rest = np.empty(0, np.int64)
        self.counts = np.zeros(6, np.int64)
        self.visits = np.zeros(1024, np.int64)

    def begin(self, states: int, pairs: int) -> None:
        """Make ready for a slice of so many states."""
        self.counts[:] = 0
        self.put_off, self.rest = np.empty(states, np.int64), np.empty(states, np.int64)
        if pairs > len(self.visits):
            grown = np.zeros(2 * pairs, np.int64)
            grown[: len(self.visits)] = self.visits
            self.visits = grown

    def widen(self) -> None:
        """A single state has more successors than the buffer holds."""
        self.out, self.sorted = np.empty(2 * len(self.out), np.uint64), np.empty(2 * len(self.out), np.uint64)


class Search:
    """One search; its memo, its visited states, its levels."""

    def __init__(
        self, successors: Successors, *, workers: int | None = None, buffer: int = BUFFER, narrow: int = NARROW
    ) -> None:
        self.successors, self.tables = successors, successors.tables
        self.memo = Memo(self.tables, symmetric=bool(successors.groups))
        self.layout = Layout(self.memo.widths())
        self.workers = [Worker(buffer) for _ in range(workers or min(2, os.cpu_count() or 1))]
        self.narrow = narrow
        self.visited: list[list[SortedRun]] = [[] for _ in range(PARTITIONS)]
        self.levels: list[Level] = []
        self.front = NOTHING
        self.states = self.transitions = self.terminals = 0
        self.seconds = {"expand": 0.0, "dedup": 0.0, "model": 0.0}

    def run(self, watch: Watch, judge: Judge) -> str:
        """Search until everything is visited or something cuts; what cut it."""
        front = np.array([self.layout.pack(self.memo.fields(self.tables.initial()))], np.uint64)
        first = SortedRun.of(front)
        worker = self.workers[0]
        worker.out[0] = front[0]
        scatter(worker.out, 1, self.layout.shifts[0], PARTITION_BITS, worker.sorted, worker.first)
        self.visited[int(np.argmax(worker.first > 0)) - 1].append(first)
        self.levels.append(Level(self.layout, [first]))
        self.front, self.states = front, 1
        cut = ""
        with ThreadPoolExecutor(len(self.workers)) as pool:
            while len(self.front) and not cut:
                watch.widths.append(len(self.front))
                cut = self.level(watch, judge, pool)
        return cut

    def level(self, watch: Watch, judge: Judge, pool: ThreadPoolExecutor) -> str:
        """Expand the frontier and make what is new the next one."""
        depth, work, cut = len(self.levels) - 1, self.front, ""
        self.levels.append(Level(self.layout, []))
        while len(work) and not cut:
            workers = self.workers if len(work) > self.narrow else self.workers[:1]
            cut = self.pass_over(work, workers, watch, pool)
            rests = np.concatenate([work[worker.rest[: worker.counts[N_REST]]] for worker in workers])
            self.terminals += len(rests)
            judge.at_rest(self, rests, depth)
            work = work[np.concatenate([worker.put_off[: worker.counts[N_PUT_OFF]] for worker in workers])]
            if len(work) and not cut:
                self.ask(workers, work)
        judge.moves(self, self.front, depth)
        del work
        self.front = NOTHING  # decoded only now: the widest level is never in memory beside the one before it
        self.front = self.levels[-1].states()
        judge.states(self, self.front, depth + 1)
        if not len(self.front):
            self.levels.pop()
        return cut or ("first violation" if watch.cut.first and judge.ledger.violated else "")

    def pass_over(self, work: U64, workers: list[Worker], watch: Watch, pool: ThreadPoolExecutor) -> str:
        """Expand all of `work` for which the model has answered; what is new goes to the last level."""
        bounds = [len(work) * i // len(workers) for i in range(len(workers) + 1)]
        places, ends = bounds[:-1], bounds[1:]
        for worker, begin, end in zip(workers, places, ends, strict=True):
            worker.begin(end - begin, self.memo.known.count)
        answers, each = self.memo.answers(), pool.map if len(workers) > 1 else map
        while places != ends:
            before = time.perf_counter()
            places = list(each(lambda w, at, end: self.expand_slice(w, work, at, end, answers), workers, places, ends))
            self.transitions += sum(int(worker.counts[N_OUT]) for worker in workers)
            between = time.perf_counter()
            for new in each(lambda part: self.sort_in(part, workers), range(PARTITIONS)):
                if new is not None:
                    self.levels[-1].runs.append(new)
                    self.states += new.count
            self.seconds["expand"] += between - before
            self.seconds["dedup"] += time.perf_counter() - between
            cut = watch.look(
                self.states, self.transitions, len(self.levels) - 2, sum(run.count for run in self.levels[-1].runs)
            )
            if cut:
                return cut
        return ""

    def expand_slice(self, worker: Worker, work: U64, at: int, end: int, answers: Answers) -> int:
        """Expand as much of a slice as the worker's buffer holds, and scatter the successors; the place reached."""
        worker.counts[N_OUT] = 0
        layout, buffers = self.layout, (worker.put_off, worker.rest, worker.missing, worker.counts)
        reached = expand(work, at, end, layout.shifts, layout.masks, answers, worker.visits, worker.out, NONE, *buffers)
        if reached == at < end:
            worker.widen()
        scatter(worker.out, worker.counts[N_OUT], layout.shifts[0], PARTITION_BITS, worker.sorted, worker.first)
        return reached

    def sort_in(self, part: int, workers: list[Worker]) -> SortedRun | None:
        """The states of one partition that were never visited; they are visited now."""
        states = np.concatenate([worker.sorted[worker.first[part] : worker.first[part + 1]] for worker in workers])
        if not len(states):
            return None
        states.sort()
        count, runs = unique(states), self.visited[part]
        for run in runs:
            count = run.without(states, count)
        if not count:
            return None
        new = SortedRun.of(states[:count])
        add_run(runs, new)
        return new

    def ask(self, workers: list[Worker], work: U64) -> None:
        """Ask the model for what the kernels missed, and widen the fields of states if they have become too narrow."""
        before, memo = time.perf_counter(), self.memo
        pairs, seen, new = (
            np.unique(np.concatenate([w.missing[kind][: w.counts[count]] for w in workers]))
            for kind, count in enumerate((N_PAIRS, N_SEEN, N_NEW))
        )
        memo.ask(pairs)
        memo.ask_seen(seen)
        memo.add_pairs(new)
        needed = memo.widths()
        if not self.layout.holds(needed):
            self.relayout(Layout(needed), [work, self.front])
        self.seconds["model"] += time.perf_counter() - before

    def relayout(self, layout: Layout, alive: list[U64]) -> None:
        """Rewrite every state that is still in use; finished levels keep the layout of their time."""
        old, self.layout = self.layout, layout
        for states in alive:
            layout.rewritten(states, old)
        self.visited = [[SortedRun.of(layout.rewritten(run.states(), old)) for run in runs] for runs in self.visited]
        runs = [SortedRun.of(layout.rewritten(run.states(), old)) for run in self.levels[-1].runs]
        self.levels[-1] = Level(layout, runs)

    def visits(self) -> I64:
        """How often each pair was expanded."""
        total = np.zeros(self.memo.known.count, np.int64)
        for worker in self.workers:
            part = worker.visits[: len(total)]
            total[: len(part)] += part
        return total

    def path_to(self, finding: PropertyHit) -> list[State]:
        """A shortest way from the initial state to what was found: back through the levels, one predecessor each."""
        depth = finding.depth - (finding.move is not None)
        fields = self.memo.fields(finding.state)
        path = [finding.state]
        for level in reversed(self.levels[:depth]):
            state = self.predecessor(level, self.layout.pack(fields))
            columns = self.layout.columns(np.array([state]))[:, 0]
            fields = columns.tolist()
            path.append(self.memo.state(columns))
        return [self.successors.canonical(state) for state in reversed(path)]

    def predecessor(self, level: Level, target: np.uint64) -> np.uint64:
        """A state of the level that leads to the target in one transition."""
        worker, answers, layout = self.workers[0], self.memo.answers(), self.layout
        parents, visits = np.empty(len(worker.out), np.int64), np.zeros(self.memo.known.count, np.int64)
        for run in level.runs:
            states, at = layout.rewritten(run.states(), level.layout), 0
            worker.begin(len(states), self.memo.known.count)
            buffers = (worker.put_off, worker.rest, worker.missing, worker.counts)
            while at < len(states):
                worker.counts[:] = 0
                end, out = len(states), worker.out
                at = expand(states, at, end, layout.shifts, layout.masks, answers, visits, out, parents, *buffers)
                hits = np.nonzero(out[: worker.counts[N_OUT]] == target)[0]
                if len(hits):
                    found: np.uint64 = states[parents[hits[0]]]
                    return found
        raise AssertionError("every state of a level has a predecessor in the level before")
