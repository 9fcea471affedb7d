"""`lakeproof check … --itf F`, then `lakeproof replay F --on …`, as a user types it, on the real engines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]


def lakeproof(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lakeproof.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shell")
    told = ("check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark", "--itf", "undelete.json")
    assert lakeproof(made, *told).returncode == 1
    return made


def replayed(folder: Path, on: str) -> tuple[int, Any]:
    done = lakeproof(folder, "replay", "undelete.json", "--on", on, "--json")
    if "cannot be fetched" in done.stdout:
        pytest.skip(json.loads(done.stdout)["error"]["message"])
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_apache_iceberg_brings_the_row_back(folder: Path) -> None:
    found = {"on": "iceberg-spark", "applies": True, "agrees": True, "differences": []}
    assert replayed(folder, "iceberg-spark") == (0, found)


def test_ours_does_not_go_along(folder: Path) -> None:
    code, found = replayed(folder, "lakeproof")
    assert code == 1
    said = [(one["what"], one["expected"], one["got"]) for one in found["differences"]]
    assert said == [("w2 validate", "ok", "conflict target_rows"), ("w2 swap", "ok", "rejected")]


def test_pyiceberg_refuses_it(folder: Path) -> None:
    code, found = replayed(folder, "pyiceberg")
    assert code == 1
    assert [(one["what"], one["expected"], one["got"]) for one in found["differences"]] == [
        ("w2 swap", "ok", "conflict")
    ]
