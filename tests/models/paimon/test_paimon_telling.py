"""A violation shows version, file ids, vectors and where each row lies, and its trace is told in sentences."""

from __future__ import annotations

import pytest
from test_paimon_presets import checked

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.models.paimon.telling import told


def trace_of(parameters: str, name: str) -> Trace:
    verdict = checked(parameters, witnesses=True)
    trace = next(one.trace for one in verdict.properties if one.name == name)
    assert trace is not None
    return trace


def test_the_last_state_shows_files_vectors_and_rows() -> None:
    trace = trace_of("preset=two-compactors", "one_valid_row_per_key")
    state = trace.steps[-1].state
    assert state["version"] == 5
    assert state["p-0_b-0"] == {
        "files": ["p-0_b-0_data-1-l2", "p-0_b-0_data-2-l1"],
        "vectors": {"p-0_b-0_data-1-l1": [0]},
        "rows": [
            "+I jack red A (sequence 0), data file: p-0_b-0_data-1-l2, level: 2, pos: 0",
            "+U jack blue A (sequence 1), data file: p-0_b-0_data-2-l1, level: 1, pos: 0",
        ],
    }
    assert state["expected"] == {"jack": "blue A"}
    assert state["violation"] == {
        "because": "the vector of p-0_b-0_data-1-l1 dangles; jack has 2 valid rows in levels 1 and above",
        "version": 5,
        "file ids": "p-0_b-0_data-1-l2, p-0_b-0_data-2-l1",
        "vectors": "p-0_b-0_data-1-l1: [0]",
        "row 1": "+I jack red A (sequence 0), data file: p-0_b-0_data-1-l2, level: 2, pos: 0",
        "row 2": "+U jack blue A (sequence 1), data file: p-0_b-0_data-2-l1, level: 1, pos: 0",
    }
    assert all(step.state["violation"] == {} for step in trace.steps[:-1])


def test_a_lost_write_shows_what_is_read_and_what_was_expected() -> None:
    trace = trace_of("preset=two-writers-one-bucket", "consistent_read")
    violation = trace.steps[-1].state["violation"]
    assert (violation["because"], violation["version"]) == ("jack reads red A, expected: no row", 2)
    assert violation["file ids"] == "p-0_b-0_data-1, p-0_b-0_data-2"


def test_a_deleted_row_is_shown_as_deleted() -> None:
    trace = trace_of("preset=two-compactors num-compactors=1 read-vectors=false allow-deletes=true", "consistent_read")
    (row,) = trace.steps[-1].state["p-0_b-0"]["rows"]
    assert row == "+I jack red A (sequence 0), data file: p-0_b-0_data-1-l1, level: 1, pos: 0, deleted"


def test_the_two_writers_are_told_in_four_sentences() -> None:
    assert told(trace_of("preset=two-writers-one-bucket", "consistent_read")) == [
        "writer-1 decides: insert jack red A",
        "writer-1 commits snapshot 1: data-1 in level 0 (+I jack red A (sequence 0))",
        "writer-2 reads snapshot 1 and decides: delete jack",
        "writer-2 commits snapshot 2: data-2 in level 0 (-D jack (sequence 0))",
    ]


def test_the_dangling_vector_is_told_to_its_end() -> None:
    sentences = told(trace_of("preset=two-compactors", "no_dangling_deletion_vectors"))
    assert len(sentences) == 10
    assert sentences[6] == (
        "compactor-2 reads snapshot 3 and compacts data-2 of level 0 into level 1 "
        "(+U jack blue A (sequence 1)), with new vectors: data-1-l1 [0]"
    )
    assert sentences[-2:] == [
        "compactor-1 commits snapshot 4: data-1-l2 in level 2, without data-1-l1",
        "compactor-2 commits snapshot 5: data-2-l1 in level 1, without data-2",
    ]


@pytest.mark.parametrize(
    ("parameters", "name", "sentence"),
    [
        (
            "preset=two-compactors",
            "some refused by file_deletion_conflict",
            "is refused by file_deletion_conflict: data-1 of level 0 is already removed",
        ),
        (
            "preset=two-compactors",
            "some swap lost",
            "finds the next snapshot's name taken and will write its metadata again",
        ),
        (
            "preset=two-compactors num-compactors=1 compaction-rollback=true max-write-ops=3",
            "some rolled back",
            "writer-1 is refused by file_deletion_conflict: rolls snapshot",
        ),
        (
            "preset=one-writer-per-bucket compaction=universal",
            "some compaction committed",
            "data-1 moves to level 2",
        ),
    ],
)
def test_the_last_sentence_says_what_happened(parameters: str, name: str, sentence: str) -> None:
    assert sentence in told(trace_of(parameters, name))[-1]


def test_what_waits_for_the_committer_is_shown() -> None:
    trace = trace_of("preset=two-writers-one-bucket committer=apart", "some insert committed")
    queues = [step.state["queue"] for step in trace.steps]
    assert ["+I jack red A (sequence 0) for p-0_b-0"] in queues
    assert queues[-1] == []


def test_the_lock_is_shown() -> None:
    trace = trace_of("preset=no-put-if-absent use-lock=true", "some insert committed")
    assert [step.state["lock"] for step in trace.steps][-2:] == ["held", "free"]
