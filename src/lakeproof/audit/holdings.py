"""What every retained snapshot holds, read anew: lists, manifests, and for each entry who it is, as numbers.

A file has one number in all snapshots (a deletion vector is told by its place in its file), so that what a thousand
snapshots hold is array work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeproof.audit.metadata import Words, heads_in, parents_in, snapshots_in
from lakeproof.iceberg.inspecting.opening import RawTable
from lakeproof.iceberg.inspecting.raw_files import (
    Damaged,
    Gone,
    Listed,
    RawList,
    RawManifest,
    read_all,
    read_list,
    read_manifest,
)

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
EXISTING, ADDED, DELETED = 0, 1, 2
DATA, POSITIONS, EQUALITY = 0, 1, 2
NOBODY = -1
"""No number: an entry that names no other file, or a value that is not written down."""


class Entries(NamedTuple):
    """The entries of one manifest as arrays; what they inherit from the manifest list is filled in."""

    line: Listed
    table: pa.Table
    status: Ints
    live: Mask
    content: Ints
    file: Ints
    named: Ints
    seq: Ints
    file_seq: Ints
    snapshot: Ints
    rows: Ints
    size: Ints
    content_size: Ints

    def of(self, mask: Mask) -> list[dict[str, Any]]:
        """These entries, as dictionaries of all their columns."""
        return list(self.table.take(pa.array(np.flatnonzero(mask))).to_pylist())

    def text(self, name: str) -> list[Any]:
        """A column as plain values; nothing but `None` where the manifest does not have it."""
        if name not in self.table.column_names:
            return [None] * self.table.num_rows
        return list(self.table.column(name).to_pylist())


class Held(NamedTuple):
    """A snapshot whose list could be read: its words, the list, and those of its manifests that could be read."""

    id: int
    words: Words
    list: RawList
    entries: tuple[Entries, ...]
    whole: bool

    def joined(self, column: str, *, deletes: bool) -> Ints:
        """A column of the live entries, of all data or of all delete manifests."""
        parts = [getattr(each, column)[each.live] for each in self.entries if (each.line.content == 1) is deletes]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class Holdings:
    """The lists and manifests of every retained snapshot."""

    def __init__(self, raw: RawTable, words: Words) -> None:
        self.raw, self.words, self.io = raw, words, raw.io
        self.snapshots = snapshots_in(words)
        self.parents = parents_in(words)
        self.heads = heads_in(words)
        self.paths: list[str] = []
        self._numbers: dict[str, int] = {}
        self.lists = read_all(map(list_of, self.snapshots), partial(read_list, raw.io))
        listed = [line.path for each in self.lists.values() if isinstance(each, RawList) for line in each.lines]
        self.manifests = read_all(listed, partial(read_manifest, raw.io))
        self._entries: dict[Listed, Entries | None] = {}

    def snapshots_with(self, manifest: str) -> list[int]:
        """The snapshots whose lists name a manifest."""
        return [each.id for each in self.held if any(line.path == manifest for line in each.list.lines)]

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """The snapshots whose lists could be read, in the order of the metadata."""
        found = []
        for words in self.snapshots:
            read = self.lists[list_of(words)]
            if isinstance(read, RawList):
                entries = tuple(each for line in read.lines if (each := self.entries_of(line)) is not None)
                whole = len(entries) == len(read.lines)
                found.append(Held(int(words["snapshot-id"]), words, read, entries, whole))
        return tuple(found)

    @cached_property
    def by_id(self) -> dict[int, Held]:
        """The same by their ids."""
        return {each.id: each for each in self.held}

    def entries_of(self, line: Listed) -> Entries | None:
        """What a line of a manifest list leads to; `None`: the manifest is gone or damaged."""
        if line not in self._entries:
            read = self.manifests[line.path]
            self._entries[line] = None if isinstance(read, Damaged | Gone) else self._numbered(line, read)
        return self._entries[line]

    def _numbered(self, line: Listed, read: RawManifest) -> Entries:
        table = read.entries
        status, paths = _ints(table, "status"), table.column("path").to_pylist()
        offsets = _ints(table, "blob_offset").tolist()
        said = table.column("referenced_file").to_pylist() if "referenced_file" in table.column_names else ()
        bounds = _path_bounds(table)
        named = [_named(path, *pair) for path, pair in zip(said or [None] * len(paths), bounds, strict=True)]
        return Entries(
            line,
            table,
            status,
            status != DELETED,
            _ints(table, "content", 0),
            self._known([p if o < 0 else f"{p}#{o}" for p, o in zip(paths, offsets, strict=True)]),
            self._known(named),
            _ints(table, "seq", line.sequence_number),
            _ints(table, "file_seq", line.sequence_number),
            _ints(table, "snapshot_id", line.added_snapshot_id),
            _ints(table, "record_count"),
            _ints(table, "size"),
            np.where(np.array(offsets) < 0, _ints(table, "size"), _ints(table, "blob_size")),
        )

    def _known(self, keys: Sequence[str | None]) -> Ints:
        numbers = np.empty(len(keys), np.int64)
        known, paths = self._numbers, self.paths
        for at, key in enumerate(keys):
            if key is None:
                numbers[at] = NOBODY
                continue
            number = known.get(key)
            if number is None:
                number = known[key] = len(paths)
                paths.append(key)
            numbers[at] = number
        return numbers

    def name(self, number: int) -> str:
        """The path of a file by its number."""
        return self.paths[number].partition("#")[0]

    def holders(self, number: int) -> list[int]:
        """The snapshots in which a file is live, oldest first."""
        held = sorted(self.held, key=lambda each: int(each.words.get("sequence-number") or 0))
        return [each.id for each in held if any(np.any(some.file[some.live] == number) for some in each.entries)]


PATH_BOUNDS = ("lo2147483546", "hi2147483546")


def _path_bounds(table: pa.Table) -> list[tuple[bytes | None, bytes | None]]:
    """The bounds of the paths that position deletes name, where they say them."""
    if not set(PATH_BOUNDS) <= set(table.column_names):
        return [(None, None)] * table.num_rows
    return list(zip(*(table.column(name).to_pylist() for name in PATH_BOUNDS), strict=True))


def _named(said: str | None, low: bytes | None, high: bytes | None) -> str | None:
    """The one data file whose rows a delete file takes; `None`: several, or nobody says."""
    if said is not None or low is None or low != high:
        return said
    return low.decode("utf-8", "replace")


def _ints(table: pa.Table, name: str, missing: int = NOBODY) -> Ints:
    """A column as integers; where it has none, `missing`."""
    if name not in table.column_names:
        return np.full(table.num_rows, missing, np.int64)
    column = table.column(name).combine_chunks().cast(pa.int64()).fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def list_of(snapshot: Mapping[str, Any]) -> str:
    """The manifest list that a snapshot names; version 1 may name its manifests itself, which nobody does any more."""
    return str(snapshot.get("manifest-list") or "")
