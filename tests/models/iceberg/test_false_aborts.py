"""Under `lakeproof` a command runs again only where committing would have been an anomaly, but for subqueries."""

from __future__ import annotations

import pytest

from lakeproof.checker.search import check
from lakeproof.checker.verdict import Verdict
from lakeproof.commit import POLICIES
from lakeproof.models.iceberg import build

BOUNDS = {"num-keys": "2", "initial": "one-file", "measure-aborts": "true", "predicates": "id"}


def checked(policy: str = "lakeproof", **parameters: str) -> Verdict:
    given = {name.replace("_", "-"): value for name, value in parameters.items()}
    return check(build(BOUNDS | given, POLICIES[policy]))


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_no_re_run_is_needless(mode: str, isolation: str) -> None:
    found = checked(
        isolation=isolation,
        update_mode=mode,
        delete_mode=mode,
        max_compactions="1",
        commands="insert,update,delete,merge",
    )
    assert found.exhausted
    assert found.property("no_false_aborts").verdict == "holds"
    assert found.statistics.marks["re-run"] > 1_000
    assert "needless" not in found.statistics.marks


def test_the_measure_sees_needless_aborts_where_there_are_some() -> None:
    found = checked("iceberg-spark-fixed", max_write_ops="2")
    assert found.property("no_false_aborts").verdict == "violated"
    assert found.statistics.marks["needless"] > 0


def test_subqueries_run_again_although_their_answer_is_the_same() -> None:
    found = checked(isolation="serializable", commands="insert,delete-exists", duplicates="true", max_write_ops="3")
    assert found.verdict == "holds"
    assert found.property("no_false_aborts").verdict == "violated"
