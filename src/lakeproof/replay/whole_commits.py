"""Engines whose commit is one call: nobody can stop them between validation and swap, and they name no check."""

from __future__ import annotations

from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.text import Scenario, ScenarioStep, StepAnswer


def require_whole_commits(scenario: Scenario, engine: str) -> None:
    """Every `validate` of the engine's own actors is followed at once by its `swap`, or the scenario does not apply."""
    own = {actor for actor, _ in scenario.policy_of}
    steps = [step for step in scenario.steps if isinstance(step, ScenarioStep)]
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.verb != "validate" or step.actor in own:
            continue
        if after is None or (after.actor, after.verb) != (step.actor, "swap"):
            raise DoesNotApply(f"Nobody can stop {engine} between its validation and its swap")


def refused(step: ScenarioStep) -> StepAnswer:
    """A commit that was not made, in the words that the text has for it."""
    expected = step.expected
    return expected if expected is not None and expected.word in ("conflict", "rejected") else StepAnswer("conflict")
