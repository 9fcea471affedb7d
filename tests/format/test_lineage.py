"""The commit window is what lies after the scan snapshot, up to and including the head."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeproof.format import Lineage, Operation, Snapshot, lineage
from lakeproof.format.files import DataFile

FOUR = {1: None, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize(
    ("parents", "scan", "head", "expected"),
    [
        pytest.param(FOUR, 2, 4, Lineage((3, 4)), id="after the scan, up to and including the head"),
        pytest.param(FOUR, 4, 4, Lineage(()), id="the scan is the head"),
        pytest.param(FOUR, None, 2, Lineage((1, 2)), id="the table was empty when it was read"),
        pytest.param({}, None, None, Lineage(()), id="the table is still empty"),
        pytest.param({3: 2, 4: 3}, 2, 4, Lineage((3, 4)), id="the scan snapshot itself may be expired"),
        pytest.param({4: 3}, 2, 4, Lineage((4,), missing=3), id="one inside the window may not"),
        pytest.param({}, 2, 4, Lineage((), missing=4), id="nor the head"),
        pytest.param({2: 1, 3: 2}, None, 3, Lineage((2, 3), missing=1), id="the first snapshot of the table expired"),
        pytest.param(FOUR, 9, 4, Lineage((1, 2, 3, 4), missing=9), id="the scan is not an ancestor of the head"),
        pytest.param({**FOUR, 5: 2}, 4, 5, Lineage((1, 2, 5), missing=4), id="the head was rolled back and went on"),
        pytest.param(FOUR, 2, None, Lineage((), missing=2), id="the table was emptied of snapshots"),
    ],
)
def test_lineage(parents: dict[int, int | None], scan: int | None, head: int | None, expected: Lineage) -> None:
    assert lineage(parents, scan_snapshot=scan, head_snapshot=head) == expected


@given(length=st.integers(1, 12), data=st.data())
def test_expiry_breaks_the_window_exactly_when_it_takes_one_of_its_snapshots(length: int, data: st.DataObject) -> None:
    scan = data.draw(st.integers(1, length))
    expired = data.draw(st.sets(st.integers(1, length)))
    parents = {i: i - 1 or None for i in range(1, length + 1) if i not in expired}
    found = lineage(parents, scan_snapshot=scan, head_snapshot=length)
    inside = [i for i in range(scan + 1, length + 1) if i in expired]
    if inside:
        assert found == Lineage(tuple(range(inside[-1] + 1, length + 1)), missing=inside[-1])
    else:
        assert found == Lineage(tuple(range(scan + 1, length + 1)))


def test_a_snapshot_is_a_pure_delete_when_it_adds_no_data_whatever_it_calls_itself() -> None:
    data = DataFile("a")
    assert Snapshot(1, 1, Operation.OVERWRITE, removed_data_files=(data,)).adds_no_data
    assert not Snapshot(1, 1, Operation.DELETE, added_data_files=(data,)).adds_no_data
    assert Snapshot(1, 1, Operation.DELETE, removed_data_files=(data,)).removes("a")
    assert not Snapshot(1, 1, Operation.DELETE, removed_data_files=(data,)).removes("b")
