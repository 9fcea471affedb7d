"""The `lakeproof` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from lakeproof import __version__
from lakeproof.cli.output import print_error, run_guarded, say_stopped
from lakeproof.errors import InvalidInput


class Registered(NamedTuple):
    """A subcommand: the module that has `add_arguments(parser)` and `run(args) -> int`, a help line and an example."""

    module: str
    help: str
    example: str


COMMANDS: dict[str, Registered] = {
    "demo": Registered("demo", "a tour: a table on Spark, its snapshots, and the undelete", "lakeproof demo"),
    "sql": Registered("sql", "run SQL statements on managed tables", 'lakeproof sql -e "select * from t"'),
    "check": Registered(
        "check",
        "explore every interleaving of a model or of your SQL jobs",
        "lakeproof check iceberg --set preset=undelete",
    ),
    "jobs": Registered(
        "jobs",
        "make a jobs file from a dbt manifest",
        "lakeproof jobs from-dbt target/manifest.json -o jobs.sql",
    ),
    "matrix": Registered("matrix", "which pairs of commands conflict", "lakeproof matrix --policy iceberg-spark"),
    "necessity": Registered("necessity", "what goes wrong when one check is switched off", "lakeproof necessity"),
    "audit": Registered("audit", "what is wrong with a table, and what to do", "lakeproof audit people"),
    "repair": Registered("repair", "set right what an audit found, as one commit", "lakeproof repair people --plan"),
    "explore": Registered(
        "explore", "walk a model by hand, in the browser", "lakeproof explore iceberg --set preset=undelete"
    ),
    "doctor": Registered("doctor", "what this machine has and what is missing", "lakeproof doctor"),
    "replay": Registered(
        "replay",
        "run a trace on a real implementation, phase by phase",
        "lakeproof replay undelete.json --on iceberg-spark",
    ),
    "conformance": Registered(
        "conformance",
        "run scenario files on any implementation, and judge its rows",
        "lakeproof conformance tests/scenarios/*.txt --against 'python peer.py'",
    ),
    "scenario": Registered(
        "scenario", "run scenario files and say where they disagree", "lakeproof scenario tests/scenarios/*.txt"
    ),
}


OF_EXTRAS = dict.fromkeys(
    ("pyspark", "py4j", "pyiceberg", "pyarrow", "polars", "prompt_toolkit", "psycopg", "sqlalchemy"), "spark"
)
"""Packages that only some commands need, and the extra that brings them."""


class Parser(argparse.ArgumentParser):
    """Bad arguments are bad input like any other."""

    def error(self, message: str) -> NoReturn:
        as_json = "--json" in sys.argv
        code = print_error(InvalidInput(message, hint=f"see `{self.prog} --help`"), as_json=as_json)
        raise SystemExit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and give its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # while modules are loaded
        return say_stopped()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in OF_EXTRAS:
            raise
        extra = OF_EXTRAS[missing]
        said = InvalidInput(f"{missing} is not installed", hint=f"pip install 'lakeproof[{extra}]'")
        return print_error(said, as_json="--json" in arguments)


def _run(arguments: Sequence[str]) -> int:
    parser = parser_for(arguments)
    args = parser.parse_args(arguments)
    if not args.command:
        parser.print_help()
        return 0
    run = import_module(f"lakeproof.cli.commands.{COMMANDS[args.command].module}").run
    return run_guarded(lambda: int(run(args)), as_json=getattr(args, "json", False))


def parser_for(arguments: Sequence[str]) -> Parser:
    """The parser that knows every subcommand by name, and the arguments of the one that is asked for."""
    parser = Parser(prog="lakeproof", description="Run, prove and explain Iceberg tables.")
    parser.add_argument("--version", action="version", version=f"lakeproof {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    named = next((word for word in arguments if not word.startswith("-")), "")
    for name, registered in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=registered.help,
            description=registered.help,
            epilog=f"example:  {registered.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == named:  # only the command that runs is imported: the others may need Spark
            import_module(f"lakeproof.cli.commands.{registered.module}").add_arguments(sub)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
