"""A trace: the steps of one run, with what each changed; as JSON and as an ITF document."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, caption_of
from lakeproof.checker.runs import MoveName, TakenStep, World, follow, start_of
from lakeproof.errors import InvalidInput

NOTHING = object()  # a place that is not there, in a difference


class Change(NamedTuple):
    """One place of the described state that a step changed; a place that was or is not there is `NOTHING`."""

    path: str
    before: Any
    after: Any

    def to_json(self) -> dict[str, Any]:
        """The change without the side that is not there."""
        sides = (("before", self.before), ("after", self.after))
        return {"path": self.path, **{name: value for name, value in sides if value is not NOTHING}}


class TraceStep(NamedTuple):
    """One step of one actor, and the state after it."""

    actor: str
    step: str
    label: str
    caption: str
    marks: tuple[str, ...]
    shared: Any  # None in a trace read from a file: see `replayed`
    owns: tuple[Any, ...]
    state: Any  # the described state
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """The step as `lakeproof check --json` prints it."""
        return {
            "actor": self.actor,
            "step": self.step,
            "label": self.label,
            "caption": self.caption,
            "marks": list(self.marks),
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True)
class Trace:
    """The steps from the initial state on; with `loop_start` the steps from that number on repeat for ever."""

    model: str
    parameters: Mapping[str, Any]
    actors: tuple[str, ...]
    initial: Any  # the described initial state
    steps: tuple[TraceStep, ...]
    loop_start: int | None = None

    @property
    def moves(self) -> tuple[MoveName, ...]:
        """Who did what, in order."""
        return tuple(MoveName(step.actor, step.step, step.label) for step in self.steps)

    def to_json(self) -> list[dict[str, Any]]:
        """The steps as `lakeproof check --json` prints them."""
        return [step.to_json() for step in self.steps]


def trace_of(model: Model, run: list[TakenStep], loop_start: int | None = None) -> Trace:
    """The trace of a real run."""
    before = initial = described(model, start_of(model))
    steps = []
    for process, step, outcome, world in run:
        state = described(model, world)
        changes = tuple(differences(before, state))
        actor = model.processes[process].name
        said = (actor, step.name, outcome.label, caption_of(step), outcome.marks)
        steps.append(TraceStep(*said, world.shared, world.owns, state, changes))
        before = state
    actors = tuple(process.name for process in model.processes)
    return Trace(model.name, plain(model.parameters), actors, initial, tuple(steps), loop_start)


def replayed(model: Model, trace: Trace) -> Trace:
    """The same trace run on the model again: its steps must be open there."""
    return trace_of(model, follow(model, trace.moves), trace.loop_start)


def described(model: Model, world: World) -> Any:
    """The state as plain data, as the model describes it or else by field."""
    if model.describe is not None:
        return plain(model.describe(world.shared, world.owns))
    names = (process.name for process in model.processes)
    return {"shared": plain(world.shared), **{name: plain(own) for name, own in zip(names, world.owns, strict=True)}}


def plain(value: Any) -> Any:
    """A value as JSON-like data: named tuples and dataclasses by field, sets in a fixed order."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return str(value)


def differences(before: Any, after: Any, path: str = "") -> list[Change]:
    """The places in which two described states differ."""
    if before == after and type(before) is type(after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        parts = [(f"{path}.{key}" if path else key, before.get(key, NOTHING), after.get(key, NOTHING)) for key in keys]
    elif isinstance(before, list) and isinstance(after, list):
        longest = range(max(len(before), len(after)))
        parts = [(f"{path}[{i}]", _at(before, i), _at(after, i)) for i in longest]
    else:
        return [Change(path, before, after)]
    return [change for place, old, new in parts for change in differences(old, new, place)]


def _at(items: list[Any], number: int) -> Any:
    return items[number] if number < len(items) else NOTHING


def to_itf(trace: Trace) -> str:
    """The trace in the Informal Trace Format, which other tools read; who did what is in variables of its own."""
    moves: list[dict[str, Any]] = [{"actor": "", "step": "", "label": "", "marks": []}]
    moves += [{"actor": s.actor, "step": s.step, "label": s.label, "marks": list(s.marks)} for s in trace.steps]
    states = [trace.initial, *(step.state for step in trace.steps)]
    captions = {step.step: step.caption for step in trace.steps}
    document: dict[str, Any] = {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "source": trace.model,
            "parameters": dict(trace.parameters),
            "actors": list(trace.actors),
            "captions": captions,
        },
        "vars": ["actor", "step", "label", "marks", "state"],
        "states": [
            {"#meta": {"index": number}, **_to_itf(move), "state": _to_itf(state)}
            for number, (move, state) in enumerate(zip(moves, states, strict=True))
        ],
    }
    if trace.loop_start is not None:
        document["loop"] = trace.loop_start
    return json.dumps(document, indent=1, ensure_ascii=False)


def from_itf(text: str) -> Trace:
    """The trace that such a document holds; its steps have described states only, `replayed` adds the values."""
    try:
        document = json.loads(text)
        meta, states = document["#meta"], document["states"]
        initial, *later = [_from_itf(state["state"]) for state in states]
        steps, before = [], initial
        for number, (move, state) in enumerate(zip(states[1:], later, strict=True), 1):
            if not move["actor"] or not move["step"]:
                raise InvalidInput("a state of the trace names no actor or no step", place=f"states[{number}]")
            said = (move["actor"], move["step"], move["label"], meta.get("captions", {}).get(move["step"], ""))
            changes = tuple(differences(before, state))
            steps.append(TraceStep(*said, tuple(move["marks"]), None, (), state, changes))
            before = state
        actors = tuple(meta["actors"])
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput("the trace is not JSON", place=place, hint="`--itf FILE` writes one") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"the trace lacks what lakeproof writes into an ITF document ({type(error).__name__}: {error})"
        raise InvalidInput(message, hint="`--itf FILE` writes one") from None
    return Trace(
        meta.get("source", ""), meta.get("parameters", {}), actors, initial, tuple(steps), document.get("loop")
    )


def _to_itf(value: Any) -> Any:
    if value is None or isinstance(value, float):
        return {"#unserializable": json.dumps(value)}  # the format knows neither null nor floating point
    if isinstance(value, int) and not isinstance(value, bool):
        return {"#bigint": str(value)}
    if isinstance(value, dict):
        return {key: _to_itf(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_itf(item) for item in value]
    return value


def _from_itf(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_itf(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "#unserializable" in value:
        return json.loads(value["#unserializable"])
    if "#bigint" in value:
        return int(value["#bigint"])
    return {key: _from_itf(item) for key, item in value.items()}
