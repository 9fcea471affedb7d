"""What each policy makes of the presets, and what the checks of overwrites and metadata-only deletes are for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from iceberg_runs import LAKEPROOF, READS, holds, searched, violated

from in_part import in_part, where_quick
from lakeproof.commit.change import Command
from lakeproof.commit.policy import POLICIES, Line, Policy
from lakeproof.models.iceberg import PRESETS, configured, model_of
from lakeproof.models.iceberg.telling import told

HOLDS: set[str] = set()
ISOLATION = {"isolation_kept"}
VERDICTS = {
    # preset: what iceberg-spark, iceberg-spark-fixed, pyiceberg and lakeproof violate
    "undelete": (READS, HOLDS, HOLDS, HOLDS),
    "undelete-serializable": (HOLDS, HOLDS, HOLDS, HOLDS),
    "write-skew": (ISOLATION, HOLDS, ISOLATION, HOLDS),
    "lost-delete": (HOLDS, HOLDS, READS, HOLDS),
    "compaction": (READS, HOLDS, HOLDS, HOLDS),
    "two-keys": (READS, HOLDS, HOLDS, HOLDS),
    "three-writers": (READS, HOLDS, HOLDS, HOLDS),
    "everything": (ISOLATION, ISOLATION, ISOLATION, HOLDS),
}


def test_every_preset_is_listed() -> None:
    assert list(VERDICTS) == list(PRESETS)


@pytest.mark.parametrize("policy", where_quick(POLICIES, lambda name: name in ("lakeproof", "iceberg-spark")))
@pytest.mark.parametrize("preset", [name for name in VERDICTS if name != "everything"])
def test_what_a_preset_violates(preset: str, policy: str) -> None:
    verdict = searched(policy, preset=preset)
    expected = VERDICTS[preset][list(POLICIES).index(policy)]
    assert violated(verdict) == expected
    assert verdict.exhausted
    assert verdict.verdict == ("violated" if expected else "holds")


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_everything_at_once(policy: str) -> None:
    verdict = searched(policy, preset="everything")
    assert violated(verdict) == VERDICTS["everything"][list(POLICIES).index(policy)]
    assert verdict.exhausted
    assert verdict.property("isolation_kept").alone in (None, False)


def test_the_undelete_is_the_published_one() -> None:
    found = searched("iceberg-spark", preset="undelete").property("consistent_read")
    assert (found.depth, found.alone, found.seed_name) == (14, False, "ConsistentRead")
    assert found.trace is not None
    by_writer = [(step.actor, step.step, step.label) for step in found.trace.steps if step.step == "start"]
    assert [label.split()[0] for _, _, label in by_writer] == ["INSERT", "UPDATE", "DELETE"]
    assert by_writer[1][0] != by_writer[2][0]
    assert found.trace.steps[-1].state["table"]["rows"] == [["jack", "blue", "A"]]


def test_write_skew_reads_right_and_is_in_no_serial_order() -> None:
    verdict = searched("iceberg-spark", preset="write-skew")
    assert verdict.property("consistent_read").verdict == "holds"
    skew = verdict.property("isolation_kept")
    assert skew.trace is not None
    assert skew.trace.steps[-1].state["table"]["rows"] == []
    assert {step.label.split(" WHERE ")[0] for step in skew.trace.steps if step.step == "start"} == {"DELETE FROM t"}


@pytest.mark.parametrize("policy", POLICIES)
def test_in_partitions_only_lakeproof_prevents_write_skew(policy: str) -> None:
    """Others that hold without partitions refuse whatever was deleted near by; they do not know what was read."""
    skew = violated(searched(policy, preset="write-skew", partitioned=True))
    assert skew == (HOLDS if policy == "lakeproof" else ISOLATION)


def test_pyiceberg_loses_a_delete_because_it_looks_at_the_newest_snapshot_alone() -> None:
    found = searched("pyiceberg", preset="lost-delete").property("consistent_read")
    assert found.trace is not None
    commits = [step.actor for step in found.trace.steps if step.step == "swap"]
    assert commits == ["writer-2", "writer-3", "writer-1"]  # the delete, an append that hides it, the rewrite
    assert ["sarah", "red", "A"] in found.trace.steps[-1].state["table"]["rows"]


def test_a_told_run_says_which_rows_should_be_there() -> None:
    config = configured({"preset": "lost-delete"}, POLICIES["pyiceberg"])
    trace = searched("pyiceberg", preset="lost-delete").trace
    assert trace is not None
    newest = told(model_of(config, told=True), trace).steps[-1].state["table"]["snapshots"][-1]
    assert [row for row in newest["rows"] if row[0] == "sarah"] == [["sarah", "red", "A"]]
    assert newest["expected"] == [["jack", "blue", "A"], ["john", "red", "A"], ["john", "red", "A"]]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_an_update_that_missed_a_new_row_did_what_it_meant(mode: str) -> None:
    """A phantom breaks serializability, not reads; rows that copy-on-write only copies are not meant."""
    run = {"num_keys": 2, "initial": "one-file", "max_write_ops": 2, "commands": "insert,update", "duplicates": True}
    blind = LAKEPROOF.without("new_rows_match")
    assert violated(searched(blind, **run, isolation="serializable", update_mode=mode, lean=False)) == ISOLATION


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_lakeproof_beside_spark_commits_no_anomaly_of_its_own(isolation: str) -> None:
    """On a shared table the other engine's own hole stays, but no commit of ours makes it worse."""
    beside = {"policy_of_writer_2": "iceberg-spark", "isolation": isolation, "max_compactions": 1}
    verdict = searched(**beside)
    found = verdict.property("isolation_kept")
    if isolation == "serializable":
        assert holds(verdict)
    else:
        assert found.trace is not None
        assert found.trace.steps[-1].actor == "writer-2"


