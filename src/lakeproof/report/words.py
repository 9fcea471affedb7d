"""Values, counts and names as a reader wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def in_words(value: Any, limit: int = 120) -> str:
    """A plain value on one line, cut where it grows too long.

    >>> in_words({"file": "data-1", "deleted": [0, 2]})
    'file: data-1, deleted: 0, 2'
    >>> in_words([])
    'none'
    """
    text = _words(value)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _words(value: Any, inner: bool = False) -> str:
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {_words(item, True)}" for key, item in value.items())
        return f"({text})" if inner else text
    if isinstance(value, list):
        nested = any(isinstance(item, list | dict) for item in value)
        text = ("; " if nested else ", ").join(_words(item, isinstance(item, dict)) for item in value)
        return f"({text})" if inner and nested else text
    return str(value)


def several(names: Sequence[str], join: str = "and") -> str:
    """Names as a sentence lists them.

    >>> several(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {join} {names[-1]}"


def counted(number: int, thing: str) -> str:
    """How many of a thing.

    >>> counted(1, "state"), counted(2741, "state")
    ('1 state', '2,741 states')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """A time as short as it stays true.

    >>> duration(0.0371), duration(12.34), duration(400)
    ('0.04 s', '12.3 s', '6 min 40 s')
    """
    if seconds < 10:
        return f"{max(seconds, 0.01):.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def readable(name: str) -> str:
    """A step's name without its underscores."""
    return name.replace("_", " ")
