"""A verdict or a trace as plain data, from which the page, the terminal and the notebook draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import PropertyVerdict, Verdict
from lakeproof.report.moments import TraceMoments, moments_of, wrong_reads
from lakeproof.report.summaries import summarize_trace
from lakeproof.report.table import Reader, table_in, table_view
from lakeproof.report.words import counted, duration, in_words, several


class Fact(TypedDict):
    """A short statement at the top."""

    text: str
    tone: str  # "", "good", "bad" or "unknown"


class PropertyView(TypedDict):
    """What was found out about one property, and the number of its trace."""

    name: str
    seed_name: str
    kind: str
    verdict: str
    tone: str
    says: str
    trace: int | None


class TraceView(TraceMoments):
    """A trace to walk through."""

    properties: list[str]
    title: str
    summary: list[str]
    actors: list[str]
    loop: list[int] | None  # first and last step that repeat for ever; empty: nothing moves any more


class ParameterView(TypedDict):
    """One parameter of the model."""

    name: str
    value: str


class StepCountView(TypedDict):
    """How often a step was taken in the explored space."""

    step: str
    enabled: int
    taken: int


class Advice(TypedDict):
    """What the caller found out beside the search: a title and a few lines."""

    title: str
    lead: str
    lines: list[str]


class View(TypedDict):
    """Everything that a report shows."""

    title: str
    tone: str
    summary: list[str]
    bounds: list[str]
    model: str
    facts: list[Fact]
    parameters: list[ParameterView]
    properties: list[PropertyView]
    steps: list[StepCountView]
    marks: list[ParameterView]
    notes: list[str]
    advice: list[Advice]
    traces: list[TraceView]


FEW = 6  # as many parameters are told at the top
ALONE = "Each of these alone is enough: no run goes wrong with it, on any first table, up to three runs at once."
CAUTIOUS = "What could not be computed was explored in every way; a violation may depend on it."
TONES = {"holds": "good", "violated": "bad", "unknown": "unknown"}


def view_of(what: Verdict | Trace) -> View:
    """What a report shows of a verdict, or of a trace alone."""
    return _of_verdict(what) if isinstance(what, Verdict) else _of_trace(what)


def _of_trace(trace: Trace) -> View:
    shown = trace_view(trace, [])
    facts: list[Fact] = [{"text": trace.model, "tone": ""}, {"text": counted(len(trace.steps), "step"), "tone": ""}]
    return {
        "title": shown["title"],
        "tone": "bad" if any(moment["broken"] for moment in shown["moments"]) else "",
        "summary": shown["summary"],
        "bounds": [],
        "model": trace.model,
        "facts": facts,
        "parameters": _parameters(trace.parameters),
        "properties": [],
        "steps": [],
        "marks": [],
        "notes": [],
        "advice": [],
        "traces": [shown],
    }


def _of_verdict(verdict: Verdict) -> View:
    traces, numbers = _traces(verdict)
    counts = verdict.statistics
    first = traces[0] if verdict.verdict == "violated" and verdict.trace is not None else None
    return {
        "title": _title(verdict) if first is None else first["title"],
        "tone": TONES[verdict.verdict],
        "summary": [*([] if first is None else first["summary"]), summarize_search(verdict)],
        "bounds": bounded(verdict),
        "model": verdict.model,
        "facts": _facts(verdict),
        "parameters": _parameters(verdict.parameters),
        "properties": [_property(found, numbers.get(found.name)) for found in verdict.properties],
        "steps": [{"step": name, **count._asdict()} for name, count in counts.steps.items()],  # type: ignore[typeddict-item]
        "marks": [{"name": name, "value": f"{number:,}"} for name, number in counts.marks.items()],
        "notes": list(verdict.notes),
        "advice": _advice(verdict),
        "traces": traces,
    }


def _change(one: dict[str, Any]) -> str:
    return f"{one['change']} ({one['only']})" if "only" in one else str(one["change"])


def _advice(verdict: Verdict) -> list[Advice]:
    """What to change, which jobs stop each other, and what was taken cautiously."""
    more = verdict.more
    found: list[tuple[str, str, list[str]]] = [
        ("What to change", ALONE, [_change(one) for one in more.get("proposals", ())]),
        ("Which jobs stop each other", "", [_pair(one) for one in more.get("pairs", ())]),
        ("Taken cautiously", CAUTIOUS, list(more.get("cautious", ()))),
    ]
    return [{"title": title, "lead": lead, "lines": lines} for title, lead, lines in found if lines]


def _pair(pair: dict[str, Any]) -> str:
    what = "abort" if pair["outcome"] == "abort" else "run again"
    return f"{several(list(dict.fromkeys(pair['jobs'])))} can make each other {what}: {', '.join(pair['checks'])}"


def _violated(verdict: Verdict) -> list[PropertyVerdict]:
    """The violated properties, the one that the whole verdict is about first."""
    found = [p for p in verdict.properties if p.verdict == "violated" and p.kind != "reachable"]
    return sorted(found, key=lambda p: p is not verdict.first_violation)


def _traces(verdict: Verdict) -> tuple[list[TraceView], dict[str, int]]:
    """Every trace once, violations before witnesses, and which property has which."""
    reached = [p for p in verdict.properties if p.kind == "reachable" and p.verdict == "holds"]
    groups: list[tuple[Trace, list[PropertyVerdict]]] = []
    numbers: dict[str, int] = {}
    for found in [*_violated(verdict), *reached]:
        if found.trace is None:
            continue
        same = [n for n, (trace, _) in enumerate(groups) if _same(trace, found.trace)]
        numbers[found.name] = same[0] if same else len(groups)
        if same:
            groups[same[0]][1].append(found)
        else:
            groups.append((found.trace, [found]))
    shortest = verdict.seed is None
    return [trace_view(trace, found, shortest=shortest) for trace, found in groups], numbers


def _same(one: Trace, other: Trace) -> bool:
    return one.moves == other.moves and one.loop_start == other.loop_start


def trace_view(trace: Trace, found: Sequence[PropertyVerdict], *, shortest: bool = False) -> TraceView:
    """A trace with the properties it is about."""
    loop = None
    if trace.loop_start is not None:
        loop = [trace.loop_start + 1, len(trace.steps)] if trace.loop_start < len(trace.steps) else []
    shown = moments_of(trace)
    return {
        "properties": [property.name for property in found],
        "title": _trace_title(trace, found),
        "summary": summarize_trace(trace, found, shown["moments"], shortest=shortest),
        "actors": list(trace.actors),
        "loop": loop,
        **shown,
    }


def _trace_title(trace: Trace, found: Sequence[PropertyVerdict]) -> str:
    wrong = _wrong_reader(trace)
    if wrong is not None and (not found or found[0].verdict == "violated"):
        return _wrong_title(wrong)
    if not found:
        return f"A run of {trace.model}"
    if found[0].kind == "eventually":
        return f"{found[0].name} may never come true"
    return f"{found[0].name} is {'reached' if found[0].kind == 'reachable' else 'violated'}"


def _wrong_reader(trace: Trace) -> Reader | None:
    """The first snapshot that the last step made show other rows than it should."""
    states = [trace.initial, *(step.state for step in trace.steps)][-2:]
    table = table_in(states[-1])
    if table is None or wrong_reads(states[0]) >= wrong_reads(states[-1]):
        return None
    return next(reader for reader in table_view(None, table)["readers"] if not reader["agrees"])


def _wrong_title(reader: Reader) -> str:
    extra = [" ".join(row["cells"]) for row in reader["rows"] if row["tone"]]
    missing = [" ".join(row["cells"]) for row in reader["expected"] if row["tone"]]
    where = reader["title"].capitalize()
    if extra and missing:
        return f"{where} shows {several(extra)} instead of {several(missing)}"
    if extra:
        return f"{where} shows {'a row' if len(extra) == 1 else 'rows'} that should not be there: {several(extra)}"
    return f"{where} has lost {'a row' if len(missing) == 1 else 'rows'}: {several(missing)}"


def _title(verdict: Verdict) -> str:
    words = {
        "holds": f"Every property {'that counts ' if _violated(verdict) else ''}holds",
        "violated": f"{verdict.first_violation.name if verdict.first_violation else 'A property'} is violated",
        "unknown": "No violation found, but the search was cut",
    }
    if verdict.verdict == "unknown" and verdict.exhausted:
        return "The answer is not known"
    return words[verdict.verdict]


def summarize_search(verdict: Verdict) -> str:
    """How much was explored, in one sentence."""
    size = f"{counted(verdict.states, 'state')} in {duration(verdict.seconds)}"
    if verdict.seed is not None:
        return f"Random runs with seed {verdict.seed} saw {size}."
    if verdict.exhausted:
        return f"The whole space was explored: {size}."
    return f"The search was cut by {verdict.cut_by or 'a limit'} after {size}."


def bounded(verdict: Verdict) -> list[str]:
    """What the verdict is about: what was bounded and what not, and what nobody asked."""
    said = str(verdict.bounds)
    found = [f"{said[0].upper()}{said[1:]}."] if said else []
    return [*found, *(f"Not asked: {what}." for what in verdict.bounds.not_asked)]


def _facts(verdict: Verdict) -> list[Fact]:
    violated = _violated(verdict)
    facts: list[Fact] = [{"text": f"{p.name} violated", "tone": "bad" if p.counts else "unknown"} for p in violated]
    if not violated:
        facts.append({"text": verdict.verdict, "tone": TONES[verdict.verdict]})
    facts.append({"text": f"model {verdict.model}", "tone": ""})
    told = _parameters(verdict.parameters)
    facts += [
        {"text": f"{p['name']} {p['value']}", "tone": ""} for p in told if p["name"] == "policy" or len(told) <= FEW
    ]
    if str(verdict.bounds):
        facts.append({"text": str(verdict.bounds), "tone": ""})
    if verdict.unreached:
        names = several(verdict.unreached) if len(verdict.unreached) <= 2 else f"{len(verdict.unreached)} properties"
        facts.append({"text": f"never reached: {names}", "tone": "unknown"})
    return facts


def _parameters(parameters: Any) -> list[ParameterView]:
    return [{"name": str(name), "value": in_words(value)} for name, value in parameters.items()]


def _property(found: PropertyVerdict, trace: int | None) -> PropertyView:
    reached = found.kind == "reachable"
    words = {"holds": "reached", "violated": "not reached"} if reached else {}
    tone = TONES[found.verdict] if found.counts or found.verdict != "violated" else "unknown"
    says = [found.reason] if found.reason else []
    if found.depth is not None:
        says.append(f"after {counted(found.depth, 'step')}")
    if found.alone:
        says.append("by a single process")
    if not found.counts and not reached:
        says.append("does not count in the verdict")
    return {
        "name": found.name,
        "seed_name": found.seed_name,
        "kind": found.kind,
        "verdict": words.get(found.verdict, found.verdict),
        "tone": tone,
        "says": ", ".join(says),
        "trace": trace,
    }
