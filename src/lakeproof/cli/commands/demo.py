"""`lakeproof demo`: the main job, from the rules to a counterexample that one can send to a colleague."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from lakeproof.checker import check
from lakeproof.cli.output import DONE, console
from lakeproof.commit import POLICIES, Policy
from lakeproof.models.catalog import iceberg_subject, with_told_traces
from lakeproof.report import page
from lakeproof.report.terminal import print_sentences
from lakeproof.report.view import view_of
from lakeproof.scenarios.against_checks import AgainstChecks
from lakeproof.scenarios.text import Scenario, ScenarioStep, parse_scenario
from lakeproof.spark import lake, walkthrough
from lakeproof.spark.jvm.session import build_session

UNDELETE = """
table   merge-on-read, snapshot isolation, format v2, columns name color letter
policy  lakeproof
rows    jack red A
w1  scan    UPDATE t SET color = 'blue' WHERE name = 'jack'
w2  scan    DELETE FROM t WHERE name = 'jack'
w1  commit
w2  commit
rows    none
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--out", default="artifacts/demo", metavar="DIR", help="where pages and tables go")


def run(args: argparse.Namespace) -> int:
    """Run every part and end with the path of the page."""
    out, folder = console(), Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    show_table(out, folder)
    rules(out)
    found = proof(out, folder)
    out.print()
    out.print(f"The counterexample as a page: {found.resolve()}", markup=False)
    return DONE


def show_table(out: Console, folder: Path) -> None:
    """A managed table on a real Spark: inserts make snapshots, scans are pruned, the past is kept."""
    home = folder.resolve()
    warehouse = str(home / "tables")
    connected = lake.connect(build_session(warehouse, quick=True), f"sqlite:///{home}/catalog.db", warehouse)
    try:
        walkthrough.run_walkthrough(connected, out)
    finally:
        connected.spark.stop()
    out.print()


def rules(out: Console) -> None:
    """The same two commits under two policies, in words."""
    out.print(Rule("Two commits, two policies", align="left"))
    out.print("A table holds one row: jack red A. Two writers read it at the same time; then both commit.\n")
    scenario = parse_scenario(UNDELETE, name="demo")
    for name in ("iceberg-spark", "lakeproof"):
        policy = POLICIES[name]
        out.print(f"[bold]{name}[/bold]  {policy.title}")
        for line in commits(scenario, policy):
            out.print(f"  {line}", markup=False)
        out.print()


def commits(scenario: Scenario, policy: Policy) -> list[str]:
    """What each commit answers, and what a reader sees then."""
    runner = AgainstChecks(scenario, policy)
    said: dict[str, str] = {}
    lines = []
    for step in scenario.steps:
        if not isinstance(step, ScenarioStep):
            continue
        outcome = runner.step(step)
        if step.verb == "scan":
            said[step.actor] = step.text
            continue
        seen = "; ".join(" ".join(map(str, row)) for row in runner.rows()) or "no row"
        lines.append(f"{said[step.actor]:49} {word_outcome(str(outcome))}, leaving {seen}")
    return lines


def word_outcome(outcome: str) -> str:
    """An outcome for people."""
    return {"ok": "commits", "ok re-run": "runs again and commits"}.get(outcome, outcome)


def proof(out: Console, folder: Path) -> Path:
    """The undelete, found by the checker among all interleavings, and told."""
    out.print(Rule("Every interleaving explored", align="left"))
    path = folder / "undelete.html"
    for name in ("iceberg-spark", "lakeproof"):
        subject = iceberg_subject({"preset": "undelete"}, POLICIES[name])
        verdict = with_told_traces(check(subject.model), subject)
        counted = f"{verdict.states} states in {verdict.seconds:.2f} s, all explored"
        if verdict.trace is None or verdict.verdict == "holds":
            out.print(f"[bold]{name}[/bold]  every property holds ({counted})")
            continue
        out.print(f"[bold]{name}[/bold]  {escape(view_of(verdict)['title'])}")
        out.print(f"The shortest run that leads there ({counted}):\n")
        print_sentences(out, verdict.trace)
        out.print()
        page.write_page(path, verdict)
    return path
