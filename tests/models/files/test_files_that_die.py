"""Files are removed only where nobody needs them: our protocol in every preset, and each old rule put back."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.attempt import ENDED, Attempt, Happened, Phase, certainly_in_vain, ours, removable
from lakeproof.commit.upkeep import old_versions, only_theirs, refs_stand, unneeded
from lakeproof.errors import InvalidInput
from lakeproof.models.files import PRESETS, build
from lakeproof.models.files.rules_text import rules_from_text

WHOLE = "committed_snapshots_are_whole"
STATES = {
    "cleanup": 5_536,
    "expire-beside-writers": 36_751,
    "orphans-beside-writers": 146_111,
    "orphans-in-a-shared-folder": 3_483,
    "reader-beside-expiry": 90_029,
    "create-and-drop": 69,
    "alter-beside-writers": 873,
}


def searched(parameters: dict[str, str], rules: str = "", *, first: bool = False) -> Verdict:
    """The verdict under rules that are changed by this text."""
    return check(build(parameters, rules_from_text(rules, place="the test")), first=first)


def violated(verdict: Verdict) -> set[str]:
    """The properties that count and do not hold."""
    return {p.name for p in verdict.properties if p.counts and p.verdict == "violated"}


@pytest.mark.parametrize("preset", PRESETS)
def test_our_protocol_holds(preset: str) -> None:
    found = searched({"preset": preset})
    assert (found.verdict, found.states, found.unreached) == ("holds", STATES[preset], ())


class Wrong(NamedTuple):
    """A rule as it should not be, where it is found, and what it violates first."""

    preset: str
    rules: str
    violates: str
    depth: int
    more: tuple[tuple[str, str], ...] = ()


WRONG = {
    "A1: what is kept is judged by the last try": Wrong("cleanup", 'keeps = "last-try"', WHOLE, 12),
    "A2: a lost swap settles the request before it": Wrong(
        "expire-beside-writers",
        '[[after]]\nphase = "swap"\nhears = "lost-swap"\nsettles = true',
        WHOLE,
        18,
        (("late-requests", "true"), ("tags", "0")),
    ),
    "A3: a failed look is a failed command": Wrong(
        "cleanup",
        'heeds_unanswered = false\n[[after]]\nphase = "look"\nhears = "failed"\nnext = "aborted"',
        "what_failed_is_not_there",
        7,
    ),
    "A7: an expiry asks only where main stands": Wrong(
        "expire-beside-writers", '[upkeep]\nexpiry_asserts = "head"', "tags_stay", 4
    ),
    "A9: a table is visible before its query has run": Wrong(
        "create-and-drop", '[upkeep]\ncreation = ["commit", "write"]', "acknowledged_rows_stay", 9
    ),
    "A10: the folder's other table is not looked for": Wrong(
        "orphans-in-a-shared-folder", "[upkeep]\nlooks_for_neighbours = false", WHOLE, 4
    ),
    "files go before the snapshots that name them": Wrong(
        "expire-beside-writers", '[upkeep]\nexpiry = ["load", "remove", "commit"]', WHOLE, 3
    ),
    "the metadata is read before the folder is listed": Wrong(
        "orphans-beside-writers", '[upkeep]\norphans = ["load", "list", "remove"]', WHOLE, 7
    ),
    "a missing file is passed over": Wrong(
        "reader-beside-expiry", '[upkeep]\nwhen_missing = "skip"', "scans_are_whole", 15
    ),
    "nothing is ever cleaned up": Wrong("cleanup", "removes_after = []", "only_orphans_are_left", 3),
    "a drop takes what it did not read": Wrong(
        "create-and-drop", '[upkeep]\ndrop_asserts = "nothing"', "acknowledged_rows_stay", 13
    ),
    "the columns of the scan are written again": Wrong(
        "alter-beside-writers", "schema_of_scan = true", "acknowledged_rows_stay", 11
    ),
    "row ids are those of the first try": Wrong("cleanup", "row_ids_at_first_try = true", "row_ids_are_unique", 14),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found(name: str) -> None:
    wrong = WRONG[name]
    found = searched({"preset": wrong.preset, **dict(wrong.more)}, wrong.rules, first=True)
    assert wrong.violates in violated(found)
    assert found.property(wrong.violates).depth == wrong.depth


def test_a_catalog_that_does_not_compare_loses_an_acknowledged_row() -> None:
    found = searched({"catalog": "last-writer-wins"})
    assert "acknowledged_rows_stay" in violated(found)


def test_a_writer_that_outlives_the_cut_of_orphans_loses_its_files() -> None:
    """Why `remove_orphan_files` refuses to look at files of the last day."""
    found = searched({"orphan-removals": "1", "slow-writers": "true"}, first=True)
    assert violated(found) == {WHOLE}


def test_without_rules_an_attempt_cleans_up_as_by_our_own() -> None:
    """`by=None` and the same protocol as a value agree on every end that an attempt can come to."""
    for phase in Phase:
        for unanswered in (False, True):
            attempt = Attempt(phase, unanswered=unanswered)
            assert removable(attempt, ["a"], ()) == removable(attempt, ["a"], (), ours())
            assert certainly_in_vain(attempt) == certainly_in_vain(attempt, ours())
            assert removable(attempt, ["a", "b"], ("a",)) == (("b",) if attempt.may_clean_up else ())
    for phase, happened in ours().next:
        assert Attempt(phase).after(happened) == Attempt(phase).after(happened, ours())
    assert ours().removes_after == ENDED - {Phase.UNKNOWN}
    assert Happened.LOST_SWAP not in ours().settled


def test_what_upkeep_removes() -> None:
    assert only_theirs(["b", "a", "c"], {"c"}) == ("a", "b")
    assert unneeded(["a", "b"], {"b", "late"}) == ("a",)
    assert old_versions(["v1", "v2"], {"v2", "v3"}) == ("v1",)
    assert refs_stand({"main": 1}, {"main": 1})
    assert not refs_stand({"main": 1}, {"main": 1, "new tag": 0})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kepes = 1", "did you mean keeps"),
        ('keeps = "all"', "is not the name of"),
        ('[upkeep]\nexpiry = ["lod"]', "did you mean load"),
        ('[[after]]\nphase = "swap"\nhears = "nothing"', "is not the name of"),
        ("finds_by_try = 3", "must be true or false"),
        ("=", "not TOML"),
    ],
)
def test_mistakes_in_rules_are_sentences(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        rules_from_text(text, place="mine.toml")
