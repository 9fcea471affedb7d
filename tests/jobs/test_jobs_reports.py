"""The answer to a jobs file for other programs and people: JUnit, SARIF, JSON, explorer, hook and action."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from lakeproof.checker import check
from lakeproof.cli.commands.check_files import main as check_files
from lakeproof.cli.commands.check_jobs import jobs_in
from lakeproof.cli.main import main
from lakeproof.commit import POLICIES
from lakeproof.jobs.answers import first_beginning

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = ROOT / "examples" / "people.sql"
IDLE = "create table t (id int) using iceberg;\n-- job: a\ndelete from t where id = 1 and id = 2;\n"


def run(*words: str) -> int:
    return main(["check", str(PEOPLE), "--policy", "iceberg-spark", "--first", *words])


def test_junit_has_a_case_for_each_property(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert run("--junit", str(report)) == 1
    suite = xml.parse(report).getroot()
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"consistent_read", "isolation_kept"}
    assert suite.get("failures") == "2"
    story = suite.find("testcase/failure")
    assert story is not None
    assert "privacy swaps the table pointer" in (story.text or "")


def test_sarif_points_at_the_jobs_of_the_counterexample(tmp_path: Path) -> None:
    report = tmp_path / "jobs.sarif"
    assert run("--sarif", str(report)) == 1
    [one] = json.loads(report.read_text())["runs"]
    lines = [found["locations"][0]["physicalLocation"]["region"]["startLine"] for found in one["results"]]
    text = PEOPLE.read_text().splitlines()
    assert [text[line - 1] for line in lines] == ["-- job: stream", "-- job: privacy"]
    assert {found["level"] for found in one["results"]} == {"error"}


def test_json_says_what_was_explored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "violated"
    assert found["bounds"]["rows"] == 2
    assert found["cautious"] == [
        "the rows of the MERGE's source `changes AS s` are not known: any one row stands for them"
    ]


def test_an_undecided_file_is_a_warning_and_exit_three(tmp_path: Path) -> None:
    path, junit, sarif = tmp_path / "idle.sql", tmp_path / "idle.xml", tmp_path / "idle.sarif"
    path.write_text(IDLE)
    assert main(["check", str(path), "--junit", str(junit), "--sarif", str(sarif)]) == 3
    assert xml.parse(junit).getroot().get("errors") == "4"
    [result] = json.loads(sarif.read_text())["runs"][0]["results"]
    assert result["level"] == "warning"
    assert "a never commits" in result["message"]["text"]


def test_the_jobs_can_be_walked_by_hand() -> None:
    beginning = first_beginning(jobs_in(str(PEOPLE)), POLICIES["iceberg-spark"])
    assert [process.name for process in beginning.told.processes] == ["stream", "privacy", "nightly"]
    assert check(beginning.model, max_states=2000).states > 100


def test_the_hook_checks_every_file_and_the_worst_counts(tmp_path: Path) -> None:
    path = tmp_path / "idle.jobs.sql"
    path.write_text(IDLE)
    assert check_files([str(path), str(PEOPLE), "--max-seconds", "60"]) == 3
    assert "lakeproof-check-files" in (ROOT / ".pre-commit-hooks.yaml").read_text()


def test_the_action_runs_its_script(tmp_path: Path) -> None:
    given = {
        "FILES": f"{ROOT}/examples/peo*.sql",
        "POLICY": "iceberg-spark",
        "SARIF": str(tmp_path),
        "LAKEPROOF": f"{sys.executable} -m lakeproof.cli.main",
    }
    script = ["bash", str(ROOT / "tools" / "check_files.sh")]
    done = subprocess.run(script, env={**os.environ, **given}, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "people.sql.sarif").is_file()
    assert "tools/check_files.sh" in (ROOT / "action.yml").read_text()
