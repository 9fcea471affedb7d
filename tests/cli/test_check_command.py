"""`lakeproof check`, `matrix`, `necessity`: exit codes, JSON, files written, bad input in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakeproof.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_undelete_is_found_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark")
    assert code == 1
    assert (found["verdict"], found["policy"], found["exhausted"], found["cut_by"]) == (
        "violated",
        "iceberg-spark",
        True,
        None,
    )
    assert found["states"] == 280
    assert len(found["trace"]) == 14
    assert found["trace"][-1]["caption"].endswith("A reader now sees jack blue A; it should see no row.")
    assert found["trace"][-1]["actor"] != found["trace"][-3]["actor"]
    first = {p["name"]: p for p in found["properties"]}["consistent_read"]
    assert (first["verdict"], first["depth"], first["alone"], first["seed_name"]) == (
        "violated",
        14,
        False,
        "ConsistentRead",
    )


@pytest.mark.parametrize("policy", ["lakeproof", "iceberg-spark-fixed"])
def test_policies_that_close_the_hole_hold(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "check", "iceberg", "--set", "preset=undelete", "--policy", policy)
    assert code == 0
    assert found["verdict"] == "holds"
    assert found["exhausted"]


def test_a_limit_makes_the_verdict_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "check", "iceberg", "--set", "num-keys=2", "--max-states", "50")
    assert code == 3
    assert found["verdict"] == "unknown"
    assert found["cut_by"]


def test_require_makes_a_property_count(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark-fixed")
    assert said(capsys, *arguments)[0] == 0
    assert said(capsys, *arguments, "--require", "no_false_aborts")[0] == 1


def test_a_trace_becomes_a_scenario_that_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, itf, page = tmp_path / "t.txt", tmp_path / "t.json", tmp_path / "t.html"
    files = ("--scenario", str(text), "--itf", str(itf), "--report", str(page))
    assert main(["check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark", *files]) == 1
    capsys.readouterr()
    code, found = said(capsys, "scenario", str(text))
    assert code == 0
    assert (found[0]["checks"], found[0]["model"]) == ("agrees", "agrees")
    assert json.loads(itf.read_text())["vars"]
    assert "jack" in page.read_text()


def test_jobs_are_answered_with_pairs_and_proposals(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "check", str(EXAMPLES / "people.sql"), "--policy", "iceberg-spark")
    assert code == 1
    assert {"jobs": ["stream", "privacy"], "checks": ["no_new_delete_files"], "outcome": "abort"} in found["pairs"]
    assert found["proposals"][0]["change"] == "'write.delete.isolation-level' = 'serializable'"
    assert found["cautious"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        pytest.param(["iceberg", "--set", "preset=undelet"], "no preset 'undelet'", "undelete", id="unknown preset"),
        pytest.param(
            ["iceberg", "--set", "max-write-ops=many"], "takes a number", "max-write-ops=2", id="not a number"
        ),
        pytest.param(["iceberg", "--set", "num-writer=2"], "no parameter", "num-writers", id="unknown parameter"),
        pytest.param(["iceberg", "--set", "num-writers"], "NAME=VALUE", "num-writers=3", id="no value"),
        pytest.param(["iceberg", "--set", "policy-of-writer-9=lakeproof"], "no writer 9", "", id="no such writer"),
        pytest.param(["iceberg", "--policy", "lakeprof"], "lakeprof", "lakeproof", id="unknown policy"),
        pytest.param(["iceberg", "--policy", "none.toml"], "cannot be read", "", id="missing policy file"),
        pytest.param(["icebreg"], "no model 'icebreg'", "iceberg", id="unknown model"),
        pytest.param(["delta"], "no model of Delta Lake", "iceberg", id="a model that is not there yet"),
        pytest.param(["paimon", "--policy", "lakeproof"], "has no policies", "", id="a policy for Paimon"),
        pytest.param(["none.sql"], "cannot be read", "", id="missing jobs file"),
        pytest.param(
            ["iceberg", "--require", "consistent_reed"], "consistent_reed", "consistent_read", id="no property"
        ),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = said(capsys, "check", *arguments)
    assert code == 2
    assert message in found["error"]["message"]
    assert hint in found["error"]["hint"]


def test_a_policy_file_that_names_no_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text('base = "iceberg-spark"\n[[line]]\ncommands = ["DELETE"]\nalways = ["no_new_delete_file"]\n')
    code, found = said(capsys, "check", "iceberg", "--policy", str(policy))
    assert code == 2
    assert found["error"]["place"] == f"{policy}:4"
    assert "no_new_delete_files" in found["error"]["hint"]


class TestMatrix:
    """Every cell is a run."""

    def test_lakeproof_has_no_anomaly_and_no_abort(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, found = said(capsys, "matrix")
        assert code == 0
        assert found["policy"] == "lakeproof"
        assert {cell["outcome"] for cell in found["cells"]} == {"both_commit", "rerun"}
        assert len(found["cells"]) == 767

    def test_spark_agrees_with_what_it_really_did(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, found = said(capsys, "matrix", "--policy", "iceberg-spark")
        assert code == 1
        cells = {(c["first"], c["second"], c["mode"], c["isolation"], c["rows"]): c for c in found["cells"]}

        def at(first: str, second: str, mode: str, isolation: str, rows: str) -> tuple[str, str | None]:
            cell = cells[first, second, mode, isolation, rows]
            return cell["outcome"], cell["check"]

        mor, cow = "merge-on-read", "copy-on-write"
        for level in ("snapshot", "serializable"):
            assert at("UPDATE", "UPDATE", mor, level, "same_partition") == ("conflict", "no_new_delete_files")
            assert at("UPDATE", "UPDATE", mor, level, "apart") == ("both_commit", None)
            assert at("DELETE", "DELETE", mor, level, "same_file") == ("both_commit", None)
            assert at("DELETE", "DELETE", cow, level, "same_file")[0] == "conflict"
        assert at("DELETE", "compaction", mor, "snapshot", "same_file") == (
            "conflict",
            "no_new_position_deletes_for_data_files",
        )
        assert at("UPDATE", "DELETE", mor, "snapshot", "same")[0] == "anomaly"
        assert at("UPDATE", "DELETE", mor, "serializable", "same") == ("conflict", "added_data_files")
        assert at("DELETE EXISTS", "DELETE EXISTS", mor, "serializable", "apart")[0] == "anomaly"
        assert at("DELETE EXISTS", "DELETE EXISTS", cow, "serializable", "apart")[0] == "anomaly"


@pytest.mark.slow
def test_every_check_is_necessary(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, "necessity")
    assert code == 0
    without = {(one["policy"], one["check"]): one for one in found}
    assert all(one["violated"] for one in found), [key for key, one in without.items() if not one["violated"]]
    assert without["iceberg-spark-fixed", "no_new_delete_files"]["depth"] == 14
    assert without["lakeproof", "rows_read"]["violated"] == "isolation_kept"
    assert {check for policy, check in without if policy == "lakeproof"} == {
        "history_known",
        "row_ids_given",
        "target_rows",
        "replaced_files",
        "new_rows_match",
        "rows_read",
    }
