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
SAMPLE = 12
FOLLOWED = "the compaction or the update of another engine keeps row ids, so nothing is lost and nothing runs again"
BETTER_ON_VERSION_THREE = {
    "lakeproof_beside_a_foreign_delete": (
        "the other engine asks whether somebody added a vector, and its own undelete is refused",
        ["line 10, lakeproof: w2 commit should be 'ok', is 'conflict added_vectors snapshot 2'"],
    ),
    "lakeproof_lost_read_rows": (
        FOLLOWED,
        [
            "line 10, lakeproof: w1 validate should be 'conflict rows_read snapshot 2', is 'ok'",
            "line 11, lakeproof: w1 commit should be 'ok re-run', is 'ok'",
        ],
    ),
    "lakeproof_lost_rows_of_a_foreign_copy_on_write": (
        FOLLOWED,
        ["line 10, lakeproof: w1 commit should be 'ok re-run', is 'ok'"],
    ),
    "lakeproof_lost_rows_run_again": (
        FOLLOWED,
        [
            "line 12, lakeproof: w1 validate should be 'conflict target_rows snapshot 2', is 'ok'",
            "line 13, lakeproof: w1 commit should be 'ok re-run', is 'ok'",
            "line 14, lakeproof: w2 commit should be 'ok re-run', is 'ok'",
        ],
    ),
}
"""Where a table of version 3 answers differently from the text, which is of version 2: why, and what is seen."""


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


def as_version_three() -> list[object]:
    """The scenarios of version 2 on tables of version 3; all of them in the full check, a sample always."""
    older = [scenario for scenario in applicable() if scenario.table.shape.format_version < 3]
    newer = [
        one._replace(table=one.table._replace(shape=one.table.shape._replace(format_version=3)))
        for one in older
        if "lakeproof" in policies_of(one)
    ]
    return [
        pytest.param(
            one,
            id=one.name,
            marks=[] if at % SAMPLE == 0 or one.name in BETTER_ON_VERSION_THREE else [pytest.mark.peer],
        )
        for at, one in enumerate(newer)
    ]


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
    assert differences(lake, scenario, policy) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("scenario", as_version_three())
def test_a_scenario_goes_on_tables_of_version_three_as_its_text_says(lake: Lake, scenario: Scenario) -> None:
    _, seen = BETTER_ON_VERSION_THREE.get(scenario.name, ("", []))
    assert differences(lake, scenario, "lakeproof") == seen


def differences(lake: Lake, scenario: Scenario, policy: str) -> list[str]:
    """Where a run on a real table, which is dropped afterwards, differs from the text."""
    made: list[AgainstTables] = []

    def make(*arguments: object) -> AgainstTables:
        made.append(AgainstTables(lake, *arguments))  # type: ignore[arg-type]
        return made[0]

    try:
        return [str(one) for one in find_differences(scenario, named_policy(policy), make)]
    finally:
        for runner in made:
            runner.close()
