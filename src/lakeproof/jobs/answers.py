"""What a jobs file is told: anomalies in its own words, which pairs get in each other's way, what would help."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from lakeproof.checker import Verdict, check
from lakeproof.checker.limits import Progress
from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.format import PartitionField
from lakeproof.jobs.model import Beginning, models_of
from lakeproof.jobs.reading import Jobs

_ROW_LEVEL = (Command.DELETE, Command.UPDATE, Command.MERGE)


class Pair(NamedTuple):
    """Two jobs that can stop each other: by which checks, and whether a command aborts or runs again."""

    first: str
    second: str
    checks: tuple[str, ...]
    aborts: bool

    def to_json(self) -> dict[str, Any]:
        """The pair for programs."""
        return {
            "jobs": [self.first, self.second],
            "checks": list(self.checks),
            "outcome": "abort" if self.aborts else "re-run",
        }


class Proposal(NamedTuple):
    """A change to the file that was checked: with it every property holds. `states`: how many were explored."""

    change: str
    states: int

    def to_json(self) -> dict[str, Any]:
        """The proposal for programs."""
        return {"change": self.change, "states": self.states}


class Answered(NamedTuple):
    """The answer to a jobs file: the decisive verdict, the beginning it is about, and everything beside it."""

    verdict: Verdict
    beginning: Beginning
    beginnings: int
    states: int
    pairs: tuple[Pair, ...]
    proposals: tuple[Proposal, ...]


Checker = Callable[..., Verdict]


def answered(
    jobs: Jobs, policy: Policy, *, progress: Callable[[Progress], None] | None = None, **limits: Any
) -> Answered:
    """Check every first table; of those that violate, the one with the shortest way there decides."""
    beginnings = models_of(jobs, policy)
    verdicts = [(check(one.model, progress=progress, **limits), one) for one in beginnings]
    verdict, beginning = min(verdicts, key=lambda pair: _rank(pair[0]))
    proposals = proposed(jobs, policy) if verdict.verdict == "violated" else ()
    states = sum(one.states for one, _ in verdicts)
    return Answered(verdict, beginning, len(beginnings), states, pairs_of(jobs, policy), proposals)


def _rank(verdict: Verdict) -> tuple[int, int]:
    first = verdict.first_violation
    order = {"violated": 0, "unknown": 1, "holds": 2}[verdict.verdict]
    return order, (first.depth or 0) if first is not None and first.counts else 0


def pairs_of(jobs: Jobs, policy: Policy) -> tuple[Pair, ...]:
    """Which two jobs, alone together, can refuse each other's commits."""
    found = []
    names = [job.name for job in jobs.jobs]
    times = {job.name: job.times for job in jobs.jobs}
    for first, second in combinations_with_replacement(names, 2):
        if first == second and times[first] < 2:
            continue
        checks: dict[str, None] = {}
        aborts = False
        for one in models_of(jobs, policy, only=(first, second)):
            marks = check(one.model).statistics.marks
            checks |= dict.fromkeys(m.removeprefix("refused by ") for m in marks if m.startswith("refused by "))
            aborts = aborts or "abort" in marks
        if checks:
            found.append(Pair(first, second, tuple(sorted(checks)), aborts))
    return tuple(found)


def proposed(jobs: Jobs, policy: Policy) -> tuple[Proposal, ...]:
    """Small changes, each checked on every first table: only those that remove every anomaly are shown."""
    found = []
    for text, changed, under in _candidates(jobs, policy):
        verdicts = [check(one.model, max_seconds=60) for one in models_of(changed, under)]
        if all(verdict.verdict == "holds" for verdict in verdicts):
            found.append(Proposal(text, sum(verdict.states for verdict in verdicts)))
    return tuple(found)


def _candidates(jobs: Jobs, policy: Policy) -> list[tuple[str, Jobs, Policy]]:
    used = {command.command for job in jobs.jobs for command in job.commands}
    found: list[tuple[str, Jobs, Policy]] = []
    for command in _ROW_LEVEL:
        word = command.name.lower()
        if command not in used:
            continue
        if dict(jobs.isolations)[command] is Isolation.SNAPSHOT:
            changed = jobs._replace(isolations=_set(jobs.isolations, command, Isolation.SERIALIZABLE))
            found.append((f"'write.{word}.isolation-level' = 'serializable'", changed, policy))
        if dict(jobs.modes)[command] is Mode.MERGE_ON_READ:
            changed = jobs._replace(modes=_set(jobs.modes, command, Mode.COPY_ON_WRITE))
            found.append((f"'write.{word}.mode' = 'copy-on-write'", changed, policy))
    if not jobs.shape.specs[0]:
        for column in jobs.shape.columns:
            changed = jobs._replace(shape=jobs.shape._replace(specs=((PartitionField(column),),)))
            found.append((f"partitioned by ({column})", changed, policy))
    if policy.name != "lakeproof":
        found.append(("'lakeproof.policy' = 'lakeproof'", jobs, POLICIES["lakeproof"]))
    for job in jobs.jobs:
        if len(jobs.jobs) > 1:
            rest = jobs._replace(jobs=tuple(one for one in jobs.jobs if one.name != job.name))
            found.append((f"run {job.name} while none of the others runs", rest, policy))
    return found


def _set(pairs: tuple[tuple[Command, Any], ...], command: Command, value: Any) -> tuple[tuple[Command, Any], ...]:
    return tuple((c, value if c is command else old) for c, old in pairs)
