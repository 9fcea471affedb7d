"""A counterexample as scenario text: saved to a file, it is a regression test."""

from __future__ import annotations

from typing import Any

from lakeproof.checker.verdicts.trace import Trace, TraceStep
from lakeproof.errors import InvalidInput
from lakeproof.models.iceberg.bounds import Configured

COMPACTION = "CALL system.rewrite_data_files('t')"


def scenario_text(config: Configured, trace: Trace, title: str) -> str:
    """The told trace of an Iceberg model in the words of a scenario."""
    setup = config.setup
    partition = ", partitioned by " + " ".join(f.column for f in setup.shape.specs[0]) if setup.shape.specs[0] else ""
    lines = [
        f"# {title}",
        f"table   update {setup.update_mode}, delete {setup.delete_mode}, {setup.isolation} isolation, "
        f"format v{setup.shape.format_version}, columns {' '.join(setup.shape.columns)}{partition}",
        f"policy  {config.policies[0].name}",
    ]
    others = [(i, p.name) for i, p in enumerate(config.policies, 1) if p.name != config.policies[0].name]
    lines += [f"policy-of w{number}  {name}" for number, name in others]
    for file in setup.table.data_files:
        lines.append("rows    " + _rows([list(row) for row in file.rows or ()]))
    lines.append("")
    commands: dict[str, str] = {}
    for step in trace.steps:
        lines += _lines(step, commands)
    return "\n".join(lines) + "\n"


def _lines(step: TraceStep, commands: dict[str, str]) -> list[str]:
    actor = step.actor.replace("writer-", "w")
    match step.step:
        case "start":
            commands[actor] = step.label
            return [f"{actor}  scan      {step.label}"]
        case "start compaction":
            if step.label != "compact all files":
                raise InvalidInput("A compaction of one file among several cannot be written as a scenario")
            commands[actor] = COMPACTION
            return [f"{actor}  scan      {COMPACTION}"]
        case "write" | "crash":
            return [f"{actor}  {step.step}"]
        case "validate":
            return [f"{actor}  validate  ok"]
        case "swap":
            return [f"{actor}  swap      ok", "rows    " + _rows(step.state["table"]["rows"])]
        case "refuse":
            lines = [f"{actor}  validate  conflict {step.label}"]
            phase = next(w["phase"] for w in step.state["writers"] if w["name"] == step.actor)
            return lines if phase == "READY" else [*lines, f"{actor}  scan      {commands[actor]}"]
        case "read":
            return []
    raise InvalidInput(f"The step '{step.step}' cannot be written as a scenario")


def _rows(rows: list[list[Any]]) -> str:
    return "; ".join(" ".join(_spelled(value) for value in row) for row in rows) or "none"


def _spelled(value: Any) -> str:
    """A value that reads back as itself: text that has a blank or looks like a number stands in quotes."""
    quoted = isinstance(value, str) and (" " in value or value.lstrip("-").isdigit())
    return f"'{value}'" if quoted else str(value)
