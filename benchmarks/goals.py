"""What each area is to reach: ratios of one side to another, printed as met or missed after every measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.harness import Line, cpu_of, ratios_to, wall_of
from benchmarks.session import ICEBERG, OURS, PLAIN

BEFORE = "version before"
TWO, THREE = "format version 2", "format version 3"
BOTH, WALL = ("wall", "CPU"), ("wall",)


class Goal(NamedTuple):
    """Cases, all whose names begin with one of `begins`, in which our side may take this share of another's."""

    area: str
    begins: tuple[str, ...]
    at_most: float
    beside: str = ICEBERG
    clocks: tuple[str, ...] = BOTH
    ends: str = ""
    counted: str = (
        ""  # not a time but a count of this name, of which ours is to be at least `at_most` times the other's
    )
    side: str = OURS  # whose goal it is
    stops: str = ""  # what stops it where it is missed, as profiles say


_CALLS = (
    "About twenty calls between Spark's planner and Python take two milliseconds; what is more differs from run to run."
)
_COMPILED = (
    "A quarter to a half of the processor time is that of the JVM's compilers, on both sides: literals of the "
    "statement stand in the code that Spark generates."
)
_WRITER = "Most of it is Spark's own Parquet writer, and the peer's is as fast."
_TWICE = "The files are read twice: once to find the rows, once to write the others again."
_CRUMBS = (
    "After copy-on-write there are more files than the peer has: new rows stand in files of their own, since a row "
    "that stays must keep a place that others can follow."
)
_PARTITIONS = "It is Spark's own writer of several partitions: plain Parquet, written by the same, takes as long."
_IDS = "Rows are written with two columns more: their ids and the numbers of their last change."
GOALS = (
    Goal("scans", ("full scan",), 1.05, PLAIN, WALL, stops=_CALLS),
    Goal("scans", ("partition filter",), 1.0, PLAIN, WALL, stops=_CALLS),
    Goal("scans", ("sum over",), 1.0, PLAIN, WALL, stops=_CALLS),
    Goal("scans", ("count(*)",), 0.4, PLAIN, WALL),
    Goal("rows", ("DELETE", "UPDATE"), 0.6, ends="merge-on-read", stops=_COMPILED),
    Goal("rows", ("MERGE",), 0.8, ends="merge-on-read", stops=_COMPILED),
    Goal("rows", ("DELETE", "MERGE"), 0.7, ends="copy-on-write", stops=_WRITER),
    Goal("rows", ("UPDATE",), 0.7, ends="copy-on-write", stops=f"{_WRITER} {_TWICE}"),
    Goal("rows", ("compaction",), 0.85, stops=_WRITER),
    Goal("rows", ("count(*)",), 0.5),
    Goal("rows", ("scan after it",), 1.0, stops=_CRUMBS),
    Goal("writes", ("INSERT of 1,000,000 rows", "INSERT of 10,000,000 rows"), 1.0, stops=_PARTITIONS),
    Goal("writes", ("INSERT of one row",), 0.45),
    Goal("statements", ("UPDATE", "MERGE"), 1.0, BEFORE, WALL),
    Goal("statements", ("count(*)", "DELETE a partition"), 1.2, BEFORE, WALL),
    Goal("versions", ("DELETE", "UPDATE", "MERGE"), 1.0, TWO, side=THREE, stops=_IDS),
    Goal("versions", ("scan",), 1.05, TWO, WALL, side=THREE),
    Goal("commits", ("INSERT", "UPDATE"), 4.0, ends="8 writers", counted="commits/s"),
    Goal("planning", ("1,000,000 files",), 0.5, ends="in Spark"),
)


class Reached(NamedTuple):
    """One case beside its goal."""

    case: str
    clock: str
    beside: str
    found: float
    goal: float
    at_least: bool = False
    stops: str = ""

    @property
    def is_met(self) -> bool:
        """Whether it is reached, as the table shows the figure: to two digits."""
        shown = round(self.found, 2)
        return shown >= self.goal if self.at_least else shown <= self.goal

    @property
    def missed_by(self) -> float:
        """The share of the goal that is missing; nothing, where it is met."""
        return 0.0 if self.is_met else abs(self.found / self.goal - 1)


def reached(area: str, lines: Sequence[Line]) -> list[Reached]:
    """The cases of an area that have a goal; a case whose other side is missing has none to be measured by."""
    return [each for goal in GOALS if goal.area == area for each in _of(goal, lines)]


def _of(goal: Goal, lines: Sequence[Line]) -> Iterator[Reached]:
    cases = [one for one in dict.fromkeys(line.case for line in lines) if one.startswith(goal.begins)]
    chosen = [one for one in cases if goal.ends in one]
    if goal.counted:
        sides = {(line.case, line.side): line.more.get(goal.counted) for line in lines}
        for case in chosen:
            mine, theirs = sides.get((case, goal.side)), sides.get((case, goal.beside))
            if isinstance(mine, int | float) and isinstance(theirs, int | float) and theirs:
                yield Reached(case, goal.counted, goal.beside, mine / theirs, goal.at_most, True, goal.stops)
        return
    for clock, of in (("wall", wall_of), ("CPU", cpu_of)):
        found = ratios_to(lines, goal.beside, of) if clock in goal.clocks else {}
        yield from (
            Reached(case, clock, goal.beside, found[case, goal.side], goal.at_most, stops=goal.stops)
            for case in chosen
            if (case, goal.side) in found
        )


def told(found: Sequence[Reached]) -> list[list[str]]:
    """The rows of a table: case, clock, beside whom, ratio, goal, and whether it is met."""
    return [
        [
            each.case,
            each.clock,
            each.beside,
            f"{each.found:.2f}",
            f"{'≥' if each.at_least else '≤'} {each.goal:g}",
            "met" if each.is_met else f"missed by {each.missed_by:.0%}",
        ]
        for each in found
    ]


def missed(found: Sequence[Reached]) -> list[str]:
    """How many goals are met, and a line for each case that missed some, with what stops it."""
    if not found:
        return []
    cases: dict[tuple[str, str], list[Reached]] = {}
    for each in found:
        if not each.is_met:
            cases.setdefault((each.case, each.stops), []).append(each)
    lines = [f"{sum(each.is_met for each in found)} of {len(found)} goals are met."]
    for (case, stops), every in cases.items():
        ratios = ", ".join(f"{each.found:.2f} {each.clock}" for each in every)
        sign = "at least" if every[0].at_least else "at most"
        asked = f"{sign} {every[0].goal:g} of {every[0].beside} was asked"
        lines.append(f"- {case}: {ratios}; {asked}. {stops}".rstrip())
    return lines
