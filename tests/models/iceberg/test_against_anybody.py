"""Proofs without bounds: one writer against anybody, and writers that never stop.

`LAKEPROOF_PROOFS=all` runs every line of the page, and the wrong variants with one id more; otherwise what takes a
second is run, and a part of that by `make check`.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, READS, forget_everything, holds, searched, violated
from test_wrong_variants import UNSOUND, Case

from in_part import in_part, where_quick
from lakeproof.checker.search import check
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput
from lakeproof.models.catalog import iceberg_subject, with_told_traces
from lakeproof.models.iceberg import build
from lakeproof.models.questions.proofs import (
    AGAINST_ANYBODY,
    ALL,
    EXTENSIONS,
    NECESSITY,
    NOT_MISSED,
    THREE_IDS,
    Proof,
    prove,
    said_of,
)

PAGE = Path(__file__).parents[3] / "docs/explanation/what-is-proven.md"
EVERY = os.environ.get("LAKEPROOF_PROOFS") == "all"
PAIRS = int(os.environ.get("LAKEPROOF_PROOF_PAIRS", "10"))
ONE_ID: dict[str, Any] = {"others": "anybody", "predicates": "id"}


@pytest.fixture(autouse=True)
def _no_answer_outlives_its_rule() -> Iterator[None]:
    forget_everything()
    yield
    forget_everything()


# ---------------------------------------------------------------- the page


@cache
def lines_of_the_page() -> dict[str, list[str]]:
    """Each line of the tables by its command and what it is about."""
    text = PAGE.read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "`--set" in line]
    return {f"{row[0]} {row[-1]}": row for row in cells}


def is_small(proof: Proof, states: int) -> bool:
    """Whether the page says that the space has fewer states: of 700 a second is enough."""
    row = lines_of_the_page().get(f"{proof.about} `{proof.command}`")
    return row is None or int(row[1].replace(",", "")) < states


LINES = [proof for group in ALL.values() for proof in group if EVERY or is_small(proof, 700)]
"""A line that the page does not have is tried, and found missing."""


@pytest.mark.parametrize(
    "proof", where_quick(LINES, lambda proof: is_small(proof, 200)), ids=lambda proof: proof.about.replace(" ", "-")
)
def test_a_line_of_the_page_is_what_the_search_says(proof: Proof) -> None:
    _, states, depth, _, said, _ = lines_of_the_page()[f"{proof.about} `{proof.command}`"]
    found = prove(proof)
    assert (f"{found.states:,}", str(found.depth)) == (states, depth)
    assert said == said_of(found)
    assert found.exhausted
    if proof in (*AGAINST_ANYBODY, *THREE_IDS, *EXTENSIONS):
        assert said == "holds"  # and whatever should be reached was
        assert found.bounds.unbounded[:2] == ("writers", "commands")
    if proof in NECESSITY:
        assert violated(found) & {*READS, "row_ids_are_kept"}


def test_every_line_of_the_page_is_one_that_is_computed() -> None:
    computed = {f"{p.about} `{p.command}`" for group in ALL.values() for p in group}
    assert set(lines_of_the_page()) == computed


def test_every_check_is_missed_or_has_a_reason_why_not() -> None:
    asked = {check for line in LAKEPROOF.lines for part in line[2:] for check in part}
    assert asked == {proof.without for proof in NECESSITY} | set(NOT_MISSED)


def test_a_delete_of_whole_partitions_does_not_miss_what_it_asks_of_files() -> None:
    whole: dict[str, Any] = {**ONE_ID, "num_keys": 2, "partitioned": True, "commands": "insert,metadata-delete"}
    assert holds(searched(LAKEPROOF.without("whole_files_match"), **whole))


def test_rows_are_bounded_where_that_is_said() -> None:
    """A MERGE at snapshot brings an id that somebody else brought meanwhile: two rows are followed, a third is not."""
    found = searched(num_keys=1, commands="insert,merge", max_rows=1, **ONE_ID)
    assert holds(found)
    assert str(found.bounds).endswith("tables of up to 1 id and 1 row")
    assert found.states < searched(num_keys=1, commands="insert,merge", max_rows=2, **ONE_ID).states


def test_the_tries_of_a_command_do_not_grow_for_ever() -> None:
    """Answers get lost and snapshots expire: a writer that tries again and again comes back to where it was."""
    ways = {"others_may": "merge-on-read,expiry", "unknown_outcomes": True, "commands": "insert,delete"}
    found = searched(num_keys=1, max_compactions=0, **ways, **ONE_ID)
    assert holds(found)


# ---------------------------------------------------------------- what is told


def test_the_undelete_is_found_in_the_shortest_way_and_told_with_names() -> None:
    subject = iceberg_subject({"others": "anybody"}, POLICIES["iceberg-spark"])
    verdict = with_told_traces(check(subject.model), subject)
    trace = verdict.trace
    assert trace is not None
    assert [(step.actor, step.step) for step in trace.steps if step.step in ("start", "swap", "others commit")] == [
        ("others", "others commit"),
        ("writer-1", "start"),
        ("others", "others commit"),
        ("writer-1", "swap"),
    ]
    assert len(trace.steps) == 7
    assert trace.steps[4].caption == (
        "Somebody else commits: update jack red A to jack blue A (merge-on-read). A reader sees jack blue A."
    )


def test_the_verdict_says_what_was_bounded_and_what_not() -> None:
    found = searched(num_keys=1, **ONE_ID)
    assert str(found.bounds) == "for any number of writers, commands and compactions; tables of up to 1 id"
    assert found.to_json()["bounds"]["text"] == str(found.bounds)
    bounded = searched(max_write_ops=2)
    assert str(bounded.bounds) == "2 writers, up to 2 commands, no compactions, tables of up to 1 id"
    large = searched(max_write_ops=2, num_writers=3)
    assert "whether a refusal was needed (measure-aborts=true asks it)" in large.bounds.not_asked


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"others": "anybody", "num-writers": "2"}, "Against anybody one writer is watched"),
        ({"others": "anybody", "names": "by-age"}, "A run without end needs canonical names"),
        ({"max-write-ops": "unbounded", "commands": "upsert"}, "A run without end needs canonical names"),
        (
            {"others": "anybody", "others-may": "equality-deletes"},
            "Whether a delete by value reaches what a compaction",
        ),
        ({"others": "anybody", "others-may": "magic"}, "the Iceberg model has no way to commit 'magic'"),
        ({"max-write-ops": "endless"}, "max-write-ops takes a number from 0 on, not 'endless'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        build(parameters, LAKEPROOF)


# ---------------------------------------------------------------- wrong rules

NOT_THERE = {
    "carry_once": "positions are packed in the canonical form, so an old list of them is not the list that was",
    "remap_once": "the same",
    "carry_no_shift": "the same",
    "remap_no_shift": "the same",
    "carry_old_seq_and_compact_new_seq": "sequence numbers are not in the canonical form",
    "compact_new_seq": "upserts need sequence numbers",
    "compact_min_seq": "the same",
    "age_ignores_new": "the same",
    "dv_stale": "it remembers vectors by their names",
}
"""Variants that need names by age, which an endless run cannot have; the bounded search finds them."""
DROPPED = ("max_write_ops", "max_compactions", "initial", "duplicates", "num_keys")


def against_anybody(case: Case, ids: int) -> dict[str, Any]:
    """The case's own parameters, without its bounds."""
    kept = {name: value for name, value in case.parameters.items() if name not in DROPPED}
    more = {"max_compactions": "unbounded" if case.max_compactions else 0, "predicates": "id"}
    more |= BY_VALUE.get(case.wrong.__name__, {})
    return {**kept, **more, "others": "anybody", "num_keys": ids}


