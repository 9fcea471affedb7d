"""The answer to a jobs file: the verdict first, then which pairs stop each other and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from lakeproof.checker import Verdict, check
from lakeproof.checker.verdicts.verdict import PropertyVerdict, Statistics
from lakeproof.commit.policy import Policy
from lakeproof.jobs.advice import Pair, Proposal, candidates, pairs, proposals
from lakeproof.jobs.model import Beginning, beginnings, space_of
from lakeproof.jobs.preparing import MOST_FIRST_ROWS, PreparedJobs, prepare_jobs
from lakeproof.jobs.reading import Jobs, independent_parts
from lakeproof.jobs.searching import NOTHING, Clock, Covered, Limits, explore_by_writers
from lakeproof.models.iceberg.properties import JUDGED
from lakeproof.models.iceberg.telling import told


class Listener(NamedTuple):
    """Who is told of each part of the answer as soon as it is there."""

    progress: Callable[[str], None] = lambda text: None
    verdict: Callable[[Verdict], None] = lambda verdict: None
    pair: Callable[[Pair], None] = lambda pair: None
    proposal: Callable[[Proposal], None] = lambda proposal: None


def answer_jobs(
    jobs: Jobs,
    policy: Policy,
    *,
    limits: Limits | None = None,
    listener: Listener | None = None,
    advice: bool = True,
) -> Verdict:
    """The verdict on a jobs file; with `advice`, also pairs and proposals as far as the time goes."""
    limits, listener = limits or Limits(Clock()), listener or Listener()
    parts = [JobsPart(prepare_jobs(part)) for part in independent_parts(jobs)]
    for number, part in enumerate(parts):
        parts[number] = part = part._replace(explored=explore_by_writers(part.ready, policy, limits, listener.progress))
        if part.worst is not None:
            break
    worst = next((part.worst for part in parts if part.worst is not None), None)
    verdict = _violation(worst, parts, limits) if worst is not None else _no_violation(jobs, policy, parts, limits)
    verdict = replace(verdict, more={**_more(jobs, parts, worst), "pairs": [], "proposals": []})
    listener.verdict(verdict)
    return _advised(verdict, policy, parts, limits, listener) if advice else verdict


class JobsPart(NamedTuple):
    """A part of a file that has no table in common with the others, and what its search came to."""

    ready: PreparedJobs
    explored: Covered = NOTHING

    @property
    def worst(self) -> Beginning | None:
        """The first table that violates, if there is one."""
        return self.explored.found.violated


def _advised(verdict: Verdict, policy: Policy, parts: list[JobsPart], limits: Limits, listener: Listener) -> Verdict:
    """The verdict with the pairs that stop each other, and what would help, each told as soon as it is there."""
    found_pairs: list[Pair] = []
    found_proposals: list[Proposal] = []
    late: list[str] = []
    cut: list[str] = []
    for part in parts:
        for pair in pairs(part.ready, policy, limits, cut):
            found_pairs.append(pair)
            listener.pair(pair)
    late += [f"not every first table was tried for these pairs: {'; '.join(cut)}"] if cut else []
    for part in parts:
        if part.worst is not None:
            tried: list[str] = []
            for proposal in proposals(part.ready, policy, part.worst, limits, tried):
                found_proposals.append(proposal)
                listener.proposal(proposal)
            late += _left_out(part, policy, limits, tried)
    more = {
        "pairs": [pair.to_json() for pair in found_pairs],
        "proposals": [proposal.to_json() for proposal in found_proposals],
    }
    return replace(verdict, more={**verdict.more, **more}, notes=(*verdict.notes, *late))


def _left_out(part: JobsPart, policy: Policy, limits: Limits, tried: list[str]) -> list[str]:
    """Which changes were not explored to the end, if any."""
    known = [text for text, _, _ in candidates(part.ready.jobs, policy)]
    left = [text for text in known if text not in tried]
    why = "the time was up" if limits.clock.over else "the limit of states was reached"
    return [f"{why} before {len(left)} of {len(known)} changes were tried: {'; '.join(left)}"] if left else []


def _violation(worst: Beginning, parts: list[JobsPart], limits: Limits) -> Verdict:
    """The verdict on the first table that violates, its traces told in the jobs' own names."""
    left = limits.clock.left
    enough = None if left is None else max(left, 5.0)
    verdict = check(
        worst.model,
        max_seconds=enough,
        max_states=limits.max_states,
        reductions=limits.reductions,
        engine="readable" if len(worst.space.members) <= 3 else "auto",
    )
    if verdict.verdict != "violated":  # the clock cut it: the quick model's own answer stands
        verdict = check(worst.quick, first=True)
    story = worst.told
    properties = tuple(p if p.trace is None else p._replace(trace=told(story, p.trace)) for p in verdict.properties)
    return replace(verdict, properties=properties, states=verdict.states + _states(parts))


