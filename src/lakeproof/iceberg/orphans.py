"""Files in the table's own folders that nothing names: leftovers of killed writers.

Only the table's data and metadata folders are looked at, and in them only files that are younger than the table itself:
a `path` option may name a folder that already held files, and those are not ours.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from pyarrow.fs import FileInfo, FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.cache import ManifestCache, shared_cache
from lakeproof.iceberg.commit import remove_files
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.reachable import reachable
from lakeproof.iceberg.tables import CREATED_PROPERTY

THREE_DAYS_MS = 3 * 24 * 3_600_000
DAY_MS = 24 * 3_600_000


class Orphans(NamedTuple):
    """The files that nothing names; `removed` says whether they are gone now."""

    files: tuple[str, ...]
    removed: bool


def remove_orphan_files(
    table: Table,
    *,
    older_than_ms: int | None = None,
    dry_run: bool = False,
    allow_young: bool = False,
    cache: ManifestCache | None = None,
) -> Orphans:
    """Remove the files that no snapshot needs and that are older than an instant (by default three days ago).

    A writer at work has files that no snapshot names yet: an instant within the last day needs `allow_young`.
    """
    place = f"table {'.'.join(table.name())}"
    now = time.time_ns() // 1_000_000
    cut = now - THREE_DAYS_MS if older_than_ms is None else older_than_ms
    if cut > now - DAY_MS and not (allow_young or dry_run):
        raise InvalidInput(
            "files younger than a day may belong to a writer at work",
            place=place,
            hint="choose an older instant, or look first with dry_run",
        )
    with spoken(place):
        needed = {_bare(path) for path in _needed(table, cache or shared_cache())}
        since = int(table.properties.get(CREATED_PROPERTY, 0))
        found = tuple(sorted(path for path, ms in _listed(table) if since <= ms < cut and _owner(path) not in needed))
        if not dry_run:
            remove_files(table, found)
    return Orphans(found, removed=not dry_run)


def _needed(table: Table, cache: ManifestCache) -> Iterator[str]:
    yield from reachable(table, table.metadata.snapshots, cache).all()
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    yield from (each.statistics_path for each in table.metadata.statistics)
    yield from (each.statistics_path for each in table.metadata.partition_statistics)
    yield f"{table.location()}/metadata/version-hint.text"


def _listed(table: Table) -> Iterator[tuple[str, int]]:
    """Every file in the table's folders, spelled as the table would spell it, with its time of change."""
    io = table.io
    if not isinstance(io, PyArrowFileIO):
        raise InvalidInput(
            "the files of this FileIO cannot be listed", hint="set py-io-impl to PyIceberg's PyArrowFileIO"
        )
    folders = {
        table.properties.get("write.data.path", f"{table.location()}/data"),
        table.properties.get("write.metadata.path", f"{table.location()}/metadata"),
    }
    for folder in sorted(each.rstrip("/") for each in folders):
        scheme, netloc, path = io.parse_location(folder, io.properties)
        selector = FileSelector(path, allow_not_found=True, recursive=True)
        for info in io.fs_by_scheme(scheme, netloc).get_file_info(selector):
            if info.type == FileType.File:
                yield folder + info.path[len(path) :], _changed_ms(info)


def _changed_ms(info: FileInfo) -> int:
    return 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000


def _owner(path: str) -> str:
    """The file itself; of a checksum that Hadoop's local file system keeps beside a file, that file."""
    return re.sub(r"/\.([^/]+)\.crc$", r"/\1", _bare(path))


def _bare(path: str) -> str:
    """A path without what different programs spell differently: `file:/x` and `file:///x`, `s3a` and `s3`."""
    return re.sub(r"^(s3a|s3n)://", "s3://", re.sub(r"^file:/*", "/", path))
