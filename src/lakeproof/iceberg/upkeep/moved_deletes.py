"""Delete files as they would be elsewhere: position deletes and deletion vectors name data files by their paths."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from lakeproof.iceberg.format_v3.puffin import PUFFIN
from lakeproof.iceberg.inspecting.raw_files import Damaged

Move = Callable[[str], str]
_TAIL = 12  # bytes of a Puffin file behind its footer's words: their length, flags, and the magic number


def moved_positions(data: bytes, move: Move) -> bytes:
    """A Parquet file of position deletes; rows that stand beside the positions come along."""
    table = pq.read_table(pa.BufferReader(data), partitioning=None)
    at = table.schema.get_field_index("file_path")
    paths = pa.array([move(path) for path in table.column(at).to_pylist()], pa.string())
    field = pa.field("file_path", pa.string(), False, table.schema.field(at).metadata)
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(at, field, paths), sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def moved_vectors(data: bytes, move: Move) -> bytes:
    """A Puffin file: the vectors stay where they lie in it, and the words behind them name the files anew."""
    length, flags = struct.unpack("<i4s", data[-_TAIL:-4])
    start = len(data) - _TAIL - length
    if data[-4:] != PUFFIN or flags != bytes(4) or data[start - 4 : start] != PUFFIN:
        raise Damaged("its footer is packed, or is none")
    words = json.loads(data[start : start + length])
    for blob in words["blobs"]:
        told = blob.get("properties", {})
        if "referenced-data-file" in told:
            told["referenced-data-file"] = move(told["referenced-data-file"])
    footer = json.dumps(words).encode()
    return data[:start] + footer + struct.pack("<i", len(footer)) + bytes(4) + PUFFIN


MOVES: dict[str, Callable[[bytes, Move], bytes]] = {"PARQUET": moved_positions, "PUFFIN": moved_vectors}
