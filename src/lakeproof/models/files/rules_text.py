"""Other engines' rules for files, written as TOML on top of ours.

name = "gives up at once"
keeps = "nothing"
removes = ["metadata", "manifests"]

[[after]]
phase = "swap"
hears = "no-answer"
next = "aborted"
unanswered = false

[upkeep]
orphans = ["load", "list", "remove"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from lakeproof.commit.attempt import Happened, Keeps, Phase, Protocol, ours
from lakeproof.commit.policy_text import one_of
from lakeproof.commit.upkeep import Asserts, UpkeepPhase, UpkeepRules, WhenMissing
from lakeproof.errors import InvalidInput
from lakeproof.models.files.world import KINDS, Rules

Word = TypeVar("Word", bound=StrEnum)
_SWITCHES = (
    "removes_mentioned",
    "finds_own_commit",
    "finds_by_try",
    "shares_names",
    "row_ids_at_first_try",
    "schema_of_scan",
)
_OF_ATTEMPT = ("keeps", "removes_after", "heeds_unanswered", "after")
_KEYS = ("name", "removes", "upkeep", *_SWITCHES, *_OF_ATTEMPT)
_CHOICES: Mapping[str, type[StrEnum]] = {
    "expiry_asserts": Asserts,
    "drop_asserts": Asserts,
    "when_missing": WhenMissing,
}


def rules_from_text(text: str, *, place: str) -> Rules:
    """The rules in a TOML text."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The rules are not TOML: {error}", place=place) from None
    return rules_from(content, place=place)


def rules_from(content: Mapping[str, Any], *, place: str) -> Rules:
    """The rules that such a table says; every mistake is a sentence."""
    for key in content:
        one_of(key, _KEYS, "a key of rules for files", place=place)
    upkeep = content.get("upkeep", {})
    if not isinstance(upkeep, dict):
        raise InvalidInput("upkeep must be a table", place=place, hint="write [upkeep]")
    rules = Rules(str(content.get("name", place)), upkeep=_upkeep(upkeep, place))
    if {*_OF_ATTEMPT} & {*content}:
        rules = rules._replace(attempt=_attempt(content, place))
    if "removes" in content:
        removed = _words("removes", content["removes"], place)
        rules = rules._replace(removes=tuple(one_of(word, KINDS, "a kind of file", place=place) for word in removed))
    switches: dict[str, Any] = {key: _switch(key, content[key], place) for key in _SWITCHES if key in content}
    return rules._replace(**switches)


def _attempt(content: Mapping[str, Any], place: str) -> Protocol:
    """Our protocol, changed line by line."""
    base = ours()
    following, unanswered, settled = dict(base.next), {*base.unanswered}, {*base.settled}
    for line in _lines(content.get("after", []), place):
        pair = _word(Phase, line["phase"], place), _word(Happened, line["hears"], place)
        if "next" in line:
            following[pair] = _word(Phase, line["next"], place)
        elif pair not in following:
            told = f"nobody hears {line['hears']} in the phase {line['phase']}"
            raise InvalidInput(told, place=place, hint="say what comes next, if somebody does")
        if "unanswered" in line:
            (unanswered.add if _switch("unanswered", line["unanswered"], place) else unanswered.discard)(pair)
        if _switch("settles", line.get("settles", False), place):
            settled.add(pair[1])
    after = content.get("removes_after")
    return Protocol(
        following,
        frozenset(unanswered),
        frozenset(settled),
        heeds_unanswered=_switch("heeds_unanswered", content.get("heeds_unanswered", True), place),
        removes_after=base.removes_after
        if after is None
        else frozenset(_word(Phase, word, place) for word in _words("removes_after", after, place)),
        keeps=_word(Keeps, content.get("keeps", "named"), place),
    )


def _upkeep(content: Mapping[str, Any], place: str) -> UpkeepRules:
    changes: dict[str, Any] = {}
    for key, value in content.items():
        one_of(key, tuple(field.name for field in fields(UpkeepRules)), "a rule of upkeep", place=place)
        if key in _CHOICES:
            changes[key] = _word(_CHOICES[key], value, place)
        elif key == "looks_for_neighbours":
            changes[key] = _switch(key, value, place)
        else:
            changes[key] = tuple(_word(UpkeepPhase, word, place) for word in _words(key, value, place))
    return replace(UpkeepRules(), **changes)


def _lines(said: object, place: str) -> list[Mapping[str, Any]]:
    """The lines of a protocol: each says a phase and what is heard in it."""
    if not isinstance(said, list) or not all(isinstance(line, dict) for line in said):
        raise InvalidInput("after must be a list of tables", place=place, hint="write [[after]]")
    for line in said:
        for key in line:
            one_of(key, ("phase", "hears", "next", "unanswered", "settles"), "a key of a line", place=place)
        for key in ("phase", "hears"):
            if key not in line:
                raise InvalidInput(f"a line of after must say its {key}", place=place)
    return said


def _words(key: str, said: object, place: str) -> list[str]:
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        raise InvalidInput(f"{key} must be a list of names", place=place)
    return said


def _word(of: type[Word], word: str, place: str) -> Word:
    """A member by its name: `no-answer` is NO_ANSWER."""
    names = {member.name.lower().replace("_", "-"): member for member in of}
    return names[one_of(str(word), tuple(names), f"a word of {of.__name__}", place=place)]


def _switch(key: str, value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{key} must be true or false", place=place)
    return value
