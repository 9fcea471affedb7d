"""A table's metadata as it would be elsewhere: staged under other paths, with the list of files that are to be copied.

Nothing is copied and nothing of the table is changed: whoever copies the listed files can register the table there.
Metadata, lists and manifests name absolute paths, and so do position deletes and the footers of deletion vectors.
"""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyiceberg.io import FileIO
from pyiceberg.table import Table

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.mappings import MAPPING_KEY
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.inspecting.opening import read_metadata
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone, read_bytes
from lakeproof.iceberg.mending.avro_records import AvroFile, read_avro, write_avro
from lakeproof.iceberg.mending.drafts import KEPT, Record
from lakeproof.iceberg.reading.delete_files import PATH_FIELD
from lakeproof.iceberg.tables.branches import whole_table
from lakeproof.iceberg.upkeep.moved_deletes import MOVES

_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_SIZES = ("added-files-size", "removed-files-size", "total-files-size")
_DELETED, _POSITIONS = 2, 1  # the status of an entry, and the content of a file


class StagedCopy(NamedTuple):
    """What was staged: the newest metadata file's name, the list of files (`None`: none was asked for), and how many
    manifests and delete files were written anew."""

    latest: str
    file_list: str | None
    manifests: int
    delete_files: int


class Paths(NamedTuple):
    """Where the table's files are, and where they are to be."""

    source: str
    target: str
    staging: str

    def moved(self, path: str) -> str:
        """The path of a file there."""
        return self.target + self._below(path)

    def staged(self, path: str) -> str:
        """Where its new version lies until it is copied."""
        return self.staging + self._below(path)

    def _below(self, path: str) -> str:
        if not path.startswith(self.source):
            hint = "the prefix must be common to all files of the table"
            raise InvalidInput(f"a file of the table does not lie under {self.source}", place=path, hint=hint)
        return path[len(self.source) :]


def rewrite_table_path(
    table: Table,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None = None,
    end_version: str | None = None,
    staging: str | None = None,
    with_list: bool = True,
) -> StagedCopy:
    """Stage the metadata after `start_version` (`None`: all) up to `end_version` (`None`: the newest)."""
    whole = whole_table(table)
    place = f"table {'.'.join(whole.name())}"
    paths = _paths(whole, source_prefix, target_prefix, staging, place)
    versions = [each.metadata_file for each in whole.metadata.metadata_log] + [whole.metadata_location]
    first = 0 if start_version is None else _number(versions, start_version, place) + 1
    last = len(versions) - 1 if end_version is None else _number(versions, end_version, place)
    if first > last:
        raise InvalidInput("there is nothing after start_version up to end_version", place=place)
    with translate_errors(place):
        try:
            new = _new_snapshots(whole.io, versions[first - 1], versions[last]) if first else None
            copy = _Copy(whole.io, paths, new)
            copy.versions(versions[first : last + 1])
        except Gone as error:
            hint = "give start_version, after what is gone"
            raise InvalidInput(f"a file of the table is not there: {error}", place=place, hint=hint) from None
        except Damaged as error:
            raise InvalidInput(f"a file of the table cannot be read: {error}", place=place) from None
        name = versions[last].rpartition("/")[2]
        return StagedCopy(name, copy.write_list() if with_list else None, copy.manifests, copy.delete_files)


def _paths(table: Table, source: str, target: str, staging: str | None, place: str) -> Paths:
    location = table.location()
    source, target = source.rstrip("/"), target.rstrip("/")
    if not source or not target or source == target:
        raise InvalidInput("source_prefix and target_prefix must be two places", place=place)
    if "://" not in source and location.startswith("file://"):
        source, target = (f"file://{each.removeprefix('file:')}" for each in (source, target))
    if not f"{location}/".startswith(f"{source}/"):
        raise InvalidInput(f"the table does not lie under {source}", place=place, hint=f"it lies at {location}")
    folder = table.properties.get("write.metadata.path", f"{location.rstrip('/')}/metadata").rstrip("/")
    staging = staging or f"{folder}/copy-table-staging-{uuid.uuid4()}"
    return Paths(source, target, (staging if "://" in staging else f"file://{staging}").rstrip("/"))


def _number(versions: list[str], wanted: str, place: str) -> int:
    found = [at for at, path in enumerate(versions) if wanted in (path, path.rpartition("/")[2])]
    if not found:
        hint = "versions are told by system tables: metadata_log_entries"
        raise InvalidInput(f"there is no metadata file `{wanted}`", place=place, hint=hint)
    return found[0]


def _new_snapshots(store: FileIO, before: str, after: str) -> frozenset[int]:
    """The snapshots that one metadata file knows and an earlier one does not."""
    old, new = (
        {int(each["snapshot-id"]) for each in read_metadata(store, path).get("snapshots", ())}
        for path in (before, after)
    )
    return frozenset(new - old)


