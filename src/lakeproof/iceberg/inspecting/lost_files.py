"""A file that was moved inside its table's folder is found again by its name and its size."""

from __future__ import annotations

import uuid
from contextlib import suppress

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakeproof.iceberg.inspecting.raw_files import read_bytes
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


def put_back(store: FileIO, source: str, target: str) -> None:
    """Copy a file to where it is missed; it is there whole or not at all, whenever this is interrupted."""
    assert isinstance(store, PyArrowFileIO)  # of another store no copy is found
    half = f"{target}.{uuid.uuid4()}.copy"
    try:
        with store.new_output(half).create() as stream:
            stream.write(read_bytes(store, source))
        scheme, netloc, path = store.parse_location(half, store.properties)
        _, _, place = store.parse_location(target, store.properties)
        store.fs_by_scheme(scheme, netloc).move(path, place)
    except BaseException:
        with suppress(OSError):
            store.delete(half)
        raise
