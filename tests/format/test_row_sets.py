"""Row sets are ints that behave like Python's sets of positions, at every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeproof.format import Move, RowMapping, all_rows, images, moved, positions, row_set, rows_of
from lakeproof.format.rows import extract, position_array

SETS = st.one_of(
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 70)),
    st.sets(st.integers(0, 400), min_size=60),  # the numpy paths begin at 64
    st.sets(st.integers(0, 200_000), max_size=100),
)


@given(SETS)
def test_a_row_set_holds_its_positions(wanted: set[int]) -> None:
    rows = row_set(wanted)
    assert list(positions(rows)) == sorted(wanted)
    assert position_array(rows).tolist() == sorted(wanted)
    assert rows.bit_count() == len(wanted)
    assert rows == sum(1 << position for position in wanted)


@given(SETS)
def test_an_array_a_list_and_a_generator_give_the_same_set(wanted: set[int]) -> None:
    repeated = [*wanted, *wanted]
    array = np.array(repeated, dtype=np.int64)
    assert row_set(array) == row_set(repeated) == row_set(iter(repeated)) == row_set(wanted)
    assert isinstance(row_set(array), int)


@given(SETS, SETS)
def test_the_operators_of_int_are_those_of_sets(a: set[int], b: set[int]) -> None:
    assert list(positions(row_set(a) & row_set(b))) == sorted(a & b)
    assert list(positions(row_set(a) | row_set(b))) == sorted(a | b)
    assert list(positions(row_set(a) & ~row_set(b))) == sorted(a - b)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_all_rows_are_the_first_positions(count: int) -> None:
    assert list(positions(all_rows(count))) == list(range(count))


@given(SETS, SETS)
def test_extract_gives_each_row_its_index_in_the_mask(rows: set[int], mask: set[int]) -> None:
    index = {position: i for i, position in enumerate(sorted(mask))}
    expected = {index[position] for position in rows & mask}
    assert list(positions(extract(row_set(rows), row_set(mask)))) == sorted(expected)


def test_a_large_file_is_extracted_by_arrays() -> None:
    """Half a million rows, every third of them deleted, and one in ten asked for."""
    kept = np.flatnonzero(np.arange(500_000) % 3 != 0)
    asked = np.arange(0, 500_000, 10)
    expected = np.flatnonzero(np.isin(kept, asked))
    assert position_array(extract(row_set(asked), row_set(kept))).tolist() == expected.tolist()


def test_rows_are_canonical() -> None:
    assert rows_of([("b", 0b10), ("a", 0b1), ("b", 0b1), ("c", 0)]) == (("a", 0b1), ("b", 0b11))


@st.composite
def mappings(draw: st.DrawFn) -> tuple[RowMapping, dict[tuple[str, int], tuple[str, int]]]:
    """A rewrite of up to three files into up to two, as moves and as a plain dictionary of places."""
    moves, places = [], {}
    filled = {"x": 0, "y": 0}
    for old in ("a", "b", "c"):
        left = draw(SETS)
        for new in draw(st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True)):
            taken = draw(st.sets(st.sampled_from(sorted(left)))) if left else set()
            left -= taken
            if not taken:
                continue
            moves.append(Move(old, row_set(taken), new, filled[new]))
            places.update({(old, p): (new, filled[new] + i) for i, p in enumerate(sorted(taken))})
            filled[new] += len(taken)
    return tuple(moves), places


@given(mapping=mappings(), rows=SETS, file=st.sampled_from(["a", "b", "z"]))
def test_moved_rows_are_where_the_rewrite_put_them(
    mapping: tuple[RowMapping, dict[tuple[str, int], tuple[str, int]]], rows: set[int], file: str
) -> None:
    moves, places = mapping
    found, lost = moved(moves, file, row_set(rows))
    assert {(new, p) for new, bits in found for p in positions(bits)} == {
        places[file, p] for p in rows if (file, p) in places
    }
    assert set(positions(lost)) == {p for p in rows if (file, p) not in places}


@given(mappings())
def test_images_are_the_rows_that_came_from_somewhere(
    mapping: tuple[RowMapping, dict[tuple[str, int], tuple[str, int]]],
) -> None:
    moves, places = mapping
    for new in ("x", "y", "z"):
        assert list(positions(images(moves, new))) == sorted(p for file, p in places.values() if file == new)


def test_a_move_keeps_the_order_of_rows_and_begins_at_its_start() -> None:
    """Rows 1, 4 and 6 of the old file are rows 10, 11 and 12 of the new one."""
    mapping = (Move("old", row_set([1, 4, 6]), "new", 10),)
    assert moved(mapping, "old", row_set([0, 4, 6])) == ([("new", row_set([11, 12]))], row_set([0]))
    assert images(mapping, "new") == row_set([10, 11, 12])
