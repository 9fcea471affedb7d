"""Runs a scenario and says where it differs from its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from lakeproof.commit import Policy
from lakeproof.errors import InvalidInput
from lakeproof.format import Row
from lakeproof.scenarios.text import Line, Rows, Scenario, ScenarioStep, Seen, StepAnswer


class Runner(Protocol):
    """Whatever a scenario's steps can be put before."""

    def step(self, step: ScenarioStep) -> StepAnswer | None:
        """Take one step and answer."""

    def rows(self) -> tuple[Row, ...]:
        """What a reader sees now."""

    def seen(self, what: str) -> tuple[str, ...] | None:
        """The names of the live `files`, or the operations of the `snapshots`; `None`: this runner cannot tell."""


MakeRunner = Callable[[Scenario, Policy], Runner]


class Difference(NamedTuple):
    """A line whose answer was another one."""

    policy: str
    line: int
    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.policy}: {self.what} should be '{self.expected}', is '{self.got}'"


def expected_under(scenario: Scenario, policy: str) -> tuple[Line, ...]:
    """The scenario's lines as they must go under this policy: a `differs` line replaces the last one like it."""
    lines = list(scenario.steps)
    for name, changed in scenario.differs:
        if name != policy:
            continue
        for change in changed:
            at = [i for i, line in enumerate(lines) if _same(line, change)]
            if not at:
                raise InvalidInput(
                    "A `differs` line changes a line that is not there", place=f"{scenario.name}:{change.line}"
                )
            old = lines[at[-1]]
            lines[at[-1]] = change._replace(line=old.line)
    return tuple(lines)


def _same(line: Line, change: Line) -> bool:
    if isinstance(line, ScenarioStep) and isinstance(change, ScenarioStep):
        return (line.actor, line.verb) == (change.actor, change.verb)
    if isinstance(line, Seen) and isinstance(change, Seen):
        return line.what == change.what
    return isinstance(line, Rows) and isinstance(change, Rows)


def policies_of(scenario: Scenario) -> tuple[str, ...]:
    """Every policy that the scenario speaks of."""
    return tuple(dict.fromkeys((*scenario.policies, *(name for name, _ in scenario.differs))))


def find_differences(scenario: Scenario, policy: Policy, make: MakeRunner) -> tuple[Difference, ...]:
    """Where a run under this policy differs from the text."""
    runner = make(scenario, policy)
    lines = expected_under(scenario, policy.name)
    return tuple(found for line in lines if (found := difference(line, runner, policy.name)) is not None)


def difference(line: Line, runner: Runner, policy: str) -> Difference | None:
    """Take this line; say where the runner differs from it."""
    if isinstance(line, Rows):
        rows = sorted(runner.rows(), key=repr)
        if rows != sorted(line.rows, key=repr):
            return Difference(policy, line.line, "rows", _listed(line.rows), _listed(tuple(rows)))
        return None
    if isinstance(line, Seen):
        names = runner.seen(line.what)
        ordered = line.what == "snapshots"
        if names is None or (names == line.names if ordered else sorted(names) == sorted(line.names)):
            return None
        return Difference(policy, line.line, line.what, " ".join(line.names) or "none", " ".join(names) or "none")
    outcome = runner.step(line)
    if line.expected is None or outcome == _completed(line.expected, outcome):
        return None
    return Difference(policy, line.line, f"{line.actor} {line.verb}", str(line.expected), str(outcome))


def _completed(expected: StepAnswer, got: StepAnswer | None) -> StepAnswer:
    """What the text leaves open is as it came."""
    if got is None or expected.word != got.word:
        return expected
    check = got.check if expected.check is None else expected.check
    return StepAnswer(expected.word, check, got.snapshot if expected.snapshot is None else expected.snapshot)


def _listed(rows: tuple[Row, ...]) -> str:
    return "; ".join(" ".join(map(str, row)) for row in rows) or "none"
