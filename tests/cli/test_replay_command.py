"""`lakeproof replay`: what cannot be replayed is said in one sentence, with its place, before anything is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakeproof.cli.commands.replay import show, trace_at
from lakeproof.cli.main import main


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert main(["replay", *arguments, "--on", "lakeproof", "--json"]) == 2
    error: dict[str, str] = json.loads(capsys.readouterr().out)["error"]
    return error


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        pytest.param('{"#meta":', "the trace is not JSON", ", line 1, column 10", id="broken JSON"),
        pytest.param(
            "{}", "the trace lacks what lakeproof writes into an ITF document (KeyError: '#meta')", "", id="other JSON"
        ),
        pytest.param("hello", "'hello' is neither a verb nor a header", ":1", id="no scenario"),
    ],
)
def test_what_is_no_trace(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, message: str, place: str
) -> None:
    path = written(tmp_path, "trace", text)
    error = refused(capsys, path)
    assert (error["message"], error["place"]) == (message, path + place)


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "nothing.json")
    error = refused(capsys, path)
    assert error == {"message": "The trace cannot be read: No such file or directory", "place": path, "hint": ""}


def test_a_trace_of_another_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "paimon.json"
    assert main(["check", "paimon", "--set", "preset=two-writers-one-bucket", "--itf", str(path)]) == 1
    capsys.readouterr()
    error = refused(capsys, str(path))
    assert (error["message"], error["place"]) == ("Only a trace of the Iceberg model can be replayed here", str(path))
    assert error["hint"] == "`lakeproof check iceberg --itf FILE` writes one that can"


def test_an_engine_that_nobody_knows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", written(tmp_path, "trace", ""), "--on", "delta"])
    assert ended.value.code == 2
    assert "argument --on: invalid choice: 'delta'" in capsys.readouterr().err


def test_apache_iceberg_needs_a_catalog_that_both_open(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "undelete.json"
    told = ["check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark"]
    assert main([*told, "--itf", str(path)]) == 1
    capsys.readouterr()
    assert main(["replay", str(path), "--on", "iceberg-spark", "--catalog", "memory:"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: Apache Iceberg is driven on a SQLite catalog only\n  at    memory:\n")


def test_both_forms_of_a_trace_are_one_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    itf, text = tmp_path / "undelete.json", tmp_path / "undelete.txt"
    told = ["check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark"]
    assert main([*told, "--itf", str(itf), "--scenario", str(text)]) == 1
    capsys.readouterr()
    assert trace_at(itf).steps == trace_at(text).steps


def test_what_came_of_every_step_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (
        "table   merge-on-read, snapshot isolation, format v2, columns k v\npolicy  iceberg-spark\nrows    0 a\n\n"
        "w1  scan  DELETE FROM t WHERE k = 0\nw1  commit  ok\nrows  none\n"
    )
    scenario = trace_at(Path(written(tmp_path, "trace.txt", text)))
    differs = [{"line": 6, "what": "w1 commit", "expected": "ok", "got": "conflict"}]
    show({"on": "pyiceberg", "applies": True, "agrees": False, "differences": differs}, scenario, "pyiceberg")
    assert capsys.readouterr().out.splitlines() == [
        f"differs  {tmp_path}/trace.txt on pyiceberg",
        "  w1  scan      DELETE FROM t WHERE k = 0",
        "  w1  commit    conflict    ← the trace says ok",
        "  rows          none",
    ]
