"""The answer to a jobs file: the verdict first, then which pairs stop each other and what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from lakeproof.checker import Verdict, check
from lakeproof.checker.verdict import PropertyVerdict, Statistics
from lakeproof.commit.policy import Policy
from lakeproof.jobs.advice import Pair, Proposal, pairs, proposals
from lakeproof.jobs.model import Beginning, beginnings, space_of
from lakeproof.jobs.preparing import Prepared, prepared
from lakeproof.jobs.reading import Jobs
from lakeproof.jobs.searching import Clock, Covered, Limits, covered
from lakeproof.models.iceberg.properties import JUDGED
from lakeproof.models.iceberg.telling import told


class Listener(NamedTuple):
    """Who is told of each part of the answer as soon as it is there."""

    progress: Callable[[str], None] = lambda text: None
    verdict: Callable[[Verdict], None] = lambda verdict: None
    pair: Callable[[Pair], None] = lambda pair: None
    proposal: Callable[[Proposal], None] = lambda proposal: None


def answered(
    jobs: Jobs,
    policy: Policy,
    *,
    limits: Limits | None = None,
    listener: Listener | None = None,
    advice: bool = True,
) -> Verdict:
    """The verdict on a jobs file; with `advice`, also pairs and proposals as far as the time goes."""
    limits, listener = limits or Limits(Clock()), listener or Listener()
    ready = prepared(jobs)
    explored = covered(ready, policy, limits, listener.progress)
    worst = explored.found.violated
    verdict = (
        _violation(worst, explored, limits) if worst is not None else _no_violation(ready, policy, explored, limits)
    )
    verdict = replace(verdict, more={**_more(ready, explored, worst), "pairs": [], "proposals": []})
    listener.verdict(verdict)
    if not advice:
        return verdict
    found_pairs: list[Pair] = []
    found_proposals: list[Proposal] = []
    if worst is not None:
        for proposal in proposals(jobs, policy, worst, limits._replace(clock=limits.clock.part(0.75))):
            found_proposals.append(proposal)
            listener.proposal(proposal)
    for pair in pairs(ready, policy, limits):
        found_pairs.append(pair)
        listener.pair(pair)
    late = ["the time was up before every pair and every change was tried"] if limits.clock.over else []
    more = {
        "pairs": [pair.to_json() for pair in found_pairs],
        "proposals": [proposal.to_json() for proposal in found_proposals],
    }
    return replace(verdict, more={**verdict.more, **more}, notes=(*verdict.notes, *late))


def _violation(worst: Beginning, explored: Covered, limits: Limits) -> Verdict:
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
    return replace(verdict, properties=properties, states=verdict.states + explored.found.states)


def _no_violation(ready: Prepared, policy: Policy, explored: Covered, limits: Limits) -> Verdict:
    """«holds», or «unknown» with every reason why not."""
    found = explored.found
    why = [*ready.cut, *([found.cut] if found.cut else []), *ready.jobs.open]
    why += _idle(ready, policy, found.committed, found.started) if not found.cut else []
    word: Any = "unknown" if why else "holds"
    shown = [PropertyVerdict(name, seed, "always", word, True, reason="; ".join(why)) for name, seed in JUDGED.items()]
    return Verdict(
        model="iceberg",
        parameters={"jobs": ready.jobs.name, "policy": policy.name},
        verdict=word,
        states=found.states,
        transitions=0,
        depth=0,
        seconds=limits.clock.spent,
        compile_seconds=0.0,
        peak_memory_mb=0.0,
        exhausted=not found.cut,
        cut_by=found.cut or None,
        properties=tuple(shown),
        statistics=Statistics({}, dict(found.marks), 0),
        notes=tuple(why),
    )


def _idle(ready: Prepared, policy: Policy, committed: frozenset[str], started: frozenset[str]) -> list[str]:
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


def _more(ready: Prepared, explored: Covered, worst: Beginning | None) -> dict[str, Any]:
    """What a jobs file is told beside the verdict."""
    rows = worst.rows if worst is not None else ()
    given = any(table.rows for table in ready.jobs.tables)
    return {
        "cautious": list(ready.jobs.notes),
        "beginnings": explored.found.tables,
        "states_of_all_beginnings": explored.found.states,
        "first_rows": [{"table": table, "rows": [list(row) for row in held]} for table, held in rows],
        "explored": list(explored.said),
        "bounds": {"rows": None if given else 2, "source_rows": 1, "first_tables": explored.found.tables},
    }


def first_beginning(jobs: Jobs, policy: Policy) -> Beginning:
    """A beginning to walk through by hand: the set-up's rows, or the first table with two rows in one file."""
    ready = prepared(jobs)
    options = list(beginnings(space_of(ready, policy)))
    together = [one for one in options if any(len(rows) == 2 for _, rows in one.first)]
    return (together or options)[0]
