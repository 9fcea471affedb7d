"""Every scenario file agrees with its text under every policy that it speaks of, and the corpus is complete."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from scenario_corpus import FILES, FOLDER, NAMES, found, scenario

from lakeproof.cli.main import main
from lakeproof.commit import POLICIES
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.scenarios.run import policies_of
from lakeproof.scenarios.text import ScenarioStep, StepAnswer

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ANSWERED = ("validate", "swap", "swap-unanswered", "swap-delayed", "arrives", "commit")


@pytest.mark.parametrize("name", NAMES)
def test_scenario(name: str) -> None:
    assert found(name) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_says_what_it_is_about_and_what_every_step_answers(name: str) -> None:
    one = scenario(name)
    assert one.title.endswith(".")
    steps = [line for line in one.steps if isinstance(line, ScenarioStep) and line.verb in ANSWERED]
    assert steps
    assert [step.line for step in steps if step.expected is None] == []
    assert [step.line for step in steps if step.expected == StepAnswer("conflict")] == []  # it names its check


def test_every_test_of_iceberg_is_a_scenario_or_listed_with_the_reason() -> None:
    path = Path(__file__).parent / "iceberg_core_tests.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        tests = {f"{row['suite']}.{row['test']}" for row in csv.DictReader(lines)}
    assert len(tests) == 58
    listed = dict(re.findall(r"^\| `(Test\w+\.\w+)` \| (.+) \|$", README, re.MULTILINE))
    scenarios = {test for name in NAMES for test in re.findall(r"Test\w+\.\w+", scenario(name).source)}
    assert tests - scenarios == set(listed)


def test_every_figure_is_a_scenario() -> None:
    figures = {
        (seed, int(number))
        for name in NAMES
        for seed, number in re.findall(r"seed (\d+), figure (\d+)", scenario(name).source)
    }
    assert figures == {("004", number) for number in range(1, 13)} | {("001", 1), ("001", 2)}


def test_every_rule_that_can_be_got_wrong_is_a_scenario_under_lakeproof() -> None:
    rules = {int(found[1]) for name in NAMES if (found := re.match(r"rule_(\d+)_", name))}
    assert rules == set(range(1, 18))
    assert [name for name in NAMES if name.startswith("rule_") and "lakeproof" not in policies_of(scenario(name))] == []


@pytest.mark.parametrize(
    "name", ["undelete", "seed_001_undelete_serializable", "write_skew", "write_skew_insert_select_sum", "lost_delete"]
)
def test_the_anomalies_are_told_under_every_policy(name: str) -> None:
    assert set(policies_of(scenario(name))) == set(POLICIES)


def test_every_check_says_no_somewhere() -> None:
    lines = [line for name in NAMES for line in scenario(name).steps]
    lines += [line for name in NAMES for _, changed in scenario(name).differs for line in changed]
    refused = {line.expected.check for line in lines if isinstance(line, ScenarioStep) and line.expected}
    assert refused - {None} == set(ALL_CHECKS)


def test_the_command_runs_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "--json", *map(str, FILES)]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["file"] for result in results] == [str(path) for path in FILES]
    assert {(result["checks"], result["agree"]) for result in results} == {("agrees", True)}
    assert {frozenset(result) for result in results} == {frozenset({"file", "checks", "model", "real", "agree"})}


def test_the_command_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.txt"
    text = (FOLDER / "undelete.txt").read_text(encoding="utf-8")
    path.write_text(text.replace("conflict no_new_delete_files snapshot 2", "ok"), encoding="utf-8")
    assert main(["scenario", str(path), str(FOLDER / "undelete.txt")]) == 1
    said = capsys.readouterr().out
    assert "differs  wrong" in said
    assert "w2 commit should be 'ok', is 'conflict no_new_delete_files snapshot 2'" in said
    assert "agrees   undelete" in said
    assert "1 of 2 scenarios agree with their text" in said
