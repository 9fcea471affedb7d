"""What the Python face is called with: a value that a call does not take is refused before anything is done."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyspark.sql import Column, DataFrame

from lakeproof.errors import InvalidInput

_SHOWN = 80
_PLAIN = (str, bytes, int, float, type(None))
_TIMES = (dt.date, dt.time, dt.timedelta)
_LITERALS = (*_PLAIN, bytearray, Decimal, *_TIMES, UUID, enum.Enum, list, tuple, dict, Column)
"""What Spark makes a literal of; of anything else it speaks in Java's words."""


def refused(what: str, takes: str, value: object, hint: str = "") -> InvalidInput:
    """The sentence for a value that cannot be."""
    shown = repr(value) if isinstance(value, _PLAIN) else f"a {type(value).__name__}"
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return InvalidInput(f"{what} is {takes}, not {shown}", place=what, hint=hint)


def require_text(what: str, value: object, example: str = "") -> None:
    """A text."""
    if not isinstance(value, str):
        raise refused(what, "a text", value, f"for example {example}" if example else "")


def require_rows(what: str, value: object) -> None:
    """A DataFrame of Spark's."""
    if not isinstance(value, DataFrame):
        raise refused(what, "a DataFrame of Spark's", value, "make one with `lake.spark.createDataFrame(…)`")


def require_point(version: object, timestamp_ms: object) -> None:
    """A version or an instant, at most one of them."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, str | int)):
        raise refused("version", "a snapshot's id or the name of a branch or tag", version)
    if timestamp_ms is not None and (isinstance(timestamp_ms, bool) or not isinstance(timestamp_ms, int)):
        hint = "for example timestamp_ms=1767225600000"
        raise refused("timestamp_ms", "a whole number of milliseconds since 1970", timestamp_ms, hint)
    if version is not None and timestamp_ms is not None:
        raise InvalidInput("a scan is at a version or at an instant, not at both", place="version, timestamp_ms")


def require_parameters(args: object) -> None:
    """The values of a statement's parameters: by name, or in order."""
    if args is not None and (isinstance(args, str | bytes) or not isinstance(args, Mapping | Sequence)):
        raise refused("args", "a dictionary or a list", args, 'for example args={"id": 1}')
    if isinstance(args, Mapping) and not all(isinstance(name, str) for name in args):
        raise refused("args", "a dictionary of names", args, 'for example args={"id": 1}')
    for value in args.values() if isinstance(args, Mapping) else args or ():
        if not isinstance(value, _LITERALS) and type(value).__module__ != "numpy":
            raise refused("the value of a parameter", "a literal or a Column", value)


def require_known(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Names that a call has."""
    for name in given:
        if name not in known:
            raise InvalidInput(f"there is no {name!r} to be watched", place=name, hint=f"there is {', '.join(known)}")


def require_connection(catalog: object, warehouse: object, properties: Mapping[str, object]) -> None:
    """Where tables are, as texts."""
    require_text("catalog", catalog, "catalog='sqlite:///lakehouse/catalog.db'")
    require_text("warehouse", warehouse, "warehouse='./lakehouse'")
    for name, value in properties.items():
        if not isinstance(value, str):
            kind = "None" if value is None else f"a {type(value).__name__}"  # its value may be a secret
            raise InvalidInput(f"the property {name} is a text, not {kind}", place=name)
