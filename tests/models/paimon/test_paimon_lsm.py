"""Reads, merges and compactions of one bucket, on buckets written out by hand."""

from __future__ import annotations

import pytest

from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import compact_level, compact_unit, highest_sequence, read_key, universal_units
from lakeproof.models.paimon.parameters import setup_from
from lakeproof.models.paimon.world import Bucket, LevelFile, Row, Vectors

RED, BLUE = Row(0, "+I", "jack", "red", "A"), Row(1, "+U", "jack", "blue", "A")
GONE = Row(2, "-D", "jack", "", "")
SARAH = Row(3, "+I", "sarah", "red", "A")


def setup(**more: str) -> Setup:
    given = {name.replace("_", "-"): value for name, value in more.items()}
    return setup_from({"num-buckets": "1", "one-writer-per-bucket": "false", "max-level": "5", **given})


def bucket(*files: tuple[int, int, tuple[Row, ...]], vectors: Vectors = ()) -> Bucket:
    return Bucket(tuple(LevelFile(*file) for file in files), vectors)


def test_a_read_takes_the_highest_sequence_number_of_all_levels() -> None:
    assert read_key(setup(), bucket((1, 1, (RED,)), (2, 0, (BLUE,))), "jack") == BLUE
    assert read_key(setup(), bucket((1, 0, (RED,)), (2, 1, (BLUE,))), "jack") == BLUE
    assert read_key(setup(), bucket((1, 0, (RED,))), "sarah") is None


def test_a_read_sees_deletes_and_vectors() -> None:
    assert read_key(setup(), bucket((1, 0, (BLUE,)), (2, 0, (GONE,))), "jack") is None
    marked = bucket((1, 1, (RED, SARAH)), vectors=((1, (0,)),))
    assert read_key(setup(), marked, "jack") is None
    assert read_key(setup(), marked, "sarah") == SARAH
    assert read_key(setup(), marked, "jack", False) == RED


@pytest.mark.parametrize(("ties", "colour"), [("earlier-file", "red"), ("later-file", "blue")])
def test_a_tie_of_sequence_numbers_goes_to_one_file(ties: str, colour: str) -> None:
    tied = bucket((1, 0, (RED,)), (2, 0, (BLUE._replace(sequence=0),)))
    found = read_key(setup(sequence_ties=ties), tied, "jack")
    assert found is not None
    assert found.col2 == colour


def test_a_restarted_writer_restores_the_highest_number() -> None:
    assert highest_sequence(bucket((1, 1, (RED, SARAH)), (2, 0, (GONE,)))) == 3
    assert highest_sequence(Bucket()) == -1


def test_a_level_is_merged_one_up_and_marks_what_lies_above() -> None:
    work = compact_level(setup(), 0, bucket((1, 1, (RED,)), (2, 0, (BLUE,))), 0)
    assert (work.level, work.rows, work.removed, work.vectors) == (1, (BLUE,), ((2, 0),), ((1, (0,)),))


def test_a_compaction_drops_the_vectors_of_the_files_it_takes() -> None:
    marked = bucket((1, 1, (RED, SARAH)), vectors=((1, (0,)),))
    work = compact_level(setup(), 0, marked, 1)
    assert (work.level, work.rows, work.vectors) == (2, (SARAH,), ())
    assert compact_level(setup(prune_vectors="false"), 0, marked, 1).vectors is None


def test_a_delete_marks_the_row_above_and_is_dropped_where_there_are_vectors() -> None:
    deleted = bucket((1, 1, (BLUE,)), (2, 0, (GONE,)))
    work = compact_level(setup(), 0, deleted, 0)
    assert (work.rows, work.vectors) == ((), ((1, (0,)),))
    assert compact_level(setup(dv_enabled="false"), 0, deleted, 0).rows == (GONE,)
    in_spec = compact_level(setup(as_in_spec="true"), 0, deleted, 0)
    assert (in_spec.rows, in_spec.vectors) == ((), None)  # the delete is lost


def test_a_late_row_does_not_replace_a_newer_one_above() -> None:
    work = compact_level(setup(sequence_field="true"), 0, bucket((1, 1, (BLUE,)), (2, 0, (RED,))), 0)
    assert (work.rows, work.vectors) == ((BLUE,), ((1, (0,)),))


def units(*files: tuple[int, int, tuple[Row, ...]], vectors: Vectors = ()) -> list[tuple[tuple[int, ...], int]]:
    found = universal_units(bucket(*files, vectors=vectors), 5)
    return [(tuple(file.id for file in taken), output) for taken, output in found]


def test_universal_compaction_takes_level_0_and_then_whole_levels() -> None:
    assert units((1, 0, (RED,))) == [((1,), 5)]
    assert units((1, 5, (RED,)), (2, 0, (BLUE,))) == [((2,), 4), ((1, 2), 5)]
    assert units((1, 5, (RED,)), (2, 3, (BLUE,)), (3, 0, (GONE,))) == [((3,), 2), ((2, 3), 4), ((1, 2, 3), 5)]


def test_universal_compaction_never_leaves_level_1_under_level_0() -> None:
    assert units((1, 5, (RED,)), (2, 1, (BLUE,)), (3, 0, (GONE,))) == [((2, 3), 4), ((1, 2, 3), 5)]


def test_universal_compaction_leaves_the_highest_level_alone_unless_it_has_vectors() -> None:
    assert units((1, 5, (RED,))) == []
    assert units((1, 5, (RED, SARAH)), vectors=((1, (0,)),)) == [((1,), 5)]
    assert units() == []


def unit(setup: Setup, table: Bucket, number: int = 0) -> tuple[object, ...]:
    taken, output = list(universal_units(table, 5))[number]
    work = compact_unit(setup, 0, table, taken, output)
    return work.level, work.rows, work.keeps_id, work.vectors


def test_a_single_file_is_upgraded_under_its_own_name_and_still_marks_the_row_above() -> None:
    assert unit(setup(), bucket((1, 5, (RED,)), (2, 0, (BLUE,)))) == (4, (BLUE,), 2, ((1, (0,)),))


def test_a_single_file_with_a_delete_is_rewritten() -> None:
    assert unit(setup(), bucket((1, 5, (BLUE,)), (2, 0, (GONE,)))) == (4, (), 0, ((1, (0,)),))


def test_with_a_sequence_field_a_lookup_merges_and_the_file_is_rewritten() -> None:
    table = bucket((1, 5, (BLUE,)), (2, 0, (RED,)))
    assert unit(setup(sequence_field="true"), table) == (4, (BLUE,), 0, ((1, (0,)),))


def test_two_files_become_one_and_lose_their_vectors() -> None:
    table = bucket((1, 5, (RED, SARAH)), (2, 4, (BLUE,)), vectors=((1, (0,)),))
    assert unit(setup(), table) == (5, (BLUE, SARAH), 0, ())


def test_deletes_are_dropped_only_where_nothing_older_is_left() -> None:
    table = bucket((1, 5, (BLUE,)), (2, 3, (SARAH,)), (3, 0, (GONE,)))
    plain = setup(dv_enabled="false")
    assert [unit(plain, table, number)[1] for number in range(3)] == [(GONE,), (GONE, SARAH), (SARAH,)]
