"""Tables of format version 3 in which rows were deleted, and what lies in their Puffin files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commit_hooks import FAST
from lakehouse import Lakehouse, insert, people, rows_of, write
from test_snapshots_made import head

from lakeproof.commit import Command, Mode, Policy, RunAgain, TableChange
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.format import DeleteContent, DeleteFile, row_set
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.format_v3.row_ids import entries_of
from lakeproof.iceberg.format_v3.vectors import entry_key
from lakeproof.iceberg.pyiceberg_names import DataFile, Table
from lakeproof.iceberg.reading.delete_files import deleted_positions
from lakeproof.iceberg.reading.manifest_cache import manifests_of
from lakeproof.iceberg.reading.planning import plan

THREE = {"format-version": "3", **FAST}


def table_of(lake: Lakehouse, *counts: int, **properties: str) -> Table:
    """A table with a file for each count, of rows 0, 1, …; `version` is its format version."""
    table = lake.create(properties={**THREE, **properties})
    start = 0
    for count in counts:
        table = insert(table, people(*range(start, start + count)))
        start += count
    return table


def deleting(
    table: Table,
    positions: Mapping[str, Sequence[int]],
    rows: Sequence[dict[str, Any]] = (),
    *,
    policy: Policy = LAKEPROOF,
    **more: Any,
) -> Committed | RunAgain:
    """A DELETE of these positions (with new rows an UPDATE) as a runtime hands it over: a change carries no file."""
    targets = tuple(sorted((path, row_set(found)) for path, found in positions.items()))
    change = TableChange(
        Command.UPDATE if rows else Command.DELETE,
        Mode.MERGE_ON_READ,
        command_id=str(uuid.uuid4()),
        scan_snapshot=head(table),
        targets=targets,
        required_data_files=tuple(positions),
        added_delete_files=tuple(
            DeleteFile(f"vector of {path}", DeleteContent.VECTOR, positions=((path, bits),)) for path, bits in targets
        ),
    )
    return commit_change(table, change, NewFiles(tuple(write(table, rows))), policy=policy, **more)


def delete(table: Table, positions: Mapping[str, Sequence[int]], **more: Any) -> Table:
    """The table without these rows."""
    answer = deleting(table, positions, **more)
    assert isinstance(answer, Committed)
    return answer.table


def paths_of(table: Table) -> list[str]:
    """The data files, in the order in which their rows were inserted."""
    files = plan(table).files.to_pylist()
    return [each["path"] for each in sorted(files, key=lambda each: each["data_sequence_number"])]


def vectors(table: Table) -> dict[str, tuple[str, list[int]]]:
    """Of each data file with a vector: the vector's key and its positions, read from the file."""
    found = {}
    planned = plan(table).delete_files
    for number, row in enumerate(planned.to_pylist()):
        assert row["content"] == "deletion-vector"
        assert row["referenced_file"] not in found, "a data file has one vector"
        [rows] = deleted_positions(table, planned.slice(number, 1)).values()
        found[row["referenced_file"]] = (f"{row['path']}#{row['blob_offset']}", rows.tolist())
    return found


def entries(table: Table, status: int) -> list[DataFile]:
    """The delete files of the head's manifests with that status."""
    manifests = [m for m in manifests_of(table.io, table.current_snapshot()) if m.content.value == 1]
    found = [each for manifest in manifests for each in entries_of(table.io, manifest)]
    return [each.data_file for each in found if each.status.value == status]


def keys(files: Sequence[DataFile]) -> list[str]:
    return [entry_key(file) for file in files]


def numbers(table: Table) -> list[int]:
    """The first column of the rows that PyIceberg reads."""
    return sorted(row[0] for row in rows_of(table))


def puffins(lake: Lakehouse) -> set[str]:
    """The Puffin files that lie there."""
    return {path.name for path in Path(lake.warehouse).rglob("*.puffin")}
