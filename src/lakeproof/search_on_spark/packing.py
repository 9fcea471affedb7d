"""Values as bytes and back, where reading runs no code: a checkpoint is data, whoever wrote it.

The bytes are a pickle, but only of plain values and of classes that hold nothing but fields. Whatever else a pickle may
name (a function, a class with a constructor of its own) is refused before anything of it is called.
"""

from __future__ import annotations

import enum
import io
import pickle
import sys
from collections import Counter, OrderedDict
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

from lakeproof.errors import InvalidInput

_PLAIN = frozenset(
    [
        frozenset,
        set,
        bytearray,
        complex,
        range,
        Counter,
        OrderedDict,
        date,
        datetime,
        time,
        timedelta,
        Decimal,
        Fraction,
    ]
)
_HOOKS = ("__reduce__", "__reduce_ex__", "__setstate__", "__post_init__", "__getnewargs__", "__getnewargs_ex__")
_SAFE_OWNERS = (object, tuple, enum.Enum, enum.Flag, enum.IntEnum, enum.StrEnum, int, str)


def pack(value: Any) -> bytes:
    """The value as bytes."""
    return pickle.dumps(value, 5)


def unpack(packed: bytes) -> Any:
    """The value of these bytes; `InvalidInput` if they name anything but data."""
    return _Reader(io.BytesIO(packed)).load()


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _data_class(module, name)


@cache
def _data_class(module: str, name: str) -> type:
    if module.startswith("lakeproof."):
        import_module(module)
    found: Any = sys.modules.get(module)  # a model's own module was loaded with the model
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and (found in _PLAIN or _holds_only_fields(found)):
        return found
    raise InvalidInput(
        f"`{module}.{name}` is not a class that only holds fields",
        place="a value of the search",
        hint="a model's values are tuples, named tuples, frozen dataclasses, enumerations, sets, numbers and texts",
    )


def _holds_only_fields(kind: type) -> bool:
    named = issubclass(kind, tuple) and hasattr(kind, "_fields") and _is_made_by_namedtuple(kind)
    return named or issubclass(kind, enum.Enum) or (is_dataclass(kind) and not _has_hooks(kind))


def _is_made_by_namedtuple(kind: type) -> bool:
    return not any("__new__" in vars(owner) and "_fields" not in vars(owner) for owner in kind.__mro__[:-2])


def _has_hooks(kind: type) -> bool:
    owners = [owner for owner in kind.__mro__ if owner not in _SAFE_OWNERS]
    return any(hook in vars(owner) for owner in owners for hook in _HOOKS)
