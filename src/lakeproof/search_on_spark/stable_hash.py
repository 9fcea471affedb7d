"""What must come out alike in every worker: where a shared value belongs, and which of its renamings stands for it.

Python's own hashes will not do: those of texts and of `None` differ from process to process.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType
from typing import Any

from lakeproof.checker.tables import Tables
from lakeproof.errors import ModelError


def to_bytes(value: Any) -> bytes:
    """The value as bytes; equal values give equal bytes in every process.

    Different values may give equal bytes (an object of an unknown class counts by its class alone): that only puts
    more into one partition, never the same state into two.
    """
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, str):
        text = str.encode(value, "utf-8", "surrogatepass")
        parts.append(b"s%d:" % len(text) + text)
    elif isinstance(value, tuple | list):
        parts.append(b"(")
        for item in value:
            _write(item, parts)
        parts.append(b")")
    elif isinstance(value, int | float):  # 1 == 1.0 == True
        parts.append(b"i%d;" % value if value == value // 1 else b"f" + repr(float(value)).encode() + b";")
    elif value is None:
        parts.append(b"n")
    elif isinstance(value, frozenset | set):
        parts += [b"{", *sorted(to_bytes(item) for item in value), b"}"]
    elif isinstance(value, enum.Enum):
        _write(value.name, parts)
    elif is_dataclass(value) and not isinstance(value, type):
        _write(tuple(getattr(value, item.name) for item in fields(value) if item.compare), parts)
    elif isinstance(value, Mapping):
        parts += [b"{", *sorted(to_bytes(item) for item in value.items()), b"}"]
    elif isinstance(value, FunctionType | type):
        _write((value.__module__, value.__qualname__), parts)
    elif isinstance(value, partial):
        _write((value.func, value.args, value.keywords), parts)
    elif isinstance(value, bytes):
        parts.append(b"b%d:" % len(value) + value)
    else:
        _write(type(value).__qualname__, parts)


def number_of(value: Any) -> int:
    """A number of 63 bits for the value, the same in every process."""
    return int.from_bytes(hashlib.blake2b(to_bytes(value), digest_size=8).digest(), "big") >> 1


class SteadyTables(Tables):
    """Tables in which the choice among renamed shared values does not depend on which was met first."""

    settles_lone = False  # that choice goes by numbers, which differ from one executor to the next

    def choose_representative(self, value: Any) -> tuple[int, int]:
        """The renaming that comes first in a fixed order, and the symmetry (+ 1) that leads there; 0: itself."""
        images = [value, *(maps.shared(value) for maps in self.symmetries)]
        best = images.index(self.model.shared) if self.model.shared in images else self._least(images)
        known = self.renamed[value] = (self.shared(images[best]), best)
        return known

    def _least(self, images: list[Any]) -> int:
        texts = [to_bytes(image) for image in images]
        best = texts.index(min(texts))
        if any(text == texts[best] and image != images[best] for text, image in zip(texts, images, strict=True)):
            raise ModelError(f"model {self.model.name!r} renames values of a class that has no order")
        return best