# ---------------------------------------------------------------- overwrites and deletes of whole files


def unasked(check: str, command: Command) -> Policy:
    """`lakeproof`, but of this one command it does not ask the check."""
    lines: list[Line] = []
    for line in LAKEPROOF.lines:
        if command in line.commands:
            kept = (tuple(name for name in names if name != check) for names in line[2:])
            lines.append(Line((command,), line.mode, *kept))
            line = line._replace(commands=tuple(one for one in line.commands if one is not command))
        lines.append(line)
    return replace(LAKEPROOF, name=f"lakeproof, no {check} of {command}", lines=tuple(lines))


REPLACING = {
    "overwrite": Command.OVERWRITE,
    "overwrite-partition": Command.OVERWRITE,
    "overwrite-dynamic": Command.OVERWRITE_PARTITIONS,
    "metadata-delete": Command.METADATA_DELETE,
}
IN_PARTITIONS = {"num_keys": 2, "initial": "two-files", "partitioned": True, "predicates": "id", "duplicates": True}
RUN = {**IN_PARTITIONS, "max_write_ops": 2, "lean": False, "measure_aborts": False}


@pytest.mark.parametrize("kind", in_part(REPLACING, every=2))
@pytest.mark.parametrize(
    ("check", "isolation", "compactions"),
    [
        pytest.param("target_rows", "snapshot", 0, id="a row has a new version elsewhere"),
        pytest.param("replaced_files", "snapshot", 1, id="a compaction moved the rows", marks=pytest.mark.slow),
        pytest.param("new_rows_match", "serializable", 0, id="a row was added"),
    ],
)
def test_each_check_of_an_overwrite_is_needed(kind: str, check: str, isolation: str, compactions: int) -> None:
    parameters: dict[str, Any] = {**RUN, "isolation": isolation, "max_compactions": compactions}
    parameters["commands"] = f"insert,update,delete,{kind}"
    assert holds(searched(**parameters))
    assert "isolation_kept" in violated(searched(unasked(check, REPLACING[kind]), **parameters))


# ---------------------------------------------------------------- delete files that point nowhere


def test_a_delete_for_a_file_that_was_replaced_is_seen() -> None:
    fixed = POLICIES["iceberg-spark-fixed"]
    beside_a_compaction = {"num_keys": 2, "initial": "two-files", "max_write_ops": 1, "max_compactions": 1}
    assert holds(searched(fixed, **beside_a_compaction))
    assert "no_dangling_delete_files" in violated(searched(fixed.without("data_files_exist"), **beside_a_compaction))


def test_a_delete_for_a_file_that_was_dropped_whole_is_void() -> None:
    dropped = {**IN_PARTITIONS, "max_write_ops": 2, "commands": "delete,metadata-delete"}
    verdict = searched("iceberg-spark", **dropped)
    assert holds(verdict)
    assert verdict.statistics.marks["DELETE of whole files commits"]


def test_compaction_of_delete_files_that_does_not_look_leaves_a_dangling_one() -> None:
    run = {"num_keys": 2, "initial": "one-file", "predicates": "id", "max_write_ops": 2, "max_compactions": 1}
    careless = unasked("missing_delete_paths", Command.REWRITE_DELETES)
    assert holds(searched(**run, max_delete_rewrites=1, measure_aborts=False))
    found = searched(careless, **run, max_delete_rewrites=1, measure_aborts=False)
    assert violated(found) == {"no_dangling_delete_files"}


@pytest.mark.parametrize(("reading", "expected"), [("right", HOLDS), ("literal", {"no_dangling_delete_files"})])
def test_the_published_wording_is_violated_by_one_writer_alone(reading: str, expected: set[str]) -> None:
    run = {"num_writers": 1, "num_keys": 2, "initial": "one-file", "max_write_ops": 1, "max_compactions": 1}
    verdict = searched("iceberg-spark-fixed", **run, dangling=reading, predicates="id")
    assert violated(verdict) == expected
    if expected:
        assert verdict.property("no_dangling_delete_files").alone
