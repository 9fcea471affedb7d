"""What may cut a search short, and what it says of itself on the way."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NamedTuple

PROGRESS_EVERY_SECONDS = 0.25


class Progress(NamedTuple):
    """Where a search stands."""

    states: int
    transitions: int
    depth: int
    frontier: int
    rate: float  # states per second since the start
    memory_mb: float
    seconds: float
    remaining_states: int | None  # None: the frontier still grows, nobody can say
    outlook: str  # the estimate in words


class Cut(NamedTuple):
    """The limits of one search; `None`: no limit."""

    states: int | None = None
    seconds: float | None = None
    first: bool = False  # stop at the first violation


class Watch:
    """Keeps the time of a search, reports progress, and says when a limit or Ctrl-C cuts it.

    While it is entered, Ctrl-C does not raise but is remembered until the search asks; a second one raises as usual.
    """

    def __init__(self, cut: Cut, progress: Callable[[Progress], None] | None = None) -> None:
        self.cut, self.progress = cut, progress
        self.patience: int | None = None  # states after which another engine would do better
        self.interrupted = False
        self.began = self.reported = time.perf_counter()
        self.pauses = 0.0  # seconds that do not count as search (compilation)
        self.widths: list[int] = []  # states per finished level

    def __enter__(self) -> Watch:
        self._before: signal.Handlers | Callable[[int, FrameType | None], object] | int | None = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    @property
    def seconds(self) -> float:
        """Seconds of search so far."""
        return time.perf_counter() - self.began - self.pauses

    def look(self, states: int, transitions: int, depth: int, frontier: int) -> str:
        """Report progress if it is due; answer what cuts the search now, or the empty string."""
        now = time.perf_counter()
        if self.progress and now - self.reported >= PROGRESS_EVERY_SECONDS:
            self.reported = now
            self.progress(self.standing(states, transitions, depth, frontier))
        if self.cut.states is not None and states > self.cut.states:
            return "max-states"
        if out_of_time := self.out_of_time():
            return out_of_time
        if self.patience is not None and states > self.patience:
            return "patience"
        return ""

    def out_of_time(self) -> str:
        """What ends the search now, however little it has seen, or the empty string."""
        if self.interrupted:
            return "Ctrl-C"
        return "max-seconds" if self.cut.seconds is not None and self.seconds >= self.cut.seconds else ""

    def standing(self, states: int, transitions: int, depth: int, frontier: int) -> Progress:
        """The search at this moment, with an estimate of what is left where one can be given."""
        seconds = max(self.seconds, 1e-9)
        left = remaining(self.widths)
        rate = states / seconds
        words = (
            "no estimate: the frontier still grows" if left is None else f"about {left:,} states, {left / rate:.0f} s"
        )
        return Progress(states, transitions, depth, frontier, rate, memory_mb(), seconds, left, words)


def remaining(widths: list[int]) -> int | None:
    """States still to come if the last levels go on shrinking as they do; None while they do not shrink."""
    last = widths[-4:]
    if len(last) < 4 or not last[0] > last[1] > last[2] > last[3]:
        return None
    ratio = (last[3] / last[0]) ** (1 / 3)
    return int(last[3] * ratio / (1 - ratio))


def memory_mb() -> float:
    """What this process holds in memory now (its peak, where the system does not tell the present)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return peak_memory_mb()


def peak_memory_mb() -> float:
    """The most that this process has held in memory since it began."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
