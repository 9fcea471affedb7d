"""Checking jobs needs neither Spark nor PyIceberg nor Arrow: not even to be installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pyspark", "py4j", "pyiceberg", "pyarrow", "polars", "psycopg", "prompt_toolkit", "sqlalchemy")
BLOCKED = """
import importlib.abc, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed", name=name)

sys.meta_path.insert(0, Block())
from lakeproof.cli.main import main
code = main({arguments!r})
assert not set(sys.modules) & set({heavy!r})
sys.exit(code)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = BLOCKED.format(heavy=HEAVY, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(("check", "examples/people.sql", "--policy", "iceberg-spark", "--first"), 1, id="a jobs file"),
        pytest.param(("check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark"), 1, id="a model"),
        pytest.param(("scenario", "tests/scenarios/undelete.txt"), 0, id="a scenario"),
    ],
)
def test_it_runs_where_nothing_of_spark_is_installed(arguments: tuple[str, ...], code: int) -> None:
    placed = [str(ROOT / word) if (ROOT / word).is_file() else word for word in arguments]
    done = run(*placed, "--json")
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)


def test_what_needs_spark_says_which_extra_is_missing() -> None:
    done = run("sql", "-e", "select 1")
    assert done.returncode == 2
    assert "lakeproof[spark]" in done.stderr
    assert "Traceback" not in done.stderr
