"""The partitions of a snapshot: how much lies in each, and when it was changed last."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.metadata_tables.columns import TIME, FileColumns, Row, instant
from lakeproof.iceberg.metadata_tables.files import manifest_entries
from lakeproof.iceberg.reading.manifest_cache import manifests_of

_COUNTS = (
    ("record_count", pa.int64()),
    ("file_count", pa.int32()),
    ("total_data_file_size_in_bytes", pa.int64()),
    ("position_delete_record_count", pa.int64()),
    ("position_delete_file_count", pa.int32()),
    ("equality_delete_record_count", pa.int64()),
    ("equality_delete_file_count", pa.int32()),
)
_LAST = (("last_updated_at", TIME), ("last_updated_snapshot_id", pa.int64()))


def partitions(table: Table, snapshot: Snapshot | None) -> pa.Table:
    """One row per partition; an unpartitioned table has one row without a partition."""
    columns = FileColumns(table)
    found: dict[Any, Row] = {}
    for manifest in manifests_of(table.io, snapshot):
        for entry in manifest_entries(table, manifest, live=True):
            file, spec_id = entry.data_file, manifest.partition_spec_id
            partition = columns.partition_row(file.partition, spec_id)
            row = found.setdefault(tuple(partition.values()), _new(partition))
            _count(row, file)
            row["spec_id"] = max(spec_id, row["spec_id"])
            _note_snapshot(table, row, entry.snapshot_id)
    kept = [("partition", columns.partition), ("spec_id", pa.int32())] if columns.partition_columns else []
    rows = list(found.values()) or ([] if columns.partition_columns else [_new({})])
    return pa.Table.from_pylist(rows, schema=pa.schema([*kept, *_COUNTS, *_LAST]))


def _new(partition: Row) -> Row:
    counts = {name: 0 for name, _ in _COUNTS}
    return {"partition": partition, "spec_id": 0, **counts, "last_updated_at": None, "last_updated_snapshot_id": None}


def _count(row: Row, file: Any) -> None:
    if file.content == DataFileContent.DATA:
        row["record_count"] += file.record_count
        row["file_count"] += 1
        row["total_data_file_size_in_bytes"] += file.file_size_in_bytes
        return
    kind = "position" if file.content == DataFileContent.POSITION_DELETES else "equality"
    row[f"{kind}_delete_record_count"] += file.record_count
    row[f"{kind}_delete_file_count"] += 1


def _note_snapshot(table: Table, row: Row, snapshot_id: int | None) -> None:
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    made = None if snapshot is None else instant(snapshot.timestamp_ms)
    if made is not None and (row["last_updated_at"] is None or made > row["last_updated_at"]):
        row["last_updated_at"], row["last_updated_snapshot_id"] = made, snapshot_id
