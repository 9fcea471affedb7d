"""A table as it lies: opened by name, by folder or by metadata file, and what its manifests and files really hold."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of, shared_cache

_STATUSES = ("existing", "added", "deleted")


def table_at(place: str) -> Table:
    """The table of a `*.metadata.json`, or of a folder with a `metadata` folder in it; to read, not to commit to."""
    path = Path(place.removeprefix("file://"))
    if path.is_dir():
        found = sorted((path / "metadata").glob("*.metadata.json"), key=lambda one: (one.stat().st_mtime, one.name))
        if not found:
            raise InvalidInput("the folder holds no table", place=place, hint="name the folder above metadata/")
        path = found[-1]
    location = str(path.resolve()) if path.exists() else place
    with translate_errors(f"table {place}"):
        return StaticTable.from_metadata(location)


def is_place(word: str) -> bool:
    """Whether the word names a metadata file or a folder, not a table of a catalog.

    A folder that happens to have a table's name is none, unless it holds a table.
    """
    folder = Path(word.removeprefix("file://"))
    spelled = "/" in word or (folder / "metadata").is_dir()
    return word.endswith(".metadata.json") or (spelled and folder.is_dir())


class ManifestCount(NamedTuple):
    """What the manifest list says of a manifest, and what is in it: (existing, added, deleted) files."""

    manifest: str
    said: tuple[int, int, int]
    counted: tuple[int, int, int]


def manifest_counts(table: Table, snapshot: Snapshot, cache: ManifestCache | None = None) -> Iterator[ManifestCount]:
    """Every manifest of a snapshot whose list says how many files it holds."""
    for manifest, statuses in _statuses(table, snapshot, cache or shared_cache()):
        said = (manifest.existing_files_count, manifest.added_files_count, manifest.deleted_files_count)
        if None not in said:
            counted = tuple(int((statuses == status).sum()) for status in range(len(_STATUSES)))
            yield ManifestCount(manifest.manifest_path, said, counted)  # type: ignore[arg-type]


def _statuses(
    table: Table, snapshot: Snapshot, cache: ManifestCache
) -> Iterator[tuple[ManifestFile, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    manifests = manifests_of(table.io, snapshot)
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        chosen = [manifest for manifest in manifests if manifest.content == content]
        for segment, spans in cache.load(table.io, chosen):
            status = segment.numpy("status")
            for span in spans:
                yield span.manifest, status[span.first : span.first + span.rows]


class Late(NamedTuple):
    """A live file whose sequence number is greater than its snapshot's."""

    file: str
    sequence_number: int


def files_from_the_future(table: Table, snapshot: Snapshot, cache: ManifestCache | None = None) -> Iterator[Late]:
    """Live files that claim to be younger than the snapshot that holds them."""
    limit = snapshot.sequence_number or 0
    manifests = manifests_of(table.io, snapshot)
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        chosen = [manifest for manifest in manifests if manifest.content == content]
        for segment, spans in (cache or shared_cache()).load(table.io, chosen):
            mine = np.zeros(segment.rows, bool)
            for span in spans:
                mine[span.first : span.first + span.rows] = True
            for row in np.flatnonzero(mine & segment.live & (segment.seq > limit)):
                yield Late(segment.column("path")[int(row)].as_py(), int(segment.seq[row]))


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
