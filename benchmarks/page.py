"""The page of all figures, made from what the areas kept."""

from __future__ import annotations

from pathlib import Path

from benchmarks.goals import missed, reached
from benchmarks.results import FOLDER, Result, kept, rows_of

ROOT = Path(__file__).resolve().parent.parent
PATH = "docs/reference/benchmarks.md"
PLOTS = "docs/reference/benchmarks"
ORDER = ("search", "planning", "scans", "writes", "statements", "rows", "versions", "commits", "aborts", "billion")

INTRODUCTION = """\
# Benchmarks

What it costs, beside others. Every ratio is of two sides that were measured in one run, in turn and several times; it
is the median over the rounds. Absolute times are those of the machine named below each table. The raw figures, every
single time of every side, are in `benchmarks/results/`.

```
make bench                        # a cut of every area
make bench AREA=scans             # a cut of one
make bench AREA=scans FULL=1      # the whole of one
make bench AREA=billion           # a search as large as memory allows; takes an hour
```

This page is made from the kept figures. "Load" is how many processes wanted to run when the area began and when it
ended; where it is much above the number of cores, other work disturbed the run, and ratios of processor time are the
better measure.
"""


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    found = sorted(kept(FOLDER), key=lambda one: (_place(one.area), one.full))
    missing = [area for area in ORDER[:-1] if area not in {one.area for one in found}]
    said = [f"Not measured yet: {', '.join(missing)}.\n"] if missing else []
    return PATH, "\n".join([INTRODUCTION, *said, *map(section, found)])


def _place(area: str) -> int:
    return ORDER.index(area) if area in ORDER else len(ORDER)


def section(result: Result) -> str:
    """One area: its plot, its table, what was left out, and where it was taken."""
    head, rows = rows_of(result)
    heading = result.area.capitalize() + (", whole" if result.full else "")
    parts = [f"## {heading}", "", result.title, ""]
    if (ROOT / PLOTS / f"{result.name}.svg").exists():
        parts += [f"![{heading}](benchmarks/{result.name}.svg)", ""]
    parts += [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows), ""]
    parts += [f"- {note}" for note in result.notes] + ([""] if result.notes else [])
    goals = missed(reached(result.area, result.lines))
    parts += [goals[0], "", *goals[1:], *([""] if goals[1:] else [])] if goals else []
    began, ended = result.load
    parts += [f"{result.machine}; {result.taken}, {result.seconds:.0f} s in all, load {began} – {ended}.", ""]
    return "\n".join(parts)
