"""What a planted fault is made with: metadata, lists, manifests and files of a real table are written over in place."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from lakehouse import path_of
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)

from lakeproof.iceberg.committing.new_manifests import DeleteManifestWriter
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.upkeep.table_on_disk import table_at

Words = dict[str, Any]
FIELDS = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[2].fields]


def reread(table: Table) -> Table:
    """The table as its metadata file now says it."""
    return table_at(str(path_of(table.metadata_location)))


def change_words(table: Table, change: Callable[[Words], None]) -> None:
    path = path_of(table.metadata_location)
    text = json.loads(path.read_text())
    change(text)
    path.write_text(json.dumps(text))


def head_of(words: Words) -> Words:
    """The newest snapshot."""
    found: Words = words["snapshots"][-1]
    return found


def change_lists(
    table: Table, change: Callable[[list[ManifestFile]], list[ManifestFile] | None], *, only: int | None = None
) -> None:
    """The manifest list of every snapshot (or of one, by its place) is written anew with other lines."""
    for number, snapshot in enumerate(table.metadata.snapshots):
        if only is not None and number != only % len(table.metadata.snapshots):
            continue
        manifests = list(read_manifest_list(table.io.new_input(snapshot.manifest_list)))
        changed = change(manifests)
        path = path_of(snapshot.manifest_list)
        with write_manifest_list(
            2,
            table.io.new_output(f"file://{path}.new"),
            snapshot.snapshot_id,
            snapshot.parent_snapshot_id,
            snapshot.sequence_number or 0,
            "deflate",
        ) as writer:
            writer.add_manifests(manifests if changed is None else changed)
        shutil.move(f"{path}.new", path)


def set_line(manifest: ManifestFile, name: str, value: Any) -> None:
    """One field of a line of a manifest list."""
    manifest[FIELDS.index(name)] = value


def first_manifest(table: Table, content: ManifestContent = ManifestContent.DATA, status: int = 1) -> ManifestFile:
    """The oldest manifest of the head with such a live entry."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = [m for m in snapshot.manifests(table.io) if m.content == content]
    return sorted(found, key=lambda m: m.sequence_number)[0]


def change_manifest(
    table: Table,
    change: Callable[[list[ManifestEntry]], list[ManifestEntry] | None],
    *,
    content: ManifestContent = ManifestContent.DATA,
    agree: bool = False,
) -> None:
    """The oldest manifest of the head is written anew; `agree`: the lists then count what is in it."""
    manifest = first_manifest(table, content)
    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    changed = change(entries)
    spec = table.specs()[manifest.partition_spec_id]
    kind = DeleteManifestWriter if content == ManifestContent.DELETES else ManifestWriterV2
    path = path_of(manifest.manifest_path)
    output = table.io.new_output(f"file://{path}.new")
    with kind(spec, table.schema(), output, manifest.added_snapshot_id or 0, "deflate") as writer:
        for entry in entries if changed is None else changed:
            writer.add_entry(entry)
    counted = writer.to_manifest_file()
    shutil.move(f"{path}.new", path)
    names = [f"{how}_{what}_count" for what in ("files", "rows") for how in ("added", "existing", "deleted")]

    def counts(lines: list[ManifestFile]) -> None:
        for line in lines:
            if line.manifest_path == manifest.manifest_path:
                set_line(line, "manifest_length", path.stat().st_size)
                for name in names if agree else ():
                    set_line(line, name, counted[FIELDS.index(name)])

    change_lists(table, counts)


def restated(entry: ManifestEntry, status: ManifestEntryStatus) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def first_file(table: Table) -> str:
    """The oldest data file of the head."""
    entries = first_manifest(table).fetch_manifest_entry(table.io)
    return str(entries[0].data_file.file_path)


def delete_file(table: Table) -> str:
    return str(plan(table).delete_files["path"].to_pylist()[0])


def rewrite_file(
    table: Table, change: Callable[[pa.Table], pa.Table], *, path: str = "", pad: bool = False, **how: Any
) -> None:
    """A Parquet file is written over; `pad`: its size stays what it was."""
    place = path_of(path or first_file(table))
    size = place.stat().st_size
    content = change(pq.read_table(place, partitioning=None))
    pq.write_table(content, place, **how)
    if pad:
        pad_parquet(place.read_bytes(), size, place)


def pad_parquet(data: bytes, size: int, place: Any) -> None:
    """A Parquet file becomes as large as asked: bytes that nobody reads lie before its footer."""
    (footer,) = struct.unpack("<I", data[-8:-4])
    begin = len(data) - 8 - footer
    assert size >= len(data), (size, len(data))
    place.write_bytes(data[:begin] + b"\0" * (size - len(data)) + data[begin:])


def flip(place: Any, at: int) -> None:
    """One byte of a file is another."""
    data = bytearray(place.read_bytes())
    data[at] ^= 0xFF
    place.write_bytes(bytes(data))
