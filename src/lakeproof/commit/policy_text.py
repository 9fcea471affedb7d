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

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from lakeproof.commit.change import Command, Mode
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.policy import POLICIES, Line, Policy, Stamp
from lakeproof.errors import InvalidInput

_SWITCHES = {field.name for field in fields(Policy)} - {"name", "title", "lines", "compaction_stamp", "only"}
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
    return policy_from(content, text, place=place)


def policy_from(table: Mapping[str, Any], text: str, *, place: str) -> Policy:
    """A policy from a table of TOML; `text` is what it was read from, so that a mistake has a line."""
    content = dict(table)
    word = str(content.pop("base", "lakeproof"))
    base = POLICIES[one_of(word, tuple(POLICIES), "a policy", place=_at(text, word, place))]
    lines = tuple(_line(entry, text, place) for entry in _tables(content.pop("line", ()), place))
    switches: dict[str, Any] = {"name": str(content.pop("name", place))}
    if "compaction_stamp" in content:
        stamps = {stamp.name.lower(): stamp for stamp in Stamp}
        word = str(content.pop("compaction_stamp"))
        switches["compaction_stamp"] = stamps[one_of(word, tuple(stamps), "a stamp", place=_at(text, word, place))]
    if "only" in content:
        switches["only"] = _words_of_commands({"only": content.pop("only")}, "only", text, place)
    for key, value in content.items():
        one_of(
            key, (*sorted(_SWITCHES), "base", "name", "line", "only"), "a key of a policy", place=_at(text, key, place)
        )
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
    chosen = _words_of_commands(entry, "commands", text, place)
    if not chosen:
        raise InvalidInput("A line must name its commands", place=place, hint='write commands = ["DELETE"]')
    modes = {str(mode): mode for mode in Mode}
    mode = str(entry["mode"]) if "mode" in entry else None
    picked = modes[one_of(mode, tuple(modes), "a mode", place=_at(text, mode, place))] if mode is not None else None
    checks = {key: _words(entry, key, ALL_CHECKS, "a check", text, place) for key in _LINE_KEYS[2:]}
    return Line(chosen, picked, **checks)


def _words_of_commands(entry: Mapping[str, Any], key: str, text: str, place: str) -> tuple[Command, ...]:
    """The commands under a key, by the names that people or programs use."""
    commands = {command.name.lower(): command for command in Command} | {str(c): c for c in Command}
    return tuple(commands[word] for word in _words(entry, key, tuple(commands), "a command", text, place))


def _words(
    entry: Mapping[str, Any], key: str, known: Sequence[str], what: str, text: str, place: str
) -> tuple[str, ...]:
    """The list under a key, each word of it known."""
    words = entry.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidInput(f"{key} must be a list of names", place=_at(text, key, place))
    return tuple(one_of(word, known, what, place=_at(text, word, place)) for word in words)


def one_of(word: str, known: Sequence[str], what: str, *, place: str) -> str:
    """The word, if it is known; else an error that suggests the nearest."""
    if word in known:
        return word
    near = get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise InvalidInput(f"{word!r} is not the name of {what}", place=place, hint=hint)


def _at(text: str, word: str, place: str) -> str:
    """The place with the line on which the word stands, by itself and not in a comment."""
    alone = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    for number, line in enumerate(text.splitlines(), 1):
        if alone.search(line.partition("#")[0]):
            return f"{place}:{number}"
    return place
