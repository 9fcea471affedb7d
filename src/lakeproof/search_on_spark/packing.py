"""Values as bytes and back, where reading runs no code: a checkpoint is data, whoever wrote it.

The bytes are a pickle, but what its names stand for is decided here: each for a maker that fills the fields of one
class and can do nothing else. No class is ever handed out, so that nothing can be called, made or changed but values.
Whatever else is named (a function, a class with a constructor of its own) is refused before anything of it is called.
"""

from __future__ import annotations

import enum
import io
import pickle
import sys
import zlib
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from lakeproof.errors import InvalidInput

_PLAIN = frozenset(
    [bytearray, complex, range, Counter, OrderedDict, date, datetime, time, timedelta, Decimal, Fraction]
)
_NATIVE = frozenset([set, frozenset])  # older forms of pickles name them
_HOOKS = ("__reduce__", "__reduce_ex__", "__setstate__", "__post_init__", "__getnewargs__", "__getnewargs_ex__")
_SAFE_OWNERS = (object, tuple, enum.Enum, enum.Flag, enum.IntEnum, enum.StrEnum, int, str)
_PURE = ("checker", "commit", "filters", "format", "jobs", "models", "scenarios", "search_on_spark", "sql")
"""Folders of ours that a model's values come from: no other module is imported because a checkpoint names it."""
_SUM = 4  # bytes of a checksum


def pack(value: Any) -> bytes:
    """The value as bytes."""
    whole = io.BytesIO()
    _Writer(whole, 5).dump(value)
    return whole.getvalue()


def unpack(packed: bytes) -> Any:
    """The value of these bytes; `InvalidInput` if they name anything but data."""
    return _Reader(io.BytesIO(packed)).load()


def with_checksum(packed: bytes) -> bytes:
    """The bytes, and before them a number that tells whether one of them was changed."""
    return zlib.crc32(packed).to_bytes(_SUM, "big") + packed


def without_checksum(content: bytes) -> bytes:
    """The bytes behind their checksum; `ValueError` if they are not those that were written."""
    packed = content[_SUM:]
    if zlib.crc32(packed).to_bytes(_SUM, "big") != content[:_SUM]:
        raise ValueError("its checksum is wrong")
    return packed


class _Writer(pickle.Pickler):
    """Writes a value of a class as the class's name and the values of its fields."""

    named: type | None = None

    def reducer_override(self, value: Any) -> Any:
        kind: Any = type(value)
        if value is self.named:
            return NotImplemented  # the name that stands before the fields
        if kind not in _PLAIN and not _holds_only_fields(kind):
            raise _refusal(kind.__module__, kind.__qualname__)
        self.named = kind
        return NotImplemented if kind in _PLAIN else (kind, _field_values(value))


def _field_values(value: Any) -> tuple[Any, ...]:
    if isinstance(value, enum.Enum):
        return (value.value,)
    if isinstance(value, tuple):
        return tuple(value)
    kind: Any = type(value)
    return tuple(getattr(value, name) for name in _field_names(kind))


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _maker(module, name)


class _Maker:
    """Makes values of one class from the values of their fields; a constructor of its own is not called."""

    __slots__ = ("_kind", "_names")

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._names = _field_names(kind) if is_dataclass(kind) else ()

    def __call__(self, *values: Any) -> Any:
        kind: Any = self._kind
        if kind in _PLAIN or kind in _NATIVE:
            return kind(*values)
        if issubclass(kind, enum.Enum):
            (value,) = values  # with more it would make another class
            return kind(value)
        if issubclass(kind, tuple):
            if len(values) != len(kind._fields):
                raise ValueError(f"a {kind.__name__} has {len(kind._fields)} fields, not {len(values)}")
            return tuple.__new__(kind, values)
        made = object.__new__(kind)
        for name, value in zip(self._names, values, strict=True):
            object.__setattr__(made, name, value)
        return made

    def __setstate__(self, state: object) -> NoReturn:
        """A pickle may set what belongs to an object it has named: here there is nothing to set."""
        raise ValueError("it would change a class")


@cache
def _maker(module: str, name: str) -> _Maker:
    if module.startswith(tuple(f"lakeproof.{folder}." for folder in _PURE)):
        with suppress(ImportError):
            import_module(module)
    found: Any = sys.modules.get(module)  # a model's own module was loaded with the model
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and (found in _PLAIN or found in _NATIVE or _holds_only_fields(found)):
        return _Maker(found)
    raise _refusal(module, name)


def _refusal(module: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"`{module}.{name}` is not a class that only holds fields",
        place="a value of the search",
        hint="a model's values are tuples, named tuples, frozen dataclasses, enumerations, sets, numbers and texts",
    )


@cache
def _holds_only_fields(kind: type) -> bool:
    named = issubclass(kind, tuple) and hasattr(kind, "_fields") and _is_made_by_namedtuple(kind)
    an_enum = issubclass(kind, enum.Enum) and bool(getattr(kind, "__members__", None))
    return named or an_enum or (is_dataclass(kind) and not _has_hooks(kind))


def _is_made_by_namedtuple(kind: type) -> bool:
    return not any("__new__" in vars(owner) and "_fields" not in vars(owner) for owner in kind.__mro__[:-2])


def _has_hooks(kind: type) -> bool:
    owners = [owner for owner in kind.__mro__ if owner not in _SAFE_OWNERS]
    return any(hook in vars(owner) for owner in owners for hook in _HOOKS)
