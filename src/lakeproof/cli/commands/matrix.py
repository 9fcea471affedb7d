"""`lakeproof matrix`: which commands get in each other's way, every cell backed by a run."""

from __future__ import annotations

import argparse
from collections import Counter

from rich.table import Table

from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.commit import POLICIES
from lakeproof.models.questions.matrix import KINDS, LAYOUTS, Cell, cells

_MARKS = {"both_commit": "✓", "rerun": "↻", "conflict": "✗", "anomaly": "‼"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--policy", default="lakeproof", metavar="NAME|FILE.toml", help=", ".join(POLICIES))
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Compute and print every cell; exit 1 only on an anomaly."""
    policy = read_policy(args.policy)
    found = list(cells(policy))
    if args.json:
        print_json({"policy": policy.name, "cells": [cell.to_json() for cell in found]})
    else:
        show(policy.name, found)
    return DIFFERS if any(cell.outcome == "anomaly" for cell in found) else DONE


def show(policy: str, found: list[Cell]) -> None:
    """A table per mode and isolation: rows commit first, columns second."""
    out = console()
    legend = "✓ both commit   ↻ the second runs again   ✗ the second aborts   ‼ both commit and the rows are wrong"
    out.print(f"[bold]{policy}[/bold]   {legend}")
    out.print("Four marks per cell: same row, same file, same partition, apart. '·': has no meaning.\n")
    for mode, isolation in dict.fromkeys((cell.mode, cell.isolation) for cell in found):
        out.print(f"{mode}, {isolation}")
        out.print(matrix_table(mode, isolation, found))
        out.print()
    counted = Counter(cell.outcome for cell in found)
    out.print(", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counted.most_common()))


def matrix_table(mode: str, isolation: str, found: list[Cell]) -> Table:
    """One mode and isolation."""
    by_key = {(c.first, c.second, c.rows): c for c in found if (c.mode, c.isolation) == (mode, isolation)}
    made = Table("first \\ second", *KINDS)
    for first in KINDS:
        marks = ["".join(_mark(by_key.get((first, second, rows))) for rows in LAYOUTS) for second in KINDS]
        made.add_row(first, *marks)
    return made


def _mark(cell: Cell | None) -> str:
    return "·" if cell is None else _MARKS[cell.outcome]
