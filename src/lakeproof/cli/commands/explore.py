"""`lakeproof explore MODEL`: walk the protocol by hand, in a browser on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from lakeproof.checker import Model, Trace, from_itf
from lakeproof.cli.commands.check import parameters_of, subject_of
from lakeproof.cli.commands.check_jobs import jobs_in
from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DONE, console
from lakeproof.errors import InvalidInput
from lakeproof.jobs.answers import first_beginning
from lakeproof.report import explorer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="iceberg, paimon, a file of SQL jobs, or your own model.py")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter or preset=NAME")
    parser.add_argument("--policy", metavar="NAME|FILE.toml", help="the policy of the writers")
    parser.add_argument("--trace", metavar="F.json", help="start from this ITF trace")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port (default: a free one)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def run(args: argparse.Namespace) -> int:
    """Serve the explorer until Ctrl-C."""
    model = _model(args)
    trace = _trace(args.trace) if args.trace else None
    out = console()
    out.print("Ctrl-C ends it.")
    try:
        explorer.serve(
            model,
            port=args.port,
            trace=trace,
            open_browser=args.open,
            ready=lambda address: out.print(f"Walk the model at {address}", markup=False),
        )
    except OSError as error:
        raise InvalidInput(f"The page cannot be served: {error.strerror}", place=f"--port {args.port}") from None
    return DONE


def _model(args: argparse.Namespace) -> Model:
    parameters = parameters_of(args.set)
    if args.model.endswith(".sql"):
        if parameters:
            raise InvalidInput("A file of jobs has no parameters", place=f"--set {args.set[0]}", hint="change the file")
        jobs = jobs_in(args.model)
        return first_beginning(jobs, read_policy(args.policy or jobs.policy or "lakeproof")).told
    subject = subject_of(args.model, parameters, args.policy)
    return subject.to_walk() if subject.to_walk is not None else subject.model


def _trace(path: str) -> Trace:
    try:
        return from_itf(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"The trace cannot be read: {error.strerror}", place=path) from None
    except UnicodeDecodeError:
        raise InvalidInput("The trace is not text in UTF-8", place=path) from None
