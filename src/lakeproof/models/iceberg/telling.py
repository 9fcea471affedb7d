"""A counterexample as a story: the search's trace run again with real names, and a sentence for every step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakeproof.checker.model import Model
from lakeproof.checker.verdicts.trace import Trace, TraceStep, replayed
from lakeproof.commit.checks import CHANGE_CHECKS, describe_check
from lakeproof.errors import InvalidInput


def told(model: Model, trace: Trace) -> Trace:
    """The same run on a model that is told: files have names, every snapshot is kept, captions say what happened."""
    try:
        run = replayed(model, trace)
    except InvalidInput:  # files of equal content were confused: the trace as it was found is still right
        return trace
    states = [run.initial, *(step.state for step in run.steps)]
    steps = [step._replace(caption=sentence(step, before)) for step, before in zip(run.steps, states, strict=False)]
    return replace(run, steps=tuple(steps))


def sentence(step: TraceStep, before: dict[str, Any]) -> str:
    """What this step did, in one or two sentences."""
    after = step.state
    mine = {writer["name"]: writer for writer in after["writers"]}[step.actor]
    had = {writer["name"]: writer for writer in before["writers"]}[step.actor]
    match step.step:
        case "start":
            where = _snapshot(mine.get("scan_snapshot")) if step.label.upper()[:6] != "INSERT" else ""
            return f"{step.actor} starts {step.label}" + (f"; it reads {where}." if where else ".")
        case "start compaction" | "start delete rewrite":
            return f"{step.actor} starts to {step.label}; it reads {_snapshot(mine.get('scan_snapshot'))}."
        case "read":
            return f"{step.actor} scans {_snapshot(had.get('scan_snapshot'))} and finds {_found(had)}."
        case "write":
            return f"{step.actor} writes {_written(had)}. Nobody can see it yet."
        case "validate":
            return f"{step.actor} refreshes the table and validates: {_asked(step.label)}. It may commit."
        case "others commit":
            seen = _rows(after["table"]["rows"])
            return f"Somebody else commits: {step.label}. A reader sees {seen}."
        case "swap":
            return _swapped(step, after)
        case "refuse":
            return _refused(step, had, mine)
    return step.caption + "."


def _snapshot(number: int | None) -> str:
    return "the empty table" if number is None else f"snapshot {number}"


def _found(writer: dict[str, Any]) -> str:
    rows = writer.get("deletes") or []
    if rows:
        return "the rows to change: " + ", ".join(rows)
    removes = writer.get("removes") or []
    return f"the files to replace: {', '.join(removes)}" if removes else "no row to change"


def _written(writer: dict[str, Any]) -> str:
    parts = [f"a data file with [{rows}]" for rows in writer.get("adds") or []]
    parts += [f"a delete of {place}" for place in writer.get("deletes") or []]
    parts += [f"that {path} is replaced" for path in writer.get("removes") or []]
    return ", ".join(parts) or "nothing"


def _asked(label: str) -> str:
    names = [name for name in label.split(", ") if name != "nothing to ask" and name not in CHANGE_CHECKS]
    if not names:
        return "its policy asks nothing of what others did"
    return "; ".join(f"{name} ({_question(name)})" for name in names)


def _question(name: str) -> str:
    text = describe_check(name).rstrip(".")
    return text[:1].lower() + text[1:]


def _swapped(step: TraceStep, after: dict[str, Any]) -> str:
    snapshot = after["table"]["snapshots"][-1]
    text = f"{step.actor} swaps the table pointer: {snapshot['metadata']} with snapshot {snapshot['id']}"
    sees = _rows(snapshot["rows"])
    if "consistent_read" in after["violated"]:
        return f"{text}. A reader now sees {sees}; it should see {_rows(snapshot['expected'])}."
    if "isolation_kept" in after["violated"]:
        return f"{text}. A reader now sees {sees}; no serial order of the commands leaves that."
    if "no_dangling_delete_files" in after["violated"]:
        return f"{text}. It adds a delete file that points to a data file which is not in the snapshot."
    return f"{text}. A reader sees {sees}."


def _rows(rows: list[list[Any]]) -> str:
    return "; ".join(" ".join(map(str, row)) for row in rows) or "no row"


def _refused(step: TraceStep, had: dict[str, Any], mine: dict[str, Any]) -> str:
    again = "re-run" in step.marks or "compaction planned again" in step.marks
    asks = _question(step.label)
    if not again:
        return f"{step.actor} validates and is refused by {step.label} ({asks}); the command aborts."
    if mine["phase"] == "READY":
        return f"{step.actor} validates, hears {step.label}, runs again from the head and finds nothing left to do."
    where = _snapshot(mine.get("scan_snapshot"))
    return f"{step.actor} validates, hears {step.label} ({asks}) and runs again: it now reads {where}."
