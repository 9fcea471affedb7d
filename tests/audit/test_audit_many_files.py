"""An audit of a hundred thousand files, deletes and an undelete among them, in under a minute."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from lakehouse import PEOPLE, Lakehouse, path_of, people, write
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from lakeproof.audit import audit
from lakeproof.commit import POLICIES, Command, Mode, TableChange
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.tables.tables import PartitionBy

pytestmark = pytest.mark.slow
FILES, COMMITS, BUCKETS, BYTES = 100_000, 20, 16, 10
DELETES, DELETED_FILES = 5, 200


def path_at(table: Table, number: int) -> str:
    return f"{table.location()}/data/{number}.parquet"


def data_file(table: Table, number: int) -> DataFile:
    """A file of a hundred rows, as far as metadata say; ten bytes lie in its place."""
    path_of(path_at(table, number)).write_bytes(b"x" * BYTES)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path_at(table, number),
        file_format=FileFormat.PARQUET,
        partition=Record(number % BUCKETS),
        record_count=100,
        file_size_in_bytes=BYTES,
        value_counts={1: 100},
        null_value_counts={1: 0},
        lower_bounds={1: number.to_bytes(8, "little")},
        upper_bounds={1: (number + 99).to_bytes(8, "little")},
    )
    file.spec_id = table.spec().spec_id
    return file


def row_level(table: Table, command: Command, numbers: range, row: int, read: int, *, new: bool = False) -> Table:
    """A command of Apache Iceberg's rules that takes one row out of each of these files."""
    deletes = tuple(
        write_position_deletes(table, path_at(table, n), np.array([row]), partition=(n % BUCKETS,)) for n in numbers
    )
    change = TableChange(
        command,
        Mode.MERGE_ON_READ,
        command_id=f"{command} {row} {read}",
        scan_snapshot=read,
        targets=tuple(sorted((path_at(table, n), 1 << row) for n in numbers)),
        required_data_files=tuple(path_at(table, n) for n in numbers),
    )
    files = NewFiles(tuple(write(table, people(1, name="new"))) if new else (), deletes)
    done = commit_change(table, change, files, policy=POLICIES["iceberg-spark"])
    assert isinstance(done, Committed)
    return done.table


def head(table: Table) -> int:
    found = table.current_snapshot()
    assert found is not None
    return found.snapshot_id


def test_a_hundred_thousand_files_in_under_a_minute(tmp_path: Path) -> None:
    lake = Lakehouse(tmp_path)
    table = lake.create("big", PEOPLE, (PartitionBy("id", f"bucket[{BUCKETS}]"),))
    path_of(path_at(table, 0)).parent.mkdir(parents=True)
    for start in range(0, FILES, FILES // COMMITS):
        table = append(table, [data_file(table, n) for n in range(start, start + FILES // COMMITS)]).table
    for number in range(DELETES):
        files = range(number * DELETED_FILES, (number + 1) * DELETED_FILES)
        table = row_level(table, Command.DELETE, files, row=number, read=head(table))
    read = head(table)
    table = row_level(table, Command.UPDATE, range(7, 8), 50, read, new=True)
    update = head(table)
    table = row_level(table, Command.DELETE, range(7, 8), 50, read)
    path_of(path_at(table, 99_999)).unlink()

    begun = time.monotonic()
    found = audit(table, POLICIES["lakeproof"], name="big")
    seconds = time.monotonic() - begun
    print(f"\n{FILES} data files, {DELETES * DELETED_FILES + 2} delete files: audited in {seconds:.1f} s")
    assert found.snapshots == COMMITS + DELETES + 2
    assert [(one.kind, one.snapshots[-2:]) for one in found.findings] == [
        ("undelete", (update, head(table))),
        ("missing_file", (update, head(table))),
    ]
    assert len(found.findings[1].snapshots) == 1 + DELETES + 2  # every snapshot since the file was added
    assert found.findings[1].files == (path_at(table, 99_999),)
    assert seconds < 60
