"""Scenario text → a scenario: a table, who does what in which order, and what each step must answer.

    # A DELETE may not commit over an UPDATE it did not see.
    table   merge-on-read, snapshot isolation, format v2
    policy  iceberg-spark-fixed
    rows    jack red

    w1  scan     UPDATE t SET color = 'blue' WHERE name = 'jack'
    w2  scan     DELETE FROM t WHERE name = 'jack'
    w1  commit   ok
    w2  commit   conflict no_new_delete_files  snapshot 2
    rows    jack blue
    differs iceberg-spark: w2 commit ok      # the row survives its DELETE

Before the first step `rows` and `files` say what is in the table, after it what must be; `snapshots` says what each
commit so far was. `policy-of w2 iceberg-spark` lets one actor keep a policy of its own. Every error names the line.
Several rows stand on one line with `;` between them; `rows none` is an empty table.
"""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches
from typing import NamedTuple

from lakeproof.commit import POLICIES
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.policy_text import one_of
from lakeproof.errors import InvalidInput
from lakeproof.format import Operation, Row, Value
from lakeproof.scenarios.commands import target_of
from lakeproof.scenarios.table_api import API_VERBS, ApiCall, FileDeclaration, api_call, file_declarations
from lakeproof.scenarios.table_line import Table, known_columns, table_line

_WITHOUT_ANSWER = ("write", "crash")
_WITH_TEXT = {
    "scan": "the SQL that is run",
    "expire": "the number of a snapshot",
    "set": "what is set, such as 'format v3'",
}
_WITH_ANSWER = ("validate", "swap", "swap-unanswered", "swap-delayed", "arrives", "commit")
SQL_VERBS = (*_WITH_TEXT, *_WITHOUT_ANSWER, *_WITH_ANSWER)
OUTCOMES = ("ok re-run", "ok", "already committed", "conflict", "rejected", "unknown", "nothing left")
_HEADERS = ("table", "policy", "policy-of", "rows", "files", "snapshots", "source", "differs")
_ONCE = ("table", "policy", "source")
_DEFAULT_COLUMNS = ("name", "color", "letter")


class StepAnswer(NamedTuple):
    """What a step answers. `snapshot` and `check` only of a conflict; `None`: the scenario does not say."""

    word: str
    check: str | None = None
    snapshot: int | None = None

    def __str__(self) -> str:
        tail = f" {self.check}" if self.check else ""
        return self.word + tail + (f" snapshot {self.snapshot}" if self.snapshot is not None else "")


class ScenarioStep(NamedTuple):
    """One line: an actor, a verb, what it is about, and the answer it must get (`None`: any)."""

    line: int
    actor: str
    verb: str
    text: str = ""
    call: ApiCall | None = None
    expected: StepAnswer | None = None


class Rows(NamedTuple):
    """A line that says which rows a reader sees now."""

    line: int
    rows: tuple[Row, ...]


class Seen(NamedTuple):
    """A line that names the live `files`, or the operations of the `snapshots` so far."""

    line: int
    what: str
    names: tuple[str, ...]


Line = ScenarioStep | Rows | Seen


class Scenario(NamedTuple):
    """A parsed scenario file."""

    name: str
    title: str
    source: str
    table: Table
    policies: tuple[str, ...]
    files: tuple[FileDeclaration, ...]
    rows: tuple[tuple[Row, ...], ...]  # one data file each
    steps: tuple[Line, ...]
    differs: tuple[tuple[str, tuple[Line, ...]], ...] = ()  # policy, the lines that are otherwise there
    policy_of: tuple[tuple[str, str], ...] = ()  # actor, the policy that it keeps whatever is tried


def parse_scenario(text: str, *, name: str = "scenario") -> Scenario:
    """The scenario that the text describes."""
    reader = _Reader(name)
    for number, raw in enumerate(text.splitlines(), 1):
        reader.line(number, raw)
    return reader.finished()


