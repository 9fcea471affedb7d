"""What a jobs file is told beside the verdict: which pairs stop each other, and which small changes would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.format import PartitionField
from lakeproof.jobs.model import Beginning, space_of
from lakeproof.jobs.preparing import PreparedJobs, prepare_changed
from lakeproof.jobs.reading import Jobs, JobTable
from lakeproof.jobs.searching import FEW_WRITERS, Limits, explore_by_writers, search_first_tables

PAIRS = 0.3
"""The share of the time that is left which the pairs may take."""
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
    """A change to the file with which no anomaly is left on any first table, up to three runs at once.

    `only`: where the time did not suffice for all of them, what was tried.
    """

    change: str
    states: int
    only: str = ""

    def __str__(self) -> str:
        return f"{self.change} ({self.only})" if self.only else self.change

    def to_json(self) -> dict[str, Any]:
        """The proposal for programs."""
        return {"change": self.change, "states": self.states, **({"only": self.only} if self.only else {})}


def pairs(ready: PreparedJobs, policy: Policy, limits: Limits, left: list[str]) -> Iterator[Pair]:
    """Which two jobs, alone together, can refuse each other's commits; `left` hears of pairs that were cut short."""
    times = {job.name: job.times for job in ready.jobs.jobs}
    every = [pair for pair in combinations_with_replacement(times, 2) if pair[0] != pair[1] or times[pair[0]] > 1]
    clock = limits.clock.part(PAIRS)
    for number, (first, second) in enumerate(every):
        part = limits._replace(clock=clock.part(1 / (len(every) - number)))
        found = search_first_tables(space_of(ready, policy, (first, second)), part, whole=True)
        marks = found.marks
        left += [f"{first} and {second}"] if found.cut else []
        checks = sorted(mark.removeprefix("refused by ") for mark in marks if mark.startswith("refused by "))
        if checks:
            yield Pair(first, second, tuple(checks), "abort" in marks)


def proposals(
    whole: PreparedJobs, policy: Policy, worst: Beginning, limits: Limits, tried: list[str]
) -> Iterator[Proposal]:
    """Small changes, each explored on every first table with up to three runs at once: those that leave no anomaly.

    What does not help where the anomaly was found is left out first; the others share the time that is left. `tried`
    hears of each that was explored at all.
    """
    helping: list[tuple[str, PreparedJobs, Policy, int]] = []
    for text, changed, under in candidates(whole.jobs, policy):
        if limits.clock.over:
            return
        ready = whole if changed is whole.jobs else prepare_changed(whole, changed)
        names = {job.name for job in changed.jobs}
        same = tuple(name for name in worst.space.only if name in names)
        still = search_first_tables(space_of(ready, under, same), limits, only=worst.first)
        if still.violated is None and not still.cut:
            helping.append((text, ready, under, still.states))
        elif not still.cut:
            tried.append(text)
    for number, (text, ready, under, states) in enumerate(helping):
        part = limits._replace(clock=limits.clock.part(1 / (len(helping) - number)))
        covered = explore_by_writers(ready, under, part, most=FEW_WRITERS)
        found = covered.found
        if found.cut and found.tables + covered.soon == 0:
            continue
        tried.append(text)
        if found.violated is None:
            only = f"tried on {found.tables + covered.soon:,} first tables, not on all"
            yield Proposal(text, found.states + states, only if found.cut else "")


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
