"""`lakeproof check JOBS.sql`: the verdict as soon as it is there, then what would help and which pairs get stuck."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.status import Status

from lakeproof.checker import Verdict, to_itf
from lakeproof.cli.engines import refuse_spark_options
from lakeproof.cli.files import read_policy, read_text, write_text
from lakeproof.cli.output import EXIT, console, print_json
from lakeproof.cli.tool_reports import junit, sarif
from lakeproof.errors import InvalidInput
from lakeproof.jobs.advice import Pair, Proposal
from lakeproof.jobs.answers import Listener, answer_jobs
from lakeproof.jobs.reading import Jobs, read_jobs
from lakeproof.jobs.searching import DEFAULT_SECONDS, Clock, Limits
from lakeproof.jobs.text import taken_apart
from lakeproof.report import page
from lakeproof.report.terminal import print_story, print_verdict
from lakeproof.report.words import counted, duration


def run(args: argparse.Namespace) -> int:
    """Check a file of SQL jobs and print what was found."""
    _refuse(args)
    jobs = jobs_in(args.model)
    policy = read_policy(args.policy or jobs.policy or "lakeproof")
    limits = Limits(Clock(args.max_seconds or DEFAULT_SECONDS), args.max_states, args.reductions == "on")
    errors = Console(stderr=True)
    with errors.status("searching") if errors.is_terminal and not args.json else _Silent() as status:
        shown = _Shown(console(), status, quiet=args.json, verbose=args.verbose)
        verdict = answer_jobs(jobs, policy, limits=limits, listener=shown.listener(), advice=not args.first)
    shown.end(verdict)
    _write_files(args, jobs, verdict)
    if args.json:
        print_json({**verdict.to_json(), "policy": policy.name})
    return EXIT[verdict.verdict]


def verdict_on_jobs(name: str, policy: str | None, parameters: Mapping[str, str]) -> Verdict:
    """The verdict on a jobs file, for Python; `max_seconds` is the only parameter."""
    unknown = [key for key in parameters if key != "max-seconds"]
    if unknown:
        raise InvalidInput(f"A file of jobs has no parameter {unknown[0]}", hint="change the file")
    jobs = jobs_in(name)
    limits = Limits(Clock(_seconds(parameters.get("max-seconds", str(DEFAULT_SECONDS)))))
    return answer_jobs(jobs, read_policy(policy or jobs.policy or "lakeproof"), limits=limits)


def _seconds(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = -1.0
    if not 0 < found < math.inf:
        raise InvalidInput(f"max-seconds takes a number above 0, not {word!r}", hint="for example max_seconds=60")
    return found


def jobs_in(path: str) -> Jobs:
    """The jobs file of this path, understood."""
    return read_jobs(taken_apart(read_text(path), name=path))


def _refuse(args: argparse.Namespace) -> None:
    """Options that only models have."""
    if args.set:
        raise InvalidInput("A file of jobs has no parameters", place=f"--set {args.set[0]}", hint="change the file")
    if args.engine == "spark":
        raise InvalidInput("A file of jobs is explored in this process", place="--engine spark", hint="leave it out")
    if args.scenario or args.simulate:
        flag = "--scenario" if args.scenario else "--simulate"
        raise InvalidInput("A file of jobs is not told or run that way", place=flag, hint="use --itf or --report")
    if args.require:
        raise InvalidInput("Every property of a jobs file counts already", place=f"--require {args.require[0]}")
    refuse_spark_options(args)


class _Silent:
    """Stands for the progress line where there is no terminal."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class _Shown:
    """Prints each part of the answer as it comes."""

    def __init__(self, out: Console, status: Status | None, *, quiet: bool, verbose: bool) -> None:
        self.out, self.status, self.quiet, self.verbose = out, status, quiet, verbose
        self.proposals = self.pairs = 0

    def listener(self) -> Listener:
        """What the answer is told to."""
        return Listener(self.progress, *(() if self.quiet else (self.verdict, self.pair, self.proposal)))

    def progress(self, text: str) -> None:
        """Where the search stands."""
        if self.status is not None:
            self.status.update(text)

    def verdict(self, verdict: Verdict) -> None:
        """The verdict, what it is about, and what was taken cautiously."""
        if self.verbose:
            print_verdict(self.out, verdict, verbose=True)
        else:
            print_story(self.out, verdict)
        self.say("")
        for line in describe_exploration(verdict):
            self.say(line)
        for note in verdict.more["cautious"]:
            self.say(f"taken cautiously: {note}")
        self.progress("looking for changes that help, and pairs that stop each other")

    def proposal(self, proposal: Proposal) -> None:
        """A change that helps."""
        if not self.proposals:
            self.say("\nWhat to change (each alone leaves no anomaly on any first table, up to three runs at once):")
        self.proposals += 1
        self.say(f"  {proposal}")

    def pair(self, pair: Pair) -> None:
        """Two jobs that stop each other."""
        if not self.pairs:
            self.say("")
        self.pairs += 1
        self.say(str(pair))

    def say(self, text: str) -> None:
        """A plain line."""
        self.out.print(text, markup=False)

    def end(self, verdict: Verdict) -> None:
        """What is left to say."""
        for note in () if self.quiet else verdict.notes:
            if note.startswith(("the time was up before", "the limit of states was reached before", "not every first")):
                self.say(note)


def describe_exploration(verdict: Verdict) -> list[str]:
    """What was explored, within which bounds."""
    more = verdict.more
    rows, tried = more["bounds"]["rows"], more["beginnings"]
    tables = f"{tried} first tables of up to {rows} rows" if rows else "the rows of the set-up"
    so_far = " until the violation was found" if verdict.verdict == "violated" else ""
    size = f"{counted(verdict.states, 'state')} in {duration(verdict.seconds)}"
    lines = [f"Explored from {tables}{so_far}: {size}."]
    if verdict.verdict == "unknown" and more["explored"]:
        lines.append(f"Explored to the end, without an anomaly: {'; '.join(more['explored'])}.")
    return lines


def _write_files(args: argparse.Namespace, jobs: Jobs, verdict: Verdict) -> None:
    if args.junit:
        write_text(args.junit, junit(verdict, jobs.name))
    if args.sarif:
        write_text(args.sarif, sarif(verdict, jobs.name, {job.name: job.line for job in jobs.jobs}))
    if args.itf and verdict.trace is not None:
        write_text(args.itf, to_itf(verdict.trace))
    if args.report:
        try:
            page.write_page(args.report, verdict)
        except OSError as error:
            raise InvalidInput(f"The page cannot be written: {error.strerror}", place=args.report) from None
        if not args.json:
            console().print(f"\nThe page is {Path(args.report)}", markup=False)
