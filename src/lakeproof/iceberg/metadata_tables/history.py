"""What the metadata file itself says: snapshots, the history of `main`, branches and tags, older metadata files."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.metadata_tables.columns import TIME, Row, instant
from lakeproof.iceberg.tables.branches import line_from

SNAPSHOTS = pa.schema(
    [
        ("committed_at", TIME),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
    ]
)
HISTORY = pa.schema(
    [
        ("made_current_at", TIME),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("is_current_ancestor", pa.bool_()),
    ]
)
REFS = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("snapshot_id", pa.int64()),
        ("max_reference_age_in_ms", pa.int64()),
        ("min_snapshots_to_keep", pa.int32()),
        ("max_snapshot_age_in_ms", pa.int64()),
    ]
)
METADATA_LOG = pa.schema(
    [
        ("timestamp", TIME),
        ("file", pa.string()),
        ("latest_snapshot_id", pa.int64()),
        ("latest_schema_id", pa.int32()),
        ("latest_sequence_number", pa.int64()),
    ]
)


def snapshots(table: Table) -> pa.Table:
    """The snapshots in the order in which they were committed."""
    rows: list[Row] = []
    for each in table.metadata.snapshots:
        said = each.summary
        rows.append(
            {
                "committed_at": instant(each.timestamp_ms),
                "snapshot_id": each.snapshot_id,
                "parent_id": each.parent_snapshot_id,
                "operation": None if said is None else said.operation.value,
                "manifest_list": each.manifest_list,
                "summary": None if said is None else list(said.additional_properties.items()),
            }
        )
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS)


def history(table: Table) -> pa.Table:
    """Which snapshot was current from when on, and whether the current one descends from it."""
    ancestors = {each.snapshot_id for each in line_from(table.current_snapshot(), table.metadata)}
    rows: list[Row] = []
    for entry in table.metadata.snapshot_log:
        found = table.snapshot_by_id(entry.snapshot_id)
        rows.append(
            {
                "made_current_at": instant(entry.timestamp_ms),
                "snapshot_id": entry.snapshot_id,
                "parent_id": None if found is None else found.parent_snapshot_id,
                "is_current_ancestor": entry.snapshot_id in ancestors,
            }
        )
    return pa.Table.from_pylist(rows, schema=HISTORY)


def refs(table: Table) -> pa.Table:
    """The branches and tags, and how long each is kept."""
    rows = [
        {
            "name": name,
            "type": ref.snapshot_ref_type.value.upper(),
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in table.metadata.refs.items()
    ]
    return pa.Table.from_pylist(rows, schema=REFS)


def metadata_log(table: Table) -> pa.Table:
    """The metadata files so far, the current one last, each with the snapshot that was current then."""
    listed = [(each.timestamp_ms, each.metadata_file) for each in table.metadata.metadata_log]
    listed.append((table.metadata.last_updated_ms, table.metadata_location))
    rows: list[Row] = []
    for timestamp_ms, file in listed:
        latest = _current_at(table, timestamp_ms)
        rows.append(
            {
                "timestamp": instant(timestamp_ms),
                "file": file,
                "latest_snapshot_id": None if latest is None else latest.snapshot_id,
                "latest_schema_id": None if latest is None else latest.schema_id,
                "latest_sequence_number": None if latest is None else latest.sequence_number,
            }
        )
    return pa.Table.from_pylist(rows, schema=METADATA_LOG)


def _current_at(table: Table, timestamp_ms: int) -> Snapshot | None:
    for entry in reversed(table.metadata.snapshot_log):
        if entry.timestamp_ms <= timestamp_ms:
            return table.snapshot_by_id(entry.snapshot_id)
    return None
