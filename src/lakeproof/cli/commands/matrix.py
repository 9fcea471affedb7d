"""`lakeproof matrix`: which commands get in each other's way, every cell backed by a run."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import groupby

from rich.table import Table

from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.commit import POLICIES, Policy
from lakeproof.models.questions.matrix import KINDS, LAYOUTS, Cell, PairCell, cells, pair_cells, shortest_anomaly

_MARKS = {"both_commit": "✓", "rerun": "↻", "conflict": "✗", "anomaly": "‼"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--policy", default="lakeproof", metavar="NAME|FILE.toml", help=", ".join(POLICIES))
    parser.add_argument(
        "--policy-of-second", metavar="NAME|FILE.toml", help="another engine on the same table: a table of the pair"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Compute and print every cell; exit 1 only on an anomaly."""
    policy = read_policy(args.policy)
    if args.policy_of_second:
        return run_pair(policy, read_policy(args.policy_of_second), json=args.json)
    found = list(cells(policy))
    if args.json:
        print_json({"policy": policy.name, "cells": [cell.to_json() for cell in found]})
    else:
        show(policy.name, found)
    return DIFFERS if any(cell.outcome == "anomaly" for cell in found) else DONE


def run_pair(first: Policy, second: Policy, *, json: bool) -> int:
    """Compute and print the cells of two engines, whichever commits first; exit 1 on an anomaly."""
    orders = [(first, second), (second, first)] if first != second else [(first, second)]
    found = {(one.name, other.name): list(pair_cells(one, other)) for one, other in orders}
    if json:
        document = [
            {"first": one, "second": other, "cells": [cell.to_json() for cell in mine]}
            for (one, other), mine in found.items()
        ]
        print_json({"policy": first.name, "policy_of_second": second.name, "orders": document})
    else:
        for (one, other), mine in found.items():
            show_pair(one, other, mine)
    wrong = any(cell.word == "anomaly" for mine in found.values() for cell in mine)
    return DIFFERS if wrong else DONE


def show_pair(first: str, second: str, found: list[PairCell]) -> None:
    """One order: how many cells are safe, abort or are wrong, the wrong pairs of commands, and a shortest run."""
    out = console()
    counted = Counter(cell.word for cell in found)
    out.print(
        f"[bold]{first} commits, then {second}[/bold]   " + ", ".join(f"{n} {w}" for w, n in counted.most_common())
    )
    wrong = [cell for cell in found if cell.word == "anomaly"]
    for (one, other), mine in groupby(wrong, key=lambda pair: (pair.cell.first, pair.cell.second)):
        where = ", ".join(dict.fromkeys(f"{p.cell.mode}, {p.cell.isolation}, {p.cell.rows}" for p in mine))
        out.print(f"  ‼ {one}, then {other}: {where.replace('_', ' ')}", markup=False)
    if shortest := shortest_anomaly(found):
        out.print(f"  shortest, {shortest.cell.anomaly} is violated:")
        for number, step in enumerate(shortest.steps, 1):
            out.print(f"  {number:3} {step}", markup=False)


def show(policy: str, found: list[Cell]) -> None:
    """A table per mode and isolation: rows commit first, columns second."""
    out = console()
    legend = "✓ both commit   ↻ the second runs again   ✗ the second aborts   ‼ both commit and the rows are wrong"
    out.print(f"[bold]{policy}[/bold]   {legend}")
    out.print("Four marks per cell, by how the rows of the two lie: the same row, another row of the same file,")
    out.print("another file of the same partition, another partition. ·: does not apply.\n")
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
