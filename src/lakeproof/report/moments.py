"""A trace as moments: the initial state and the state after each step, each with what is new in it."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from lakeproof.checker.verdicts.trace import Trace, TraceStep
from lakeproof.report.metadata_tree import head_of
from lakeproof.report.table import TableView, table_in, table_news, table_view
from lakeproof.report.tree import News, StateNode, marked, news_of
from lakeproof.report.words import in_words, readable

REFUSED = "refused by "
CHECKED = ("validation", "checks")  # where a writer's record says what was checked
NONE = in_words(None)


class Badge(TypedDict):
    """A short word at a step."""

    text: str
    tone: str  # "", "commit", "refused" or "bad"


class Check(TypedDict):
    """What one check of a validation said."""

    check: str
    answer: str
    because: str
    tone: str  # "good", "refused" or "bad"


class StateView(TypedDict):
    """A described state without its table: what each actor holds, and what they share."""

    actors: list[StateNode]
    rest: list[StateNode]


class Moment(TypedDict):
    """The state after a step, and what the step did; the first moment has no step."""

    number: int
    lane: int | None  # which actor; None: the start
    actor: str
    title: str
    label: str
    caption: str
    badges: list[Badge]
    news: list[News]
    held: list[News]  # what is new with the actor, where there is a table whose news come first
    checks: list[Check]
    allowed: bool  # the checks are why this step could commit
    broken: bool  # from here on a reader sees what it should not
    table: int | None  # number of the table view
    state: int  # number of the state view


class TraceMoments(TypedDict):
    """All moments of a trace, with the different table and state views that they show."""

    moments: list[Moment]
    tables: list[TableView]
    states: list[StateView]


class _Pool:
    """Equal views are kept once and named by number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def put(self, value: Any) -> int:
        number = self._numbers.setdefault(json.dumps(value, sort_keys=True), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


def moments_of(trace: Trace) -> TraceMoments:
    """The moments of a trace."""
    tables, states, checks = _Pool(), _Pool(), dict[str, list[Check]]()
    moments, before = [_start(trace)], trace.initial
    for number, step in enumerate(trace.steps, 1):
        moment = _moment(number, trace.actors, before, step)
        moment["checks"] = _validation(step, before, moment, checks, trace.actors)
        if moment["checks"]:  # told apart from what else is new
            for part in (moment["news"], moment["held"]):
                part[:] = [item for item in part if item["what"] not in CHECKED]
            moment["label"] = _counted(moment["label"], moment["checks"])
        moments.append(moment)
        before = step.state
    before = trace.initial
    for moment, state in zip(moments, [trace.initial, *(step.state for step in trace.steps)], strict=True):
        table, old = table_in(state), table_in(before)
        moment["table"] = None if table is None else tables.put(table_view(old, table))
        moment["state"] = states.put(state_view(before, state, trace.actors))
        before = state
    return {"moments": moments, "tables": tables.values, "states": states.values}


def _start(trace: Trace) -> Moment:
    return {
        "number": 0,
        "lane": None,
        "actor": "",
        "title": "initial state",
        "label": "",
        "caption": "Before anybody moves",
        "badges": [],
        "news": [],
        "held": [],
        "checks": [],
        "allowed": False,
        "broken": False,
        "table": None,
        "state": 0,
    }


def _moment(number: int, actors: tuple[str, ...], before: Any, step: TraceStep) -> Moment:
    broken = wrong_reads(before) < wrong_reads(step.state)
    badges: list[Badge] = [{"text": mark, "tone": _tone(mark)} for mark in step.marks]
    committed = _committed(before, step.state)
    if committed:
        badges.insert(0, {"text": f"snapshot {committed}", "tone": "commit"})
    if broken:
        badges.append({"text": "wrong read", "tone": "bad"})
    news, held = news_between(before, step.state, actors, step.actor)
    return {
        "number": number,
        "lane": actors.index(step.actor) if step.actor in actors else None,
        "actor": step.actor,
        "title": readable(step.step),
        "label": step.label,
        "caption": step.caption,
        "badges": badges,
        "news": news,
        "held": held,
        "checks": [],
        "allowed": committed is not None,
        "broken": broken,
        "table": None,
        "state": 0,
    }


def _tone(mark: str) -> str:
    return "refused" if any(word in mark for word in ("refused", "lost", "aborted", "gave up", "crash")) else ""


def wrong_reads(state: Any) -> int:
    """How many snapshots show other rows than they should."""
    table = table_in(state)
    return 0 if table is None else sum(not reader["agrees"] for reader in table_view(None, table)["readers"])


def _committed(before: Any, state: Any) -> int | None:
    """The snapshot that became the head between two states."""
    table, old = table_in(state), table_in(before)
    head = None if table is None else head_of(table)
    was = None if old is None else head_of(old)
    return head["id"] if head is not None and (was is None or was["id"] != head["id"]) else None


def news_between(before: Any, state: Any, actors: tuple[str, ...], actor: str) -> tuple[list[News], list[News]]:
    """What is new in a state: in its table and elsewhere, and with the actor who moved.

    Where there is no table, what is new with the actor is the news.
    """
    table, old = table_in(state), table_in(before)
    news = list(table_news(old, table)) if table is not None and old is not None else []
    view, held = state_view(before, state, actors), list[News]()
    for node in sorted(view["actors"], key=lambda node: node["key"] != actor):
        mine = node["key"] == actor and not node["mark"] and any(child["key"] for child in node["children"])
        held += _without_losses({**node, "key": "" if mine else node["key"]})
    rest = [item for node in view["rest"] for item in news_of(node)]
    return (news + rest, held) if table is not None else (held + rest, [])


def _without_losses(node: StateNode) -> list[News]:
    """What is new with an actor; of a record that it puts away, only the names of its fields."""
    news = [item for item in news_of(node) if {item["before"], item["after"]} - {"", NONE}]
    lost = [item for item in news if not item["after"]]
    if len(lost) < 2:
        return news
    what = node["key"] or "puts away"
    names = ", ".join(item["what"].removeprefix(f"{node['key']} › ") for item in lost)
    return [*(item for item in news if item["after"]), {"what": what, "before": names, "after": "", "tone": ""}]


def state_view(before: Any, state: Any, actors: tuple[str, ...]) -> StateView:
    """A state as marked trees, one for each actor that it speaks of and one for each other part."""
    mine, rest = _parted(state, actors)
    old_mine, old_rest = _parted(before, actors)
    trees = marked("", old_mine, mine)["children"], marked("", old_rest, rest)["children"]
    return {"actors": sorted(trees[0], key=lambda node: actors.index(node["key"])), "rest": trees[1]}


def _parted(state: Any, actors: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a state says of each actor, and the rest without its table."""
    if not isinstance(state, dict):
        return {}, {"state": state}
    mine, rest = dict[str, Any](), dict[str, Any]()
    for key, value in state.items():
        if key == "table" and table_in(state) is not None:
            continue
        if key in actors:
            mine[key] = value
        elif isinstance(value, list) and value and all(_name(item) in actors for item in value):
            mine |= {item["name"]: {name: part for name, part in item.items() if name != "name"} for item in value}
        else:
            rest[key] = value
    return mine, rest


def _name(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else None


def _validation(
    step: TraceStep, before: Any, moment: Moment, known: dict[str, list[Check]], actors: tuple[str, ...]
) -> list[Check]:
    """The checks that this step ran, or those that let its commit through."""
    own, was = (_parted(state, actors)[0].get(step.actor) for state in (step.state, before))
    own, was = (part if isinstance(part, dict) else {} for part in (own, was))
    checks = _checks(own, was, step.marks)
    if checks:
        known[step.actor] = checks
    return checks or (known.get(step.actor, []) if moment["allowed"] else [])


def _checks(own: dict[str, Any], was: dict[str, Any], marks: tuple[str, ...]) -> list[Check]:
    """What a writer's record says of its validation, as far as this step changed it."""
    refused = [_check(mark.removeprefix(REFUSED), "refused") for mark in marks if mark.startswith(REFUSED)]
    said = own.get("checks")
    if isinstance(said, list) and said != was.get("checks"):
        return [
            _check(**{key: in_words(item.get(key, "")) for key in Check.__annotations__ if key in item})
            for item in said
        ]
    text = own.get("validation")
    if not isinstance(text, str) or text == was.get("validation") or not text.startswith(("passed", "refused")):
        return refused
    answer, _, names = text.replace(REFUSED, "refused: ").partition(":")
    return [_check(name.strip(), answer) for name in names.split(",") if name.strip()] or refused


def _counted(label: str, checks: list[Check]) -> str:
    """A label that lists the checks gives their number instead: their names and answers stand beside the step."""
    asked = [check for check in checks if check["answer"] != "not asked"]
    if not asked or not {check["check"] for check in asked} <= set(label.split(", ")):
        return label
    answer = "refused" if any(check["answer"] == "refused" for check in asked) else "passed"
    return f"{len(asked)} check{'' if len(asked) == 1 else 's'}, {answer}"


def _check(check: str, answer: str, because: str = "", tone: str = "") -> Check:
    tones = {"passed": "good", "not asked": "bad"}
    return {
        "check": check,
        "answer": answer,
        "because": "" if because == "none" else because,
        "tone": tones.get(answer, "refused"),
    }
