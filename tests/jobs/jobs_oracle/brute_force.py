"""Every interleaving of a jobs file's statements on concrete rows, one after the other, and what is wrong with it.

Statements run in SQLite; who may commit is asked of `commit/`. A row keeps its identity through updates and copies, so
the judge can say which row a commit lost, brought back or doubled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobs_oracle.grammar import File, Statement, Table
from jobs_oracle.in_sqlite import Effect, Engine, Identified, Values
from jobs_oracle.planning import Plan, compaction, planned, rows_in, shape_of
from lakeproof.commit import POLICIES
from lakeproof.commit.change import Isolation
from lakeproof.commit.policy import checks_of
from lakeproof.commit.snapshots import new_snapshot
from lakeproof.commit.validation import Commit, CommitWith, RunAgain, validate
from lakeproof.commit.window import followed_all
from lakeproof.format import Snapshot, TableState


class Held(NamedTuple):
    """One table: its head, and every snapshot so far."""

    head: TableState
    history: tuple[Snapshot, ...] = ()


class Moment(NamedTuple):
    """The rows of all tables after a commit, and what the commit did to rows: identity → was it deleted?"""

    rows: tuple[tuple[str, tuple[Identified, ...]], ...]
    wrote: tuple[tuple[object, bool], ...] = ()


class Running(NamedTuple):
    """A job: the statement it is at, and its change if it has scanned."""

    at: int = 0
    plan: Plan | None = None
    seen: int = 0  # snapshots of its table at its scan
    since: int = 0  # moments at its scan
    attempt: int = 0


class World(NamedTuple):
    """All tables, all moments, all jobs."""

    tables: tuple[Held, ...]
    moments: tuple[Moment, ...]
    jobs: tuple[Running, ...]


class Anomaly(NamedTuple):
    """A commit that its isolation level does not allow, and the steps that lead there."""

    kind: str
    steps: tuple[str, ...]


class Found(NamedTuple):
    """What a run over all interleavings found."""

    anomaly: Anomaly | None
    committed: frozenset[str]
    worlds: int


class BruteForce:
    """Runs a file from one first table."""

    def __init__(self, file: File, engine: Engine, sources: Mapping[tuple[int, int], tuple[Values, ...]]) -> None:
        self.file, self.engine, self.sources = file, engine, sources
        self.tables = {table.name: table for table in file.tables}
        self.order = {table.name: i for i, table in enumerate(file.tables)}
        self.policy = POLICIES[file.policy]
        self.committed: set[str] = set()
        self.seen: set[World] = set()

    def run(self, first: dict[str, TableState]) -> Found:
        """Explore from this first table until an anomaly is found or nothing is left."""
        held = tuple(Held(first[table.name]) for table in self.file.tables)
        start = World(held, (Moment(self._rows(held)),), tuple(Running() for _ in self.file.jobs))
        anomaly = self._explore(start, ())
        return Found(anomaly, frozenset(self.committed), len(self.seen))

    def _rows(self, tables: tuple[Held, ...]) -> tuple[tuple[str, tuple[Identified, ...]], ...]:
        return tuple((name, tuple(rows_in(tables[i].head))) for name, i in self.order.items())

    def _explore(self, world: World, steps: tuple[str, ...]) -> Anomaly | None:
        if world in self.seen:
            return None
        self.seen.add(world)
        for number, job in enumerate(world.jobs):
            if job.at >= len(self.file.jobs[number].statements):
                continue
            for after, label, problem in self._step(world, number, job):
                told = (*steps, f"{self.file.jobs[number].name} {label}")
                if problem:
                    return Anomaly(problem, told)
                found = self._explore(after, told)
                if found:
                    return found
        return None

    # ------------------------------------------------------------ steps

    def _step(self, world: World, number: int, job: Running) -> Iterator[tuple[World, str, str]]:
        one = self.file.jobs[number].statements[job.at]
        if job.plan is None:
            yield self._scanned(world, number, job, one), "scans", ""
            return
        held = world.tables[self.order[one.table]]
        change, shape = job.plan.change, shape_of(self.tables[one.table])
        checks = checks_of(self.policy, change.command, change.mode, change.isolation, shape.format_version)
        window = followed_all(change, held.history[job.seen :], checks, shape)
        answer = validate(change, window, self.policy, checks, head=held.head, shape=shape)
        if isinstance(answer, Commit | CommitWith):
            yield self._committed(world, number, job, one, answer)
        elif isinstance(answer, RunAgain):
            mode = answer.mode if one.kind in ("update", "delete", "merge") else None
            again = Running(job.at, attempt=job.attempt + 1)
            yield self._scanned(self._with(world, number, again), number, again, one, mode), "runs again", ""
        else:
            yield self._with(world, number, Running(job.at + 1)), "is refused", ""

    def _with(self, world: World, number: int, job: Running) -> World:
        jobs = list(world.jobs)
        jobs[number] = job
        return world._replace(jobs=tuple(jobs))

    def _scanned(self, world: World, number: int, job: Running, one: Statement, mode: str | None = None) -> World:
        table = self.tables[one.table]
        held = world.tables[self.order[one.table]]
        name = f"{number}.{job.at}.{job.attempt}"
        if one.kind == "compact":
            plan = compaction(held.head, table, self.policy, name)
        else:
            effect = self._effect(one, number, job.at, dict(world.moments[-1].rows))
            plan = planned(
                one, effect, held.head, table, self.policy, name, mode, self._source(one, number, job.at, world)
            )
        if plan is None:
            return self._with(world, number, Running(job.at + 1))
        return self._with(world, number, Running(job.at, plan, len(held.history), len(world.moments) - 1, job.attempt))

    def _source(self, one: Statement, number: int, at: int, world: World) -> tuple[Values, ...]:
        if one.source_table:
            return tuple(values for _, values in dict(world.moments[-1].rows)[one.source_table])
        return one.source or self.sources.get((number, at), ())

    def _effect(self, one: Statement, number: int, at: int, rows: dict[str, tuple[Identified, ...]]) -> Effect:
        found = self.engine.effect(one, rows, one.source or self.sources.get((number, at), ()))
        return found or Effect({}, ())

    def _committed(
        self, world: World, number: int, job: Running, one: Statement, answer: Commit | CommitWith
    ) -> tuple[World, str, str]:
        assert job.plan is not None
        at = self.order[one.table]
        held = world.tables[at]
        shape = shape_of(self.tables[one.table])
        head, snapshot = new_snapshot(held.head, job.plan.change, answer, self.policy, shape, len(held.history) + 2)
        self.committed.add(self.file.jobs[number].name)
        tables = list(world.tables)
        tables[at] = Held(head, (*held.history, snapshot))
        rows = self._rows(tuple(tables))
        before, after = dict(world.moments[-1].rows)[one.table], dict(rows)[one.table]
        problem = self._judged(world, number, job, one, before, after)
        moment = Moment(rows, _wrote(before, after))
        done = World(tuple(tables), (*world.moments, moment), world.jobs)
        return self._with(done, number, Running(job.at + 1)), "commits", problem

    # ------------------------------------------------------------ the judge

    def _judged(
        self,
        world: World,
        number: int,
        job: Running,
        one: Statement,
        before: tuple[Identified, ...],
        after: tuple[Identified, ...],
    ) -> str:
        assert job.plan is not None
        old = dict(before)
        new = [pair for pair in after if pair[0] not in old]
        if len({identity for identity, _ in after}) < len(after):
            return "a row comes twice"
        if any(identity not in job.plan.fresh for identity, _ in new):
            return "a row comes back"
        kept = {identity: values for identity, values in after if identity in old}
        added = Counter(values for _, values in new)
        if one.kind == "compact":
            return "" if kept == old and not added else "a compaction changes rows"
        for moment in self._moments(world, job):
            rows = dict(world.moments[moment].rows)
            effect = self._effect(one, number, job.at, rows)
            later = [world.moments[i].wrote for i in range(moment + 1, len(world.moments))]
            if _clashes(effect, later):
                continue
            if _applied(old, effect) == kept and Counter(effect.added) == added:
                return ""
        return f"{one.kind} did what no allowed moment explains"

    def _moments(self, world: World, job: Running) -> range:
        """The moments at which the statement may have run: now, or (at snapshot isolation) any since its scan."""
        last = len(world.moments) - 1
        assert job.plan is not None
        snapshot = job.plan.change.isolation is Isolation.SNAPSHOT
        return range(job.since if snapshot else last, last + 1)


def _wrote(before: tuple[Identified, ...], after: tuple[Identified, ...]) -> tuple[tuple[object, bool], ...]:
    """Which rows a commit gave another version or took away."""
    now = dict(after)
    found = [(identity, identity not in now) for identity, values in before if now.get(identity) != values]
    return tuple(found)


def _clashes(effect: Effect, later: list[tuple[tuple[object, bool], ...]]) -> bool:
    """Whether somebody wrote a row since, that the statement writes too; two deletes of one row agree."""
    for wrote in later:
        for identity, deleted in wrote:
            if identity in effect.changed and not (deleted and effect.changed[identity] is None):
                return True
    return False


def _applied(old: dict[object, Values], effect: Effect) -> dict[object, Values]:
    """The old rows after the effect."""
    now = dict(old)
    for identity, values in effect.changed.items():
        if values is None:
            now.pop(identity, None)
        elif identity in now:
            now[identity] = values
    return now


__all__ = ["Anomaly", "BruteForce", "Found", "Table"]
