"""`lakeproof necessity`: what goes wrong when one check is switched off."""

from __future__ import annotations

import argparse

from lakeproof.cli.output import DONE, console, print_json
from lakeproof.models.questions.necessity import Necessity, necessities


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Search for each check and print the shortest counterexample."""
    found = list(necessities())
    if args.json:
        print_json([one.to_json() for one in found])
    else:
        for one in found:
            show(one)
    return DONE


def show(one: Necessity) -> None:
    """A check and what goes wrong without it."""
    out = console()
    out.print(f"[bold]{one.check}[/bold]  of {one.policy}")
    if one.violated is None:
        out.print(f"  no counterexample in {one.states} states of the spaces tried: other checks cover it there\n")
        return
    where = " ".join(f"--set {name}={value}" for name, value in one.parameters.items() if name != "measure-aborts")
    out.print(f"  without it {one.violated} is violated after {one.depth} steps ({where})", markup=False)
    for number, step in enumerate(one.trace.steps if one.trace else (), 1):
        if step.step in ("start", "start compaction", "swap"):
            out.print(f"  {number:3}  {step.caption}", markup=False)
    out.print()
