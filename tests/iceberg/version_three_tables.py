"""Tables of format version 3 as another engine leaves them: deletion vectors in Puffin files, named by manifests."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest_list,
)
from pyiceberg.table import StaticTable

from lakeproof.iceberg.committing.new_manifests import DeleteManifestWriter
from lakeproof.iceberg.pyiceberg_names import Table


def deletion_vector_file(path: Path, vectors: dict[str, list[int]]) -> dict[str, tuple[int, int]]:
    """A Puffin file with 64-bit roaring bitmaps of array containers, and where in it each vector lies: from, length."""
    blobs, entries = b"PFA1", []
    places: dict[str, tuple[int, int]] = {}
    for name, positions in vectors.items():
        array = struct.pack(f"<{len(positions)}H", *positions)
        bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + array
        vector = b"\xd1\xd3\x39\x64" + struct.pack("<QI", 1, 0) + bitmap
        blob = struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        entries.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(blobs),
                "length": len(blob),
                "properties": {"referenced-data-file": name, "cardinality": str(len(positions))},
            }
        )
        places[name] = (len(blobs), len(blob))
        blobs += blob
    footer = json.dumps({"blobs": entries}).encode()
    path.write_bytes(blobs + b"PFA1" + footer + struct.pack("<I", len(footer)) + b"\0\0\0\0" + b"PFA1")
    return places


class VersionThreeDeletes(DeleteManifestWriter):
    """Writes the fields of format version 3 that name a deletion vector; PyIceberg knows them but writes none."""

    @property
    def version(self) -> Any:
        return 3

    def new_writer(self) -> Any:
        schema = self._with_partition(3)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)


def version_three(table: Table, delete_files: list[DataFile]) -> Table:
    """The table as another engine left it: format version 3, with these delete files in one more snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    number = (snapshot.sequence_number or 0) + 1
    path = f"{table.location()}/metadata/vectors.avro"
    writer = VersionThreeDeletes(table.spec(), table.schema(), table.io.new_output(path), 99, "deflate")
    with writer:
        for file in delete_files:
            entry = ManifestEntry.from_args(
                _table_format_version=3, status=ManifestEntryStatus.ADDED, snapshot_id=99, data_file=file
            )
            writer.add_entry(entry)
    listed = f"{table.location()}/metadata/snap-99.avro"
    with write_manifest_list(2, table.io.new_output(listed), 99, snapshot.snapshot_id, number, "deflate") as lists:
        lists.add_manifests([*snapshot.manifests(table.io), writer.to_manifest_file()])
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    newest = {
        **metadata["snapshots"][-1],
        "snapshot-id": 99,
        "parent-snapshot-id": snapshot.snapshot_id,
        "sequence-number": number,
        "summary": {"operation": "delete"},
        "manifest-list": listed,
    }
    metadata.update({"format-version": 3, "next-row-id": 10, "current-snapshot-id": 99, "last-sequence-number": number})
    metadata["snapshots"].append(newest)
    metadata["snapshot-log"].append({"snapshot-id": 99, "timestamp-ms": newest["timestamp-ms"]})
    metadata["refs"]["main"]["snapshot-id"] = 99
    target = Path(table.location().removeprefix("file://")) / "metadata" / "v3.metadata.json"
    target.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(f"file://{target}")
