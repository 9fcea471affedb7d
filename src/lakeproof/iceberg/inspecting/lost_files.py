"""A file that was moved inside its table's folder is found again by its name and its size."""

from __future__ import annotations

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakeproof.iceberg.tables.tables import files_below
from lakeproof.iceberg.upkeep.table_on_disk import sizes_of


def find_copy(store: FileIO, folder: str, path: str, size: int | None) -> str | None:
    """Another file below the folder that has the name of the lost one and, where it is known, its size."""
    if not isinstance(store, PyArrowFileIO):
        return None
    name = path.rpartition("/")[2]
    found = [each for each, _ in files_below(store, folder) if each.rpartition("/")[2] == name and each != path]
    there = [each for each, real in zip(found, sizes_of(store, found), strict=True) if size is None or real == size]
    return there[0] if len(there) == 1 else None
