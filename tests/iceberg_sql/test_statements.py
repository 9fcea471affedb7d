"""Iceberg's own SQL: what its documentation shows, answered as Apache Iceberg 1.12 answered it when it was recorded.

`make test` asks a sample in all chapters; `LAKEPROOF_STATEMENTS=all` (`make check-all`) asks every case. A case that is
not equal has its reason in `differences.txt`, and none ends in an error that is not one sentence.
"""

from __future__ import annotations

import os

import pytest
from comparing import judge, read_expected, read_reasons
from standing import answers_of, cases, judged, recordable, unexplained

WHOLE = os.environ.get("LAKEPROOF_STATEMENTS") == "all"
LEAST_EQUAL = 416
ASKED_FOR = "default.af: file_twice"
"""Case 366 adds a file a second time, with `check_duplicate_files => false`: the audit is right to tell it."""


def test_every_case_has_a_recorded_answer_and_every_reason_a_case() -> None:
    numbers = {case.number for _, case in cases()}
    assert numbers == set(range(1, 439)) == {int(number) for number in read_expected()}
    assert set(read_reasons()) <= numbers


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ({"columns": [["id", "int"]], "rows": [[1], [2]]}, "equal"),
        ({"columns": [["id", "int"]], "rows": [[2], [1]]}, "equal"),
        ({"columns": [["id", "bigint"]], "rows": [[1], [2]]}, "differs"),
        ({"columns": [["id", "int"]], "rows": [[1]]}, "differs"),
        ({"columns": [["id", "int"]], "rows": [[1], [2], [2]]}, "differs"),
        ({"error": "InvalidInput: no", "kind": "refused"}, "refused"),
        ({"error": "Py4JJavaError: no", "kind": "raw"}, "raw"),
    ],
)
def test_an_answer_that_is_not_the_recorded_one_is_told(ours: dict[str, object], verdict: str) -> None:
    assert judge({"columns": [["id", "int"]], "rows": [[1], [2]]}, ours).verdict == verdict


@pytest.mark.spark
def test_statements_are_answered_as_by_apache_iceberg() -> None:
    answers = answers_of("lakeproof", () if WHOLE else ("--sample",))
    assert [text for text in answers if text.startswith("set-up ")] == []
    found_wrong = [each for text, one in answers.items() if text.startswith("audit ") for each in one["found"]]
    assert [each for each in found_wrong if not each.startswith(ASKED_FOR)] == []
    found = judged(answers, sample=not WHOLE)
    assert len(found) >= (438 if WHOLE else 250)
    assert unexplained(found) == {}
    if WHOLE:
        assert sum(one.verdict == "equal" for one in found.values()) >= LEAST_EQUAL


@pytest.mark.peer
@pytest.mark.slow
def test_apache_iceberg_still_answers_what_was_recorded() -> None:
    recorded, expected = recordable(answers_of("apache-iceberg")), read_expected()
    assert {number: recorded[number] for number in recorded if recorded[number] != expected[number]} == {}
