"""`python -m benchmarks [AREA] [--full]`: measure, print a table, keep the figures, make the page."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib import import_module

from rich.console import Console
from rich.table import Table

from benchmarks.goals import reached, told
from benchmarks.page import PLOTS, ROOT, page
from benchmarks.plots import plot
from benchmarks.results import Result, rows_of, save
from lakeproof.errors import LakeproofError

AREAS = ("search", "planning", "scans", "writes", "statements", "rows", "versions", "commits", "aborts")
OPT_IN = ("billion",)


def main(arguments: list[str]) -> int:
    """One area here, or each in a process of its own, so that none inherits another's memory or session."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="figures as ratios to peers")
    parser.add_argument("area", nargs="?", choices=(*AREAS, *OPT_IN), help="one area; without it a cut of every one")
    parser.add_argument("--full", action="store_true", help="the whole of it, not a cut")
    args = parser.parse_args(arguments)
    if args.area:
        return measure(args.area, full=args.full)
    began = time.perf_counter()
    full = ["--full"] if args.full else []
    failed = [
        a for a in AREAS if subprocess.run([sys.executable, "-m", "benchmarks", a, *full], check=False).returncode
    ]
    print(f"{time.perf_counter() - began:.0f} s in all; {page()[0]} is new")
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(area: str, *, full: bool) -> int:
    """Run one area, print its table, keep its figures, and make the page again."""
    try:
        result: Result = import_module(f"benchmarks.areas.{area}").run(full=full)
    except LakeproofError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    show(result)
    save(result)
    plot(result, ROOT / PLOTS / f"{result.name}.svg")
    path, text = page()
    (ROOT / path).write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    return 0


def show(result: Result) -> None:
    """The table of one area."""
    head, rows = rows_of(result)
    table = Table(*head, title=f"{result.area}: {result.title}", title_justify="left", expand=False)
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else 180, highlight=False)
    console.print(table)
    if goals := told(reached(result.area, result.lines)):
        asked = Table("case", "clock", "beside", "ratio", "goal", "", title="goals", title_justify="left", expand=False)
        for row in goals:
            asked.add_row(*row)
        console.print(asked)
    for note in result.notes:
        console.print(f"  {note}", markup=False)
    console.print(f"  load {result.load[0]} – {result.load[1]}, {result.seconds:.0f} s\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
