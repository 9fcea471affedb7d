"""Does `added_data_files` alone keep a serializable DELETE from undeleting rows? Yes for DELETE, no for UPDATE.

Apache Iceberg's merge-on-read DELETE asks at serializable only whether its data files were replaced and whether a data
file was added that its predicate may match. Whatever it would hit at the head and did not hit at its scan was written
since, so it lies in a file added since, and bounds cover the values of their file. `iceberg-spark` is that policy.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from iceberg_runs import holds, searched, violated

from in_part import in_part
from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.policy import POLICIES, checks_of

SPARK = POLICIES["iceberg-spark"]
LAYOUTS: dict[str, dict[str, Any]] = {
    "several rows in a file": {"initial": "one-file"},
    "a row per file": {"initial": "two-files"},
    "partitions": {"initial": "two-files", "partitioned": True},
}
BASE = {"num_keys": 2, "isolation": "serializable", "commands": "insert,update,delete,merge", "measure_aborts": False}
MODES = ("merge-on-read", "copy-on-write")


def test_what_is_asked_of_the_delete() -> None:
    asked = checks_of(SPARK, Command.DELETE, Mode.MERGE_ON_READ, Isolation.SERIALIZABLE).names
    about_others = {"added_data_files", "data_files_exist_skipping_deletes"}
    assert about_others <= set(asked)
    assert "no_new_delete_files" not in asked


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("predicates", in_part(["id", "any"], every=2))
def test_two_commands_and_a_compaction(layout: str, predicates: str) -> None:
    run = {**BASE, **LAYOUTS[layout], "predicates": predicates, "max_write_ops": 2, "max_compactions": 1}
    assert holds(searched(SPARK, **run, duplicates=True))


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "update_mode"), [*product(LAYOUTS, MODES)])
@pytest.mark.parametrize("predicates", ["id", "any"])
def test_three_commands_and_a_compaction(layout: str, update_mode: str, predicates: str) -> None:
    run = {**BASE, **LAYOUTS[layout], "predicates": predicates, "max_write_ops": 3, "max_compactions": 1}
    verdict = searched(SPARK, **run, update_mode=update_mode)
    assert holds(verdict)
    assert verdict.statistics.marks["refused by added_data_files"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_three_writers(layout: str) -> None:
    assert holds(searched(SPARK, **BASE, **LAYOUTS[layout], num_writers=3, max_write_ops=3, predicates="id"))


def test_without_it_the_undelete_is_back() -> None:
    without = SPARK.without("added_data_files")
    assert "consistent_read" in violated(searched(without, preset="undelete-serializable"))


def test_it_does_not_keep_an_update_from_bringing_a_row_back() -> None:
    """A DELETE adds no data file: an UPDATE that asked for nothing else would commit over it."""
    alone = SPARK.without("no_new_delete_files")
    run = {"isolation": "serializable", "commands_of_writer_1": "insert,update", "commands_of_writer_2": "delete"}
    assert holds(searched(SPARK, **run))
    found = searched(alone, **run).property("consistent_read")
    assert found.trace is not None
    assert [step.actor for step in found.trace.steps if step.step == "swap"] == ["writer-1", "writer-2", "writer-1"]
    assert found.trace.steps[-1].state["table"]["rows"] == [["jack", "blue", "A"]]
