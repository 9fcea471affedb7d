"""Every scenario that speaks of commands, on a real table: the same outcomes and rows as the checks and the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeproof.commit.policy_text import named_policy
from lakeproof.replay.scenario_runner import AgainstTables, require_applicable
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.run import find_differences, policies_of
from lakeproof.scenarios.text import Scenario, parse_scenario
from lakeproof.spark.lake import Lake

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"


def applicable() -> list[Scenario]:
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        scenario = parse_scenario(path.read_text(encoding="utf-8"), name=path.stem)
        try:
            require_applicable(scenario)
        except DoesNotApply:
            continue
        found.append(scenario)
    return found


def runs() -> list[object]:
    """The runtime's own policy always; it under the policies of others only in the full check."""
    return [
        pytest.param(
            scenario, policy, id=f"{scenario.name} {policy}", marks=[] if policy == "lakeproof" else [pytest.mark.peer]
        )
        for scenario in applicable()
        for policy in policies_of(scenario)
    ]


def test_most_scenarios_apply_to_real_tables() -> None:
    assert len(applicable()) >= 90


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "policy"), runs())
def test_a_scenario_goes_on_real_tables_as_its_text_says(lake: Lake, scenario: Scenario, policy: str) -> None:
    made: list[AgainstTables] = []

    def make(*arguments: object) -> AgainstTables:
        made.append(AgainstTables(lake, *arguments))  # type: ignore[arg-type]
        return made[0]

    try:
        found = [str(one) for one in find_differences(scenario, named_policy(policy), make)]
    finally:
        for runner in made:
            runner.close()
    assert found == []
