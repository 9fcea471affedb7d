"""`lakeproof conformance FILE… --against COMMAND`: scenarios before any implementation, judged by its rows."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from lakeproof.cli.commands.scenario import read_scenario
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.errors import Unavailable
from lakeproof.scenarios.conformance import BROKEN, WRONG, Conformance, applies, conformed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario files")
    parser.add_argument(
        "--against",
        required=True,
        metavar="COMMAND",
        help="a program that reads requests and writes answers, JSON lines",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Run every scenario that anybody can take; exit 1 where committed commands leave wrong rows."""
    scenarios = [scenario for scenario in (read_scenario(Path(name)) for name in args.files) if applies(scenario)]
    with JsonLines(args.against) as peer:
        results = [conformed(scenario, peer) for scenario in scenarios]
    if args.json:
        print_json([result.to_json() for result in results])
    else:
        show(results)
    return DIFFERS if any(result.outcome in (WRONG, BROKEN) for result in results) else DONE


class JsonLines:
    """A program as a peer: a request is a line on its standard input, the answer the next line of its output."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):
            self.process.communicate(timeout=30)  # closes its input, which ends it

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        except (OSError, json.JSONDecodeError) as error:
            raise Unavailable(f"the program `{self.command}` gave no answer to {request['do']}") from error
        if not isinstance(answer, dict):
            raise Unavailable(
                f"the program `{self.command}` answered {request['do']} with something else than an object"
            )
        return answer


def show(results: list[Conformance]) -> None:
    """What is wrong, scenario by scenario, and how many came out how."""
    out = console()
    for result in results:
        if result.outcome in (WRONG, BROKEN):
            out.print(f"{result.outcome}  {result.scenario}  {result.reason}", markup=False)
        if result.outcome == WRONG:
            out.print(f"    committed {', '.join(result.committed)}; rows {_rows(result.rows)}", markup=False)
            out.print(f"    may be    {' or '.join(_rows(rows) for rows in result.allowed)}", markup=False)
    counted = Counter(result.outcome for result in results)
    out.print(", ".join(f"{count} {outcome}" for outcome, count in counted.most_common()) + f" of {len(results)}")


def _rows(rows: tuple[tuple[Any, ...], ...]) -> str:
    return "; ".join(" ".join(map(str, row)) for row in rows) or "none"
