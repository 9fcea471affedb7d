"""A streaming sink with checkpoints: which records end in the table when answers are lost and processes start anew."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from lakeproof.checker.model import Model, Process, Property, SearchBounds, always, eventually, reachable
from lakeproof.commit.policy_text import one_of
from lakeproof.errors import InvalidInput
from lakeproof.models import parameter_values as values
from lakeproof.models.parameter_values import Parameter, Parameters
from lakeproof.models.sink.steps import observe, steps_of
from lakeproof.models.sink.world import Knows, Own, Setup, Shared, Sinking, SinkRules, Waiting

LIMITS = {
    "lost-answers": "lost answer",
    "restarts": "restart",
    "older-savepoints": "older savepoint",
    "takeovers": "takeover",
    "rewinds": "rewind",
    "idle-saves": "idle save",
    "retentions": "retention",
}
PARAMETERS: dict[str, Parameter] = {
    "records": Parameter("count", "2", "how many records the log has"),
    "commits-per-checkpoint": Parameter("one|several", "one", "several: each record of a checkpoint is a commit"),
    "late-requests": Parameter("switch", "false", "a request without an answer may arrive later, or never"),
    "lost-answers": Parameter("count", "0", "answers of the catalog that get lost"),
    "restarts": Parameter("count", "0", "how often a process dies and starts anew from what was saved"),
    "older-savepoints": Parameter("count", "0", "how often somebody chooses an older state to start from"),
    "takeovers": Parameter("count", "0", "how often another process takes over while the old one goes on"),
    "rewinds": Parameter("count", "0", "how often a rebalance sends the reader back to what was saved"),
    "idle-saves": Parameter("count", "0", "how often a sink without work saves its offset again"),
    "retentions": Parameter("count", "0", "how often the log forgets what the table has"),
}
PRESETS: dict[str, dict[str, str]] = {
    "lost-answers": {"lost-answers": "1", "restarts": "1", "late-requests": "true"},
    "savepoints": {"restarts": "1", "older-savepoints": "1", "records": "3"},
    "takeover": {"takeovers": "1", "idle-saves": "1", "restarts": "1"},
}
SETTINGS = Parameters("sink", PARAMETERS, PRESETS)
OURS = SinkRules()

__all__ = ["OURS", "PARAMETERS", "PRESETS", "build", "parameter_help", "rules_from", "rules_from_text"]


def parameter_help() -> dict[str, str]:
    """What each parameter says, with its values and its default."""
    return SETTINGS.help()


def rules_from(content: Mapping[str, Any], *, place: str) -> SinkRules:
    """The rules that a table of TOML says."""
    known: dict[str, Any] = dict(OURS._asdict())
    changes: dict[str, Any] = {}
    for key, value in content.items():
        one_of(key, tuple(known), "a rule of a sink", place=place)
        if isinstance(known[key], bool) and not isinstance(value, bool):
            raise InvalidInput(f"{key} must be true or false", place=place)
        if isinstance(known[key], StrEnum):
            names = {member.name.lower(): member for member in Knows}
            value = names[one_of(str(value), tuple(names), "a way to know a commit", place=place)]
        changes[key] = value
    return OURS._replace(**{"name": place, **changes})


def rules_from_text(text: str, *, place: str) -> SinkRules:
    """The rules in a TOML text."""
    try:
        return rules_from(tomllib.loads(text), place=place)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The rules are not TOML: {error}", place=place) from None


def build(parameters: Mapping[str, str], rules: SinkRules = OURS) -> Model:
    """The model that the parameters describe."""
    word = SETTINGS.values(SETTINGS.given(parameters))
    values.choice("commits-per-checkpoint", word["commits-per-checkpoint"], ["one", "several"])
    setup = Setup(
        rules=rules,
        limits=tuple((what, values.count(name, word[name])) for name, what in LIMITS.items()),
        records=values.count("records", word["records"], 1),
        apart=word["commits-per-checkpoint"] == "several",
        late=values.switch("late-requests", word["late-requests"]),
    )
    others = [Process("sink-2", Waiting(), "sink")] if dict(setup.limits)["takeover"] else []
    return Model(
        name="sink",
        shared=Shared(),
        processes=(Process("sink-1", Sinking(), "sink"), *others),
        steps=steps_of(setup),
        properties=_properties(setup),
        observe=observe,
        parameters={**SETTINGS.given(parameters), "rules": rules.name},
        is_final=lambda shared, own: shared.finished or isinstance(own, Waiting),
        bounds=SearchBounds(
            bounded=(f"{setup.records} records", *(f"{what}: up to {size}" for what, size in setup.limits if size))
        ),
    )


def each_record_at_most_once(shared: Shared) -> bool:
    """No record is in the table twice."""
    records = [record for batch in shared.table for record in batch.records]
    return len(records) == len({*records})


def no_record_is_left_out(setup: Setup, shared: Shared) -> bool:
    """When a sink says that it has read the log, every record is in the table."""
    records = {record for batch in shared.table for record in batch.records}
    return not shared.finished or len(records) == setup.records


def _finished(shared: Shared, owns: tuple[Own, ...]) -> bool:
    return shared.finished


def _properties(setup: Setup) -> tuple[Property, ...]:
    limits = dict(setup.limits)
    found = [
        always("each_record_at_most_once", each_record_at_most_once),
        always("no_record_is_left_out", lambda shared: no_record_is_left_out(setup, shared)),
        eventually("the_log_is_read", _finished, symmetric=True),
        reachable("some batch is committed", "a batch is committed"),
    ]
    if limits["restart"]:
        found.append(reachable("some sink starts anew", "a sink starts anew"))
    return tuple(found)
