"""What a jobs file is told beside the verdict: which pairs stop each other, and which small changes would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.format import PartitionField
from lakeproof.jobs.model import Beginning, space_of
from lakeproof.jobs.preparing import PreparedJobs, prepare_jobs
from lakeproof.jobs.reading import Jobs, JobTable
from lakeproof.jobs.searching import FEW_WRITERS, Limits, explore_by_writers, search_first_tables

_ROW_LEVEL = (Command.DELETE, Command.UPDATE, Command.MERGE)


class Pair(NamedTuple):
    """Two jobs that can stop each other: by which checks, and whether a command aborts or runs again."""

    first: str
    second: str
    checks: tuple[str, ...]
    aborts: bool

    def __str__(self) -> str:
        what = "abort" if self.aborts else "run again"
        both = f"Two runs of {self.first}" if self.first == self.second else f"{self.first} and {self.second}"
        return f"{both} can make each other {what}: {', '.join(self.checks)}"

    def to_json(self) -> dict[str, Any]:
        """The pair for programs."""
        outcome = "abort" if self.aborts else "re-run"
        return {"jobs": [self.first, self.second], "checks": list(self.checks), "outcome": outcome}


class Proposal(NamedTuple):
    """A change to the file with which no anomaly is left on any first table, up to three runs at once."""

    change: str
    states: int

    def __str__(self) -> str:
        return self.change

    def to_json(self) -> dict[str, Any]:
        """The proposal for programs."""
        return {"change": self.change, "states": self.states}


def pairs(ready: PreparedJobs, policy: Policy, limits: Limits) -> Iterator[Pair]:
    """Which two jobs, alone together, can refuse each other's commits; as far as the time goes."""
    names = [job.name for job in ready.jobs.jobs]
    times = {job.name: job.times for job in ready.jobs.jobs}
    for first, second in combinations_with_replacement(names, 2):
        if limits.clock.over or (first == second and times[first] < 2):
            continue
        marks = search_first_tables(space_of(ready, policy, (first, second)), limits, whole=True).marks
        checks = sorted(mark.removeprefix("refused by ") for mark in marks if mark.startswith("refused by "))
        if checks:
            yield Pair(first, second, tuple(checks), "abort" in marks)


def proposals(
    whole: PreparedJobs, policy: Policy, worst: Beginning, limits: Limits, tried: list[str]
) -> Iterator[Proposal]:
    """Small changes, each explored on every first table with up to three runs at once: those that leave no anomaly.

    `tried` hears of each that was explored to the end.
    """
    for text, changed, under in candidates(whole.jobs, policy):
        if limits.clock.over:
            return
        ready = whole if changed is whole.jobs else prepare_jobs(changed)
        still = search_first_tables(space_of(ready, under), limits, only=worst.first)
        found = (
            still if still.violated or still.cut else explore_by_writers(ready, under, limits, most=FEW_WRITERS).found
        )
        if found.cut:
            continue
        tried.append(text)
        if found.violated is None:
            yield Proposal(text, found.states + still.states)


def candidates(jobs: Jobs, policy: Policy) -> Iterator[tuple[str, Jobs, Policy]]:
    """The changes that are tried: isolation, policy, mode, a job that runs alone, and partitions."""
    yield from _of_tables(jobs, policy, _more_isolated)
    if policy.name != "lakeproof":
        yield "'lakeproof.policy' = 'lakeproof'", jobs, POLICIES["lakeproof"]
    yield from _of_tables(jobs, policy, _copied)
    for job in jobs.jobs:
        if len(jobs.jobs) > 1:
            rest = jobs._replace(jobs=tuple(one for one in jobs.jobs if one.name != job.name))
            yield f"run {job.name} while none of the others runs", rest, policy
    for table in jobs.tables:
        for name, kind in table.columns.values() if not table.fields else ():
            if kind not in ("other", "double"):
                better = table._replace(fields=(PartitionField(name),))
                yield f"{table.name} partitioned by ({name})", _with(jobs, better), policy


def _of_tables(
    jobs: Jobs, policy: Policy, change: Callable[[JobTable, Command], tuple[str, JobTable] | None]
) -> Iterator[tuple[str, Jobs, Policy]]:
    """A change of each table for each row-level command that somebody runs on it."""
    for table in jobs.tables:
        where = f" of {table.name}" if len(jobs.tables) > 1 else ""
        used = {one.command for job in jobs.jobs for one in job.statements if one.table == table.name}
        for command in (one for one in _ROW_LEVEL if one in used):
            made = change(table, command)
            if made is not None:
                yield f"{made[0]}{where}", _with(jobs, made[1]), policy


def _more_isolated(table: JobTable, command: Command) -> tuple[str, JobTable] | None:
    if dict(table.isolations)[command] is not Isolation.SNAPSHOT:
        return None
    better = table._replace(isolations=_set(table.isolations, command, Isolation.SERIALIZABLE))
    return f"'write.{command.name.lower()}.isolation-level' = 'serializable'", better


def _copied(table: JobTable, command: Command) -> tuple[str, JobTable] | None:
    if dict(table.modes)[command] is not Mode.MERGE_ON_READ:
        return None
    better = table._replace(modes=_set(table.modes, command, Mode.COPY_ON_WRITE))
    return f"'write.{command.name.lower()}.mode' = 'copy-on-write'", better


def _with(jobs: Jobs, table: JobTable) -> Jobs:
    return jobs._replace(tables=tuple(table if one.name == table.name else one for one in jobs.tables))


def _set(pairs: tuple[tuple[Command, Any], ...], command: Command, value: Any) -> tuple[tuple[Command, Any], ...]:
    return tuple((c, value if c is command else old) for c, old in pairs)
