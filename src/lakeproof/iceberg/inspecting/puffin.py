"""A deletion vector against its Puffin file: where it lies, whose it is, its checksum, its rows."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from pyroaring import BitMap64

from lakeproof.iceberg.inspecting.columns import Told
from lakeproof.iceberg.inspecting.raw_files import Damaged, damage_said

MAGIC, VECTOR = b"PFA1", b"\xd1\xd3\x39\x64"
TRAILER = 12  # size of the footer's text (4, little endian), flags (4), magic (4)


def footer_of(data: bytes) -> dict[str, Any]:
    """The words of a Puffin file's footer."""
    with damage_said():
        if data[-4:] != MAGIC:
            raise Damaged("it does not end like a Puffin file: it is cut")
        (size,) = struct.unpack("<I", data[-TRAILER : 4 - TRAILER])
        begin = len(data) - TRAILER - size
        if begin < 4 or data[begin - 4 : begin] != MAGIC:
            raise Damaged("the footer of the Puffin file is damaged")
        words = json.loads(data[begin : begin + size])
        if not isinstance(words, dict):
            raise Damaged("the footer of the Puffin file holds no object")
        return words


def judge_vector(data: bytes, entry: Mapping[str, Any], rows_of: Mapping[str, int]) -> Iterator[Told]:
    """What is wrong with the vector that an entry names."""
    named, offset = entry.get("referenced_file"), entry.get("blob_offset")
    blobs = footer_of(data).get("blobs") or []
    if offset is None:
        yield "vector_reference", "the table does not say where the vector lies in its file"
        return
    blob = next((each for each in blobs if each.get("offset") == offset), None)
    if blob is None:
        yield "vector_reference", f"no vector begins at byte {offset}"
        return
    said = blob.get("properties") or {}
    if said.get("referenced-data-file") != named:
        yield "vector_reference", f"the vector is of {said.get('referenced-data-file')}, the table says of {named}"
    if entry.get("blob_size") not in (None, blob.get("length")):
        yield "vector_reference", f"the vector has {blob.get('length')} bytes, the table says {entry['blob_size']}"
    content = data[offset : offset + int(blob.get("length") or 0)]
    if problem := _damage(content):
        yield "damaged_vector", problem
        return
    with damage_said():
        positions = BitMap64.deserialize(content[8:-4])
        count, most = len(positions), positions.max() if positions else -1
    for who, number in (("the table", entry.get("record_count")), ("its footer", said.get("cardinality"))):
        if number is not None and int(number) != count:
            yield "vector_cardinality", f"the vector holds {count} rows, {who} says {number}"
    rows = rows_of.get(str(named))
    if rows is not None and most >= rows:
        yield "position_beyond_file", f"it names position {most} of {named}, which has {rows} rows"


def _damage(content: bytes) -> str:
    """What is wrong with a vector's frame; nothing, if it is whole."""
    if len(content) < 12:
        return f"the vector has {len(content)} bytes"
    (length,) = struct.unpack(">I", content[:4])
    if length != len(content) - 8:
        return f"the vector says that it has {length} bytes, and {len(content) - 8} are there"
    if content[4:8] != VECTOR:
        return "the vector begins with other magic bytes"
    (checksum,) = struct.unpack(">I", content[-4:])
    if zlib.crc32(content[4:-4]) != checksum:
        return "the vector's checksum is wrong"
    return ""
