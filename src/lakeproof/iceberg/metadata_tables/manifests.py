"""The manifests of one snapshot, or of all that the table still has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import IcebergType

from lakeproof.iceberg.metadata_tables.columns import Row, source_type
from lakeproof.iceberg.reading.manifest_cache import manifests_of

_SUMMARY = pa.struct(
    [
        ("contains_null", pa.bool_()),
        ("contains_nan", pa.bool_()),
        ("lower_bound", pa.string()),
        ("upper_bound", pa.string()),
    ]
)
_COUNTS = tuple(
    (f"{status}_{kind}_files_count", pa.int32())
    for kind in ("data", "delete")
    for status in ("added", "existing", "deleted")
)
MANIFESTS = pa.schema(
    [
        ("content", pa.int32()),
        ("path", pa.string()),
        ("length", pa.int64()),
        ("partition_spec_id", pa.int32()),
        ("added_snapshot_id", pa.int64()),
        *_COUNTS,
        ("partition_summaries", pa.list_(_SUMMARY)),
    ]
)
ALL_MANIFESTS = pa.schema([*MANIFESTS, ("reference_snapshot_id", pa.int64()), ("key_metadata", pa.binary())])


def manifests(table: Table, snapshot: Snapshot | None) -> pa.Table:
    """The manifests of a snapshot."""
    return pa.Table.from_pylist([_row(table, each) for each in manifests_of(table.io, snapshot)], schema=MANIFESTS)


def all_manifests(table: Table, snapshots: Iterable[Snapshot]) -> pa.Table:
    """The manifests of every snapshot; one that several list stands there once for each."""
    rows = [
        {**_row(table, each), "reference_snapshot_id": snapshot.snapshot_id, "key_metadata": each.key_metadata}
        for snapshot in snapshots
        for each in manifests_of(table.io, snapshot)
    ]
    return pa.Table.from_pylist(rows, schema=ALL_MANIFESTS)


def _row(table: Table, manifest: ManifestFile) -> Row:
    is_data = manifest.content == ManifestContent.DATA
    counted = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    counts = [count or 0 for count in counted]
    both = [*counts, 0, 0, 0] if is_data else [0, 0, 0, *counts]
    return {
        "content": manifest.content.value,
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{name: count for (name, _), count in zip(_COUNTS, both, strict=True)},
        "partition_summaries": list(_summaries(table, manifest)),
    }


def _summaries(table: Table, manifest: ManifestFile) -> Iterator[Row]:
    spec = table.specs()[manifest.partition_spec_id]
    for field, summary in zip(spec.fields, manifest.partitions or (), strict=False):
        source = source_type(table, field.source_id)
        ends = [_human(field.transform, source, bound) for bound in (summary.lower_bound, summary.upper_bound)]
        yield {
            "contains_null": summary.contains_null,
            "contains_nan": summary.contains_nan,
            "lower_bound": ends[0],
            "upper_bound": ends[1],
        }


def _human(transform: Any, source: IcebergType | None, bound: bytes | None) -> str | None:
    if bound is None or source is None:
        return None
    return str(transform.to_human_string(source, from_bytes(transform.result_type(source), bound)))
