"""Which delete files reach which data files: by sequence number, partition and content."""

from __future__ import annotations

from typing import Any

import pytest

from lakeproof.format import (
    DataFile,
    DeleteContent,
    DeleteFile,
    TableState,
    deleted_rows,
    equality_hits,
    live_rows,
    row_set,
    visible,
)

COLUMNS = ("k", "v")
DATA = DataFile("data", sequence_number=5, rows=((1, "a"), (2, "b"), (1, "c")))


def position_delete(sequence_number: int, path: str = "data", rows: int = 0b10) -> DeleteFile:
    """A delete file that names the second row of `data`."""
    return DeleteFile("delete", sequence_number=sequence_number, positions=((path, rows),))


def equality_delete(sequence_number: int, **more: Any) -> DeleteFile:
    """An equality delete of k = 1, which is the first and the third row of `data`."""
    base = DeleteFile("eq", DeleteContent.EQUALITY, sequence_number=sequence_number)
    return base._replace(**{"equality_columns": ("k",), "equality_values": ((1,),), **more})


@pytest.mark.parametrize(
    ("delete", "gone"),
    [
        pytest.param(position_delete(4), 0, id="an older position delete does not reach the file"),
        pytest.param(position_delete(5), 0b10, id="one of the same commit does"),
        pytest.param(position_delete(6), 0b10, id="a newer one does"),
        pytest.param(position_delete(6, path="other"), 0, id="another file's does not"),
        pytest.param(position_delete(6, rows=0b1010), 0b10, id="positions beyond the file name nothing"),
        pytest.param(position_delete(5)._replace(content=DeleteContent.VECTOR), 0b10, id="a vector is the same"),
        pytest.param(equality_delete(4), 0, id="an older equality delete does not reach the file"),
        pytest.param(equality_delete(5), 0, id="nor does one of the same commit"),
        pytest.param(equality_delete(6), 0b101, id="a newer one does"),
        pytest.param(equality_delete(6, equality_values=()), 0, id="one that lists nothing deletes nothing"),
        pytest.param(equality_delete(6, equality_values=None), 0b111, id="values unknown: it may delete every row"),
        pytest.param(equality_delete(6, partition=("p",)), 0, id="one of another partition does not"),
    ],
)
def test_a_delete_file_reaches_a_data_file(delete: DeleteFile, gone: int) -> None:
    assert deleted_rows(DATA, (delete,), COLUMNS) == gone


def test_an_equality_delete_of_a_partition_reaches_only_its_files() -> None:
    here = DATA._replace(partition=("p",), spec_id=1)
    delete = equality_delete(6, partition=("p",), spec_id=1)
    assert deleted_rows(here, (delete,), COLUMNS) == 0b101
    assert deleted_rows(here._replace(partition=("q",)), (delete,), COLUMNS) == 0
    assert deleted_rows(here._replace(spec_id=2), (delete,), COLUMNS) == 0
    assert deleted_rows(here, (equality_delete(6),), COLUMNS) == 0b101, "an unpartitioned one reaches every partition"


def test_equality_compares_the_named_columns_in_their_order() -> None:
    delete = equality_delete(6, equality_columns=("v", "k"), equality_values=(("c", 1), (1, "a")))
    assert equality_hits(DATA, delete, COLUMNS) == 0b100


def test_deletes_add_up_and_the_rest_is_visible() -> None:
    other = DataFile("other", sequence_number=6, rows=((1, "new"), (None, "null")))
    table = TableState(1, 6, (DATA, other), (position_delete(5), equality_delete(6)))
    assert live_rows(table, COLUMNS) == ((DATA, 0), (other, 0b11))
    assert visible(table, COLUMNS) == ((None, "null"), (1, "new"))


def test_the_rows_of_a_file_are_counted_where_their_values_are_unknown() -> None:
    large = DataFile("large", record_count=1000)
    delete = DeleteFile("delete", sequence_number=1, positions=(("large", row_set(range(0, 1200, 2))),))
    assert deleted_rows(large, (delete,), COLUMNS) == row_set(range(0, 1000, 2))
    assert large.all_rows.bit_count() == 1000


def test_a_delete_file_that_does_not_say_what_it_names_may_name_any_file() -> None:
    assert DeleteFile("d", positions=None).references("data")
    assert position_delete(1).references("data")
    assert not position_delete(1).references("other")
