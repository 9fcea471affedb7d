"""Each switch closes the hole it is for, and each way of the public specification opens the one it is known for."""

from __future__ import annotations

import pytest
from test_paimon_presets import checked, violated

from in_part import in_part

DANGLING = {"no_dangling_deletion_vectors", "one_valid_row_per_key"}
UNIVERSAL = "preset=two-compactors compaction=universal lsm-key-range-check=true max-write-ops=3 max-compactions=4"
STREAMING = "preset=two-writers-one-bucket streaming-sink=true"
ONE_COMPACTOR = "preset=two-compactors num-compactors=1"


@pytest.mark.parametrize(
    ("switches", "broken"),
    [
        pytest.param("", DANGLING, id="the file-deletion check alone lets vectors dangle"),
        pytest.param("lsm-key-range-check=true", DANGLING, id="the key-range check does not see vectors"),
        pytest.param("dv-index-check=true", DANGLING, id="pypaimon's check sees no compaction without an index file"),
        pytest.param("dv-conflict-check=true", set(), id="the data conflict check closes the hole"),
        pytest.param("strict-mode=true", set(), id="strict mode closes the hole by refusing every second compaction"),
        pytest.param("dv-enabled=false", set(), id="without vectors nothing can dangle"),
        pytest.param("committer=apart", DANGLING, id="two jobs' compactions dangle whoever commits"),
    ],
)
def test_two_compactors(switches: str, broken: set[str]) -> None:
    assert set(violated(checked(f"preset=two-compactors {switches}"))) == broken


@pytest.mark.parametrize(
    ("switches", "broken"),
    [
        pytest.param("max-write-ops=2", set(), id="two writes are too few"),
        pytest.param("max-compactions=3", set(), id="three compactions are too few"),
        pytest.param("", DANGLING, id="three writes and four compactions dangle past the key-range check"),
        pytest.param("dv-index-check=true", set(), id="pypaimon's check refuses that history"),
        pytest.param("dv-index-check=true num-keys=2", DANGLING, id="but not one with two keys"),
        pytest.param("dv-conflict-check=true num-keys=2", set(), id="the data conflict check refuses both"),
        pytest.param("strict-mode=true num-keys=2", set(), id="so does strict mode"),
        pytest.param("num-compactors=1 num-keys=2", set(), id="one compactor is safe"),
    ],
)
def test_paimons_own_picks(switches: str, broken: set[str]) -> None:
    verdict = checked(f"{UNIVERSAL} {switches}")
    assert set(violated(verdict)) == broken
    if "num-compactors=1" not in switches:
        assert "some refused by lsm_conflict" in verdict.unreached  # the key-range check never says a word


@pytest.mark.parametrize(
    ("switches", "holds"),
    [
        pytest.param("", False, id="counters of their own reorder writes"),
        pytest.param("sequence-init=each-write", False, id="so do numbers that are restored"),
        pytest.param("sequence-field=true", True, id="a sequence field orders them"),
        pytest.param("sequence-snapshot-ordering=true", True, id="so do snapshot ids"),
        pytest.param("sequence-field=true num-compactors=1 num-keys=1 allow-deletes=false", True, id="also compacted"),
        pytest.param(
            "sequence-field=true num-compactors=1 num-keys=1", False, id="but a dropped delete lets a row back"
        ),
        pytest.param(
            "sequence-field=true num-compactors=1 num-keys=1 dv-enabled=false", True, id="a kept delete does not"
        ),
        pytest.param(
            "sequence-snapshot-ordering=true num-compactors=1 num-keys=1 compactors=dedicated",
            True,
            id="snapshot ids never arrive late",
        ),
        pytest.param("committer=apart sequence-field=true", True, id="a committer apart changes nothing"),
    ],
)
def test_two_streaming_writers(switches: str, holds: bool) -> None:
    assert set(violated(checked(f"{STREAMING} {switches}"))) == (set() if holds else {"consistent_read"})


@pytest.mark.parametrize("switch", ["sequence-field=true", "sequence-snapshot-ordering=true"])
def test_no_order_of_rows_brings_back_an_update_lost_between_read_and_write(switch: str) -> None:
    assert violated(checked(f"preset=two-writers-one-bucket {switch}")) == {"consistent_read": 12}


@pytest.mark.parametrize(
    ("switches", "broken"),
    [
        pytest.param("allow-deletes=true", {}, id="what Paimon does holds"),
        pytest.param("allow-deletes=true keep-deletes=false", {"consistent_read": 16}, id="a merge loses deletes"),
        pytest.param("allow-deletes=true read-vectors=false", {"consistent_read": 16}, id="a read misses vectors"),
        pytest.param("prune-vectors=false", {"no_dangling_deletion_vectors": 20}, id="vectors are never pruned"),
        pytest.param(
            "as-in-spec=true keep-deletes=true read-vectors=true allow-deletes=true max-write-ops=3 max-compactions=2",
            {"one_valid_row_per_key": 20},
            id="an insert after a delete marks nothing",
        ),
    ],
)
def test_the_specifications_own_ways_need_no_race(switches: str, broken: dict[str, int]) -> None:
    assert violated(checked(f"{ONE_COMPACTOR} {switches}")) == broken


def test_rolling_a_compaction_back_lets_the_next_one_dangle() -> None:
    overwrites = f"{ONE_COMPACTOR} max-write-ops=3"
    assert violated(checked(f"{overwrites} allow-overwrites=true")) == {}
    rolled = checked(f"{overwrites} compaction-rollback=true")
    assert violated(rolled) == {"no_dangling_deletion_vectors": 18, "one_valid_row_per_key": 22}
    assert "some rolled back" not in rolled.unreached
    assert violated(checked(f"{overwrites} compaction-rollback=true dv-conflict-check=true")) == {}


TOPOLOGIES = [
    "compactors=dedicated",
    "compaction=universal lsm-key-range-check=true",
    "strict-mode=true",
    "num-compactors=0",
    "committer=apart",
    "committer=apart streaming-sink=true",
    "dv-conflict-check=true",
    "num-partitions=1 num-buckets=3 num-writers=3 num-compactors=3 num-keys=3",
]


@pytest.mark.parametrize("switches", in_part(TOPOLOGIES, every=3))
def test_one_writer_per_bucket_holds_in_every_topology(switches: str) -> None:
    verdict = checked(f"preset=one-writer-per-bucket {switches}")
    assert violated(verdict) == {}
    assert verdict.exhausted


def test_without_the_file_deletion_check_a_commit_removes_what_is_not_there() -> None:
    verdict = checked("preset=two-compactors file-deletion-check=false max-write-ops=1 max-compactions=2")
    assert violated(verdict) == {"no_bad_state": 12}


def test_the_data_conflict_check_never_refuses_where_each_bucket_has_one_compactor() -> None:
    verdict = checked("preset=one-writer-per-bucket dv-conflict-check=true")
    assert verdict.states == checked("preset=one-writer-per-bucket").states
    assert not any(mark.startswith("refused") for mark in verdict.statistics.marks)
