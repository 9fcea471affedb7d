"""Every case of another engine is found by the search, its control holds, and the page says so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from lakeproof.checker.search import check
from lakeproof.cli.main import main
from lakeproof.errors import InvalidInput
from lakeproof.models.cases import Case, case_from_text

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from cases_page import PAGE, cases, link  # noqa: E402

CASES = {case.name: case for case in cases()}
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def test_the_list_has_at_least_24_of_34_rows() -> None:
    found = {case.row for case in CASES.values()}
    left = {int(row) for row in re.findall(r"^\| (\d+) \| .*", TEXT.split("## Found")[0], re.M)}
    assert len(found - {35}) == 31
    assert found | left == set(range(1, 36))  # 35: a bug beside the list
    assert not found & left


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_found_and_its_control_holds(name: str) -> None:
    case = CASES[name]
    found = check(case.subject().model, first=True, require=case.require)
    violated = found.property(case.violates)
    control = check(case.subject(control=True).model, require=case.require)
    assert (found.verdict, violated.verdict, control.verdict) == ("violated", "violated", "holds")
    assert control.exhausted
    line = next(line for line in TEXT.splitlines() if link(case.thread) in line and case.violates in line)
    assert f"| {violated.depth} |" in line
    assert line.endswith(f"| holds, {control.states:,} |")
    assert case.mechanism in TEXT


def test_no_case_differs_from_its_control_in_more_than_its_rules() -> None:
    """The two share their parameters, unless the parameter is the catalog's or the cleaner's own rule."""
    apart = {case.name: dict(case.control["set"]) for case in CASES.values() if "set" in case.control}
    assert {name for name, changed in apart.items() if {*changed} - {"catalog", "slow-writers"}} == set()


def test_the_command_line_runs_a_case_and_its_control(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ROOT / "examples" / "cases" / "clickhouse-112081.toml")
    assert main(["check", path]) == 1
    assert "committed_snapshots_are_whole" in capsys.readouterr().out
    assert main(["check", path, "--control"]) == 0


def _case(text: str) -> Case:
    head = 'thread = "a/b#1"\nengine = "e"\nmechanism = "m"\nviolates = "v"\n'
    return case_from_text(head + text, place="mine.toml")


@pytest.mark.parametrize(
    ("model", "name", "value", "says"),
    [
        ("files", "writers", "true", "writers takes a number from 1 on"),
        ("files", "writers", "9223372036854775808", "writers takes a number from 1 on"),
        ("files", "writers", "65", "writers takes a number up to 64"),
        ("files", "maintainers", "999999", "maintainers takes a number up to 64"),
        ("iceberg", "num-writers", "999999", "num-writers takes a number up to 64"),
    ],
)
def test_more_processes_than_anybody_explores(model: str, name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        _case(f'model = "{model}"\n[set]\n{name} = {value}').subject()


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("upkeep = 1", "upkeep must be a table"),
        ("removes = 'lists'", "removes must be a list of names"),
        ("removes_after = 1", "removes_after must be a list of names"),
        ("after = 'x'", "after must be a list of tables"),
        ("[[policy.after]]", "must say its phase"),
        ("[[policy.after]]\nphase = 'swap'", "must say its hears"),
        ("[[policy.after]]\nphase = 'validate'\nhears = 'lost-swap'", "nobody hears lost-swap in the phase validate"),
        ("[[policy.after]]\nphase = 'swap'\nhears = 'no-answer'\nsettles = 1", "settles must be true or false"),
        ("[policy.upkeep]\norphans = 'load'", "orphans must be a list of names"),
    ],
)
def test_mistakes_in_the_rules_of_a_case_are_sentences(policy: str, says: str) -> None:
    case = _case(f'model = "files"\n[policy]\n{policy}')
    with pytest.raises(InvalidInput, match=says):
        case.subject()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('model = "file"', "did you mean files"),
        ('model = "paimon"', "is not the name of"),
        ('model = "files"\ncontrols = 1', "did you mean control"),
        ("", "must say its model"),
        ("=", "not TOML"),
        ('model = ["files"]', "The model of a case is a text"),
        ('model = "files"\nset = "a"', "The set of a case is a table, not 'a'"),
        ('model = "files"\npolicy = 1', "The policy of a case is a table"),
        ('model = "files"\n[control]\nset = 2', "The set of a control is a table, not '2'"),
        ('model = "files"\nrow = true', "The row of a case is a whole number"),
        ('model = "files"\nrequire = ["a", 1]', "The require of a case is a list of names"),
    ],
)
def test_mistakes_in_a_case_are_sentences(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        _case(text)