TELLS_IDS_APART = {"rows_skipped": "sarah is never noticed: a rule that knows her by name has no renaming"}

BY_VALUE = {"cow_eq_not_carried": {"others_may": "merge-on-read,equality-deletes", "commands": "insert,update"}}
"""Variants about deletes by value: others write them."""


def title_of(case: Case) -> str:
    """What the table of the cut-off calls the case."""
    more = "".join(f", {name.replace('_', '-')}={value}" for name, value in case.more.items())
    return f"`{case.wrong.__name__}`, {case.isolation}{more}"


CAUGHT = {
    title: cells
    for title, *cells in (line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines())
    if cells
}
"""The tables of the page, line by line: after how many steps a variant is caught, with more and more ids."""
CASES = [case for case in UNSOUND if case.wrong.__name__ not in NOT_THERE]


@pytest.mark.parametrize("case", in_part(CASES, every=4), ids=lambda case: f"{case.wrong.__name__}-{len(case.more)}")
def test_a_wrong_variant_is_caught_against_anybody_too(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut-off: what is caught with two ids (one, where a row has more values) is caught so with one more."""
    policy = case.wrong(monkeypatch) or LAKEPROOF
    ids = 1 if "col3_values" in case.more else 2
    for more in (ids, ids + 1) if EVERY else (ids,):
        forget_everything()
        reductions = ("private",) if case.wrong.__name__ in TELLS_IDS_APART else True
        found = searched(policy, first=True, reductions=reductions, **against_anybody(case, more))
        steps = min(p.depth or 0 for p in found.properties if p.name in READS & violated(found))
        assert CAUGHT[title_of(case)][more - ids] == f"{steps} steps"


# ---------------------------------------------------------------- the bounded search agrees


@pytest.mark.parametrize("seed", in_part(range(PAIRS), every=4))
def test_writers_that_never_stop_get_the_verdict_of_a_bounded_search(seed: int) -> None:
    """On one id everything that can happen happens within four commands and two compactions.

    Three and one are too few: of the first 200 pairs six hold there that go wrong without a bound.
    """
    dice = random.Random(seed)
    policy = POLICIES[dice.choice(("lakeproof", "iceberg-spark", "iceberg-spark-fixed", "pyiceberg"))]
    checks = sorted({check for line in policy.lines for part in line[2:] for check in part} - {"history_known"})
    if dice.random() < 0.6:
        policy = policy.without(dice.choice(checks))
    modes = ("merge-on-read", "copy-on-write")
    parameters: dict[str, Any] = {
        "commands": ",".join(dice.sample(("insert", "update", "delete", "merge"), 3)),
        "isolation": dice.choice(("snapshot", "serializable")),
        "update_mode": dice.choice(modes),
        "delete_mode": dice.choice(modes),
        "measure_aborts": False,
        "predicates": "id",
    }
    bounded = searched(policy, max_write_ops=4, max_compactions=2, **parameters)
    endless = searched(policy, max_write_ops="unbounded", max_compactions="unbounded", **parameters)
    assert holds(bounded) == holds(endless), (policy.name, parameters)
