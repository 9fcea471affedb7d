"""Values between, before and behind given ones, of every kind; where a kind has none there, there is none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from lakeproof.sql.kinds import base, scale

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)


def with_gaps(values: Iterable[Any], kind: str, *, each: int) -> list[Any]:
    """The sorted values, with up to `each` others in front, between and behind.

    >>> with_gaps([1, 3], "int", each=1)
    [0, 1, 2, 3, 4]
    >>> with_gaps([0.5, 0.7], "double", each=1)[2]
    0.6
    """
    known = sorted(values)
    if not known:
        return fresh(kind, each + 1)
    out = [*before(known[0], kind, each)]
    for low, high in pairwise(known):
        out += [low, *between(low, high, kind, each)]
    return [*out, known[-1], *behind(known[-1], kind, each)]


def fresh(kind: str, count: int, *, name: str = "", taken: Iterable[Any] = ()) -> list[Any]:
    """Values that nobody names, such as `color1`, `color2` for a string."""
    used = set(taken)
    found: list[Any] = []
    number = 0
    while len(found) < count and number < 1000:
        number += 1
        value = _numbered(base(kind), kind, number, name)
        if value is None:
            return [one for one in (True, False) if one not in used][:count] if kind == "boolean" else found
        if value not in used:
            found.append(value)
    return found


def _numbered(word: str, kind: str, number: int, name: str) -> Any:
    match word:
        case "int":
            return 10 + number
        case "double":
            return 10.0 + number
        case "decimal":
            return Decimal(10 + number).quantize(Decimal(1).scaleb(-scale(kind)))
        case "date":
            return date(2026, 6, 1) + number * _DAY
        case "timestamp":
            return datetime(2026, 6, 1, 12) + number * _DAY
        case "boolean":
            return None
    return f"{name or 'value'}{number}"


def before(value: Any, kind: str, count: int) -> list[Any]:
    """Values smaller than this one, ascending."""
    if base(kind) == "string":
        shorter = [value[:-1]] if value[:-1] and value[:-1] < value else []
        return ["", *shorter][: count if value else 0]
    if base(kind) == "boolean":
        return [False] if value is True else []
    step = _step(kind, count)
    return [value - step * (count - i) for i in range(count)]


def behind(value: Any, kind: str, count: int) -> list[Any]:
    """Values greater than this one, ascending."""
    if base(kind) == "string":
        return [value + "z" * (i + 1) for i in range(count)]
    if base(kind) == "boolean":
        return [] if value is True else [True]
    step = _step(kind, count)
    return [value + step * (i + 1) for i in range(count)]


def _step(kind: str, count: int) -> Any:
    match base(kind):
        case "double":
            return 1.0
        case "decimal":
            return Decimal(1).scaleb(-scale(kind))
        case "date":
            return _DAY
        case "timestamp":
            return timedelta(hours=1)
    return 1


def between(low: Any, high: Any, kind: str, count: int) -> list[Any]:
    """Values strictly between two, ascending, as many as there are up to `count`."""
    match base(kind):
        case "int":
            return list(range(low + 1, min(high, low + 1 + count)))
        case "decimal":
            step = Decimal(1).scaleb(-scale(kind))
            return [low + step * (i + 1) for i in range(count) if low + step * (i + 1) < high]
        case "date":
            return [low + _DAY * (i + 1) for i in range(count) if low + _DAY * (i + 1) < high]
        case "double":
            return _distinct(low, high, [low + (high - low) * (i + 1) / (count + 1) for i in range(count)])
        case "timestamp":
            return _distinct(low, high, [low + (high - low) / (count + 1) * (i + 1) for i in range(count)])
        case "string":
            return _strings(low, high, count)
    return []


def _distinct(low: Any, high: Any, found: list[Any]) -> list[Any]:
    return [one for one in dict.fromkeys(found) if low < one < high]


def _strings(low: str, high: str, count: int) -> list[str]:
    """Strings between two: the lower one with something behind it."""
    tails = ("0", "00", " ", "  ", "!", "\x01", "\x01\x01")
    fitting = [low + tail for tail in tails if low < low + tail < high]
    return sorted(fitting[:count])
