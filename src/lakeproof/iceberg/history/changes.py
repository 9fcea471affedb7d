"""What the snapshots of a window did to the rows: which files came and went, and which rows inside files that stayed.

A file that came counts with the rows that are not deleted in it, a file that went with those that were not, and a file
that stayed with the rows that were deleted (or came back) between the two snapshots. Nothing is read but metadata,
position deletes and, where there are equality deletes, the columns that they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.reading.delete_files import Positions, deleted_positions, read_equality_deletes, values_of_field
from lakeproof.iceberg.reading.planning import ScanPlan, plan

COMPACTION = "replace"  # the operation of a snapshot that changed no row
APPEND = "append"


class RowsOfFile(NamedTuple):
    """Rows of one data file that a snapshot added or removed: all but those at the positions `but`."""

    path: str
    size: int
    file_format: str
    is_insert: bool
    ordinal: int
    but: Positions | None = None


class ChangeWindow(NamedTuple):
    """The snapshots of a range that changed rows, oldest first; a row's ordinal is its snapshot's place here."""

    snapshots: tuple[Snapshot, ...]


def window_between(table: Table, start: int | None, end: int | None) -> ChangeWindow:
    """The snapshots after `start` (`None`: from the first on) up to `end` (`None`: the current one)."""
    place = f"table {'.'.join(table.name())}"
    head = table.current_snapshot() if end is None else _snapshot(table, end, place)
    found: list[Snapshot] = []
    while head is not None and head.snapshot_id != start:
        found.append(head)
        head = None if head.parent_snapshot_id is None else table.snapshot_by_id(head.parent_snapshot_id)
    if start is not None and head is None:
        _snapshot(table, start, place)
        raise InvalidInput(f"snapshot {start} does not come before {_name(end)}", place=place)
    return ChangeWindow(tuple(each for each in reversed(found) if operation_of(each) != COMPACTION))


def operation_of(snapshot: Snapshot) -> str:
    """What a snapshot says that it did: append, overwrite, delete or replace."""
    return snapshot.summary.operation.value if snapshot.summary else "overwrite"


def changes_of(table: Table, window: ChangeWindow) -> list[RowsOfFile]:
    """What each snapshot of the window added and removed."""
    found: list[RowsOfFile] = []
    for ordinal, snapshot in enumerate(window.snapshots):
        found += _changes(table, snapshot, ordinal)
    return found


def _changes(table: Table, snapshot: Snapshot, ordinal: int) -> Iterator[RowsOfFile]:
    after = _Files(table, plan(table, snapshot_id=snapshot.snapshot_id))
    parent = snapshot.parent_snapshot_id
    if _lost_parent(table, snapshot, after):
        yield from _without_parent(table, snapshot, after, ordinal)
        return
    before = _Files(table, None if parent is None else plan(table, snapshot_id=parent))
    for path in before.rows.keys() - after.rows.keys():
        yield before.whole(path, ordinal, is_insert=False)
    for path in after.rows.keys() - before.rows.keys():
        yield after.whole(path, ordinal, is_insert=True)
    for path in sorted(before.with_deletes() | after.with_deletes()):
        if path in before.rows and path in after.rows and before.deletes(path) != after.deletes(path):
            yield from _inside(before, after, path, ordinal)


def _lost_parent(table: Table, snapshot: Snapshot, after: _Files) -> bool:
    """Whether the snapshot before was expired; some catalogs then say that there never was one."""
    if snapshot.parent_snapshot_id is not None:
        return table.snapshot_by_id(snapshot.parent_snapshot_id) is None
    said = snapshot.summary.additional_properties if snapshot.summary else {}
    number = snapshot.sequence_number or 0
    removed = int(said.get("deleted-data-files", 0)) > 0
    return number > 1 and (removed or any(row["data_sequence_number"] < number for row in after.rows.values()))


def _without_parent(table: Table, snapshot: Snapshot, after: _Files, ordinal: int) -> Iterator[RowsOfFile]:
    """The parent was expired: an append still says what it added, by the sequence number of its files."""
    number = snapshot.sequence_number
    if operation_of(snapshot) != APPEND or not number:
        raise InvalidInput(
            f"what snapshot {snapshot.snapshot_id} changed can no longer be told: the one before it was expired",
            place=f"table {'.'.join(table.name())}",
            hint="begin after it, with start-snapshot-id",
        )
    for path, row in after.rows.items():
        if row["data_sequence_number"] == number:
            yield after.whole(path, ordinal, is_insert=True)


def _inside(before: _Files, after: _Files, path: str, ordinal: int) -> Iterator[RowsOfFile]:
    """Rows of a file that stayed: deleted meanwhile, or (by whoever took a delete file away) there again."""
    was, now = before.deleted(path), after.deleted(path)
    for rows, is_insert in ((np.setdiff1d(now, was), False), (np.setdiff1d(was, now), True)):
        if len(rows):
            others = np.setdiff1d(np.arange(after.rows[path]["record_count"], dtype=np.int64), rows)
            yield after.whole(path, ordinal, is_insert=is_insert)._replace(but=others if len(others) else None)


class _Files:
    """The data files of one snapshot by path, with what is deleted in them."""

    def __init__(self, table: Table, planned: ScanPlan | None) -> None:
        self.table, self.plan = table, planned
        rows = [] if planned is None else planned.files.to_pylist()
        self.rows: dict[str, dict[str, Any]] = {row["path"]: row for row in rows}
        self.delete_files = [] if planned is None else planned.delete_files.to_pylist()

    def with_deletes(self) -> set[str]:
        """The files that a delete file applies to."""
        return {path for path, row in self.rows.items() if row["delete_files"]} if self.delete_files else set()

    def deletes(self, path: str) -> frozenset[tuple[str, int | None]]:
        """Which delete files apply to a file."""
        named = [self.delete_files[number] for number in self.rows[path]["delete_files"]]
        return frozenset((row["path"], row["blob_offset"]) for row in named)

    def deleted(self, path: str) -> Positions:
        """The rows of a file that are deleted."""
        numbers = self.rows[path]["delete_files"]
        if not numbers or self.plan is None:
            return np.zeros(0, np.int64)
        chosen = self.plan.delete_files.take(pa.array(numbers, pa.int64()))
        dead = deleted_positions(self.table, chosen).get(path, np.zeros(0, np.int64))
        by_value = [row for row in chosen.to_pylist() if row["content"] == "equality"]
        return np.union1d(dead, _deleted_by_value(self.table, path, by_value)) if by_value else dead

    def whole(self, path: str, ordinal: int, *, is_insert: bool) -> RowsOfFile:
        """The rows of a file that are not deleted in it."""
        row, dead = self.rows[path], self.deleted(path)
        return RowsOfFile(path, row["size"], row["format"], is_insert, ordinal, dead if len(dead) else None)


def _deleted_by_value(table: Table, path: str, delete_files: Sequence[dict[str, Any]]) -> Positions:
    """The positions of the rows whose values equality deletes name."""
    with translate_errors(f"file {path}"), reading_file(path), table.io.new_input(path).open() as stream:
        content = pq.read_table(pa.BufferReader(stream.read()), partitioning=None)
    found: set[int] = set()
    for each in delete_files:
        ids = each["equality_ids"]
        gone = set(_tuples(read_equality_deletes(table, each["path"], ids).columns))
        columns = [_values(table, content, number) for number in ids]
        found.update(at for at, values in enumerate(_tuples(columns)) if values in gone)
    return np.array(sorted(found), np.int64)


def _values(table: Table, content: pa.Table, field_id: int) -> Any:
    """A column of a file; one that is younger than the file has its initial default in all rows."""
    found = values_of_field(content, field_id)
    if found is not None:
        return found
    known = table.schema().find_column_name(field_id) is not None
    default = table.schema().find_field(field_id).initial_default if known else None
    return pa.array([default] * content.num_rows)


def _tuples(columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows; not-a-number equals itself, as in Spark."""
    return zip(*([str(v) if v != v else v for v in column.to_pylist()] for column in columns), strict=True)


def _snapshot(table: Table, number: int, place: str) -> Snapshot:
    found = table.snapshot_by_id(number)
    if found is None:
        raise InvalidInput(f"there is no snapshot {number}", place=place, hint="it may have been expired")
    return found


def _name(end: int | None) -> str:
    return "the current snapshot" if end is None else f"snapshot {end}"
