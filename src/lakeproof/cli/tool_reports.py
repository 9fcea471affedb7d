"""The answer to a jobs file for other programs: a JUnit report, and SARIF for code scanning."""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lakeproof import __version__
from lakeproof.checker import Verdict
from lakeproof.checker.verdicts.trace import Trace

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"violated": "error", "unknown": "warning"}


def junit(verdict: Verdict, name: str) -> str:
    """One test case for each property; an unknown one is an error, as it was not decided."""
    cases = []
    counted = [one for one in verdict.properties if one.counts]
    for one in counted:
        body = ""
        if one.verdict == "violated":
            body = f"<failure message={quoteattr(summary(verdict))}>{escape(story(one.trace))}</failure>"
        elif one.verdict == "unknown":
            body = f"<error message={quoteattr(one.reason or 'not decided')}/>"
        cases.append(f"  <testcase classname={quoteattr(name)} name={quoteattr(one.name)}>{body}</testcase>")
    failures = sum(one.verdict == "violated" for one in counted)
    errors = sum(one.verdict == "unknown" for one in counted)
    head = (
        f'<testsuite name="lakeproof" tests="{len(counted)}" failures="{failures}" errors="{errors}" '
        f'time="{verdict.seconds:.3f}">'
    )
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *cases, "</testsuite>", ""])


def sarif(verdict: Verdict, name: str, lines: dict[str, int]) -> str:
    """One result at each job that takes part in the counterexample; none if every property holds."""
    results = [_result(verdict, name, line) for line in _places(verdict, lines)] if verdict.verdict != "holds" else []
    rules = [{"id": one.name, "shortDescription": {"text": one.name.replace("_", " ")}} for one in verdict.properties]
    driver = {"name": "Lakeproof", "version": __version__, "rules": rules}
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(verdict: Verdict, name: str, line: int) -> dict[str, Any]:
    first = verdict.first_violation
    place = {"artifactLocation": {"uri": name}, "region": {"startLine": max(1, line)}}
    return {
        "ruleId": first.name if first is not None else verdict.properties[0].name,
        "level": _LEVELS[verdict.verdict],
        "message": {"text": f"{summary(verdict)}\n{story(verdict.trace)}".strip()},
        "locations": [{"physicalLocation": place}],
    }


def _places(verdict: Verdict, lines: dict[str, int]) -> list[int]:
    if verdict.trace is None:
        return [1]
    jobs = dict.fromkeys(step.actor.partition("#")[0] for step in verdict.trace.steps)
    return [lines.get(job, 1) for job in jobs]


def summary(verdict: Verdict) -> str:
    """The verdict in one sentence."""
    first = verdict.first_violation
    if verdict.verdict == "violated" and first is not None:
        help_ = [one["change"] for one in verdict.more.get("proposals", ())]
        return f"{first.name} is violated after {first.depth} steps" + (f"; what helps: {help_[0]}" if help_ else "")
    return "; ".join(verdict.notes) or verdict.verdict


def story(trace: Trace | None) -> str:
    """The steps of a counterexample, a line each."""
    if trace is None:
        return ""
    return "\n".join(f"{number}. {step.caption}" for number, step in enumerate(trace.steps, 1))
