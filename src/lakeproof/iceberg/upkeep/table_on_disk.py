"""A table as it lies: opened by folder or by metadata file, and how large its files are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyiceberg.io import FileIO
from pyiceberg.table import StaticTable, Table

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import reading_file, translate_errors


def table_at(place: str) -> Table:
    """The table of a `*.metadata.json`, or of a folder with a `metadata` folder in it; to read, not to commit to."""
    path = Path(newest_metadata(place))
    location = str(path.resolve()) if path.exists() else place
    with translate_errors(f"table {place}"), reading_file(location):
        return StaticTable.from_metadata(location)


def newest_metadata(place: str) -> str:
    """The metadata file that a place names: itself, or the newest of a table's folder."""
    path = Path(place.removeprefix("file://"))
    if not path.is_dir():
        return str(path) if path.exists() else place
    found = sorted((path / "metadata").glob("*.metadata.json"), key=lambda one: (one.stat().st_mtime, one.name))
    if not found:
        raise InvalidInput("the folder holds no table", place=place, hint="name the folder above metadata/")
    return str(found[-1])


def is_place(word: str) -> bool:
    """Whether the word names a metadata file or a folder, not a table of a catalog.

    A folder that happens to have a table's name is none, unless it holds a table.
    """
    folder = Path(word.removeprefix("file://"))
    spelled = "/" in word or (folder / "metadata").is_dir()
    return word.endswith(".metadata.json") or (spelled and folder.is_dir())


def sizes_of(io: FileIO, paths: list[str], *, threads: int = 8) -> list[int | None]:
    """The size of each file in the store; `None`: it is not there."""
    local = [path.removeprefix("file://") for path in paths]
    if all(path.startswith("/") for path in local):
        return [_local_size(path) for path in local]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda path: _size(io, path), paths))


def _local_size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None


def _size(io: FileIO, path: str) -> int | None:
    try:
        return len(io.new_input(path))
    except (OSError, FileNotFoundError):
        return None
