"""CONTRIBUTING.md names files that are there, and what it asks for a new check every old one has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeproof.commit import Conflict
from lakeproof.commit.checks import ALL_CHECKS, OF_OTHERS, describe_check
from lakeproof.commit.explain import because
from lakeproof.models.catalog import CATALOG

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:src|tests|tools|docs)/[^`\s]+)`", PAGE)))


def test_the_page_names_files() -> None:
    assert len(NAMED) > 12


@pytest.mark.parametrize("path", NAMED)
def test_a_file_that_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^(make [a-z-]+)", PAGE, re.M))))
def test_a_command_of_the_page_is_a_target(target: str) -> None:
    assert re.search(rf"^{target.removeprefix('make ')}:.*## ", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("check", ALL_CHECKS)
def test_a_check_is_described_and_on_the_reference_page(check: str) -> None:
    assert describe_check(check).endswith(".")
    assert f"`{check}`" in (ROOT / "docs/reference/checks-and-policies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("check", OF_OTHERS)
def test_a_check_has_its_sentence_for_the_refused_writer(check: str) -> None:
    fate = "updated" if check == "target_rows" else ""
    said = because(Conflict(check, 7, ("f",), fate), "DELETE")
    assert said != because(Conflict("no such check", 7, ("f",)), "DELETE")


@pytest.mark.parametrize("model", CATALOG)
def test_a_model_has_its_folder_and_its_tests(model: str) -> None:
    assert (ROOT / "src/lakeproof/models" / model).is_dir()
    assert any((ROOT / "tests/models" / model).glob("test_*.py"))
