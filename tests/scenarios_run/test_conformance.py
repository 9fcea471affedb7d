"""The conformance kit: right implementations pass, planted errors are found, and the judge agrees with itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lakeproof.cli.main import main
from lakeproof.commit.meaning import effect
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.conformance import Conformance, applies, beginning, conformed, outcomes
from lakeproof.scenarios.text import Scenario, parse_scenario

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "scenarios"
ALL = [parse_scenario(path.read_text(encoding="utf-8"), name=path.stem) for path in sorted(FOLDER.glob("*.txt"))]
SUITE = {scenario.name: scenario for scenario in ALL if applies(scenario)}

MANY = ["rule_09_carried_deletes_are_new"]
"""Scenarios with more commands than every order can be tried of."""


class RowsInMemory:
    """An implementation in a few lines: each actor has a copy of the rows, and its effect; `check` may refuse."""

    def __init__(self, scenario: Scenario, *, refuses: bool, merges: bool) -> None:
        self.scenario, self.refuses, self.merges = scenario, refuses, merges
        self.rows: list[Any] = [row for rows in scenario.rows for row in rows]
        self.version = 0
        self.seen: dict[Any, Any] = {}

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one request."""
        if request["do"] == "scan":
            shape, table = self.scenario.table.shape, self.scenario.table
            command = command_of(request["sql"], shape, table.dynamic_overwrite, "scan")
            self.seen[request["actor"]] = self.version, list(self.rows), command
        elif request["do"] == "commit":
            return {"answer": "ok" if self.commits(*self.seen.pop(request["actor"])) else "conflict"}
        elif request["do"] == "rows":
            return {"rows": [list(row) for row in self.rows]}
        return {}

    def commits(self, version: int, rows: list[Any], command: Any) -> bool:
        """Whether the command commits: refused if somebody was faster, done to the new rows, or over them."""
        if self.refuses and version != self.version:
            return False
        base = self.rows if self.merges else rows
        done = effect(command, base, self.scenario.table.shape.columns)
        changed = dict(done.changed)
        kept = [changed.get(index, row) for index, row in enumerate(base)]
        self.rows = [*(row for row in kept if row is not None), *done.added]
        self.version += 1
        return True


def results(**how: bool) -> dict[str, Conformance]:
    """Every scenario of the suite on such an implementation."""
    return {name: conformed(one, RowsInMemory(one, **how)) for name, one in SUITE.items()}


def test_the_suite_is_what_anybody_can_take() -> None:
    assert (len(ALL), len(SUITE)) == (204, 60)


def test_whoever_refuses_the_second_is_never_wrong() -> None:
    found = results(refuses=True, merges=False)
    assert {one.outcome for one in found.values()} == {"right", "refused"}


def test_whoever_runs_each_command_at_its_commit_is_right() -> None:
    found = results(refuses=False, merges=True)
    assert {one.outcome for one in found.values()} == {"right", "skipped"}
    assert [name for name, one in found.items() if one.outcome == "skipped"] == MANY


def test_whoever_writes_over_others_is_found() -> None:
    """Planted: the last writer wins with the rows that it read."""
    found = results(refuses=False, merges=False)
    wrong = {name for name, one in found.items() if one.outcome == "wrong rows"}
    assert len(wrong) == 29
    assert {"lakeproof_carry_over_between_two_compactions", "write_skew_insert_select_sum"} <= wrong


def test_an_implementation_that_answers_nonsense_is_broken() -> None:
    class Nonsense(RowsInMemory):
        def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"answer": "perhaps"} if request["do"] == "commit" else super().ask(request)

    scenario = SUITE["undelete"]
    found = conformed(scenario, Nonsense(scenario, refuses=True, merges=False))
    assert (found.outcome, found.reason) == ("broken", "an answer to commit is ok or conflict, not perhaps")


def test_what_a_delete_and_an_update_of_one_row_may_leave() -> None:
    scenario = SUITE["undelete"]
    shape = scenario.table.shape
    update = command_of("UPDATE t SET color = 'blue' WHERE name = 'jack'", shape, False, "")
    delete = command_of("DELETE FROM t WHERE name = 'jack'", shape, False, "")
    assert {*outcomes(scenario, [update, delete])} == {()}
    assert {*outcomes(scenario, [update])} == {(("jack", "blue", "A"),)}


def test_write_skew_is_allowed_at_snapshot_isolation_alone() -> None:
    scenario = SUITE["write_skew"]
    shape = scenario.table.shape
    one, other = (
        command_of(f"DELETE FROM t WHERE k = {k} AND EXISTS (SELECT 1 FROM t x WHERE x.k = {1 - k})", shape, False, "")
        for k in (0, 1)
    )
    assert () not in {*outcomes(scenario, [one, other])}
    text = (FOLDER / "write_skew.txt").read_text(encoding="utf-8")
    snapshot = parse_scenario(text.replace("merge-on-read, serializable", "snapshot isolation"))
    assert () in {*outcomes(snapshot, [one, other])}


def test_a_table_is_told_with_its_types() -> None:
    request = beginning("undelete", SUITE["undelete"])
    assert (request["table"], request["types"]) == ("t", ["string", "string", "string"])
    assert request["files"] == [[["jack", "red", "A"]]]
    assert beginning("write_skew", SUITE["write_skew"])["types"] == ["bigint", "bigint"]


def test_pyiceberg_from_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """The program of the page, on three scenarios: PyIceberg refuses the undelete, and two appends both commit."""
    names = ("undelete", "write_skew", "merge_inserts_one_key_twice")
    files = [str(FOLDER / f"{name}.txt") for name in names]
    command = f"{sys.executable} {ROOT / 'examples' / 'conformance' / 'pyiceberg_peer.py'}"
    code = main(["conformance", *files, "--against", command, "--json"])
    found = {one["scenario"]: one["outcome"] for one in json.loads(capsys.readouterr().out)}
    assert code == 0
    assert found["undelete"] == "refused"
    assert found["write_skew"] == "skipped"
    assert set(found) == set(names)


def test_a_program_that_dies_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["conformance", str(FOLDER / "undelete.txt"), "--against", f"{sys.executable} -c pass"])
    assert code == 3
    assert "gave no answer to begin" in capsys.readouterr().err
