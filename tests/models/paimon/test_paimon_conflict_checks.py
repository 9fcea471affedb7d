"""Paimon's conflict rules, one by one, with their evidence."""

from __future__ import annotations

from lakeproof.models.paimon import conflict_checks as checks
from lakeproof.models.paimon.conflict_checks import JAVA, PYPAIMON, first_conflict
from lakeproof.models.paimon.world import Bucket, LevelFile, Rewrite, Row, file_id, file_name

JACK, SARAH = Row(0, "+I", "jack", "red", "A"), Row(1, "+I", "sarah", "blue", "A")
D1, D2, L1 = file_id(1, 0), file_id(2, 0), file_id(1, 1)
FLUSHED = LevelFile(D2, 0, (JACK,))
LEVEL_1 = LevelFile(L1, 1, (JACK, SARAH))
HEAD = Bucket((LEVEL_1, FLUSHED))


def rewrite(*removed: tuple[int, int], level: int = 1, rows: tuple[Row, ...] = (JACK,), **more: object) -> Rewrite:
    return Rewrite(0, level, rows, removed, **more)  # type: ignore[arg-type]


def test_names_say_which_write_and_which_level() -> None:
    assert [file_name(one) for one in (D1, D2, L1, file_id(12, 3, 1))] == [
        "data-1",
        "data-2",
        "data-1-l1",
        "data-12-l3-r1",
    ]


def test_a_file_that_is_gone_cannot_be_removed_again() -> None:
    assert checks.file_deletion_conflict(rewrite((D2, 0)), HEAD) is None
    assert checks.file_deletion_conflict(rewrite((D1, 0)), HEAD) == "data-1 of level 0 is already removed"


def test_a_file_that_changed_its_level_is_gone_from_the_old_one() -> None:
    assert checks.file_deletion_conflict(rewrite((L1, 0)), HEAD) == "data-1-l1 of level 0 is already removed"


def test_files_of_one_level_must_not_overlap() -> None:
    assert checks.lsm_conflict(rewrite((D2, 0)), HEAD) == "the new file and data-1-l1 overlap in level 1"
    assert checks.lsm_conflict(rewrite((D2, 0), level=2), HEAD) is None
    assert checks.lsm_conflict(rewrite((D2, 0), (L1, 1)), HEAD) is None


def test_files_of_one_level_may_lie_side_by_side() -> None:
    head = Bucket((LevelFile(L1, 1, (JACK,)), FLUSHED))
    assert checks.lsm_conflict(rewrite((D2, 0), rows=(SARAH,)), head) is None


def test_level_0_may_overlap_and_an_empty_file_overlaps_nothing() -> None:
    assert checks.lsm_conflict(rewrite((D1, 0), level=0), HEAD) is None
    assert checks.lsm_conflict(rewrite((D2, 0), rows=()), HEAD) is None


def test_an_upgraded_file_keeps_its_name_in_the_evidence() -> None:
    change = rewrite((D2, 0), keeps_id=D2)
    assert checks.lsm_conflict(change, HEAD) == "data-2 and data-1-l1 overlap in level 1"


def test_an_index_file_must_replace_the_one_that_was_read() -> None:
    head = Bucket(HEAD.files, ((L1, (1,)),))
    stale = rewrite((D2, 0), vectors=((L1, (0,)),), seen_vectors=())
    assert checks.deletion_vector_index_conflict(stale, head) == "the bucket has a newer deletion-vector index file"
    assert checks.deletion_vector_index_conflict(stale, HEAD) is None


def test_a_vector_must_be_for_a_live_file() -> None:
    change = rewrite((D2, 0), vectors=((D1, (0,)),), seen_vectors=())
    evidence = "data-1, which a vector is for, is not in the head snapshot"
    assert checks.deletion_vector_index_conflict(change, HEAD) == evidence


def test_a_vector_may_be_for_the_file_that_is_upgraded() -> None:
    change = rewrite((D2, 0), keeps_id=D2, vectors=((D2, (0,)),), seen_vectors=())
    assert checks.deletion_vector_index_conflict(change, Bucket((FLUSHED,))) is None


def test_only_the_data_check_sees_rows_deleted_in_a_file_that_is_rewritten() -> None:
    head = Bucket(HEAD.files, ((L1, (0,)),))
    change = rewrite((L1, 1), level=2, seen_vectors=())
    assert checks.deletion_vector_index_conflict(change, head) is None
    assert checks.deletion_vector_conflict(change, head) == "rows of data-1-l1 were marked deleted meanwhile"
    assert checks.deletion_vector_conflict(change, HEAD) is None


def test_strict_mode_asks_for_the_partition() -> None:
    assert checks.strict_mode_conflict(1, (0, 2)) is None
    assert checks.strict_mode_conflict(1, (1,)) == "another user compacted partition 1"


def test_the_first_conflict_is_told() -> None:
    gone = rewrite((D1, 0), seen_vectors=())
    assert first_conflict(JAVA, gone, HEAD) == ("file_deletion_conflict", "data-1 of level 0 is already removed")
    overlapping = rewrite((D2, 0), seen_vectors=())
    assert first_conflict(JAVA, overlapping, HEAD) == ("lsm_conflict", "the new file and data-1-l1 overlap in level 1")
    assert first_conflict(PYPAIMON, overlapping, HEAD) is None
