"""Files that the driver writes itself: what the storage says is told as of every other file."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakehouse import Lakehouse

from lakeproof.errors import FULL_DISK, InvalidInput, Unavailable
from lakeproof.spark.writing.worker_write import driver_files

ROWS = pa.table({"id": pa.array([1, 2]), "name": ["a", "b"]})


@pytest.mark.parametrize("at", ["open", "write_table", "close"])
def test_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Seen of a MERGE by SQL in a fault run: pyarrow's own error left `lake.sql`."""
    table = Lakehouse(tmp_path).create()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    monkeypatch.setattr(pq, "ParquetWriter", full) if at == "open" else monkeypatch.setattr(pq.ParquetWriter, at, full)
    with pytest.raises(Unavailable) as caught:
        driver_files(ROWS, [], f"{table.location()}/data/new", table)
    assert caught.value.message == FULL_DISK
    assert "data/new" in caught.value.place


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    table = Lakehouse(tmp_path).create()
    (tmp_path / "file").touch()
    with pytest.raises((InvalidInput, Unavailable)):
        driver_files(ROWS, [], f"file://{tmp_path}/file/new", table)
    assert len(driver_files(ROWS, [], f"{table.location()}/data/new", table)) == 1
