"""A case: one file that names a model, its parameters and somebody's rules, what they violate, and a control.

thread = "org/project#1"
row = 0
engine = "an engine"
mechanism = "a sentence"
model = "files"
violates = "committed_snapshots_are_whole"

[set]
lost-answers = 1

[policy]
keeps = "nothing"

[control]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lakeproof.commit.policy_text import one_of, policy_from
from lakeproof.errors import InvalidInput
from lakeproof.models import sink
from lakeproof.models.catalog import CATALOG, Subject
from lakeproof.models.files.rules_text import rules_from

_KEYS = ("thread", "row", "engine", "mechanism", "model", "violates", "require", "set", "policy", "control")
_KINDS: dict[str, tuple[type, str]] = {
    "row": (int, "a whole number"),
    "require": (list, "a list of names"),
    **dict.fromkeys(("set", "policy", "control"), (dict, "a table")),
}
_NEEDED = ("thread", "engine", "mechanism", "model", "violates")


class Case(NamedTuple):
    """Rules of somebody and where they fail; `control` are the rules that hold at the same parameters."""

    name: str
    thread: str
    row: int
    engine: str
    mechanism: str
    model: str
    violates: str
    parameters: Mapping[str, str]
    policy: Mapping[str, Any]
    control: Mapping[str, Any]
    text: str
    require: tuple[str, ...] = ()

    def subject(self, *, control: bool = False, more: Mapping[str, str] | None = None) -> Subject:
        """The model under these rules, or under those of the control."""
        rules = dict(self.control if control else self.policy)
        changed = {name: _word(value) for name, value in rules.pop("set", {}).items()}
        given = {**self.parameters, **changed, **(more or {})}
        name = "the control of " + self.name if control else self.name
        return CATALOG[self.model].subject(given, _rules(self.model, {"name": name, **rules}, self.text, self.name))


def _rules(model: str, rules: Mapping[str, Any], text: str, place: str) -> Any:
    if model == "iceberg":
        return policy_from(rules, text, place=place)
    return (rules_from if model == "files" else sink.rules_from)(rules, place=place)


def _require_kinds(content: Mapping[str, Any], place: str) -> None:
    """Every key holds what it should, and so do the rules and their control."""
    for key, value in content.items():
        one_of(key, _KEYS, "a key of a case", place=place)
        kind, told = _KINDS.get(key, (str, "a text"))
        is_whole = not isinstance(value, bool) and isinstance(value, kind)
        if not is_whole or (key == "require" and not all(isinstance(one, str) for one in value)):
            raise InvalidInput(f"The {key} of a case is {told}, not {_shortly(value)}", place=place)
        if key in ("policy", "control") and not isinstance(value.get("set", {}), dict):
            raise InvalidInput(f"The set of a {key} is a table, not {_shortly(value['set'])}", place=place)


def _shortly(value: object) -> str:
    return f"{str(value)[:40]!r}"


def case_from_text(text: str, *, place: str) -> Case:
    """The case that a TOML text says; every mistake is a sentence."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The case is not TOML: {error}", place=place) from None
    _require_kinds(content, place)
    for key in _NEEDED:
        if key not in content:
            raise InvalidInput(f"A case must say its {key}", place=place)
    models = tuple(name for name, entry in CATALOG.items() if entry.policy is not None)
    return Case(
        name=str(content.get("policy", {}).get("name", place.rpartition("/")[2].removesuffix(".toml"))),
        thread=content["thread"],
        row=content.get("row", 0),
        engine=content["engine"],
        mechanism=content["mechanism"],
        model=one_of(content["model"], models, "a model with rules", place=place),
        violates=content["violates"],
        parameters={name: _word(value) for name, value in content.get("set", {}).items()},
        policy=content.get("policy", {}),
        control=content.get("control", {}),
        text=text,
        require=tuple(content.get("require", ())),
    )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
