"""Engines whose commit is one call: nobody can stop them between validation and swap, and they name no check."""

from __future__ import annotations

from abc import abstractmethod

from lakeproof.replay.scenario_runner import AgainstTables
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


class AgainstEngine(AgainstTables):
    """Another engine's writers on a table of ours; an actor with a policy of its own stays a writer of ours."""

    newest_version = 2

    engine: str

    def _step(self, step: ScenarioStep) -> StepAnswer | None:
        if step.actor in self.own or step.verb == "expire":
            return super()._step(step)
        match step.verb:
            case "scan":
                self._begin(step)
            case "crash":
                self._crash(step)
            case "write":
                pass
            case "commit" | "swap":
                return self._finish(step)
            case "validate":
                return step.expected  # part of the commit, which is the `swap`
            case _:
                self._refuse(step)
        return None

    @abstractmethod
    def _begin(self, step: ScenarioStep) -> None:
        """The actor's command, up to its commit."""

    @abstractmethod
    def _finish(self, step: ScenarioStep) -> StepAnswer:
        """The commit of what the actor began."""

    def _crash(self, step: ScenarioStep) -> None:
        self._refuse(step)

    def _refuse(self, step: ScenarioStep) -> None:
        raise DoesNotApply(f"{self.engine} does not take the step '{step.verb}'")


def refusal_of(step: ScenarioStep) -> StepAnswer:
    """A commit that was not made, in the words that the text has for it."""
    expected = step.expected
    return expected if expected is not None and expected.word in ("conflict", "rejected") else StepAnswer("conflict")
