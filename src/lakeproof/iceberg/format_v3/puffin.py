"""Deletion vectors as bytes, and Puffin files that hold several of them.

A blob is its length, a magic number, a 64-bit roaring bitmap (the number of 32-bit maps, and each map behind its key),
and the checksum of magic and bitmap. A vector is found by its place in the file; the footer is for those who have none.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from lakeproof.format import RowSet

MAGIC, PUFFIN = b"\xd1\xd3\x39\x64", b"PFA1"
ROW_POSITION = 2147483645
FRAME = 8  # bytes of a blob beside magic and bitmap: the length before, the checksum after
_CONTAINER, _SPARSE = 8192, 4096  # bytes of 65,536 positions; up to so many positions are listed one by one
_MAP = 1 << 29  # bytes of the positions that one 32-bit map holds


class Blob(NamedTuple):
    """Where a vector lies in its file, and how many positions it has."""

    offset: int
    size: int
    cardinality: int


def puffin_of(vectors: Mapping[str, RowSet]) -> tuple[bytes, dict[str, Blob]]:
    """A Puffin file with a vector for each data file, and where each of them lies."""
    data, blobs, said = bytearray(PUFFIN), {}, []
    for path, rows in vectors.items():
        blob, count = blob_of(rows), rows.bit_count()
        blobs[path] = Blob(len(data), len(blob), count)
        said.append(
            {
                "type": "deletion-vector-v1",
                "fields": [ROW_POSITION],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(data),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(count)},
            }
        )
        data += blob
    footer = json.dumps({"blobs": said, "properties": {"created-by": "lakeproof"}}).encode()
    data += PUFFIN + footer + struct.pack("<i", len(footer)) + bytes(4) + PUFFIN
    return bytes(data), blobs


def blob_of(rows: RowSet) -> bytes:
    """The vector of these positions."""
    raw = np.frombuffer(rows.to_bytes((rows.bit_length() + 7) // 8, "little"), np.uint8)
    maps = [(key, _roaring(raw[start : start + _MAP])) for key, start in enumerate(range(0, len(raw), _MAP))]
    maps = [(key, data) for key, data in maps if data]
    bits = b"".join((struct.pack("<Q", len(maps)), *(struct.pack("<I", key) + data for key, data in maps)))
    body = MAGIC + bits
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def _roaring(raw: npt.NDArray[np.uint8]) -> bytes:
    """A 32-bit roaring bitmap in its portable form, as small as it gets; nothing, where no bit is set.

    A large set of bits is cut into containers as it is: to list a million positions first would cost more.
    """
    whole = np.zeros(-(-len(raw) // _CONTAINER) * _CONTAINER, np.uint8)
    whole[: len(raw)] = raw
    chunks = whole.reshape(-1, _CONTAINER)
    counts = np.bitwise_count(chunks.view(np.uint64)).sum(axis=1)
    keys = np.flatnonzero(counts)
    if not len(keys):
        return b""
    containers = [_container(chunks[key], int(counts[key])) for key in keys]
    described = np.column_stack((keys, counts[keys] - 1)).astype("<u2").tobytes()
    head = struct.pack("<II", 12346, len(keys)) + described
    starts = np.cumsum([len(head) + 4 * len(keys), *(len(each) for each in containers[:-1])])
    found = BitMap.deserialize(b"".join((head, starts.astype("<u4").tobytes(), *containers)))
    found.run_optimize()
    made: bytes = found.serialize()
    return made


def _container(chunk: npt.NDArray[np.uint8], count: int) -> bytes:
    if count > _SPARSE:
        return chunk.tobytes()
    return np.flatnonzero(np.unpackbits(chunk, bitorder="little").view(bool)).astype("<u2").tobytes()


def positions_in(blob: bytes) -> npt.NDArray[np.int64]:
    """The positions of a blob, ascending; a `ValueError` says what is wrong with it."""
    length = struct.unpack(">I", blob[:4])[0] if len(blob) >= FRAME else -1
    if length != len(blob) - FRAME:
        raise ValueError("its length is not what it says")
    body = blob[4:-4]
    if body[:4] != MAGIC:
        raise ValueError("it does not begin as a deletion vector does")
    if struct.unpack(">I", blob[-4:])[0] != zlib.crc32(body):
        raise ValueError("its checksum is wrong")
    found = BitMap64.deserialize(body[4:])
    return np.frombuffer(found.to_array(), np.uint64).astype(np.int64)
