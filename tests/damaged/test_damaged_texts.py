"""Broken texts end in one sentence: statements, scenarios, jobs, policies, cases, traces and manifests of dbt.

`LAKEPROOF_TEXTS` says how many statements are broken (10,000 by default), a tenth as many files.
"""

from __future__ import annotations

import os

import pytest
from broken_texts import FILES, Corpus, Reader, fallen, falls

from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.jobs.reading import read_jobs
from lakeproof.jobs.text import taken_apart

TEXTS = int(os.environ.get("LAKEPROOF_TEXTS", "10000"))
SEED = int(os.environ.get("LAKEPROOF_TEXTS_SEED", "20"))
PARTS = 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_broken_statement_ends_in_a_sentence(part: int) -> None:
    assert list(falls(("statement",), TEXTS // PARTS, SEED + part)) == []


@pytest.mark.slow
def test_a_broken_file_ends_in_a_sentence() -> None:
    assert list(falls(FILES, TEXTS // 10, SEED)) == []


def test_good_texts_are_understood() -> None:
    """What is broken was whole before: most good texts of each kind are read without an error."""
    corpus = Corpus()
    from broken_texts import READERS

    for reader in READERS:
        if reader.name in ("parse_scenario", "read_jobs", "policy_from_text", "case_from_text", "jobs_text"):
            for text in corpus.texts[reader.kind]:
                reader.read(text)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        pytest.param(KeyError("x"), "raw KeyError", id="a raw error"),
        pytest.param(InvalidInput(""), "an empty", id="nothing said"),
        pytest.param(InvalidInput("one\ntwo"), "several lines", id="two lines"),
        pytest.param(InvalidInput("x" * 5000), "5000 characters", id="a novel"),
        pytest.param(RecursionError(), "raw RecursionError", id="no end"),
    ],
)
def test_the_judge_sees(raised: Exception, told: str) -> None:
    def read(_: str) -> None:
        raise raised

    found = fallen(Reader("statement", "planted", read), "select 1")
    assert found is not None
    assert told in found.what
    assert fallen(Reader("statement", "fine", lambda _: None), "select 1") is None


@pytest.mark.parametrize("quote", ["'", '"'])
def test_what_is_quoted_of_a_text_breaks_no_line(quote: str) -> None:
    text = f"create table t (a {quote}x\ny{quote}) using iceberg;\n-- job: one\ndelete from t where a = 1;\n"
    with pytest.raises(InvalidInput, match="expected a type") as caught:
        read_jobs(taken_apart(text, name="jobs.sql"))
    assert "\n" not in caught.value.message


def test_a_sentence_is_no_fall() -> None:
    def read(_: str) -> None:
        raise LakeproofError("this is wrong")

    assert fallen(Reader("statement", "told", read), "select 1") is None
