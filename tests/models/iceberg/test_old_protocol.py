"""The commit protocol as it was: each schedule that broke a table is found by the search, with a shortest trace.

A variant puts an old rule back into `commit/` (or into what the model's table shows); the shipped protocol holds at the
same bounds. The names A1 to A5 are those of the schedules in `docs/explanation/iceberg-model.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest
from iceberg_runs import forget_everything, holds, searched, violated

from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit import CheckList, attempt, driver
from lakeproof.commit.attempt import NEXT, SETTLED, Attempt, Happened, Phase
from lakeproof.models.iceberg import calls, observing

Break = Callable[[pytest.MonkeyPatch], None]
INSERTS = {"commands": "insert", "num_keys": 2, "unknown_outcomes": True, "measure_aborts": False}
MERGES = {"commands": "insert,merge", "isolation": "serializable", "num_keys": 2, "duplicates": True, "max_expiries": 1}
EXPIRY = {**INSERTS, "num_keys": 3, "max_expiries": 1}


@pytest.fixture(autouse=True)
def _no_answer_outlives_its_rule() -> Iterator[None]:
    forget_everything()
    yield
    forget_everything()


def kept_by_the_last_try(patch: pytest.MonkeyPatch) -> None:
    """A1: what is kept is judged by the last try, not by what the committed snapshot names."""
    right = driver.removable

    def removable(ended: Attempt, written: Any, named: Any) -> tuple[str, ...]:
        return right(ended, written, written[-1:] if named else ())

    patch.setattr(driver, "removable", removable)


def a_lost_swap_settles(patch: pytest.MonkeyPatch) -> None:
    """A2: whoever lost a swap forgets that an earlier request is unanswered."""
    patch.setattr(attempt, "SETTLED", SETTLED | {Happened.LOST_SWAP})


def a_failure_is_the_end(patch: pytest.MonkeyPatch) -> None:
    """A3: a table that cannot be loaded is an error of the call, and the files are removed."""
    patch.setitem(NEXT, (Phase.LOOK, Happened.FAILED), Phase.ABORTED)
    patch.setattr(Attempt, "_while_unanswered", lambda self: self)
    patch.setattr(Attempt, "may_clean_up", property(lambda self: self.ended and self.phase is not Phase.UNKNOWN))


def a_hole_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A5: a line that an expiry has cut looks like one that begins there, so the request was never committed."""
    right = attempt.what_became

    def what_became(**known: Any) -> Happened:
        found = right(**known)
        return Happened.CERTAINLY_NOT if found is Happened.CANNOT_TELL else found

    patch.setattr(calls, "what_became", what_became)


def a_cut_window_is_whole(patch: pytest.MonkeyPatch) -> None:
    """A5: after an expiry, the window of a command that scanned an empty table looks whole."""
    right = observing.with_hole

    def with_hole(found: Any, checks: CheckList, missing: int) -> Any:
        return right(found, checks._replace(asks_history=False), missing)

    patch.setattr(observing, "with_hole", with_hole)
    patch.setattr(observing, "_is_settled", lambda *_: False)


class Case(NamedTuple):
    """A variant, its bounds, the property that it violates, and how many steps the shortest trace has."""

    wrong: Break
    parameters: Mapping[str, Any]
    violates: str
    steps: int
    among: frozenset[str]


CASES = [
    pytest.param(Case(kept_by_the_last_try, INSERTS, "consistent_read", 7, frozenset({"look", "arrive"})), id="A1"),
    pytest.param(
        Case(a_lost_swap_settles, EXPIRY, "isolation_kept", 13, frozenset({"look", "arrive", "expire"})),
        id="A2",
        marks=pytest.mark.slow,
    ),
    pytest.param(Case(a_failure_is_the_end, INSERTS, "consistent_read", 5, frozenset({"fail"})), id="A3"),
    pytest.param(
        Case(a_lost_swap_settles, INSERTS, "consistent_read", 7, frozenset({"look", "arrive", "fail"})), id="A4"
    ),
    pytest.param(
        Case(a_hole_is_overlooked, EXPIRY, "isolation_kept", 11, frozenset({"look", "expire"})),
        id="A5, of a request",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        Case(a_cut_window_is_whole, MERGES, "isolation_kept", 14, frozenset({"expire"})),
        id="A5, of a window",
        marks=pytest.mark.slow,
    ),
]


@cache
def _right(parameters: tuple[tuple[str, Any], ...]) -> Verdict:
    return searched(**dict(parameters))


@pytest.mark.parametrize("case", CASES)
def test_the_search_finds_what_broke_a_table(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds(_right(tuple(case.parameters.items())))
    forget_everything()
    case.wrong(monkeypatch)
    found = searched(**case.parameters)
    assert case.violates in violated(found)
    (trace,) = (one.trace for one in found.properties if one.name == case.violates)
    assert trace is not None
    assert len(trace.steps) == case.steps
    assert case.among <= {step.step for step in trace.steps}
