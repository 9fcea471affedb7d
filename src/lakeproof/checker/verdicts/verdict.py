"""What a search says in the end: of each property, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from lakeproof.checker.model import NOT_SAID, SearchBounds
from lakeproof.checker.verdicts.trace import Trace

Word = Literal["holds", "violated", "unknown"]


class PropertyVerdict(NamedTuple):
    """What the search found out about one property.

    Of a `reachable` property, "holds" says that it was reached. `depth` counts the steps of the trace, or where there
    is no trace the transitions to the hit. `alone`: a single process reaches it while no other moves; None: not known.
    """

    name: str
    seed_name: str
    kind: str
    verdict: Word
    counts: bool
    depth: int | None = None
    alone: bool | None = None
    trace: Trace | None = None
    reason: str = ""  # why it is unknown

    def to_json(self) -> dict[str, Any]:
        """The property as `lakeproof check --json` prints it."""
        return {
            "name": self.name,
            "seed_name": self.seed_name,
            "kind": self.kind,
            "verdict": self.verdict,
            "counts": self.counts,
            "depth": self.depth,
            "alone": self.alone,
            "trace": None if self.trace is None else self.trace.to_json(),
            "loop_start": None if self.trace is None else self.trace.loop_start,
            "reason": self.reason,
        }


class StepCount(NamedTuple):
    """How often a step was open to a process in an explored state, and how many transitions took it."""

    enabled: int
    taken: int


@dataclass(frozen=True)
class Statistics:
    """How often what happened in the explored space."""

    steps: Mapping[str, StepCount]
    marks: Mapping[str, int]
    terminals: int

    @property
    def never_taken(self) -> tuple[str, ...]:
        """Steps that no explored transition took."""
        return tuple(name for name, count in self.steps.items() if not count.taken)

    def to_json(self) -> dict[str, Any]:
        """The counts as `lakeproof check --json` prints them."""
        return {
            "steps": {name: count._asdict() for name, count in self.steps.items()},
            "never_taken": list(self.never_taken),
            "marks": dict(self.marks),
            "terminals": self.terminals,
        }


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer of `check`. `more`: what its caller found out beside the search, as JSON prints it."""

    model: str
    parameters: Mapping[str, Any]
    verdict: Word
    states: int
    transitions: int
    depth: int
    seconds: float
    compile_seconds: float
    peak_memory_mb: float
    exhausted: bool
    cut_by: str | None
    properties: tuple[PropertyVerdict, ...]
    statistics: Statistics
    seed: int | None = None
    engine: str = "readable"
    reductions: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    seconds_in: Mapping[str, float] = field(default_factory=dict)  # of the fast engine: expand, dedup, model
    more: Mapping[str, Any] = field(default_factory=dict)
    bounds: SearchBounds = NOT_SAID

    def __repr__(self) -> str:
        first = self.first_violation
        depth = f" after {first.depth} steps" if first is not None and first.depth is not None else ""
        why = f": {first.name}{depth}" if first is not None and self.verdict == "violated" else ""
        about = self.parameters.get("jobs", self.model)
        return f"<Verdict {about}: {self.verdict}{why}, {self.states:,} states>"

    @property
    def unreached(self) -> tuple[str, ...]:
        """`reachable` properties that the search did not reach."""
        return tuple(p.name for p in self.properties if p.kind == "reachable" and p.verdict != "holds")

    @property
    def first_violation(self) -> PropertyVerdict | None:
        """The first violated property, one that counts before one that does not."""
        violated = [p for p in self.properties if p.verdict == "violated" and p.kind != "reachable"]
        return next(iter(sorted(violated, key=lambda p: not p.counts)), None)

    @property
    def trace(self) -> Trace | None:
        """The trace of the first violation."""
        return None if self.first_violation is None else self.first_violation.trace

    def property(self, name: str) -> PropertyVerdict:
        """What was found out about the property of this name."""
        return next(p for p in self.properties if p.name == name)

    def to_json(self) -> dict[str, Any]:
        """The verdict as `lakeproof check --json` prints it."""
        return {
            "model": self.model,
            "parameters": dict(self.parameters),
            "verdict": self.verdict,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "seconds": round(self.seconds, 4),
            "compile_seconds": round(self.compile_seconds, 4),
            "peak_memory_mb": round(self.peak_memory_mb, 1),
            "exhausted": self.exhausted,
            "cut_by": self.cut_by,
            "properties": [p.to_json() for p in self.properties],
            "unreached": list(self.unreached),
            "trace": [] if self.trace is None else self.trace.to_json(),
            "statistics": self.statistics.to_json(),
            "engine": self.engine,
            "reductions": list(self.reductions),
            "notes": list(self.notes),
            "seconds_in": {name: round(seconds, 4) for name, seconds in self.seconds_in.items()},
            "seed": self.seed,
            "bounds": self.bounds.to_json(),
            **self.more,
        }
