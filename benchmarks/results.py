"""What an area found: kept as JSON with every single time, shown as a table."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import COARSE, Line, Number, Timing, cpu_ratios, ratios

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Result:
    """One run of one area, on which machine and under which load."""

    area: str
    title: str
    full: bool
    taken: str
    seconds: float
    machine: str
    load: tuple[float, float]  # runnable processes when it began and when it ended, over the minute before
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    plotted: str = "ratio"  # or the name of a count

    @property
    def name(self) -> str:
        """Of its files: the area, and whether it is whole."""
        return f"{self.area}-full" if self.full else self.area


class Stopwatch:
    """Begins with an area and makes its result."""

    def __init__(self, area: str, title: str, *, full: bool, plotted: str = "ratio") -> None:
        self.area, self.title, self.full, self.plotted = area, title, full, plotted
        self.began, self.load = time.time(), os.getloadavg()[0]

    def result(self, lines: Iterable[Line], notes: Iterable[str] = ()) -> Result:
        """What was found, with date, machine and load."""
        return Result(
            self.area,
            self.title,
            self.full,
            time.strftime("%Y-%m-%d", time.gmtime(self.began)),
            round(time.time() - self.began, 1),
            machine(),
            (round(self.load, 1), round(os.getloadavg()[0], 1)),
            tuple(lines),
            tuple(dict.fromkeys(notes)),
            self.plotted,
        )


def machine() -> str:
    """Cores, memory and versions, in one line."""
    from importlib.metadata import version

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyiceberg", "numpy", "numba"))
    return f"{cores} cores, {memory:.0f} GB, Python {platform.python_version()}, {packages}"


def save(result: Result, folder: Path = FOLDER) -> Path:
    """Keep the raw figures."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Result:
    """The figures of an earlier run."""
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lines = tuple(
        Line(**{**line, "timings": tuple(Timing(*timing) for timing in line["timings"])}) for line in kept["lines"]
    )
    return Result(**{**kept, "load": tuple(kept["load"]), "lines": lines, "notes": tuple(kept["notes"])})


def kept(folder: Path = FOLDER) -> list[Result]:
    """Every kept result."""
    return [load(path) for path in sorted(folder.glob("*.json"))]


def rows_of(result: Result) -> tuple[list[str], list[list[str]]]:
    """The table of a result: its head and its rows; a column that nobody fills is left out."""
    wall, cpu = ratios(result.lines), cpu_ratios(result.lines)
    counted = list(dict.fromkeys(name for line in result.lines for name in line.more))
    head = ["case", "side", "time", "fastest – slowest", "CPU", "ratio", "CPU ratio", *counted]
    rows = []
    for at, line in enumerate(result.lines):
        key = (line.case, line.side)
        walls = [timing.wall for timing in line.timings]
        reference = "1" if any(line.beside == line.side and other != key for other in wall) else ""
        rows.append(
            [
                line.case if not at or result.lines[at - 1].case != line.case else "",
                line.side,
                seconds(line.wall),
                f"{seconds(min(walls))} – {seconds(max(walls))}" if len(walls) > 1 else "",
                "" if line.cpu is None or line.cpu < COARSE else seconds(line.cpu),
                ratio(wall[key]) if key in wall else reference,
                ratio(cpu[key]) if key in cpu else "",
                *(number(line.more[name]) if name in line.more else "" for name in counted),
            ]
        )
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    return [head[at] for at in used], [[row[at] for at in used] for row in rows]


def seconds(value: float) -> str:
    """A time with its unit, to three digits."""
    if value < 0.0995:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if value < 999.5 else f"{value:,.0f} s"


def ratio(value: float) -> str:
    """A ratio to two digits behind the point, a small one to two digits at all."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def number(value: Number | str) -> str:
    """A count with its thousands, a measure to three digits."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"
