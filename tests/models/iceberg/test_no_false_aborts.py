"""Under `lakeproof` a commit is refused only where it would have been an anomaly; where not so, how often is pinned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, holds, searched
from iceberg_verdicts import refusals

from in_part import in_part
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy import Policy

ISOLATIONS = ("snapshot", "serializable")
CORE = ("insert", "update", "delete", "merge")
BASE = {"num_keys": 2, "initial": "one-file", "duplicates": True, "predicates": "id", "measure_aborts": True}
COW = {"update_mode": "copy-on-write", "delete_mode": "copy-on-write"}


def refused(verdict: Verdict) -> int:
    """How many refusals and re-runs the space has."""
    return sum(count for mark, count in verdict.statistics.marks.items() if mark.startswith("refused by"))


def needless(verdict: Verdict) -> int:
    """How many of them were needless: the change as it was written would have been no anomaly."""
    return verdict.statistics.marks.get("needless", 0)


def exact(policy: Policy | str = LAKEPROOF, **parameters: Any) -> bool:
    """Whether the whole space has refusals, and none is needless."""
    verdict = searched(policy, **{**BASE, "commands": ",".join(CORE), **parameters})
    assert holds(verdict)
    assert refused(verdict)
    assert (verdict.property("no_false_aborts").verdict == "holds") is not bool(needless(verdict))
    return not needless(verdict)


@pytest.mark.parametrize("isolation", in_part(ISOLATIONS, every=2))
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"max_compactions": 1}, id="a compaction"),
        pytest.param({"max_compactions": 1, "partitioned": True}, id="partitions"),
        pytest.param({"max_compactions": 1, **COW}, id="copy-on-write that records where rows went"),
    ],
)
def test_two_commands(parameters: dict[str, Any], isolation: str) -> None:
    assert exact(max_write_ops=2, isolation=isolation, **parameters)


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"max_write_ops": 3, "max_compactions": 1}, id="2 writers 3 commands 1 compaction"),
        pytest.param({"num_writers": 3, "max_write_ops": 3}, id="3 writers 3 commands"),
        pytest.param({"num_writers": 3, "max_write_ops": 4, "duplicates": False}, id="3 writers 4 commands"),
        pytest.param(
            {"max_write_ops": 3, "max_compactions": 1, "predicates": "any", "duplicates": False}, id="any predicate"
        ),
        pytest.param({"max_write_ops": 3, "max_compactions": 1, "duplicates": False, **COW}, id="copy-on-write"),
    ],
)
def test_merge_on_read_and_mapped_copy_on_write_are_exact(parameters: dict[str, Any], isolation: str) -> None:
    assert exact(isolation=isolation, **parameters)


def test_apache_iceberg_refuses_needlessly() -> None:
    verdict = searched("iceberg-spark-fixed", **{**BASE, "max_write_ops": 2, "commands": "update,delete"})
    assert verdict.property("no_false_aborts").verdict == "violated"
    assert (needless(verdict), refused(verdict)) == (20, 32)


# ---------------------------------------------------------------- where a refusal may be needless


@pytest.mark.parametrize(
    ("first", "second", "isolation", "counts"),
    [
        pytest.param("UPDATE", "UPDATE", "serializable", (0, 36), id="two UPDATEs"),
        pytest.param("DELETE", "upsert", "snapshot", (44, 44), id="the new version of the key is a row of its own"),
        pytest.param("UPDATE", "DELETE with a subquery", "serializable", (28, 76), id="the row read is still there"),
        pytest.param("UPDATE", "INSERT … SELECT", "serializable", (4, 82), id="the count is the same"),
        pytest.param("INSERT OVERWRITE", "INSERT OVERWRITE", "snapshot", (56, 56), id="two overwrites"),
    ],
)
def test_pairs_of_commands(first: str, second: str, isolation: str, counts: tuple[int, int]) -> None:
    """The whole list is in the generated page `docs/reference/iceberg-verdicts.md`."""
    found = refusals(first, second, isolation)
    assert (found.needless, found.refused) == counts


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_copy_on_write_without_a_mapping_runs_again_needlessly(isolation: str) -> None:
    """A DELETE whose file was compacted and then rewritten by another DELETE of the same row cannot know that."""
    unmapped = replace(LAKEPROOF, maps_copy_on_write=False)
    two_files = {"initial": "two-files", "max_write_ops": 2, "max_compactions": 1, "isolation": isolation, **COW}
    assert exact(LAKEPROOF, **two_files)
    assert not exact(unmapped, **two_files)