class _Reader:
    def __init__(self, name: str) -> None:
        self.name, self.title, self.source = name, "", ""
        self.table, self.table_place = table_line("", ""), f"{name}:1"
        self.policies: tuple[str, ...] = ()
        self.policy_of: list[tuple[str, str]] = []
        self.files: list[FileDeclaration] = []
        self.initial: list[Rows] = []
        self.steps: list[Line] = []
        self.differs: list[tuple[str, tuple[Line, ...]]] = []
        self.headers: dict[str, int] = {}
        self.actors: dict[str, str] = {}  # for whom a policy was given, and where

    def line(self, number: int, raw: str) -> None:
        if raw.lstrip().startswith("#"):
            self.title = self.title or raw.strip("# ").strip()
            return
        words = re.sub(r"\s+#\s.*$", "", raw).strip().split(None, 1)
        if not words:
            return
        place, rest = f"{self.name}:{number}", words[1].strip() if len(words) > 1 else ""
        if words[0] in _HEADERS:
            self._require_once(words[0], number, place)
            getattr(self, f"_{words[0].replace('-', '_')}")(rest, number, place)
        else:
            self.steps.append(_step(words[0], rest, number, place))

    def _require_once(self, header: str, number: int, place: str) -> None:
        before = self.headers.setdefault(header, number)
        if header in _ONCE and before != number:
            raise InvalidInput(f"`{header}` is said twice", place=place, hint=f"it stands in line {before}")

    def _table(self, rest: str, number: int, place: str) -> None:
        self.table, self.table_place = table_line(rest, place), place

    def _policy(self, rest: str, number: int, place: str) -> None:
        names = (word.strip() for word in rest.split(","))
        self.policies = tuple(one_of(name, tuple(POLICIES), "a policy", place=place) for name in names)

    def _policy_of(self, rest: str, number: int, place: str) -> None:
        actor, _, policy = rest.partition(" ")
        if actor in self.actors:
            raise InvalidInput(f"{actor} has a policy already", place=place, hint=f"see {self.actors[actor]}")
        self.actors[actor] = place
        self.policy_of.append((actor, one_of(policy.strip(), tuple(POLICIES), "a policy", place=place)))

    def _source(self, rest: str, number: int, place: str) -> None:
        self.source = rest

    def _files(self, rest: str, number: int, place: str) -> None:
        if self.steps:
            self.steps.append(_seen("files", rest, number, place))
        else:
            self.files.extend(file_declarations(rest, place))

    def _snapshots(self, rest: str, number: int, place: str) -> None:
        self.steps.append(_seen("snapshots", rest, number, place))

    def _rows(self, rest: str, number: int, place: str) -> None:
        rows = Rows(number, _rows(rest, place))
        if self.steps:
            self.steps.append(rows)
        elif rows.rows:
            self.initial.append(rows)

    def _differs(self, rest: str, number: int, place: str) -> None:
        policy, colon, lines = rest.partition(":")
        if not colon:
            raise InvalidInput("A `differs` line is 'differs POLICY: actor verb outcome'", place=place)
        name = one_of(policy.strip(), tuple(POLICIES), "a policy", place=place)
        changed = tuple(_changed(part.strip(), number, place) for part in lines.split("|"))
        self.differs.append((name, changed))

    def finished(self) -> Scenario:
        place = f"{self.name}:1"
        if not self.policies:
            hint = "add a line such as 'policy  lakeproof'"
            raise InvalidInput("The scenario names no policy", place=place, hint=hint)
        if not any(isinstance(step, ScenarioStep) for step in self.steps):
            hint = "add lines such as 'w1  scan  DELETE FROM t …'"
            raise InvalidInput("The scenario has no step", place=place, hint=hint)
        acting = {step.actor for step in self.steps if isinstance(step, ScenarioStep)}
        for actor, where in self.actors.items():
            one_of(actor, tuple(sorted(acting)), "somebody who acts here", place=where)
        self._require_one_table()
        return Scenario(
            name=self.name,
            title=self.title,
            source=self.source,
            table=self._known_table(),
            policies=self.policies,
            files=tuple(self.files),
            rows=tuple(rows.rows for rows in self.initial),
            steps=tuple(self.steps),
            differs=tuple(self.differs),
            policy_of=tuple(self.policy_of),
        )

    def _require_one_table(self) -> None:
        """Every statement is about the same table, whatever it is called."""
        named = ""
        for step in self.steps:
            if isinstance(step, ScenarioStep) and step.verb == "scan":
                place = f"{self.name}:{step.line}"
                found = target_of(step.text, place)
                if found is not None and found != (named := named or found):
                    raise InvalidInput(f"A scenario has one table, here `{named}`, not `{found}`", place=place)

    def _known_table(self) -> Table:
        """The table with its columns, which every row and partition must fit."""
        table, every = self.table, [line for line in (*self.initial, *self.steps) if isinstance(line, Rows)]
        if not table.shape.columns:
            width = max((len(row) for line in self.initial for row in line.rows), default=2)
            table = table._replace(shape=table.shape._replace(columns=_DEFAULT_COLUMNS[:width]))
        columns = table.shape.columns
        for line in every:
            for row in line.rows:
                if len(row) != len(columns):
                    text = f"A row has {len(row)} values, the table {len(columns)} columns"
                    hint = f"the columns are {', '.join(columns)}"
                    raise InvalidInput(text, place=f"{self.name}:{line.line}", hint=hint)
        known_columns(table.shape.specs[0], columns, self.table_place)
        return table