class _Copy:
    """One staging; every file is written once. `new`: the snapshots whose files are wanted (`None`: all files)."""

    def __init__(self, store: FileIO, paths: Paths, new: frozenset[int] | None) -> None:
        self.store, self.paths, self.new = store, paths, new
        self.copies: dict[str, str] = {}  # what is to be copied, by where it goes
        self.lengths: dict[str, int] = {}  # of manifests and delete files, as they are there
        self.manifests = self.delete_files = 0
        self.resized = False

    def versions(self, versions: Sequence[str]) -> None:
        """These metadata files, and what the last of them names."""
        words = read_metadata(self.store, versions[-1])
        for snapshot in words.get("snapshots", ()):
            if self._is_new(snapshot["snapshot-id"]):
                self._list(str(snapshot["manifest-list"]))
        for each in (*words.get("statistics", ()), *words.get("partition-statistics", ())):
            if self._is_new(each["snapshot-id"]):
                self._copied(each["statistics-path"])
        for version in versions:
            data = json.dumps(
                _moved_words(read_metadata(self.store, version), self.paths, resized=self.resized)
            ).encode()
            self._put(version, gzip.compress(data) if version.endswith(".gz.metadata.json") else data)

    def write_list(self) -> str:
        """The list of files: a line for each, its place now and its place then."""
        path = f"{self.paths.staging}/file-list"
        lines = "".join(f"{source},{target}\n" for target, source in self.copies.items())
        with self.store.new_output(path).create() as stream:
            stream.write(lines.encode())
        return path

    def _is_new(self, snapshot_id: int) -> bool:
        return self.new is None or snapshot_id in self.new

    def _list(self, path: str) -> None:
        file = read_avro(read_bytes(self.store, path))
        name, length, made_by = (file.name(number) for number in (500, 501, 503))
        for line in file.records:
            self._manifest(line[name], line[made_by])
            line[length] = self.lengths[line[name]]
            line[name] = self.paths.moved(line[name])
        self._put(path, write_avro(file))

    def _manifest(self, path: str, made_by: int) -> None:
        """Those that were copied before are made again too: their new lengths stand in the new lists."""
        if path in self.lengths:
            return
        file = read_avro(read_bytes(self.store, path))
        status, by, inner = (file.name(number) for number in (0, 1, 2))
        for entry in file.records:
            wanted = entry[status] != _DELETED and self._is_new(made_by if entry[by] is None else entry[by])
            self._file(file, entry[inner], stage=wanted, there=entry[status] != _DELETED)
        data = write_avro(file)
        self.lengths[path] = len(data)
        if self._is_new(made_by):
            self.manifests += 1
            self._put(path, data)

    def _file(self, manifest: AvroFile, told: Record, *, stage: bool, there: bool) -> None:
        """The line of one file; what names other files is written anew, the others are copied as they are."""
        at, size = manifest.name(2, 100), manifest.name(2, 104)
        path = told[at]
        if manifest.has(2, 134) and told[manifest.name(2, 134)] == _POSITIONS:
            self._delete_file(manifest, told, path, stage=stage, there=there)
            told[size] = self.lengths.get(path, told[size])
        elif stage:
            self._copied(path)
        told[at] = self.paths.moved(path)

    def _delete_file(self, manifest: AvroFile, told: Record, path: str, *, stage: bool, there: bool) -> None:
        if there and path not in self.lengths:
            moves = MOVES.get(str(told[manifest.name(2, 101)]).upper())
            if moves is None:
                hint = "run rewrite_position_delete_files first"
                raise InvalidInput("a delete file of another format cannot be moved", place=path, hint=hint)
            data = moves(read_bytes(self.store, path), self.paths.moved)
            self.lengths[path] = len(data)
            self.resized = True
            if stage:
                self.delete_files += 1
                self._put(path, data)
        if manifest.has(2, 143) and told[manifest.name(2, 143)] is not None:
            told[manifest.name(2, 143)] = self.paths.moved(told[manifest.name(2, 143)])
        for bounds in (125, 128):
            for each in told[manifest.name(2, bounds)] or ():  # a map, written as a list of pairs
                if each["key"] == PATH_FIELD:
                    each["value"] = self.paths.moved(each["value"].decode()).encode()

    def _copied(self, path: str) -> None:
        self.copies[self.paths.moved(path)] = path

    def _put(self, path: str, data: bytes) -> None:
        """The new version of a file lies in the staging folder, and goes where its name says."""
        staged = self.paths.staged(path)
        with self.store.new_output(staged).create(overwrite=True) as stream:
            stream.write(data)
        self.copies[self.paths.moved(path)] = staged


def _moved_words(words: dict[str, Any], paths: Paths, *, resized: bool) -> dict[str, Any]:
    """A metadata file's words there. What only this place knows is left out: mappings of moved rows, and repairs; and
    the sizes that summaries tell, where delete files got others."""
    found = dict(words, location=paths.moved(words["location"]))
    properties = {name: value for name, value in words.get("properties", {}).items() if name != KEPT}
    found["properties"] = properties | {name: paths.moved(properties[name]) for name in _PLACES if name in properties}
    for part, name in (
        ("metadata-log", "metadata-file"),
        ("statistics", "statistics-path"),
        ("partition-statistics", "statistics-path"),
        ("snapshots", "manifest-list"),
    ):
        if part in words:
            found[part] = [dict(each, **{name: paths.moved(each[name])}) for each in words[part]]
    left_out = (MAPPING_KEY, *(_SIZES if resized else ()))
    for snapshot in found.get("snapshots", ()):
        snapshot["summary"] = {key: said for key, said in snapshot.get("summary", {}).items() if key not in left_out}
    return found
