"""The disk is full at any write of any file: one sentence, no change, and the next try goes well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from full_disk import Disk
from lakehouse import Lakehouse, insert, people, rows_of, write
from pyiceberg.io.pyarrow import PyArrowFile

from lakeproof.errors import FULL_DISK, LakeproofError, Unavailable
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.committing.whole_file_commits import append, overwrite_where
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.refs import create_tag
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests


def appended(table: Table) -> None:
    append(table, write(table, people(7)))


COMMANDS: dict[str, Callable[[Table, Any], Any]] = {
    "append": lambda table, files: append(table, files),
    "overwrite": lambda table, files: overwrite_where(table, ALWAYS, files),
    "manifests": lambda table, files: rewrite_manifests(table),
    "expiry": lambda table, files: expire_snapshots(table, older_than_ms=2**62, retain_last=1),
    "tag": lambda table, files: create_tag(table, "x"),
}


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str) -> None:
    lake = Lakehouse(tmp_path)
    table = insert(insert(lake.create(properties={"format-version": version}), people(1, 2)), people(3))
    rows, told = rows_of(table), []
    for room in range(0, 200, 2):
        table = lake.load()
        files = write(table, people(7))
        disk = Disk(room)
        monkeypatch.setattr(PyArrowFile, "create", disk.create())
        try:
            COMMANDS[name](table, files)
        except LakeproofError as error:
            told.append((type(error), getattr(error, "message", str(error))))
        finally:
            monkeypatch.setattr(PyArrowFile, "create", disk.real)
        if disk.calls <= room:
            break
        assert rows_of(lake.as_pyiceberg_opens_it()) == rows
    else:
        pytest.fail("it never went well")
    assert set(told) == {(Unavailable, FULL_DISK)}