def _states(parts: list[JobsPart]) -> int:
    return sum(part.explored.found.states for part in parts)


def _no_violation(jobs: Jobs, policy: Policy, parts: list[JobsPart], limits: Limits) -> Verdict:
    """`Holds`, or `Unknown` with every reason why not."""
    cuts = [part.explored.found.cut for part in parts if part.explored.found.cut]
    why = [*(text for part in parts for text in part.ready.cut), *cuts, *jobs.open]
    for part in parts:
        found = part.explored.found
        why += _idle(part.ready, policy, found.committed, found.started) if not found.cut else []
    word: Any = "unknown" if why else "holds"
    shown = [PropertyVerdict(name, seed, "always", word, True, reason="; ".join(why)) for name, seed in JUDGED.items()]
    marks = sum((part.explored.found.marks for part in parts), Counter[str]())
    return Verdict(
        model="iceberg",
        parameters={"jobs": jobs.name, "policy": policy.name},
        verdict=word,
        states=_states(parts),
        transitions=0,
        depth=0,
        seconds=limits.clock.spent,
        compile_seconds=0.0,
        peak_memory_mb=0.0,
        exhausted=not cuts,
        cut_by="; ".join(cuts) or None,
        properties=tuple(shown),
        statistics=Statistics({}, dict(marks), 0),
        notes=tuple(why),
    )


def _idle(ready: PreparedJobs, policy: Policy, committed: frozenset[str], started: frozenset[str]) -> list[str]:
    """The jobs that never commit anything on any first table, and why."""
    found = []
    for job, member in zip(
        ready.jobs.jobs, space_of(ready, policy, tuple(j.name for j in ready.jobs.jobs)).members, strict=True
    ):
        if member.kind() in committed:
            continue
        finds = member.kind() in started
        why = "each of its commits is refused" if finds else "it finds no row to change on any first table"
        found.append(f"{job.name} never commits: {why}")
    return found


def _more(jobs: Jobs, parts: list[JobsPart], worst: Beginning | None) -> dict[str, Any]:
    """What a jobs file is told beside the verdict."""
    rows = worst.rows if worst is not None else ()
    given = any(table.rows for table in jobs.tables)
    tables = sum(part.explored.found.tables for part in parts)
    names = [" and ".join(table.name for table in part.ready.jobs.tables) for part in parts]
    several = len(parts) > 1
    said = [
        f"{name}: {text}" if several else text
        for name, part in zip(names, parts, strict=True)
        for text in part.explored.said
    ]
    return {
        "cautious": list(jobs.notes),
        "beginnings": tables,
        "states_of_all_beginnings": _states(parts),
        "first_rows": [{"table": table, "rows": [list(row) for row in held]} for table, held in rows],
        "explored": said,
        "bounds": {"rows": None if given else MOST_FIRST_ROWS, "source_rows": 1, "first_tables": tables},
    }


def first_beginning(jobs: Jobs, policy: Policy) -> Beginning:
    """A beginning to walk through by hand: the set-up's rows, or the first table with two rows in one file."""
    ready = prepare_jobs(independent_parts(jobs)[0])
    space = space_of(ready, policy)
    together = (one for one in beginnings(space) if any(len(rows) == 2 for _, rows in one.first))
    return next(together, None) or next(beginnings(space))
