"""Any described state as a tree in which the parts that a step changed are marked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Literal, TypedDict

from lakeproof.checker.verdicts.trace import NOTHING
from lakeproof.report.words import in_words

Mark = Literal["", "new", "changed", "gone"]
TUPLE = 4  # as many short scalars in a row are one value
SHORT = 24


class StateNode(TypedDict):
    """One place of the state: a value in words, or the places under it."""

    key: str
    mark: Mark
    text: str  # the value of a leaf
    before: str  # what a changed leaf was
    children: list[StateNode]


class News(TypedDict):
    """One thing that a step changed; a side that is not there is empty."""

    what: str
    before: str
    after: str
    tone: str  # "bad" where the change is what went wrong


def marked(key: str, before: Any, after: Any) -> StateNode:
    """The tree of a value, marked where it differs from what was there before."""
    if before is NOTHING or after is NOTHING:
        there, mark = (after, "new") if before is NOTHING else (before, "gone")
        return {**_plain(key, there), "mark": mark}  # type: ignore[typeddict-item]
    pairs = _pairs(before, after)
    if pairs is not None:
        children = [marked(name, old, new) for name, old, new in pairs]
        return {"key": key, "mark": "", "text": "", "before": "", "children": children}
    node = _plain(key, after)
    if json.dumps(before) == json.dumps(after):  # 1 and true are equal in Python only
        return node
    return {**node, "mark": "changed", "before": in_words(before)}


def _plain(key: str, value: Any) -> StateNode:
    pairs = _pairs(value, value)
    children = [] if pairs is None else [_plain(name, item) for name, item, _ in pairs]
    return {"key": key, "mark": "", "text": "" if children else in_words(value), "before": "", "children": children}


def _pairs(before: Any, after: Any) -> list[tuple[str, Any, Any]] | None:
    """The places under two containers of one type, each with both sides; None: compare them as a whole."""
    if not before and not after:
        return None
    if isinstance(before, dict) and isinstance(after, dict):
        if not after:
            return None
        return [(key, before.get(key, NOTHING), after.get(key, NOTHING)) for key in dict.fromkeys([*after, *before])]
    if isinstance(before, list) and isinstance(after, list):
        named = _by_name(before), _by_name(after)
        if named[0] is not None and named[1] is not None:
            return _pairs(*named)
        if _is_one_value(before) and _is_one_value(after) and len(before) == len(after):
            return None
        return list(_aligned(before, after))
    return None


def _is_one_value(items: list[Any]) -> bool:
    scalars = not any(isinstance(item, list | dict) for item in items)
    return scalars and len(items) <= TUPLE and sum(len(str(item)) for item in items) <= SHORT


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """A list of records with different names, by name."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        return None
    named = {item["name"]: {key: value for key, value in item.items() if key != "name"} for item in items}
    return named if len(named) == len(items) else None


def _aligned(before: list[Any], after: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Items matched by what they are, so that one put in front does not mark all behind it."""
    old, new = ([json.dumps(item, sort_keys=True) for item in items] for items in (before, after))
    for what, i, j, k, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "replace" and _alike(before[i:j], after[k:n]):
            yield from ((str(k + x), *pair) for x, pair in enumerate(zip(before[i:j], after[k:n], strict=True)))
        elif what == "equal":
            yield from ((_place(item, k + x), item, item) for x, item in enumerate(after[k:n]))
        else:
            yield from ((_place(item, i + x), item, NOTHING) for x, item in enumerate(before[i:j]))
            yield from ((_place(item, k + x), NOTHING, item) for x, item in enumerate(after[k:n]))


def _alike(old: list[Any], new: list[Any]) -> bool:
    """As many records on both sides: each is taken for a later version of the one in its place."""
    return len(old) == len(new) and all(isinstance(item, dict) for item in old + new)


def _place(item: Any, number: int) -> str:
    return str(number) if isinstance(item, dict) else ""


def news_of(node: StateNode, path: tuple[str, ...] = ()) -> Iterator[News]:
    """The marked places of a tree, each with its path."""
    here = (*path, node["key"]) if node["key"] else path
    if not node["mark"]:
        for child in node["children"]:
            yield from news_of(child, here)
        return
    value = node["text"] or in_words(_value(node))
    sides = {"new": ("", value), "gone": (value, ""), "changed": (node["before"], value)}
    before, after = sides[node["mark"]]
    yield {"what": " › ".join(here), "before": before, "after": after, "tone": ""}


def _value(node: StateNode) -> Any:
    """What a tree says, as data again."""
    if not node["children"]:
        return node["text"]
    keyed = all(child["key"] for child in node["children"])
    values = [_value(child) for child in node["children"]]
    return {child["key"]: value for child, value in zip(node["children"], values, strict=True)} if keyed else values
