"""How Avro writes whole numbers, and sizes before bytes."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number with small ones short, below zero too: zigzag, seven bits a byte."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(data: bytes) -> bytes:
    """Bytes behind their size, as strings are written too."""
    return varint(len(data)) + data


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
