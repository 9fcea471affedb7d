"""The project's own tools say what is wrong in words."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from collections import namedtuple
from pathlib import Path
from types import ModuleType

import pytest

import lakeproof

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def tool(name: str) -> ModuleType:
    """A tool as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A tool run as make runs it."""
    command = [sys.executable, str(TOOLS / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_version_of_java_is_read(said: str, version: int | None) -> None:
    assert tool("install").major_version(said) == version


def test_java_is_looked_for_in_java_home_and_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home, version in (("old", "1.8.0"), ("new", "21.0.1")):
        java = tmp_path / home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    install = tool("install")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert install.java_version() == 8
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    assert install.java_version() == 21
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert install.java_version() is None


def test_an_old_python_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    version = namedtuple("version", "major minor micro")
    monkeypatch.setattr(sys, "version_info", version(3, 10, 2))
    assert tool("install").main([".venv"]) == 2
    assert capsys.readouterr().err == (
        "Lakeproof needs Python 3.11 or newer; this is 3.10.\n  hint  make install PYTHON=python3.11\n"
    )


def test_bad_arguments_are_named() -> None:
    install, check, docs = ran("install"), ran("check", "lints"), ran("docs", "--chek")
    assert (install.returncode, install.stderr.splitlines()[0]) == (2, "Name the folder of the virtual environment.")
    assert (check.returncode, check.stderr) == (2, "'lints' is not a group of checks\n  hint  use lint or types\n")
    assert (docs.returncode, docs.stdout) == (2, "")


def test_a_check_prints_one_line_and_what_the_tool_said_only_when_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    check = tool("check")
    assert check.passes("json.tool", "--help")
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert not check.passes("json.tool", "no-such-file")
    first, *rest = capsys.readouterr().out.splitlines()
    assert "json.tool" in first
    assert "FAILED" in first
    assert any("no-such-file" in line for line in rest)


@pytest.mark.parametrize(("one", "other", "code"), [(0, 0, 0), (0, 1, 1), (2, 0, 2), (0, -9, -9), (-9, 0, -9)])
def test_no_half_of_the_spark_tests_fails_unseen(one: int, other: int, code: int) -> None:
    assert tool("spark_tests").worse(one, other) == code


def test_a_version_of_spark_that_cannot_be_installed_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = tool("spark_versions")
    monkeypatch.setattr(versions, "folder_of", lambda version: tmp_path / version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert versions.run_on("4.2.1", []) == 0
    said = capsys.readouterr().out
    assert said.startswith("Spark 4.2.1   SKIPPED  ")
    assert "pyspark==4.2.1" in said


def test_another_spark_is_laid_over_the_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = tool("spark_versions")
    monkeypatch.setenv("PYTHONPATH", "mine")
    folder = versions.folder_of("4.3.0")
    paths = versions.laid_over(folder)["PYTHONPATH"].split(":")
    assert (folder.name, paths[0], paths[-1]) == (".venv-spark43", str(folder), "mine")


def test_the_version_is_written_once() -> None:
    root = Path(__file__).resolve().parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "lakeproof.__version__"}}
    assert f"\n## {lakeproof.__version__} " in (root / "CHANGELOG.md").read_text()
