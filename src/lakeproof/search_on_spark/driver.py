"""The driver's part of the search: one Spark job per level, counts and findings added up, ways walked back."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from lakeproof.checker.limits import Watch
from lakeproof.checker.model import Model
from lakeproof.checker.readable import Counts, Exploration, Successors
from lakeproof.checker.tables import State
from lakeproof.checker.verdicts.conclusion import Searched
from lakeproof.checker.verdicts.ledger import Ledger, PropertyHit
from lakeproof.search_on_spark.folder import Folder, Found, LevelDone
from lakeproof.search_on_spark.jobs import CutShort, JobFailed, TaskRunner
from lakeproof.search_on_spark.looking_back import cycles, none_goes_round, predecessors
from lakeproof.search_on_spark.partition import Partition, SearchPlan, World
from lakeproof.search_on_spark.sound import damaged
from lakeproof.search_on_spark.stable_hash import SteadyTables
from lakeproof.search_on_spark.task import Answer, Source, Work, answer_task, prepare

TRIES = 3  # of a level of which a partition is not done although the job ended well


class SparkSearch:
    """One search: its counts so far, and what was found."""

    def __init__(self, jobs: TaskRunner, plan: SearchPlan, source: Source, model: Model, watch: Watch) -> None:
        self.jobs, self.plan, self.source, self.watch = jobs, plan, source, watch
        self.folder = Folder(plan.folder)
        self.tables = SteadyTables(model, private="private" in plan.reductions, values="values" in plan.reductions)
        self.successors = Successors(self.tables, symmetric="processes" in plan.reductions)
        self.ledger = Ledger(self.tables)
        self.claimed = frozenset(claim.name for claim in self.ledger.claims)
        self.states = self.transitions = self.terminals = self.ahead = 0
        self.depth = -1
        self.counts = Counts()
        self.memory_mb: dict[str, float] = {}  # per worker, the most it ever held
        self.notes: list[str] = []
        self.paths: dict[PropertyHit, list[State]] = {}

    def run(self, notes: tuple[str, ...]) -> Searched:
        """Search level by level until everything is visited or something cuts."""
        before = time.perf_counter()
        cut = self.guarded(
            lambda: self.checked(self.jobs.run(partial(prepare, self.plan, self.source), self.plan.parts))
        )
        compile_seconds = time.perf_counter() - before
        self.watch.pauses += compile_seconds
        cut = cut or self.guarded(self.levels)
        explored = Exploration(
            states=self.states,
            transitions=self.transitions,
            depth=self.depth,
            terminals=self.terminals,
            cut_by=cut,
            acyclic=None if cut else self.acyclic(),
            counts=self.counts,
            path_to=self.path_to,
            compile_seconds=compile_seconds,
        )
        return Searched(explored, self.ledger, self.successors, "spark", notes)

    def guarded(self, work: Callable[[], Any]) -> str:
        """Do it; what cut it short."""
        try:
            work()
        except CutShort as cut:
            return str(cut)
        except JobFailed as failure:
            self.notes.append(f"level {self.depth + 1} was not done: {failure}")
            return "a failed Spark job"
        return ""

    def levels(self) -> None:
        """Do one level after the other, or read what was done before."""
        self.ahead = 1
        while self.ahead:
            level = self.depth + 1
            done = self.folder.done(level, self.plan.parts) or self.searched(level)
            self.add(level, done)
            cut = self.look()
            if self.watch.cut.first and self.ledger.violated:
                cut = "first violation"
            if cut and self.ahead:
                raise CutShort(cut)

    def searched(self, level: int) -> list[LevelDone]:
        """Have a level searched by all partitions."""
        for _ in range(TRIES):
            self.ask(level, partial(_search, level), self.look)
            done = self.folder.done(level, self.plan.parts)
            if done is not None:
                self.folder.sweep(level)
                return done
        raise JobFailed("a partition was never done")

    def look(self) -> str:
        """What cuts the search now."""
        return self.watch.look(self.states, self.transitions, max(self.depth, 0), self.ahead)

    def ask(self, level: int, question: Callable[[Partition], Any], look: Callable[[], str] = lambda: "") -> list[Any]:
        """Put a question to every partition."""
        work = Work(self.plan, self.source, uuid.uuid4().hex, level, question)
        answers = self.jobs.run(partial(answer_task, work), self.plan.parts, look)
        self.folder.end_turns(level)
        return self.checked(answers)

    @staticmethod
    def checked(answers: list[Answer]) -> list[Any]:
        """The answers, if nothing is wrong."""
        for one in answers:
            if one.error is not None:
                raise one.error
        return [one.value for one in answers if one.part is not None]

    def add(self, level: int, done: list[LevelDone]) -> None:
        """Add what came of a level."""
        new = sum(one.states for one in done)
        self.depth = level if new else self.depth
        self.states, self.ahead = self.states + new, sum(one.ahead for one in done)
        self.watch.widths.append(new)
        for one in done:
            self.transitions += one.transitions
            self.terminals += one.terminals
            for name in ("enabled", "taken", "marks"):
                getattr(self.counts, name).update(getattr(one.counts, name))
            self.memory_mb[one.worker] = max(self.memory_mb.get(one.worker, 0.0), one.memory_mb)
            for name, found in one.found.items():
                self.refuse_unknown(name, found, one)
                move = None if found.move is None else self.tables.moves(found.move)
                self.ledger.note((name,), found.depth, self.numbered((found.shared, found.owns)), move, found.by)

    def refuse_unknown(self, name: str, found: Found, one: LevelDone) -> None:
        """A folder that says of this model what cannot be said of it is damaged."""
        if name not in self.claimed or len(found.owns) != len(self.tables.kinds) or found.by > len(found.owns):
            raise damaged(self.folder.part(one.level, one.part), f"it says something else of {name!r}")

    def numbered(self, world: World) -> State:
        """A state in the driver's numbers."""
        shared, owns = world
        pairs = zip(self.tables.kinds, owns, strict=True)
        numbers = (self.tables.owns[kind](own) for kind, own in pairs)
        return self.successors.canonical((self.tables.shared(shared), *numbers))

    def acyclic(self) -> bool | None:
        """Is it certain that no run goes round? Only asked where a property is about endless runs."""
        if not any(claim.kind == "eventually" and claim.name not in self.ledger.found for claim in self.ledger.claims):
            return None
        return none_goes_round(self.ask(self.depth, partial(_cycles, self.depth))) or None

    def path_to(self, finding: PropertyHit) -> list[State]:
        """A shortest way from the initial state to what was found."""
        if finding not in self.paths:
            reachable = {claim.name for claim in self.ledger.claims if claim.kind == "reachable"}
            violations = {found for name, found in self.ledger.found.items() if name not in reachable}
            together = violations if finding in violations else set(self.ledger.found.values())
            self.paths |= self.walked_back(together - self.paths.keys())
        return self.paths[finding]

    def walked_back(self, findings: set[PropertyHit]) -> dict[PropertyHit, list[State]]:
        """The ways to all findings, together: one job per level asks for predecessors."""
        ends = {finding: finding.depth - (finding.move is not None) for finding in findings}
        paths = {finding: [finding.state] for finding in findings}
        for level in range(max(ends.values()), 0, -1):
            states = list({paths[finding][-1] for finding, end in ends.items() if end >= level})
            before = self.before(level - 1, states)
            for finding, end in ends.items():
                if end >= level:
                    paths[finding].append(before[paths[finding][-1]])
        return {finding: path[::-1] for finding, path in paths.items()}

    def before(self, level: int, states: list[State]) -> dict[State, State]:
        """For each of these states one of the level that leads to it."""
        tables = self.tables
        worlds = [
            (
                tables.shared.values[s[0]],
                tuple(tables.owns[k].values[o] for k, o in zip(tables.kinds, s[1:], strict=True)),
            )
            for s in states
        ]
        found: dict[State, State] = {}
        for answers in self.ask(level, partial(_predecessors, level, worlds)):
            for place, world in answers.items():
                found.setdefault(states[place], self.numbered(world))
        return found


def _search(level: int, part: Partition) -> None:
    """A partition that a search did before it was stopped is not done again."""
    if not part.folder.is_done(level, part.number):
        part.search(level)


def _cycles(level: int, part: Partition) -> Any:
    return cycles(part, level)


def _predecessors(level: int, worlds: list[World], part: Partition) -> dict[int, World]:
    return predecessors(part, level, worlds)
