"""Values at which something changes: constants of a kind, what becomes one of them, ends of prefixes and partitions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any

from lakeproof.filters import applied
from lakeproof.format import PartitionField
from lakeproof.jobs.first_tables.gaps import fresh
from lakeproof.sql.kinds import base, converted, scale

MOST_SHIFTS = 2
"""How often a statement that adds a number to a column may run before it is read."""


def of_kind(constants: Iterable[Any], kind: str) -> list[Any]:
    """The constants as values of a kind; a number between two that the kind has becomes both."""
    found: dict[Any, None] = {}
    for value in constants:
        made = converted(value, kind)
        if made is not None:
            found[made] = None
        elif base(kind) in ("int", "decimal") and not isinstance(value, str | bool | date):
            found |= dict.fromkeys(_neighbours(value, kind))
        elif base(kind) == "date" and isinstance(value, datetime):
            found |= dict.fromkeys((value.date(), value.date() + timedelta(days=1)))
    return sorted(found)


def _neighbours(value: Any, kind: str) -> list[Any]:
    """The numbers of a kind right below and above another number."""
    if base(kind) == "int":
        return [math.floor(value), math.ceil(value)]
    step = Decimal(1).scaleb(-scale(kind))
    try:
        return [Decimal(str(value)).quantize(step, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING)]
    except InvalidOperation:  # more digits than any decimal has
        return []


def shifted(values: list[Any], shifts: Iterable[Any], kind: str) -> list[Any]:
    """Values that become one of these when a statement adds its number, once or twice."""
    found: list[Any] = []
    for step in shifts:
        fits = converted(step, kind)
        if fits is not None and base(kind) in ("int", "decimal", "double"):
            found += [value - fits * times for value in values for times in range(1, MOST_SHIFTS + 1)]  # type: ignore[operator]
    return found


def prefix_marks(prefix: str) -> tuple[str, ...]:
    """Where the strings with a prefix begin and end."""
    if not prefix:
        return ("",)
    return prefix, prefix + "0", prefix[:-1] + chr(ord(prefix[-1]) + 1)


def partition_edges(values: list[Any], partitions: list[PartitionField], kind: str) -> list[Any]:
    """Where the partitions of these values begin and end, for transforms of time."""
    found: list[Any] = []
    for one in partitions:
        for value in values or fresh(kind, 1):
            if one.transform in ("year", "month", "day", "hour") and isinstance(value, date):
                found += _period(value, one.transform)
    return found


def of_partitions(values: list[Any], partitions: list[PartitionField]) -> list[Any]:
    """Two values of different partitions, the named ones before others: nothing else of them matters."""
    found: dict[object, Any] = {}
    for value in values:
        found.setdefault(tuple(applied(one.transform, value) for one in partitions), value)
    return list(found.values())[:2]


def _period(value: date, transform: str) -> list[date]:
    """The beginning of a moment's year, month, day or hour, and of the next."""
    if not isinstance(value, datetime):
        if transform == "day":
            return [value, value + timedelta(days=1)]
        if transform == "month":
            return [value.replace(day=1), (value.replace(day=1) + timedelta(days=32)).replace(day=1)]
        return [value.replace(month=1, day=1), value.replace(year=value.year + 1, month=1, day=1)]
    if transform == "hour":
        start = value.replace(minute=0, second=0, microsecond=0)
        return [start, start + timedelta(hours=1)]
    return [datetime(d.year, d.month, d.day) for d in _period(value.date(), transform)]


def same_buckets(values: list[Any], partitions: list[PartitionField], kind: str) -> list[Any]:
    """For each bucket transform, an unnamed value in the bucket of the last value, and one in another."""
    found: list[Any] = []
    for one in partitions:
        if not one.transform.startswith("bucket") or not values:
            continue
        bucket = applied(one.transform, values[-1])
        more = [value for value in fresh(kind, 60, name=one.column) if value not in values]
        found += [value for value in more if applied(one.transform, value) == bucket][:1]
        found += [value for value in more if applied(one.transform, value) != bucket][:1]
    return found
