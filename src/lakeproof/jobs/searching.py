"""The search over all first tables, under one clock: a few writers at once before all of them.

Whatever some of the writers do while the others rest, all of them can do. So an anomaly of two is one of the whole
file, and what a limit leaves open can be said: every two, every three, or all writers, on how many first tables.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, takewhile
from typing import NamedTuple

from lakeproof.checker import Verdict, check
from lakeproof.checker.search import without_garbage_collection
from lakeproof.commit.policy import Policy
from lakeproof.jobs.model import Beginning, Space, beginnings, space_of
from lakeproof.jobs.preparing import First, PreparedJobs

DEFAULT_SECONDS = 50.0
SOON = 0.4
"""The share of the time in which anomalies of two writers on one row are looked for before all others."""
FEW_WRITERS = 3
"""Up to so many writers are explored together at once."""

Progress = Callable[[str], None]


class Clock:
    """One time limit for everything that is done for a file."""

    def __init__(self, seconds: float | None = DEFAULT_SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        self.now, self.limit = now, seconds
        self.began = now()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self.now() - self.began

    def part(self, share: float) -> Clock:
        """A clock that stops after a share of what is left."""
        return Clock(None if self.left is None else self.left * share, self.now)

    @property
    def left(self) -> float | None:
        """Seconds that are left; `None`: no limit."""
        return None if self.limit is None else max(0.0, self.limit - self.spent)

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left is not None and self.left <= 0


class SearchResult(NamedTuple):
    """What a search over first tables came to. `cut`: what was not explored, or nothing."""

    violated: Beginning | None
    tables: int
    states: int
    marks: Counter[str]
    committed: frozenset[str]
    started: frozenset[str]
    cut: str = ""


class Limits(NamedTuple):
    """What bounds a search beside the clock."""

    clock: Clock
    max_states: int | None = None
    reductions: bool = True


def search_first_tables(
    space: Space,
    limits: Limits,
    *,
    only: First | None = None,
    rows: int | None = None,
    whole: bool = False,
    told: Progress | None = None,
) -> SearchResult:
    """Explore every first table (or `only` one, or those of so many rows) until one violates; `whole`: go on then."""
    some = [Beginning(space, only)] if only is not None else beginnings(space)
    if rows is not None:
        some = takewhile(lambda one: sum(len(held) for _, held in one.first) <= rows, some)
    with without_garbage_collection():
        return _searched(space, some, limits, whole, told)


def _searched(
    space: Space, some: Iterable[Beginning], limits: Limits, whole: bool, told: Progress | None
) -> SearchResult:
    tables = states = 0
    marks: Counter[str] = Counter()
    cut = ""
    for one in some:
        if limits.clock.over:
            cut = f"the time was up after {tables} first tables"
            break
        verdict = _checked(one, limits, first=not whole)
        tables, states = tables + 1, states + verdict.states
        marks.update(verdict.statistics.marks)
        if told is not None and tables % 10 == 0:
            told(f"{tables} first tables, {states:,} states")
        if verdict.verdict == "violated" and not whole:
            return _found(space, one, tables, states, marks)
        if not verdict.exhausted:
            cut = f"{verdict.cut_by} cut the search of first table {tables}"
            break
    return _found(space, None, tables, states, marks)._replace(cut=cut)


def _found(space: Space, violated: Beginning | None, tables: int, states: int, marks: Counter[str]) -> SearchResult:
    return SearchResult(
        violated, tables, states, marks, frozenset(space.memory.committed), frozenset(space.memory.started)
    )


def _checked(one: Beginning, limits: Limits, *, first: bool) -> Verdict:
    few = len(one.space.members) <= FEW_WRITERS
    return check(
        one.quick,
        first=first,
        engine="readable" if few else "auto",
        max_seconds=limits.clock.left,
        max_states=limits.max_states,
        reductions=limits.reductions,
    )


class Covered(NamedTuple):
    """The search over the whole file: what it found, and in words what was explored."""

    found: SearchResult
    said: tuple[str, ...]
    soon: int = 0  # first tables of one row on which two writers were tried before


NOTHING = Covered(SearchResult(None, 0, 0, Counter(), frozenset(), frozenset()), ())
"""Where no search was made yet."""


def explore_by_writers(
    ready: PreparedJobs, policy: Policy, limits: Limits, told: Progress | None = None, *, most: int | None = None
) -> Covered:
    """Explore two writers, then three, then all; the first violation ends it. `most`: only so many at once.

    Two alone are explored to find an anomaly soon; three together can do whatever two of them can.
    """
    names = [job.name for job in ready.jobs.jobs for _ in range(job.times)]
    soon = _small_pairs(ready, policy, limits, names)
    if soon.violated is not None:
        return Covered(soon, ())
    return _by_writers(ready, policy, limits, told, most, names)._replace(soon=soon.tables)


def _by_writers(
    ready: PreparedJobs, policy: Policy, limits: Limits, told: Progress | None, most: int | None, names: list[str]
) -> Covered:
    sizes = [len(names)] if len(names) <= FEW_WRITERS else [2, 3, len(names)] if most is None else [most]
    said: list[str] = []
    total = NOTHING.found
    for size in sizes:
        groups = sorted(set(combinations(names, size)))
        for number, group in enumerate(groups):
            found = search_first_tables(space_of(ready, policy, group), limits, told=told)
            total = _added(total, found)
            if found.violated is not None:
                return Covered(total, tuple(said))
            if found.cut:
                what = f"{', '.join(group)} together: {found.cut}" if len(groups) > 1 else found.cut
                return Covered(total._replace(cut=what), (*said, *_partly(size, number, len(groups), len(names))))
        said.append(f"{_words(size, len(names))} on every first table")
    return Covered(total, tuple(said))


def _small_pairs(ready: PreparedJobs, policy: Policy, limits: Limits, names: list[str]) -> SearchResult:
    """An anomaly of two writers on a table of one row, if a part of the time shows one.

    Most anomalies are of this kind, and in a large file the search of all first tables of one pair might never end.
    """
    groups = sorted(set(combinations(names, 2))) if len(names) > 2 else []
    total, clock = NOTHING.found, limits.clock.part(SOON)
    for number, group in enumerate(groups):
        part = limits._replace(clock=clock.part(1 / (len(groups) - number)))
        total = _added(total, search_first_tables(space_of(ready, policy, group), part, rows=1))
        if total.violated is not None:
            break
    return total


def _words(size: int, all_: int) -> str:
    return "all jobs at once" if size == all_ else f"every {size} of {all_} runs"


def _partly(size: int, done: int, groups: int, all_: int) -> tuple[str, ...]:
    return (f"{done} of {groups} choices of {size} runs on every first table",) if done and size < all_ else ()


def _added(total: SearchResult, found: SearchResult) -> SearchResult:
    return SearchResult(
        found.violated,
        max(total.tables, found.tables),
        total.states + found.states,
        total.marks + found.marks,
        total.committed | found.committed,
        total.started | found.started,
        found.cut,
    )
