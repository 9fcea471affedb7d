"""From what a search saw to its verdict: each property judged, each violation with its trace."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from lakeproof.checker.limits import Watch, peak_memory_mb
from lakeproof.checker.model import Model, Property
from lakeproof.checker.readable import Counts, Exploration, Successors
from lakeproof.checker.runs import Follower, TakenStep, start_of, taken
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger, hit_by
from lakeproof.checker.verdicts.liveness import Graph, Lasso, TooLarge, lasso_of
from lakeproof.checker.verdicts.lone_process import reached_alone
from lakeproof.checker.verdicts.trace import Trace, plain, trace_of
from lakeproof.checker.verdicts.verdict import PropertyVerdict, Statistics, StepCount, Verdict, Word
from lakeproof.errors import ModelError


class Searched(NamedTuple):
    """A search that is over, by whichever engine."""

    explored: Exploration
    ledger: Ledger
    successors: Successors
    engine: str
    notes: tuple[str, ...]


class Endless(NamedTuple):
    """What is known about runs that never end: per property a lasso, or why nobody knows."""

    lassos: dict[str, Lasso]
    graph: Graph | None
    reason: str = ""


def conclude(
    searched: Searched,
    watch: Watch,
    reductions: tuple[str, ...],
    require: Collection[str],
    witnesses: bool,
    seed: int | None,
) -> Verdict:
    """The verdict of a search."""
    explored, model = searched.explored, searched.ledger.model
    endless = _endless(searched, watch)
    seconds = watch.seconds
    verdicts = _properties(searched, endless, watch, require, witnesses)
    return Verdict(
        model=model.name,
        parameters=plain(model.parameters),
        verdict=_overall(verdicts, explored.cut_by),
        states=explored.states,
        transitions=explored.transitions,
        depth=explored.depth,
        seconds=seconds,
        compile_seconds=explored.compile_seconds,
        peak_memory_mb=peak_memory_mb(),
        exhausted=not explored.cut_by,
        cut_by=explored.cut_by or None,
        properties=tuple(verdicts),
        statistics=_statistics(model, explored.counts, explored.terminals),
        seed=seed,
        engine=searched.engine,
        reductions=reductions,
        notes=searched.notes,
        seconds_in=explored.seconds_in,
        bounds=model.bounds,
    )


def _properties(
    searched: Searched, endless: Endless, watch: Watch, require: Collection[str], witnesses: bool
) -> list[PropertyVerdict]:
    """Each property judged; what is violated (or, on request, reached) with its trace."""
    model = searched.ledger.model
    verdicts = [_judged(claim, searched, endless, claim.name in require) for claim in model.claims()]
    violated = [verdict.name for verdict in verdicts if verdict.verdict == "violated" and verdict.kind != "reachable"]
    reached = [verdict.name for verdict in verdicts if verdict.verdict == "holds" and verdict.kind == "reachable"]
    alone = reached_alone(model, violated, endless.lassos) if violated and not watch.interrupted else {}
    traces = {name: _trace(searched, endless, name) for name in (*violated, *(reached if witnesses else ()))}
    return [
        verdict._replace(alone=alone.get(verdict.name), trace=trace, depth=len(trace.steps) if trace else verdict.depth)
        for verdict in verdicts
        for trace in (traces.get(verdict.name),)
    ]


def _endless(searched: Searched, watch: Watch) -> Endless:
    """Look for fair runs without end, where a property asks and the space is known and not free of cycles."""
    explored, ledger = searched.explored, searched.ledger
    open_claims = [claim for claim in ledger.claims if claim.kind == "eventually" and claim.name not in ledger.found]
    if not open_claims or explored.cut_by or explored.acyclic:
        return Endless({}, None)
    try:
        reduced = Graph(searched.successors, watch=watch)
        if not reduced.endless(range(len(reduced.states))):
            return Endless({}, None)
        tables = Tables(ledger.model, private=False, values=False)
        graph = Graph(Successors(tables, symmetric=False), watch=watch)
    except TooLarge as error:
        return Endless({}, None, str(error))
    found = {claim.name: lasso_of(graph, claim) for claim in open_claims}
    return Endless({name: lasso for name, lasso in found.items() if lasso is not None}, graph)


def _judged(claim: Property, searched: Searched, endless: Endless, required: bool) -> PropertyVerdict:
    finding = searched.ledger.found.get(claim.name)
    cut = searched.explored.cut_by
    reason = f"cut by {cut}" if cut else endless.reason if claim.kind == "eventually" else ""
    hit = finding is not None or claim.name in endless.lassos
    word: Word
    if hit:
        word, reason = "holds" if claim.kind == "reachable" else "violated", ""
    elif reason:
        word = "unknown"
    else:
        word = "violated" if claim.kind == "reachable" else "holds"
    depth = finding.depth if finding else None
    counts = claim.counts or required
    return PropertyVerdict(claim.name, claim.seed_name, claim.kind, word, counts, depth, reason=reason)


def _overall(verdicts: list[PropertyVerdict], cut_by: str) -> Word:
    words = {verdict.verdict for verdict in verdicts if verdict.counts}
    if "violated" in words:
        return "violated"
    return "unknown" if cut_by or "unknown" in words else "holds"


def _trace(searched: Searched, endless: Endless, name: str) -> Trace:
    """The real run behind what was found."""
    model = searched.ledger.model
    if name in endless.lassos and endless.graph is not None:
        lasso = endless.lassos[name]
        follower = Follower(endless.graph.tables, Successors(endless.graph.tables, symmetric=False))
        return trace_of(model, follower.run(lasso.path, movers=lasso.movers), lasso.loop_start)
    finding = searched.ledger.found[name]
    follower = Follower(searched.successors.tables, searched.successors)
    run = follower.run(searched.explored.path_to(finding), finding.move)
    claim = next(claim for claim in searched.ledger.claims if claim.name == name)
    return trace_of(model, _without_idle_steps(model, claim, run[: _needed(model, claim, run)]))


def _needed(model: Model, claim: Property, run: list[TakenStep]) -> int:
    """How many steps it takes until the property is hit: private steps taken at once may follow after that."""
    if claim.subject == "mark":
        return next(number for number, part in enumerate(run, 1) if claim.mark in part.outcome.marks)
    if claim.kind == "eventually" or claim.subject == "rest":
        return len(run)
    worlds = [start_of(model), *(part.world for part in run)]
    for number, world in enumerate(worlds):
        if hit_by(claim, *world):
            return number
    why = "a promise to the reductions is broken (symmetric=True, a value symmetry or a private step)"
    raise ModelError(f"{claim.name} is hit in the reduced space but not in the run behind it: {why}")


def _without_idle_steps(model: Model, claim: Property, run: list[TakenStep]) -> list[TakenStep]:
    """The run without private steps that their process makes no use of: it would have stood still just as well."""
    if claim.kind == "eventually" or claim.subject == "rest":
        return run
    used = {part.process: number for number, part in enumerate(run) if not part.step.private or part is run[-1]}
    kept = [part for number, part in enumerate(run) if number <= used.get(part.process, -1)]
    world, again = start_of(model), list[TakenStep]()
    for part in kept:
        again.append(taken(model, world, part.process, part.step, part.outcome))
        world = again[-1].world
    return again


def _statistics(model: Model, counts: Counts, terminals: int) -> Statistics:
    steps = {name: StepCount(counts.enabled[name], counts.taken[name]) for name in model.all_steps()}
    return Statistics(steps, dict(sorted(counts.marks.items())), terminals)
