"""Files and manifest entries: of one snapshot, or of all that the table still has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.format_v3.row_ids import entries_of
from lakeproof.iceberg.metadata_tables.columns import FileColumns, Row
from lakeproof.iceberg.reading.manifest_cache import manifests_of

BOTH = (ManifestContent.DATA, ManifestContent.DELETES)
DATA, DELETES = BOTH[:1], BOTH[1:]
Contents = tuple[ManifestContent, ...]


def files(table: Table, snapshots: Iterable[Snapshot | None], contents: Contents) -> pa.Table:
    """The live files of the snapshots, each manifest read once."""
    columns = FileColumns(table)
    rows: list[Row] = []
    for manifest, entry in _entries(table, snapshots, contents, live=True):
        file = entry.data_file
        rows.append({**columns.row(file, manifest.partition_spec_id), "readable_metrics": columns.metrics_row(file)})
    return pa.Table.from_pylist(rows, schema=pa.schema([*columns.fields, columns.readable]))


def entries(table: Table, snapshots: Iterable[Snapshot | None]) -> pa.Table:
    """The entries of the snapshots' manifests, those of removed files included."""
    columns = FileColumns(table)
    rows: list[Row] = []
    for manifest, entry in _entries(table, snapshots, BOTH, live=False):
        file = entry.data_file
        rows.append(
            {
                "status": entry.status.value,
                "snapshot_id": entry.snapshot_id,
                "sequence_number": entry.sequence_number,
                "file_sequence_number": entry.file_sequence_number,
                "data_file": columns.row(file, manifest.partition_spec_id),
                "readable_metrics": columns.metrics_row(file),
            }
        )
    numbers = [(name, pa.int64()) for name in ("snapshot_id", "sequence_number", "file_sequence_number")]
    listed = [pa.field(*each) for each in (("status", pa.int32()), *numbers, ("data_file", pa.struct(columns.fields)))]
    return pa.Table.from_pylist(rows, schema=pa.schema([*listed, columns.readable]))


def manifest_entries(table: Table, manifest: ManifestFile, *, live: bool) -> list[ManifestEntry]:
    """The entries of one manifest, with the numbers that they inherit."""
    found = entries_of(table.io, manifest)
    return [entry for entry in found if not live or entry.status != ManifestEntryStatus.DELETED]


def _entries(
    table: Table, snapshots: Iterable[Snapshot | None], contents: Contents, *, live: bool
) -> Iterator[tuple[ManifestFile, ManifestEntry]]:
    seen: set[str] = set()
    for snapshot in snapshots:
        for manifest in manifests_of(table.io, snapshot):
            if manifest.manifest_path not in seen and manifest.content in contents:
                seen.add(manifest.manifest_path)
                for entry in manifest_entries(table, manifest, live=live):
                    yield manifest, entry
