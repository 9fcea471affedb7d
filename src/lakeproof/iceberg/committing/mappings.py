"""Where a rewrite put the rows that it kept: written beside the snapshot, named in its summary, read in windows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.table import Table

from lakeproof.format import Move, RowMapping
from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.reading.lru import Recent

_recent: Recent[RowMapping] = Recent(64)
MAPPING_KEY = "lakeproof.mapping"
SCHEMA = pa.schema(
    [
        ("old_file", pa.string()),
        ("rows", pa.large_binary()),  # bit p (little endian) says that the row at position p was kept
        ("new_file", pa.string()),
        ("start", pa.int64()),
    ]
)


def mapping_path(table: Table, snapshot_id: int) -> str:
    """The place of a snapshot's mapping."""
    return table.location_provider().new_metadata_location(f"mapping-{snapshot_id}.parquet")


def write_mapping(table: Table, mapping: RowMapping, snapshot_id: int) -> str:
    """The path of the written mapping."""
    path = mapping_path(table, snapshot_id)
    rows = [
        {
            "old_file": move.old_file,
            "rows": move.rows.to_bytes((move.rows.bit_length() + 7) // 8, "little"),
            "new_file": move.new_file,
            "start": move.start,
        }
        for move in mapping
    ]
    with translate_errors(f"file {path}"), table.io.new_output(path).create(overwrite=True) as stream:
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), stream, compression="zstd")
    return path


def read_mapping(io: FileIO, path: str) -> RowMapping:
    """The mapping at a path."""
    return _recent.get(path, lambda: _read(io, path))


def _read(io: FileIO, path: str) -> RowMapping:
    with translate_errors(f"file {path}"), reading_file(path), io.new_input(path).open() as stream:
        table = pq.read_table(pa.BufferReader(stream.read()), partitioning=None)
    return tuple(
        Move(row["old_file"], int.from_bytes(row["rows"], "little"), row["new_file"], row["start"])
        for row in table.to_pylist()
    )
