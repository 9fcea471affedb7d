"""`lakeproof doctor` names what is missing with the command that brings it, and exits as its page says."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from lakeproof.cli.commands import doctor
from lakeproof.cli.main import main

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]


def said(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    """The exit code, and how each finding is mended."""
    code = main(["doctor", "--json"])
    return code, {one["what"]: one["mend"] for one in json.loads(capsys.readouterr().out)["findings"]}


def test_all_that_is_needed_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys)[0] == 0


@pytest.mark.parametrize(
    ("name", "mend"),
    [("polars", "pip install 'lakeproof[spark]'"), ("numba", "pip install numba")],
    ids=["of an extra", "of the package itself"],
)
def test_a_missing_package_is_named_with_what_brings_it(
    name: str, mend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = metadata.version

    def version(package: str) -> str:
        if package == name:
            raise metadata.PackageNotFoundError(package)
        return known(package)

    monkeypatch.setattr(metadata, "version", version)
    code, mended = said(capsys)
    assert (code, mended[name]) == (1, mend)


@pytest.mark.parametrize("name", doctor._EXTRAS)
def test_an_extra_brings_what_the_doctor_says(name: str) -> None:
    brought = PROJECT["optional-dependencies"][doctor._EXTRAS[name]]
    assert any(wanted.startswith(name) for wanted in brought)
