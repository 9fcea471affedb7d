"""`lakeproof repair TABLE`: what would set the findings of an audit right, and, when asked, the commit that does."""

from __future__ import annotations

import argparse

from lakeproof.audit import Depth
from lakeproof.audit.repairing.plan import RepairPlan, apply_plan, make_plan
from lakeproof.cli.commands.audit import add_catalog, tables_of
from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.errors import CommitConflict, hide_secrets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("table", metavar="TABLE", help="a table's name; to plan, also its folder or a *.metadata.json")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plan", action="store_true", help="only say what would be done (the default)")
    how.add_argument("--apply", action="store_true", help="do it, as one commit")
    parser.add_argument("--at", metavar="METADATA", help="refuse if the table is not at this metadata file any more")
    parser.add_argument("--roll-back", action="store_true", help="where nothing else helps, go back to a good snapshot")
    parser.add_argument("--deep", action="store_true", help="also what only the files show")
    parser.add_argument("--checksums", action="store_true", help="also what only their pages show")
    add_catalog(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """RepairPlan, and apply where asked; exit 1 if something is left that a repair cannot set right."""
    (raw,) = tables_of(args)
    depth = Depth(args.deep or args.checksums, args.checksums)
    policy = read_policy("lakeproof")
    plan = make_plan(raw, policy, depth=depth, roll_back=args.roll_back)
    if args.at and args.at not in (plan.at, plan.at.rpartition("/")[2]):
        raise CommitConflict(
            f"repair of {raw.name} was not committed\n  because  the table is at {plan.at} now\n"
            "  next     make the plan again"
        )
    applied = apply_plan(raw, plan) if args.apply and plan.steps else ""
    if applied:  # what is left then is what another look finds
        (newest,) = tables_of(args)
        plan = plan._replace(left=make_plan(newest, policy, depth=depth).found)
    if args.json:
        print_json({**plan.to_json(), "applied": applied or None})
    else:
        _show(plan, applied)
    return DIFFERS if plan.left or (plan.steps and not applied) else DONE


def _show(plan: RepairPlan, applied: str) -> None:
    out = console()
    out.print(f"{plan.table} at {plan.at.rpartition('/')[2]}", markup=False)
    for step in plan.steps:
        out.print(f"  {'done' if applied else 'would'}  {hide_secrets(step.does)}", markup=False)
    for finding in (each.told() for each in plan.left):
        out.print(f"  left   {finding.kind}: {finding.because}", markup=False)
        out.print(f"         {finding.advice}", markup=False)
    if plan.roll_back is not None and not any(step.kind == "roll_back" for step in plan.steps):
        out.print(f"  or     --roll-back lets main be snapshot {plan.roll_back}, the newest good one", markup=False)
    if not plan.steps and not plan.left:
        out.print("  nothing to repair")
    if applied:
        out.print(f"committed: {applied}", markup=False)
    elif plan.steps:
        out.print(f"apply it with --apply --at {plan.at.rpartition('/')[2]}", markup=False)
