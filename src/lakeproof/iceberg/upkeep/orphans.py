"""Files in the table's own folders that nothing names: leftovers of killed writers.

Only the table's data and metadata folders are looked at, and in them only files that are younger than the table itself:
a `path` option may name a folder that already held files, and those are not ours.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from lakeproof.commit.upkeep import LIST, LOAD, ORPHANS, unneeded
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.pointer import refreshed
from lakeproof.iceberg.committing.retrying import same_table
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.inspecting.forgetting import forget_everything
from lakeproof.iceberg.inspecting.whole import HINT, require_whole
from lakeproof.iceberg.mending.drafts import KEPT
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.tables.properties import whole_number
from lakeproof.iceberg.tables.tables import CREATED_PROPERTY, files_below
from lakeproof.iceberg.upkeep.reachable import reachable_files

THREE_DAYS_MS = 3 * 24 * 3_600_000
DAY_MS = 24 * 3_600_000
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([0-9a-f-]+)"')


class Orphans(NamedTuple):
    """The files that nothing names; `removed` says whether they are gone now."""

    files: tuple[str, ...]
    removed: bool


def remove_orphan_files(
    table: Table,
    *,
    older_than_ms: int | None = None,
    location: str | None = None,
    dry_run: bool = False,
    allow_young: bool = False,
    cache: ManifestCache | None = None,
) -> Orphans:
    """Remove the files that no snapshot needs and that are older than an instant (by default three days ago).

    A writer at work has files that no snapshot names yet: an instant within the last day needs `allow_young`.
    `location`: only below that folder, which must lie in the table's own. Nothing is removed while a retained snapshot
    cannot be read in full: what looks like an orphan may then be what is left of the table.
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
    below = None if location is None else _own_folder(table, location)
    listed = _read_again(table, lambda newest: _unneeded(newest, cut, cache or ManifestCache(None)))
    if below is not None:
        listed = tuple(path for path in listed if f"{_bare(path)}/".startswith(below))
    if not dry_run:
        remove_files(table, listed)
    return Orphans(listed, removed=not dry_run)


def _own_folder(table: Table, location: str) -> str:
    """The folder as paths are compared; one that is not the table's would hold files of others."""
    below = f"{_bare(location).rstrip('/')}/"
    own = [f"{_bare(folder)}/" for folder in (table.location().rstrip("/"), *_folders(table))]
    if not any(below.startswith(folder) for folder in own):
        raise InvalidInput(
            "the folder is not the table's", place=location, hint=f"give {table.location()} or a folder below it"
        )
    return below


def _folders(table: Table) -> list[str]:
    """Where the table's files lie."""
    folders = {
        table.properties.get("write.data.path", f"{table.location()}/data"),
        table.properties.get("write.metadata.path", f"{table.location()}/metadata"),
    }
    return sorted(each.rstrip("/") for each in folders)


def _read_again(table: Table, read: Callable[[Table], tuple[str, ...]]) -> tuple[str, ...]:
    """What `read` finds; where somebody expired what it was reading, it begins again with the newest metadata."""
    with translate_errors(f"table {'.'.join(table.name())}"):
        while True:
            newest = same_table(table, refreshed(table))
            try:
                return read(newest)
            except FileNotFoundError as error:
                if refreshed(table).metadata_location == newest.metadata_location:
                    place = f"table {'.'.join(table.name())}"
                    text = f"a file that a snapshot needs is not there: {error}"
                    raise InvalidInput(text, place=place, hint=HINT) from error


def _unneeded(table: Table, cut: int, cache: ManifestCache) -> tuple[str, ...]:
    """The old files of the folder that nothing names; in which order the two are read, `commit/` says."""
    listed: dict[str, int] = {}
    needed: set[str] = set()

    def load() -> None:
        newest = same_table(table, refreshed(table))
        forget_everything()
        require_whole(newest)
        needed.update(_bare(path) for path in _needed(newest, cache))

    reads = {LIST: lambda: listed.update(_listed(table)), LOAD: load}
    for phase in ORPHANS[:-1]:
        reads[phase]()
    bare = {_bare(path): path for path in listed}
    _refuse_shared_folder(table, [bare[path] for path in unneeded(bare, needed)])
    since = whole_number(table.properties, CREATED_PROPERTY, 0)
    old = {path: _owner(path) for path, ms in listed.items() if since <= ms < cut}
    orphaned = {*unneeded(old.values(), needed)}
    return tuple(sorted(path for path, owner in old.items() if owner in orphaned))


def _refuse_shared_folder(table: Table, unneeded: Iterable[str]) -> None:
    """Metadata of another table among the files says that the others may be that table's too."""
    for path in unneeded:
        if path.endswith(".metadata.json") and _table_uuid(table, path) not in ("", str(table.metadata.table_uuid)):
            raise InvalidInput(
                "another table lies in the same folder",
                place=path,
                hint="its files cannot be told from orphans: give one of the tables a folder of its own",
            )


def _table_uuid(table: Table, path: str) -> str:
    """Whose metadata file this is; nothing, where it was removed meanwhile or is the stump of a killed writer."""
    with suppress(FileNotFoundError, EOFError), table.io.new_input(path).open() as stream:
        data = bytes(stream.read())
        found = _UUID.search(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        return "" if found is None else found[1].decode()
    return ""


def _needed(table: Table, cache: ManifestCache) -> Iterator[str]:
    yield from reachable_files(table, table.metadata.snapshots, cache).all()
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    yield from (each.statistics_path for each in table.metadata.statistics)
    yield from (each.statistics_path for each in table.metadata.partition_statistics)
    yield f"{table.location()}/metadata/version-hint.text"
    yield from json.loads(table.properties.get(KEPT, "[]"))


def _listed(table: Table) -> Iterator[tuple[str, int]]:
    """Every file in the table's folders, spelled as the table would spell it, with its time of change."""
    io = table.io
    if not isinstance(io, PyArrowFileIO):
        raise InvalidInput(
            "the files of this FileIO cannot be listed", hint="set py-io-impl to PyIceberg's PyArrowFileIO"
        )
    for folder in _folders(table):
        yield from files_below(io, folder)


def _owner(path: str) -> str:
    """The file itself; of a checksum that Hadoop's local file system keeps beside a file, that file."""
    return re.sub(r"/\.([^/]+)\.crc$", r"/\1", _bare(path))


def _bare(path: str) -> str:
    """A path without what different programs spell differently: `file:/x` and `file:///x`, `s3a` and `s3`."""
    return re.sub(r"^(s3a|s3n)://", "s3://", re.sub(r"^file:/*", "/", path))
