"""Lists of configurations of one question: `make check` asks it of a part of them, `make test` of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def in_part(cases: Iterable[Any], *, every: int) -> list[Any]:
    """The cases of a parametrized test; all but the first and each `every`-th after it are marked slow."""
    numbers = iter(range(1_000_000))
    return where_quick(cases, lambda _: next(numbers) % every == 0)


def where_quick(cases: Iterable[Any], quick: Callable[[Any], bool]) -> list[Any]:
    """The cases of a parametrized test; those that are not quick are marked slow."""
    made = []
    for case in cases:
        known = case if isinstance(case, type(pytest.param())) else pytest.param(case)
        marks = known.marks if quick(case) else (*known.marks, pytest.mark.slow)
        made.append(pytest.param(*known.values, id=known.id, marks=marks))
    return made
