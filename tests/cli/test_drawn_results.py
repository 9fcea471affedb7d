"""What people see of a result: a table where it can be read, else a record for each row."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lakeproof.cli.prompt import LEAST_WIDTH, draw_result
from lakeproof.spark.statements.results import Result


def drawn(columns: dict[str, list[Any]], width: int) -> list[str]:
    screen = StringIO()
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    draw_result(Console(file=screen, width=width), Result(tuple(columns), rows, numbers=(False,) * len(columns)))
    return screen.getvalue().splitlines()


def test_a_row_that_is_too_wide_becomes_a_record() -> None:
    said = drawn({f"c{number}": ["x" * 30, None] for number in range(10)}, 80)
    assert [line.split()[:2] for line in said if line.startswith("row")] == [["row", "1"], ["row", "2"]]
    assert sum("x" * 30 in line for line in said) == sum("NULL" in line for line in said) == 10


def test_one_long_column_beside_short_ones_is_folded_in_its_table() -> None:
    said = drawn({"id": [1], "words": ["word " * 30]}, 60)
    assert said[0].startswith("┏")


@pytest.mark.parametrize(("number", "is_table"), [(4, True), (5, False)])
def test_folded_columns_keep_enough_characters_to_be_read(number: int, is_table: bool) -> None:
    width = 4 * (LEAST_WIDTH + 3) + 1
    said = drawn({f"c{at}": ["y" * 100] for at in range(number)}, width)
    assert said[0].startswith("┏") == is_table


@given(
    st.lists(st.text("ab\n ", max_size=60), min_size=1, max_size=12),
    st.integers(min_value=20, max_value=200),
)
def test_no_line_is_wider_than_the_terminal_and_no_letter_is_lost(values: list[str], width: int) -> None:
    said = drawn({f"k{at}": [value] for at, value in enumerate(values)}, width)
    assert all(len(line) <= width for line in said)
    letters = "".join(said)
    assert {one: letters.count(one) for one in "ab"} == {one: "".join(values).count(one) for one in "ab"}
