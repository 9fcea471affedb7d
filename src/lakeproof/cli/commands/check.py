"""`lakeproof check MODEL`: explore every interleaving, say what holds, and tell the shortest counterexample."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from lakeproof.checker import Verdict, check, load_model, to_itf
from lakeproof.cli.commands import check_jobs
from lakeproof.cli.engines import add_engine_arguments, explored
from lakeproof.cli.files import read_text, write_text
from lakeproof.cli.output import DONE, EXIT, console, print_json
from lakeproof.commit import POLICIES
from lakeproof.errors import InvalidInput
from lakeproof.models.cases import case_from_text
from lakeproof.models.catalog import Subject, entry_of, with_told_traces
from lakeproof.report import page
from lakeproof.report.notebook import show_in_notebooks
from lakeproof.report.terminal import print_verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="iceberg, files, paimon, sink, a file of SQL jobs, a case.toml, or your own model.py",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter; preset=NAME picks a named set"
    )
    parser.add_argument(
        "--policy", metavar="NAME|FILE.toml", help=f"{', '.join(POLICIES)}, or your own (default lakeproof)"
    )
    parser.add_argument(
        "--require", action="append", default=[], metavar="PROPERTY", help="let this property count in the verdict"
    )
    parser.add_argument("--control", action="store_true", help="of a case file: check the rules that hold")
    add_engine_arguments(parser)
    parser.add_argument(
        "--reductions",
        choices=("on", "off"),
        default="on",
        help="count alike states once, take private steps at once",
    )
    parser.add_argument("--first", action="store_true", help="stop at the first violation")
    parser.add_argument("--max-states", type=_positive, metavar="N", help="stop after so many states")
    parser.add_argument("--max-seconds", type=_positive, metavar="N", help="stop after so many seconds")
    parser.add_argument("--simulate", type=_positive, metavar="N", help="N random runs instead of the whole space")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the seed of the random runs")
    parser.add_argument("--report", metavar="F.html", help="write the counterexample as a page")
    parser.add_argument("--itf", metavar="F.json", help="write the trace as ITF")
    parser.add_argument("--scenario", metavar="F.txt", help="write the trace as a scenario file")
    parser.add_argument("--junit", metavar="F.xml", help="of a jobs file: the answer as a JUnit report")
    parser.add_argument("--sarif", metavar="F.sarif", help="of a jobs file: the answer for code scanning")
    parser.add_argument("--parameters", action="store_true", help="list the model's parameters and presets")
    parser.add_argument("-v", "--verbose", action="store_true", help="every change of every step, every property")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Check the model and print what was found."""
    if args.parameters:
        return _list_parameters(args.model)
    if args.model.endswith(".sql"):
        return check_jobs.run(args)
    if args.junit or args.sarif:
        flag = "--junit" if args.junit else "--sarif"
        raise InvalidInput("Only the check of a jobs file is reported to other programs", place=flag)
    if args.model.endswith(".toml"):
        case = case_from_text(read_text(args.model), place=args.model)
        args.require = [*args.require, *case.require]
        subject = case.subject(control=args.control, more=parameters_of(args.set))
    else:
        subject = subject_of(args.model, parameters_of(args.set), args.policy, args.require)
    text = read_text(args.model) if args.model.endswith(".py") else ""
    verdict = explored(args, subject.model, subject.source, version_of_model=text)
    verdict = with_told_traces(verdict, subject)
    write_files(args, subject, verdict)
    if args.json:
        print_json({**verdict.to_json(), "policy": subject.policy})
    else:
        show(verdict, verbose=args.verbose)
    return EXIT[verdict.verdict]


def verdict_on(named: str | PathLike[str], policy: str | None, parameters: Mapping[str, str]) -> Verdict:
    """The verdict on a model or a jobs file, its traces told."""
    if not isinstance(named, str | PathLike) or not isinstance(name := fspath(named), str):
        hint = 'for example check("iceberg") or check("jobs.sql")'
        raise InvalidInput(f"a model is named by a text, not by {named!r}", place="model", hint=hint)
    if not isinstance(policy, str | None):
        hint = 'for example policy="iceberg-spark", or a file: policy="mine.toml"'
        raise InvalidInput(f"a policy is named by a text, not by {policy!r}", place="policy", hint=hint)
    show_in_notebooks()
    if name.endswith(".sql"):
        return check_jobs.verdict_on_jobs(name, policy, parameters)
    subject = subject_of(name, parameters, policy)
    return with_told_traces(check(subject.model), subject)


def word_of(value: object) -> str:
    """A parameter's value as the command line has it: a list is its values with commas between them."""
    if isinstance(value, list | tuple) and not value:
        raise InvalidInput("a list of values is not empty", place="parameters", hint='for example ["jack", "sarah"]')
    try:
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    except ValueError as error:  # Python writes no number of more than some thousand digits
        raise InvalidInput(f"a parameter cannot be written down: {error}", place="parameters") from None


def subject_of(
    name: str, parameters: Mapping[str, str], policy: str | None, require: list[str] | None = None
) -> Subject:
    """The model that the command line names."""
    own = name.endswith(".py")
    has_policies = not own and entry_of(name).has_policies
    if policy is not None and not has_policies:
        raise InvalidInput(f"The model {name} has no policies", place=f"--policy {policy}", hint="leave --policy out")
    if own:
        model = load_model(name, parameters)
        return Subject(model, partial(load_model, str(Path(name).resolve()), dict(parameters)))
    given = dict(parameters)
    if name == "iceberg" and require and "no_false_aborts" in require:
        given.setdefault("measure-aborts", "true")
    entry = entry_of(name)
    if entry.policy is None:
        return entry.subject(given, None)
    word = policy or "lakeproof"
    return entry.subject(given, entry.policy(word, read_text(word) if word.endswith(".toml") else None))


def show(verdict: Verdict, *, verbose: bool) -> None:
    """The verdict and the first counterexample, for people."""
    print_verdict(console(), verdict, verbose=verbose)


def write_files(args: argparse.Namespace, subject: Subject, verdict: Verdict) -> None:
    """The trace and the page, where they are asked for."""
    wanted = [(flag, getattr(args, flag)) for flag in ("itf", "scenario") if getattr(args, flag)]
    first = verdict.first_violation
    if wanted and (first is None or first.trace is None):
        print(f"no property is violated, so nothing was written to {wanted[0][1]}", file=sys.stderr)
    elif first is not None and first.trace is not None:
        if args.itf:
            write_text(args.itf, to_itf(first.trace))
        if args.scenario:
            if subject.scenario is None:
                raise InvalidInput(
                    "Only traces of the Iceberg model can be scenarios", place=f"--scenario {args.scenario}"
                )
            write_text(args.scenario, subject.scenario(first.trace, f"{first.name} is violated"))
    if args.report:
        try:
            page.write_page(args.report, verdict)
        except OSError as error:
            raise InvalidInput(f"The page cannot be written: {error.strerror}", place=args.report) from None


def parameters_of(words: list[str]) -> dict[str, str]:
    """The parameters that `--set NAME=VALUE` gives."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidInput(
                "A parameter is NAME=VALUE", place=f"--set {word}", hint="for example --set num-writers=3"
            )
        found[name] = value
    return found


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number from 1 on")
    return int(word)


def _list_parameters(name: str) -> int:
    entry = entry_of(name)
    out = console()
    for parameter, text in entry.parameters().items():
        out.print(f"  {parameter:32} {text}", markup=False)
    out.print("presets: " + ", ".join(entry.presets), markup=False)
    return DONE
