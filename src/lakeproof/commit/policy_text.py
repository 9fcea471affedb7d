"""A user's own policy, written as TOML on top of a named one.

base = "iceberg-spark"
name = "ours"

[[line]]
commands = ["DELETE"]
mode = "merge-on-read"
always = ["data_files_exist", "no_new_delete_files"]
serializable = ["added_data_files"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from lakeproof.commit.change import Command, Mode
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.policy import POLICIES, Line, Policy, Stamp
from lakeproof.errors import InvalidInput

_SWITCHES = {field.name for field in fields(Policy)} - {"name", "title", "lines", "compaction_stamp"}
_LINE_KEYS = ("commands", "mode", "always", "snapshot", "serializable", "v3")


def named_policy(name: str) -> Policy:
    """One of the policies that ship."""
    return POLICIES[one_of(name, tuple(POLICIES), "a policy", place="")]


def policy_from_text(text: str, *, place: str) -> Policy:
    """A policy from TOML text; every mistake is named with its line."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The policy file is not TOML: {error}", place=place) from None
    base = named_policy(str(content.pop("base", "lakeproof")))
    lines = tuple(_line(entry, text, place) for entry in _tables(content.pop("line", ()), place))
    switches: dict[str, Any] = {"name": str(content.pop("name", place))}
    if "compaction_stamp" in content:
        stamps = {stamp.name.lower(): stamp for stamp in Stamp}
        word = str(content.pop("compaction_stamp"))
        switches["compaction_stamp"] = stamps[one_of(word, tuple(stamps), "a stamp", place=_at(text, word, place))]
    for key, value in content.items():
        one_of(key, (*sorted(_SWITCHES), "base", "name", "line"), "a key of a policy", place=_at(text, key, place))
        if not isinstance(value, bool):
            raise InvalidInput(f"{key} must be true or false", place=_at(text, key, place))
        switches[key] = value
    return replace(base, title=f"{base.name}, changed by {place}", lines=(*lines, *base.lines), **switches)


def _tables(value: object, place: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    if value == ():
        return ()
    raise InvalidInput("`line` must be a list of tables: write [[line]]", place=place)


def _line(entry: Mapping[str, Any], text: str, place: str) -> Line:
    for key in entry:
        one_of(key, _LINE_KEYS, "a key of a line", place=_at(text, key, place))
    commands = {command.name.lower(): command for command in Command} | {str(c): c for c in Command}
    chosen = [
        commands[one_of(word, tuple(commands), "a command", place=_at(text, word, place))]
        for word in entry.get("commands", ())
    ]
    modes = {str(mode): mode for mode in Mode}
    mode = entry.get("mode")
    checks = {
        key: tuple(one_of(word, ALL_CHECKS, "a check", place=_at(text, word, place)) for word in entry.get(key, ()))
        for key in _LINE_KEYS[2:]
    }
    picked = modes[one_of(mode, tuple(modes), "a mode", place=_at(text, mode, place))] if mode else None
    return Line(tuple(chosen), picked, **checks)


def one_of(word: str, known: Sequence[str], what: str, *, place: str) -> str:
    """The word, if it is known; else an error that suggests the nearest."""
    if word in known:
        return word
    near = get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise InvalidInput(f"{word!r} is not the name of {what}", place=place, hint=hint)


def _at(text: str, word: str, place: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if word in line:
            return f"{place}:{number}"
    return place
