"""Manifests never change, so each is decoded once and kept: in memory, then on disk.

On disk a segment is an Arrow file, written aside and renamed, with its checksum in a small index (SQLite). Whatever is
wrong with the disk (read-only, full, another program's lock, a damaged file) only means decoding again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.failures import DamagedFile, reading_file
from lakeproof.iceberg.pyiceberg_private import read_manifests
from lakeproof.iceberg.reading.avro import verify
from lakeproof.iceberg.reading.decode import decode_manifests, schema_of
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.segments import Segment, Span
from lakeproof.private_folders import private_cache

LAYOUT = "2"  # raise it when the columns of a segment change
BATCH_BYTES = 4 << 20
SCATTERED = 16  # more small segments than this in one plan are decoded again as one
SMALL_ROWS = 2_000
MEMORY_BYTES = 1 << 30
DISK_BYTES = 2 << 30

Key = tuple[str, int]  # a manifest's path and length: a re-created table may use a path again
Place = tuple[str, int, int]  # segment, first row, rows

_SCHEMA = """
create table if not exists segments (name text primary key, bytes int, checksum int, used real);
create table if not exists manifests (path text, length int, segment text, first int, rows int,
  primary key (path, length));
"""


class ManifestCache:
    """Decoded manifests of all tables; safe for threads, and its folder for processes."""

    def __init__(self, folder: Path | None, *, memory_bytes: int = MEMORY_BYTES, disk_bytes: int = DISK_BYTES) -> None:
        self.folder, self.memory_bytes, self.disk_bytes = folder, memory_bytes, disk_bytes
        self.decoded = 0  # manifests decoded by this process
        self._segments: OrderedDict[str, Segment] = OrderedDict()
        self._places: dict[Key, Place] = {}
        self._lock = threading.RLock()

    def load(self, io: FileIO, manifests: Sequence[ManifestFile]) -> list[tuple[Segment, list[Span]]]:
        """Segments that hold these manifests, each with the rows of its own."""
        groups = self._grouped(manifests)
        if groups is None:
            self._find_on_disk(manifests)
            groups = self._grouped(manifests)
        if groups is None:
            with self._lock:
                missing = [m for m in manifests if self._place(m) is None]
            self._decode(io, missing)
            groups = self._grouped(manifests)
        if groups is None:  # more than memory holds: decode them for this plan alone
            return self._decode(io, list(manifests))
        return self._gathered(io, groups)

    def _place(self, manifest: ManifestFile) -> Place | None:
        place = self._places.get((manifest.manifest_path, manifest.manifest_length))
        return place if place is not None and place[0] in self._segments else None

    def _grouped(self, manifests: Sequence[ManifestFile]) -> list[tuple[Segment, list[Span]]] | None:
        with self._lock:
            groups: dict[str, list[Span]] = {}
            for manifest in manifests:
                place = self._place(manifest)
                if place is None:
                    return None
                groups.setdefault(place[0], []).append(Span(manifest, place[1], place[2]))
            for name, spans in groups.items():
                self._segments.move_to_end(name)
                self._segments[name].inherit(spans)
            return [(self._segments[name], spans) for name, spans in groups.items()]

    def _gathered(self, io: FileIO, groups: list[tuple[Segment, list[Span]]]) -> list[tuple[Segment, list[Span]]]:
        """Many small segments (a commit each) become one, so that a plan costs the same after a thousand commits."""
        small = [(segment, spans) for segment, spans in groups if segment.rows <= SMALL_ROWS]
        if len(small) <= SCATTERED:
            return groups
        large = [(segment, spans) for segment, spans in groups if segment.rows > SMALL_ROWS]
        return large + self._decode(io, [span.manifest for _, spans in small for span in spans])

    def _decode(self, io: FileIO, manifests: Sequence[ManifestFile]) -> list[tuple[Segment, list[Span]]]:
        made = []
        for batch in _batches(io, manifests):
            table, rows = _decoded(batch)
            spans, first = [], 0
            for (manifest, _), count in zip(batch, rows, strict=True):
                spans.append(Span(manifest, first, count))
                first += count
            segment = Segment(table)
            segment.inherit(spans)
            self._keep(_name(batch), segment, spans)
            self._save(_name(batch), table, spans)
            made.append((segment, spans))
        self.decoded += len(manifests)
        return made

    def _keep(self, name: str, segment: Segment, spans: Sequence[Span]) -> None:
        with self._lock:
            self._segments[name] = segment
            for span in spans:
                self._places[(span.manifest.manifest_path, span.manifest.manifest_length)] = (
                    name,
                    span.first,
                    span.rows,
                )
            while len(self._segments) > 1 and sum(s.table.nbytes for s in self._segments.values()) > self.memory_bytes:
                self._segments.popitem(last=False)

    # ---- the disk

    @contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.folder / "index.db", timeout=2)) as index, index:
            index.executescript(_SCHEMA)
            yield index

    def _find_on_disk(self, manifests: Sequence[ManifestFile]) -> None:
        if self.folder is None or not (self.folder / "index.db").exists():
            return
        with self._lock:
            wanted = [m for m in manifests if self._place(m) is None]
        with suppress(OSError, sqlite3.Error, pa.ArrowException), self._index() as index:
            found: dict[str, list[Span]] = {}
            for manifest in wanted:
                query = "select segment, first, rows from manifests where path = ? and length = ?"
                row = index.execute(query, (manifest.manifest_path, manifest.manifest_length)).fetchone()
                if row is not None:
                    found.setdefault(row[0], []).append(Span(manifest, row[1], row[2]))
            for name, spans in found.items():
                self._open(index, name, spans)

    def _open(self, index: sqlite3.Connection, name: str, spans: Sequence[Span]) -> None:
        row = index.execute("select bytes, checksum from segments where name = ?", (name,)).fetchone()
        file = self._file(name)
        if row is None or not file.exists():
            return
        with pa.memory_map(str(file)) as mapped:
            data = mapped.read_buffer()
        if (data.size, zlib.crc32(data)) != row:
            file.unlink(missing_ok=True)  # torn or damaged
            return
        segment = Segment(pa.ipc.open_file(data).read_all())
        index.execute("update segments set used = ? where name = ?", (time.time(), name))
        self._keep(name, segment, spans)

    def _save(self, name: str, table: pa.Table, spans: Sequence[Span]) -> None:
        if self.folder is None:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        data = sink.getvalue()
        aside = self._file(f"{name}.{os.getpid()}.{threading.get_ident()}")
        with suppress(OSError, sqlite3.Error), self._index() as index:
            aside.write_bytes(data)
            aside.replace(self._file(name))
            index.execute(
                "insert or replace into segments values (?, ?, ?, ?)", (name, data.size, zlib.crc32(data), time.time())
            )
            index.executemany(
                "insert or replace into manifests values (?, ?, ?, ?, ?)",
                [(s.manifest.manifest_path, s.manifest.manifest_length, name, s.first, s.rows) for s in spans],
            )
            self._evict(index)

    def _evict(self, index: sqlite3.Connection) -> None:
        """The least recently used segments go until the folder is below its limit."""
        total = index.execute("select coalesce(sum(bytes), 0) from segments").fetchone()[0]
        for name, size in index.execute("select name, bytes from segments order by used").fetchall():
            if total <= self.disk_bytes:
                return
            self._file(name).unlink(missing_ok=True)
            index.execute("delete from segments where name = ?", (name,))
            index.execute("delete from manifests where segment = ?", (name,))
            total -= size

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.arrow"


def _batches(io: FileIO, manifests: Sequence[ManifestFile]) -> Iterator[list[tuple[ManifestFile, bytes]]]:
    """Manifests that may be decoded together: one spec, one Avro schema, a few megabytes."""
    open_batches: dict[tuple[int, bytes], list[tuple[ManifestFile, bytes]]] = {}
    for manifest in manifests:
        with reading_file(manifest.manifest_path):
            data = read_whole(io, manifest.manifest_path)
            if len(data) != manifest.manifest_length:  # what was cut between two blocks looks whole
                raise ValueError(f"cut or damaged, {len(data)} bytes where {manifest.manifest_length} are said")
            schema = schema_of(data)
        batch = open_batches.setdefault((manifest.partition_spec_id, schema), [])
        if batch and sum(len(each) for _, each in batch) + len(data) > BATCH_BYTES:
            yield list(batch)
            batch.clear()
        batch.append((manifest, data))
    yield from (batch for batch in open_batches.values() if batch)


def _decoded(batch: Sequence[tuple[ManifestFile, bytes]]) -> tuple[pa.Table, list[int]]:
    """The entries of a batch; where it cannot be decoded, one of its files is named."""
    try:
        with reading_file(batch[0][0].manifest_path):
            return decode_manifests([data for _, data in batch])
    except DamagedFile:
        for manifest, data in batch:
            with reading_file(manifest.manifest_path):
                decode_manifests([data])
        raise


def _name(batch: Sequence[tuple[ManifestFile, bytes]]) -> str:
    keys = [LAYOUT, *(f"{manifest.manifest_path}\n{manifest.manifest_length}" for manifest, _ in batch)]
    return hashlib.blake2b("\n".join(keys).encode(), digest_size=16).hexdigest()


_manifest_lists: Recent[tuple[ManifestFile, ...]] = Recent(256)


def manifests_of(io: FileIO, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot (`None`: of an empty table); a manifest list never changes either."""
    if snapshot is None:
        return ()
    path = snapshot.manifest_list
    return _manifest_lists.get(path, lambda: _list_at(io, path))


def read_whole(io: FileIO, path: str) -> bytes:
    """The bytes of a file."""
    with io.new_input(path).open() as stream:
        return bytes(stream.read())


def _list_at(io: FileIO, path: str) -> tuple[ManifestFile, ...]:
    with reading_file(path):
        verify(read_whole(io, path))
        return read_manifests(io, path)


def forget_lists() -> None:
    """Every manifest list is read again: somebody doubts that they are as they were."""
    _manifest_lists.clear()


def default_folder() -> Path | None:
    """`LAKEPROOF_CACHE`, or `lakeproof` in the user's cache folder; `None`: others could write to that."""
    if given := os.environ.get("LAKEPROOF_CACHE"):
        return Path(given)
    cache = private_cache()
    return None if cache is None else cache / "manifests"


_shared: ManifestCache | None = None


def shared_cache() -> ManifestCache:
    """The cache that every plan of this process uses unless it is given another."""
    global _shared
    if _shared is None:
        _shared = ManifestCache(default_folder())
    return _shared
