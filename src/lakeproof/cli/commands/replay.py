"""`lakeproof replay TRACE --on …`: a trace on a real implementation, phase by phase, and where it goes otherwise."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from lakeproof.checker.verdicts.trace import from_itf
from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, UNKNOWN, console, print_json
from lakeproof.commit import Policy
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.tables.catalogs import DEFAULT_URI, DEFAULT_WAREHOUSE
from lakeproof.models.iceberg import configured
from lakeproof.models.scenario_text import scenario_text
from lakeproof.replay.replaying import IMPLEMENTATIONS, replaying
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.run import Difference, expected_under, find_differences
from lakeproof.scenarios.text import Line, Rows, Scenario, Seen, parse_scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("trace", metavar="TRACE", help="an ITF trace of the Iceberg model, or a scenario file")
    parser.add_argument("--on", required=True, choices=IMPLEMENTATIONS, help="who runs it")
    parser.add_argument("--policy", default="lakeproof", metavar="NAME", help="the runtime's policy (%(default)s)")
    parser.add_argument("--keep", metavar="TABLE", help="leave the table under this name")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--catalog", default=DEFAULT_URI, metavar="URI", help="where the table is made (%(default)s)")
    parser.add_argument("--warehouse", default=DEFAULT_WAREHOUSE, metavar="PATH", help="where it is kept (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Exit 0: it agrees; 1: it differs; 3: the trace does not apply."""
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # that it tries a lost swap again is known
    scenario = trace_at(Path(args.trace))
    policy = read_policy(args.policy if args.on == "lakeproof" else args.on)  # another engine has its own
    try:
        found = replay_scenario(scenario, policy, args)
        result: dict[str, Any] = {
            "on": args.on,
            "applies": True,
            "agrees": not found,
            "differences": [one._asdict() for one in found],
        }
    except DoesNotApply as error:
        result = {"on": args.on, "applies": False, "agrees": False, "differences": [], "because": error.message}
    if args.json:
        print_json(result)
    else:
        show(result, scenario, policy.name)
    return UNKNOWN if not result["applies"] else DONE if result["agrees"] else DIFFERS


def replay_scenario(scenario: Scenario, policy: Policy, args: argparse.Namespace) -> tuple[Difference, ...]:
    """Where the implementation does not do what the trace says."""
    with replaying(args.on, args.catalog, args.warehouse, keep=args.keep) as make:
        return find_differences(scenario, policy, make)


def trace_at(path: Path) -> Scenario:
    """The trace as a scenario, whichever of the two forms it has."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The trace cannot be read: {error.strerror}", place=str(path)) from None
    except UnicodeDecodeError:
        raise InvalidInput("The trace is not text in UTF-8", place=str(path)) from None
    if not text.lstrip().startswith("{"):
        return parse_scenario(text, name=str(path))
    try:
        trace = from_itf(text)
    except InvalidInput as error:
        place = f"{path}, {error.place}" if error.place else str(path)
        raise InvalidInput(error.message, place=place, hint=error.hint) from None
    if trace.model != "iceberg":
        hint = "`lakeproof check iceberg --itf FILE` writes one that can"
        raise InvalidInput("Only a trace of the Iceberg model can be replayed here", place=str(path), hint=hint)
    given = {name: str(value) for name, value in trace.parameters.items() if name != "policy"}
    config = configured(given, named_policy(str(trace.parameters.get("policy", "lakeproof"))))
    return parse_scenario(scenario_text(config, trace, "replayed"), name=str(path))


def show(result: dict[str, Any], scenario: Scenario, policy: str) -> None:
    """The verdict, then every step with what came of it; where that is not what the trace says, both."""
    out = console()
    if not result["applies"]:
        out.print(f"does not apply  {scenario.name} on {result['on']}: {result['because']}", markup=False)
        return
    verdict = "agrees" if result["agrees"] else "differs"
    out.print(f"{verdict}  {scenario.name} on {result['on']}", markup=False)
    other = {one["line"]: one for one in result["differences"]}
    for line in expected_under(scenario, policy):
        found = other.get(line.line)
        said = f"{found['got']}    ← the trace says {found['expected']}" if found else None
        out.print(f"  {tell_line(line, said)}", markup=False)


def tell_line(line: Line, said: str | None = None) -> str:
    """A line of a scenario; `said` is what came of it, if not what it says itself."""
    if isinstance(line, Rows):
        rows = "; ".join(" ".join(map(str, row)) for row in line.rows) or "none"
        return f"{'rows':<14}{said or rows}"
    if isinstance(line, Seen):
        return f"{line.what:<14}{said or ' '.join(line.names) or 'none'}"
    answer = said or (str(line.expected) if line.expected is not None else line.text)
    return f"{line.actor:<4}{line.verb:<10}{answer}".rstrip()
