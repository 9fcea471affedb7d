"""How a figure is taken: all sides of a case in turn, several times, on one clock; every single time is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lakeproof.errors import LakeproofError

Number = float | int
Run = Callable[[], object]
COARSE = 0.05  # seconds of processor time below which the system's clock says too little


class Timing(NamedTuple):
    """One run: seconds on the wall, and of processor time where the system tells it."""

    wall: float
    cpu: float | None = None


@dataclass(frozen=True)
class Line:
    """One side of one case: every time that was taken, and what else was counted."""

    case: str
    side: str
    beside: str  # the side that the ratio is to
    timings: tuple[Timing, ...]
    more: Mapping[str, Number | str] = field(default_factory=dict)

    @property
    def wall(self) -> float:
        """The median, in seconds."""
        return median(timing.wall for timing in self.timings)

    @property
    def cpu(self) -> float | None:
        """The median of processor time, in seconds."""
        known = [timing.cpu for timing in self.timings if timing.cpu is not None]
        return median(known) if known else None


class Clock:
    """Wall and processor time of this process and of others that work for it (the JVM of a Spark session)."""

    def __init__(self, others: Sequence[int] = ()) -> None:
        self.pids = (os.getpid(), *others)

    def time(self, run: Run) -> Timing:
        """What one run costs."""
        cpu, began = self._cpu(), time.perf_counter()
        run()
        wall, after = time.perf_counter() - began, self._cpu()
        return Timing(wall, None if cpu is None or after is None else after - cpu)

    def _cpu(self) -> float | None:
        """Seconds so far, those of ended children included."""
        try:
            fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in self.pids]
        except OSError:
            return None
        ticks = sum(int(each) for line in fields for each in line[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """The lines of one case, and why a side is missing."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def interleaved(
    case: str, sides: Mapping[str, Run], *, beside: str, clock: Clock, repetitions: int, warm_up: int = 1
) -> Taken:
    """Every side once, then every side again: what disturbs the machine for a while disturbs all of them.

    Each round begins with another side. A side that says that it cannot (an error of ours) is left out, with a note.
    """
    able, notes = dict(sides), []
    times: dict[str, list[Timing]] = {side: [] for side in able}
    for number in range(-warm_up, repetitions):
        for side in turned(list(able), number):
            try:
                taken = clock.time(able[side])
            except LakeproofError as error:
                notes.append(f"{case}, {side}: {str(error).splitlines()[0]}.")
                del able[side], times[side]
                continue
            if number >= 0:
                times[side].append(taken)
    return Taken(tuple(Line(case, side, beside, tuple(times[side])) for side in sides if side in able), tuple(notes))


def turned(names: list[str], number: int) -> list[str]:
    """The names, beginning with another one in every round."""
    at = number % len(names) if names else 0
    return names[at:] + names[:at]


def ratios(lines: Sequence[Line]) -> dict[tuple[str, str], float]:
    """Wall time of each side to that of the side it is beside: the median of what neighbouring runs give."""
    return _ratios(lines, wall_of)


def cpu_ratios(lines: Sequence[Line]) -> dict[tuple[str, str], float]:
    """The same of processor time, where it is known."""
    return _ratios(lines, cpu_of)


def wall_of(timing: Timing) -> float | None:
    """Seconds on the wall."""
    return timing.wall


def cpu_of(timing: Timing) -> float | None:
    """Seconds of processor time."""
    return timing.cpu


def ratios_to(lines: Sequence[Line], beside: str, of: Callable[[Timing], float | None]) -> dict[tuple[str, str], float]:
    """The ratios as they are where every line stands beside this side."""
    return _ratios([replace(line, beside=beside) for line in lines], of)


def _ratios(lines: Sequence[Line], of: Callable[[Timing], float | None]) -> dict[tuple[str, str], float]:
    by_side = {(line.case, line.side): line for line in lines}
    found = {}
    for (case, side), line in by_side.items():
        other = by_side.get((case, line.beside))
        if other is None or side == line.beside:
            continue
        pairs = [(of(mine), of(theirs)) for mine, theirs in zip(line.timings, other.timings, strict=False)]
        known = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
        if known and (of is wall_of or median(theirs or 0 for _, theirs in pairs) >= COARSE):
            found[case, side] = median(known)
    return found
