"""The rows that a snapshot's position deletes name."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.format_v3.vectors import VectorPlace
from lakeproof.iceberg.metadata_tables.columns import FileColumns, Row, arrow_type
from lakeproof.iceberg.metadata_tables.files import DELETES, manifest_entries
from lakeproof.iceberg.pyiceberg_private import CONTENT_OFFSET, CONTENT_SIZE, REFERENCED_FILE, file_field
from lakeproof.iceberg.reading.delete_files import DeletesAt, read_positions
from lakeproof.iceberg.reading.manifest_cache import manifests_of


def _place(file: DataFile) -> DeletesAt:
    place = (file_field(file, CONTENT_OFFSET), file_field(file, CONTENT_SIZE))
    vector = VectorPlace(file.file_path, *place, file.record_count) if file.file_format == FileFormat.PUFFIN else None
    return DeletesAt(file.file_path, str(file.file_format.value), file_field(file, REFERENCED_FILE), vector)


def position_deletes(table: Table, snapshot: Snapshot | None) -> pa.Table:
    """One row per deleted position; `row` is null, because no engine keeps the rows that it deletes."""
    columns = FileColumns(table)
    rows: list[Row] = []
    for manifest in manifests_of(table.io, snapshot):
        for entry in manifest_entries(table, manifest, live=True) if manifest.content in DELETES else ():
            file = entry.data_file
            if file.content != DataFileContent.POSITION_DELETES:
                continue
            shared = {
                "row": None,
                "partition": columns.partition_row(file.partition, manifest.partition_spec_id),
                "spec_id": manifest.partition_spec_id,
                "delete_file_path": file.file_path,
                "content_offset": file_field(file, CONTENT_OFFSET),
                "content_size_in_bytes": file_field(file, CONTENT_SIZE),
            }
            for path, positions in read_positions(table.io, _place(file)).items():
                rows += [{"file_path": path, "pos": int(position), **shared} for position in positions]
    listed = [("file_path", pa.string()), ("pos", pa.int64()), ("row", arrow_type(table.schema().as_struct()))]
    listed += [("partition", columns.partition)] if columns.partition_columns else []
    listed += [("spec_id", pa.int32()), ("delete_file_path", pa.string())]
    if table.format_version >= 3:
        listed += [("content_offset", pa.int64()), ("content_size_in_bytes", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(listed))
