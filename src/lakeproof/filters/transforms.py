"""Iceberg's partition transforms on single values, and what a partition value says of the rows behind it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from lakeproof.errors import InvalidInput
from lakeproof.filters.decimals import divided, scaled
from lakeproof.format import Value

_EPOCH = date(1970, 1, 1)
_PATTERN = re.compile(r"^(identity|void|year|month|day|hour|bucket|truncate)(?:\[(\d+)\])?$")


def is_known(transform: str) -> bool:
    """Whether this is a transform that we can apply; a table of the future may have others."""
    found = _PATTERN.match(transform)
    return found is not None and (found[1] in ("bucket", "truncate")) == bool(int(found[2] or 0))


def name_and_width(transform: str) -> tuple[str, int]:
    """The name and the width of a transform such as `bucket[16]`."""
    found = _PATTERN.match(transform)
    if found is None or not is_known(transform):
        raise InvalidInput(
            f"{transform!r} is not a partition transform",
            hint="use identity, void, year, month, day, hour, bucket[n] or truncate[n]",
        )
    return found[1], int(found[2] or 0)


def applied(transform: str, value: Value) -> Value:
    """The partition value of a column value. Raises TypeError where the transform does not fit the type."""
    name, width = name_and_width(transform)
    if value is None or name == "void":
        return None
    if name == "identity":
        return value
    if name == "bucket":
        return (_hash(value) & 0x7FFFFFFF) % width
    if name == "truncate":
        return _truncated(value, width)
    return _ordinal(name, value)


def is_monotone(transform: str) -> bool:
    """Whether a greater value never has a smaller partition value."""
    return name_and_width(transform)[0] not in ("bucket", "void")


def _truncated(value: Value, width: int) -> Value:
    if isinstance(value, str | bytes):
        return value[:width]
    if isinstance(value, int) and not isinstance(value, bool):
        return value - value % width
    if isinstance(value, Decimal):
        scale = -int(value.as_tuple().exponent)
        number, _ = divided(value, scale)
        return scaled(number - number % width, scale)
    raise TypeError(f"truncate does not fit {value!r}")


def _ordinal(name: str, value: Value) -> int:
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        day = moment.date()
        if name == "hour":
            return (day - _EPOCH).days * 24 + moment.hour
    elif isinstance(value, date) and name != "hour":
        day = value
    else:
        raise TypeError(f"{name} does not fit {value!r}")
    if name == "year":
        return day.year - 1970
    if name == "month":
        return (day.year - 1970) * 12 + day.month - 1
    return (day - _EPOCH).days


def _hash(value: Value) -> int:
    """Murmur3 of the bytes that the specification gives each type."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return murmur3(micros.to_bytes(8, "little", signed=True))
    if isinstance(value, date):
        return murmur3((value - _EPOCH).days.to_bytes(8, "little", signed=True))
    if isinstance(value, int) and not isinstance(value, bool):
        return murmur3(value.to_bytes(8, "little", signed=True))
    if isinstance(value, str):
        return murmur3(value.encode())
    if isinstance(value, bytes):
        return murmur3(value)
    if isinstance(value, Decimal):
        unscaled, _ = divided(value, -int(value.as_tuple().exponent))
        return murmur3(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True))
    raise TypeError(f"bucket does not fit {value!r}")


def murmur3(data: bytes) -> int:
    """The 32-bit Murmur3 hash with seed 0.

    >>> murmur3(b"iceberg")
    1210000089
    """
    mask, h = 0xFFFFFFFF, 0
    for start in range(0, len(data) - len(data) % 4, 4):
        k = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) & mask
        h ^= k * 0x1B873593 & mask
        h = ((h << 13 | h >> 19) & mask) * 5 + 0xE6546B64 & mask
    tail = data[len(data) - len(data) % 4 :]
    if tail:
        k = int.from_bytes(tail, "little") * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) & mask
        h ^= k * 0x1B873593 & mask
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & mask
    return h
