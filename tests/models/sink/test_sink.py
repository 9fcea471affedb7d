"""A sink that knows its offset commits each record once; with one rule broken it loses a record or commits it twice."""

from __future__ import annotations

import pytest

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.errors import InvalidInput
from lakeproof.models.sink import PRESETS, build, rules_from_text

STATES = {"lost-answers": 149, "savepoints": 582, "takeover": 27_633}
TWICE, LOST = "each_record_at_most_once", "no_record_is_left_out"


def searched(parameters: dict[str, str], rules: str = "") -> Verdict:
    """The verdict under these rules, the whole space explored."""
    return check(build(parameters, rules_from_text(rules, place="the test")))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_sink_that_knows_its_offset_commits_each_record_once(preset: str) -> None:
    found = searched({"preset": preset})
    assert (found.verdict, found.states, found.unreached) == ("holds", STATES[preset], ())


@pytest.mark.parametrize(
    ("parameters", "rules", "violated"),
    [
        ({"preset": "lost-answers"}, "looks_once = true", {TWICE}),
        ({"preset": "savepoints"}, 'knows_by = "part"', {TWICE}),
        ({"preset": "savepoints"}, 'knows_by = "checkpoint"\nnew_job_after_restart = false', {TWICE, LOST}),
        ({"takeovers": "1"}, "looks_once = true", {TWICE}),
        ({"rewinds": "1"}, "notes_position = true\nsaves_after_commit = true", {TWICE}),
        ({"restarts": "1", "commits-per-checkpoint": "several"}, 'knows_by = "checkpoint"', {LOST}),
        ({"restarts": "1"}, 'knows_by = "checkpoint"\nlooks_under_own_job = true', {TWICE}),
    ],
)
def test_a_broken_rule_is_found(parameters: dict[str, str], rules: str, violated: set[str]) -> None:
    found = searched(parameters, rules)
    assert {p.name for p in found.properties if p.counts and p.verdict == "violated"} & {TWICE, LOST} == violated


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('knows_by = "luck"', "is not the name of"),
        ("looks_once = 1", "true or false"),
        ("look_once = true", "did you mean looks_once"),
        ("=", "not TOML"),
    ],
)
def test_mistakes_in_the_rules_are_sentences(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        rules_from_text(text, place="mine.toml")