def _changed(part: str, number: int, place: str) -> Line:
    first, _, tail = part.partition(" ")
    if first == "rows":
        return Rows(number, _rows(tail, place))
    if first in ("files", "snapshots"):
        return _seen(first, tail, number, place)
    return _step(first, tail.strip(), number, place)


def _rows(text: str, place: str) -> tuple[Row, ...]:
    if text.strip() in ("none", ""):
        return ()
    try:
        return tuple(tuple(_value(word) for word in shlex.split(part, posix=False)) for part in text.split(";"))
    except ValueError as error:
        raise InvalidInput(f"'{text}' is not a list of rows: {error}", place=place) from None


def _value(word: str) -> Value:
    """A number, null, or text; what stands in quotes is text."""
    if word == "null":
        return None
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def _seen(what: str, text: str, number: int, place: str) -> Seen:
    names = () if text.strip() == "none" else tuple(re.split(r"[,\s]+", text.strip()))
    if what == "snapshots":
        known = tuple(str(operation) for operation in Operation)
        names = tuple(one_of(name, known, "an operation", place=place) for name in names)
    return Seen(number, what, names)


def _step(actor: str, rest: str, number: int, place: str) -> ScenarioStep:
    verb, _, tail = rest.partition(" ")
    tail = tail.strip()
    if verb in API_VERBS:
        return ScenarioStep(number, actor, verb, tail, api_call(verb, tail, place))
    if verb in _WITH_ANSWER:
        return ScenarioStep(number, actor, verb, "", None, _outcome(tail, place) if tail else None)
    if verb in _WITHOUT_ANSWER and tail:
        raise InvalidInput(f"`{verb}` has no answer, so nothing may follow it", place=place)
    if verb in _WITH_TEXT and (not tail or (verb == "expire" and not tail.isdecimal())):
        raise InvalidInput(f"`{verb}` needs {_WITH_TEXT[verb]}", place=place)
    if verb in SQL_VERBS:
        return ScenarioStep(number, actor, verb, tail)
    verbs = (*SQL_VERBS, *API_VERBS)
    near = get_close_matches(actor, _HEADERS, n=1) or get_close_matches(verb, verbs, n=1)
    wrong = actor if not verb or (near and near[0] in _HEADERS) else verb
    hint = f"did you mean {near[0]}?" if near else f"verbs are {', '.join(verbs)}"
    raise InvalidInput(f"'{wrong}' is neither a verb nor a header", place=place, hint=hint)


def _outcome(text: str, place: str) -> StepAnswer:
    words = " ".join(text.split())
    if words.startswith("conflict"):
        found = re.fullmatch(r"conflict(?: (\w+))??(?: snapshot (\d+))?", words)
        if found:
            if found[1]:
                one_of(found[1], ALL_CHECKS, "a check", place=place)
            return StepAnswer("conflict", found[1], int(found[2]) if found[2] else None)
    elif words in OUTCOMES:
        return StepAnswer(words)
    near = get_close_matches(words, OUTCOMES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"outcomes are {', '.join(OUTCOMES)}"
    raise InvalidInput(f"'{words}' is not an outcome", place=place, hint=hint)
