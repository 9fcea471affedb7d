"""`lakeproof scenario FILE…`: scenario files against the checks, the model and real tables, and where they disagree."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import InvalidInput
from lakeproof.scenarios.against_checks import AgainstChecks
from lakeproof.scenarios.against_model import AgainstModel, DoesNotApply
from lakeproof.scenarios.run import MakeRunner, find_differences, policies_of
from lakeproof.scenarios.text import Scenario, parse_scenario

WAYS = ("checks", "model", "real")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario files")
    parser.add_argument("--real", action="store_true", help="also on real tables, in a temporary folder")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Run every file; exit 1 where a run differs from the text."""
    scenarios = [read_scenario(Path(name)) for name in args.files]
    if args.real:
        from lakeproof.cli.real_tables import on_real_tables  # only this needs Spark

        with on_real_tables() as real:
            results = [scenario_result(scenario, real) for scenario in scenarios]
    else:
        results = [scenario_result(scenario) for scenario in scenarios]
    if args.json:
        print_json(results)
    else:
        show(results)
    return DONE if all(result["agree"] for result in results) else DIFFERS


def read_scenario(path: Path) -> Scenario:
    """A scenario file, parsed."""
    try:
        return parse_scenario(path.read_text(encoding="utf-8"), name=str(path))
    except OSError as error:
        raise InvalidInput(f"The scenario cannot be read: {error.strerror}", place=str(path)) from None
    except UnicodeDecodeError:
        raise InvalidInput("The scenario is not text in UTF-8", place=str(path)) from None


def scenario_result(scenario: Scenario, real: MakeRunner | None = None) -> dict[str, Any]:
    """What each way of running the scenario says; `null` where it does not apply."""
    found: dict[str, str | None] = {"checks": outcome(scenario, AgainstChecks), "model": None, "real": None}
    with suppress(DoesNotApply):
        found["model"] = outcome(scenario, AgainstModel)
    if real is not None:
        with suppress(DoesNotApply):
            found["real"] = outcome(scenario, real)
    agree = all(said in (None, "agrees") for said in found.values())
    return {"file": scenario.name, **found, "agree": agree}


def outcome(scenario: Scenario, make: MakeRunner) -> str:
    """'agrees', or the differences in words."""
    found = [str(one) for name in policies_of(scenario) for one in find_differences(scenario, named_policy(name), make)]
    return "; ".join(found) or "agrees"


def show(results: list[dict[str, Any]]) -> None:
    """A line per file for people; what differs stands below it."""
    for result in results:
        told = [way for way in WAYS if result[way] is not None]
        verdict = "agrees " if result["agree"] else "differs"
        console().print(f"{verdict}  {Path(result['file']).stem}  ({', '.join(told)})", markup=False)
        for way in told:
            if result[way] != "agrees":
                console().print(f"         {way}: {result[way]}", markup=False)
    good = sum(result["agree"] for result in results)
    console().print(f"{good} of {len(results)} scenarios agree with their text")
