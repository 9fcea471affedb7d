"""Ways in which files and documents are damaged: flipped bits, cuts, foreign bytes, odd values in odd places."""

from __future__ import annotations

import copy
import json
import zlib
from random import Random
from typing import Any

from lakeproof.iceberg.reading.avro import SYNC_BYTES, read_header

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, float("1e300")),
    *(
        "",
        "x",
        "0",
        "-1",
        "null",
        "\0",
        "ü" * 50,
        "../../etc/passwd",
        "file:///nowhere",
        [],
        {},
        [None],
        {"x": []},
        [[[]]],
    ),
)


def odd_document(document: Any, chance: Random) -> Any:
    """A JSON document with odd values, missing keys or swapped parts in one to three places."""
    document = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            return chance.choice(ODD_VALUES)
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1:
                other, place = chance.choice(places)
                if place in other if isinstance(other, dict) else place < len(other):
                    holder[key] = copy.deepcopy(other[place])
            case 2 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 3 if isinstance(holder[key], int):
                holder[key] += chance.choice((-1, 1, 1000, 2**40, -(2**40)))
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD_VALUES))
    return document


def _places(part: Any) -> Any:
    pairs = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in pairs:
        yield part, key
        yield from _places(value)


def damaged(data: bytes, name: str, chance: Random, others: list[bytes]) -> tuple[str, bytes]:
    """How a file was damaged, and what it holds now."""
    if name.endswith(".json") and chance.random() < 0.75:
        return "odd values", json.dumps(odd_document(json.loads(data), chance)).encode()
    if name.endswith(".avro") and chance.random() < 0.5:
        return "flipped inside its blocks", resealed(data, chance)
    if name.endswith((".parquet", ".puffin")) and chance.random() < 0.5:
        return "flipped in its footer", _flipped_in(data, chance, _footer(data, name), len(data) - 8)
    match chance.randrange(7):
        case 0 | 1:
            return "flipped", _flipped_in(data, chance, 0, len(data))
        case 2:
            return "cut", data[: chance.randrange(len(data))]
        case 3:
            return "zeroed", _zeroed(data, chance)
        case 4:
            return "lengthened", data + bytes(chance.randrange(256) for _ in range(chance.choice((1, 16, 500))))
        case 5:
            return "replaced", chance.choice(others)
        case _:
            return "emptied", b""


def _footer(data: bytes, name: str) -> int:
    if name.endswith(".puffin"):
        return len(data) - 16 - int.from_bytes(data[-12:-8], "little")
    return max(4, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))


def _flipped_in(data: bytes, chance: Random, first: int, end: int) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        changed[chance.randrange(first, max(end, first + 1))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _zeroed(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice((1, 8, 64, 512)))
    return data[:start] + bytes(end - start) + data[end:]


def resealed(data: bytes, chance: Random) -> bytes:
    """An Avro file whose records are damaged inside a block that looks sound: as a writer's own mistake would be."""
    header = read_header(data)
    codec = header.metadata.get("avro.codec", b"null")
    at, out = header.body, [data[: header.body]]
    while at < len(data):
        count, at = _long(data, at)
        size, at = _long(data, at)
        block = data[at : at + size]
        plain = zlib.decompress(block, -15) if codec == b"deflate" else block
        plain = _flipped_in(plain, chance, 0, len(plain)) if plain else plain
        if codec == b"deflate":
            packer = zlib.compressobj(wbits=-15)
            plain = packer.compress(plain) + packer.flush()
        out += [_zigzag(count), _zigzag(len(plain)), plain, header.sync]
        at += size + SYNC_BYTES
    return b"".join(out)


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _zigzag(number: int) -> bytes:
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
