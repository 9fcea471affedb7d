"""Manifests become columns, bound by field id: one Arrow table for a batch of manifests of one Avro schema.

Columns: those of `ENTRY` and `FILE` that the schema has, `p<id>` per partition field, and per column of the table
`vc<id>` (value count), `nc<id>` (null count), `nan<id>`, `lo<id>` and `hi<id>` (bounds, as bytes). A bound column whose
values all have one width is fixed-size, so numpy can view it. Sequence numbers and snapshot ids stay as written (null:
inherited), because they belong to the manifest list.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeproof.iceberg.reading.avro import join, read_header

ENTRY = {0: "status", 1: "snapshot_id", 3: "seq", 4: "file_seq"}
FILE = {
    134: "content",
    100: "path",
    101: "format",
    103: "record_count",
    104: "size",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_file",
    144: "blob_offset",
    145: "blob_size",
}
METRICS = {109: "vc", 110: "nc", 137: "nan", 125: "lo", 128: "hi"}
TEXT = ("path", "format", "referenced_file")
DATA_FILE_ID, PARTITION_ID = 2, 102
NEEDED, NEEDED_SINCE_TWO = (0, DATA_FILE_ID, 100, 101, PARTITION_ID, 103, 104), (3, 134)
"""Field ids that every manifest has: without one of them its schema is damaged."""

Columns = dict[str, pa.Array]


def schema_of(manifest: bytes) -> bytes:
    """The Avro schema of a manifest: manifests of equal schemas may be decoded together."""
    return read_header(manifest).metadata["avro.schema"]


def decode_manifests(manifests: Sequence[bytes]) -> tuple[pa.Table, list[int]]:
    """The entries of all manifests (of one Avro schema) in order, and how many each holds."""
    import polars as pl  # a fifth of a second that a warm cache never pays

    joined, rows = join(manifests)
    frame = pl.read_avro(io.BytesIO(joined))
    header = read_header(manifests[0]).metadata
    schema = json.loads(header["avro.schema"])
    _require_fields(schema, counts=header.get("format-version", b"1") != b"1")
    file_schema = _field(schema, DATA_FILE_ID)["type"]
    columns: Columns = {}
    for number, name in ENTRY.items():
        if (field := _field(schema, number)) is not None:
            columns[name] = _arrow(frame[field["name"]], name)
    files = frame[_field(schema, DATA_FILE_ID)["name"]].struct
    for number, name in FILE.items():
        if (field := _field(file_schema, number)) is not None:
            columns[name] = _arrow(files.field(field["name"]), name)
    _add_partition(columns, files, _field(file_schema, PARTITION_ID))
    for number, name in METRICS.items():
        if (field := _field(file_schema, number)) is not None:
            _add_metric(columns, name, _arrow(files.field(field["name"]), name))
    return pa.table(columns), rows


def _require_fields(schema: dict[str, Any], *, counts: bool) -> None:
    """Whatever is read of every entry is there; since version 2 an entry has a sequence number and a content."""
    file = _field(schema, DATA_FILE_ID) or {"type": {"fields": []}}
    there = {field.get("field-id") for field in (*schema["fields"], *file["type"]["fields"])}
    missing = [number for number in (*NEEDED, *(NEEDED_SINCE_TWO if counts else ())) if number not in there]
    if missing:
        raise ValueError(f"its schema lacks the fields {', '.join(map(str, missing))}")


def _field(record: dict[str, Any], number: int) -> Any:
    return next((field for field in record["fields"] if field.get("field-id") == number), None)


def _arrow(series: Any, name: str) -> pa.Array:
    array = series.to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(pa.large_string()) if name in TEXT else array


def _add_partition(columns: Columns, files: Any, partition: dict[str, Any]) -> None:
    record = partition["type"]
    values = files.field(partition["name"]).struct
    for field in record["fields"]:
        series = values.field(field["name"])
        if series.dtype.is_temporal():
            series = series.to_physical()  # the decoder takes timestamps without a zone for UTC: keep the integers
        columns[f"p{field['field-id']}"] = _arrow(series, "")


def _add_metric(columns: Columns, name: str, maps: pa.Array) -> None:
    """A map from field id to value becomes one column per field id; a file without the key has null there."""
    rows = len(maps)
    lengths = pc.fill_null(pc.list_value_length(maps), 0).to_numpy(zero_copy_only=False)
    pairs = maps.flatten()
    keys, values = pairs.field(0).to_numpy(zero_copy_only=False), pairs.field(1)
    row_of = np.repeat(np.arange(rows), lengths)
    order = np.argsort(keys, kind="stable")  # one sort, then a slice per field id
    for group in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if len(group):
            column = _spread(values, group, row_of[group], rows)
            columns[f"{name}{keys[group[0]]}"] = _narrow(column) if name in ("lo", "hi") else column


def _spread(values: pa.Array, picked: npt.NDArray[np.int64], at_rows: npt.NDArray[np.int64], rows: int) -> pa.Array:
    if len(picked) == rows:
        return values.take(pa.array(picked))
    index, missing = np.zeros(rows, np.int64), np.ones(rows, bool)
    index[at_rows], missing[at_rows] = picked, False
    return values.take(pa.array(index, mask=missing))


def _narrow(array: pa.Array) -> pa.Array:
    """Values of one width are stored side by side without offsets; a null keeps its place as zeros."""
    array = array.cast(pa.large_binary())
    width = pc.min_max(pc.binary_length(array))
    if not width["min"].as_py() or width["min"].as_py() != width["max"].as_py():
        return array
    return array.cast(pa.binary(width["max"].as_py()))
