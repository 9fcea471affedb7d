"""The prose of the project is plain English with straight quotes: patterns that a native reader stops at are not found.

Each pattern is shown to find the sentence it was made from, so that none of them is empty.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "docs", "tools", "benchmarks", "examples", "tests")
KINDS = {".py", ".md", ".txt", ".sql", ".tsv", ".toml", ".html", ".js", ".css"}
UNITS = "row|file|partition|task|statement|finding|match|commit|column|table|bucket|cell|command|concern|property|job"

PATTERNS = {
    "quotes that are not straight": ("[«»„“”‚‘’]", "The answer «no» must be certain"),
    "belongs into": (r"\bbelongs? into\b", "it belongs into the tests"),
    "is dear": (r"\b(is|are|was|were|too) dear\b", "to sort text is dear"),
    "one less, behind its noun": (r"\b(one|two|three) [a-z]+ less\b", "One retry less"),
    "left away": (r"\b(left|leave|leaves|leaving) away\b", "everything else left away"),
    "is no, of a thing": (
        r"(?<!there )\b(is|are|was|were) no (a|an|aggregate|accident|column|conflicts?|date|dbt|engines?|error|function"
        r"|garbage|integers?|json|list|maximum|minimum|news|number|refusal|scenarios?|second|switch|target)\b(?! in\b)",
        "Two other families are no conflicts",
    ),
    "one of these a that": (
        rf"\b(one|a|two|an) (?!(of|in|without|is)\b)[a-z]+ an? ({UNITS})\b(?!['s])",
        "one file a partition",
    ),
    "an own": (r"\b(?<!['`])(an own (?!value)|the own (?!values?\b|ones\b))", "the own commit"),
    "otherwise than": (r"\botherwise than\b", "goes otherwise than its text says"),
    "as those see it who": (r"\bas those see it\b", "One commit, as those see it who did not see it coming"),
    "put before a policy": (
        r"\bputs? (\w+ ){0,3}before (a|any|two|the|another) (policy|policies|judge|program)",
        "Then two commits are put before two policies",
    ),
    "stands against": (r"\bstands? against\b", "Nothing stands against it."),
    "which is no more": (r"\b(which|that) is no more\b(?! than)", "computed from a table which is no more"),
    "and so is its negation not": (r"\bso (is|are|does|do) (its|their) [a-z]+ not\b", "and so is its negation not"),
}


@cache
def texts() -> dict[Path, str]:
    """Every file of the project that holds prose, but this one."""
    found = list(ROOT.glob("*.md"))
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and path.is_file()]
    return {path: path.read_text(encoding="utf-8") for path in sorted(found) if path != Path(__file__).resolve()}


def found_in(pattern: str, text: str) -> list[tuple[int, str]]:
    """The lines in which a pattern is found, with their numbers."""
    asked = re.compile(pattern, re.IGNORECASE)
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if asked.search(line)]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_native_reader_does_not_stop(name: str) -> None:
    pattern, planted = PATTERNS[name]
    assert found_in(pattern, planted) == [(1, planted)]
    read = texts()
    assert len(read) > 500
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path, text in read.items()
        for number, line in found_in(pattern, text)
    ]
    assert found == []
