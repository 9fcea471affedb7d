"""Avro containers: the header is read, and many containers of one schema are joined into one uncompressed one.

Joining is what makes small manifests cheap: one decoder call for hundreds of them. It also covers codecs that the
decoder lacks (zstandard, bzip2).
"""

from __future__ import annotations

import bz2
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from lakeproof.iceberg.reading.avro_numbers import read_varint, sized, varint

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
Skip = Callable[[bytes, int], int]


class Container(NamedTuple):
    """An Avro file's metadata, its sync marker, and where its blocks begin."""

    metadata: dict[str, bytes]
    sync: bytes
    body: int


def read_header(data: bytes) -> Container:
    """The header of an Avro file; anything else is a `ValueError`."""
    if data[:4] != MAGIC:
        raise ValueError("not an Avro file")
    metadata: dict[str, bytes] = {}
    at = 4
    while True:
        count, at = read_varint(data, at)
        if count == 0:
            return Container(metadata, data[at : at + SYNC_BYTES], at + SYNC_BYTES)
        if count < 0:  # a negative count is followed by the block's size in bytes
            count = -count
            _, at = read_varint(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            metadata[key.decode()], at = _bytes(data, at)


def join(files: Iterable[bytes]) -> tuple[bytes, list[int]]:
    """One uncompressed container with the records of all files, and how many each gave; all have one schema."""
    blocks: list[bytes] = []
    rows: list[int] = []
    schema = sync = b""
    for data in files:
        container = read_header(data)
        schema, sync = container.metadata["avro.schema"], container.sync
        rows.append(_append_blocks(data, container, blocks))
    # One large block: some writers make a block of every record, and the decoder pays for each.
    body = b"".join(blocks)
    header = _header(_without_defaults(schema), sync)
    return b"".join((header, varint(sum(rows)), varint(len(body)), body, sync) if any(rows) else (header,)), rows


def verify(data: bytes) -> None:
    """Every record of an Avro file ends where it should, so that a decoder which checks no bounds may read it.

    PyIceberg's decoder reads beyond the end of a damaged block, and the process dies.
    """
    container = read_header(data)
    skip = _skipper(json.loads(container.metadata["avro.schema"]), {})
    for count, block in _blocks(data, container):
        at = 0
        for _ in range(count):
            at = skip(block, at)
        if at != len(block):
            raise ValueError("a record of the Avro file is damaged")


_WIDTHS = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def _skipper(schema: Any, named: dict[str, Skip]) -> Skip:
    """Steps over one value of the schema; what does not fit raises."""
    if isinstance(schema, list):
        return _of_branches([_skipper(branch, named) for branch in schema])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _skipper(kind, named)
    made = _skipper_of(kind, schema, named)
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = made
    return made


def _skipper_of(kind: str, schema: Any, named: dict[str, Skip]) -> Skip:
    match kind:
        case "record":
            return _of_fields([_skipper(field["type"], named) for field in schema["fields"]])
        case "array":
            return _of_items(_skipper(schema["items"], named))
        case "map":
            return _of_items(_of_fields([_skip_bytes, _skipper(schema["values"], named)]))
        case "int" | "long" | "enum":
            return lambda data, at: read_varint(data, at)[1]
        case "bytes" | "string":
            return _skip_bytes
        case "fixed":
            return _of_width(schema["size"])
    return _of_width(_WIDTHS[kind]) if kind in _WIDTHS else named[kind]


def _of_width(width: int) -> Skip:
    def skip(data: bytes, at: int) -> int:
        if at + width > len(data):
            raise ValueError("a record of the Avro file is cut")
        return at + width

    return skip


def _skip_bytes(data: bytes, at: int) -> int:
    size, at = read_varint(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError("a text of the Avro file is damaged")
    return at + size


def _of_fields(fields: list[Skip]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        for field in fields:
            at = field(data, at)
        return at

    return skip


def _of_branches(branches: list[Skip]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        branch, at = read_varint(data, at)
        if not 0 <= branch < len(branches):
            raise ValueError("a record of the Avro file is damaged")
        return branches[branch](data, at)

    return skip


def _of_items(item: Skip) -> Skip:
    def skip(data: bytes, at: int) -> int:
        while True:
            count, at = read_varint(data, at)
            if count == 0:
                return at
            if count < 0:  # followed by its size in bytes
                count, (_, at) = -count, read_varint(data, at)
            for _ in range(count):
                at = item(data, at)

    return skip


def _append_blocks(data: bytes, container: Container, blocks: list[bytes]) -> int:
    records = 0
    for count, block in _blocks(data, container):
        blocks.append(block)
        records += count
    return records


def _blocks(data: bytes, container: Container) -> Iterator[tuple[int, bytes]]:
    """How many records each block says to hold, and its bytes."""
    inflate = _INFLATE[container.metadata.get("avro.codec", b"null").decode()]
    at = container.body
    while at < len(data):
        count, at = read_varint(data, at)
        size, at = read_varint(data, at)
        end = at + size
        if size < 0 or data[end : end + SYNC_BYTES] != container.sync:
            raise ValueError("a block of the Avro file is cut or damaged")
        block = inflate(data[at:end])
        if not 0 <= count <= len(block):  # each record takes a byte at least
            raise ValueError("a block of the Avro file says an impossible number of records")
        yield count, block
        at = end + SYNC_BYTES


def _header(schema: bytes, sync: bytes) -> bytes:
    pairs = b"".join(sized(part) for part in (b"avro.schema", schema, b"avro.codec", b"null"))
    return MAGIC + varint(2) + pairs + b"\x00" + sync


def _without_defaults(schema: bytes) -> bytes:
    """The decoder refuses the numeric default of a v1 manifest; a writer's defaults mean nothing to a reader anyway."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items() if key not in ("default", "doc")}
        return [plain(each) for each in part] if isinstance(part, list) else part

    return json.dumps(plain(json.loads(schema))).encode()


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    end = _skip_bytes(data, at)  # a size below zero would lead back, and a reader round in circles
    _, at = read_varint(data, at)
    return data[at:end], end


def _snappy(block: bytes) -> bytes:
    size = shift = at = 0
    while True:  # raw snappy begins with its uncompressed length; Avro adds a checksum of four bytes at the end
        byte = block[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    inflated: bytes = pa.Codec("snappy").decompress(block[:-4], size, asbytes=True)
    return inflated


def _zstandard(block: bytes) -> bytes:
    import zstandard  # only tables whose manifests say so need it

    return zstandard.ZstdDecompressor().decompressobj().decompress(block)


_INFLATE: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": bz2.decompress,
}
