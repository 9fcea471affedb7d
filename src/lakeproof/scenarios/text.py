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

Every error names the line. Several rows stand on one line with `;` between them; `rows none` is an empty table.
"""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches
from typing import NamedTuple

from lakeproof.commit import Isolation, Mode
from lakeproof.errors import InvalidInput
from lakeproof.filters.transforms import parsed
from lakeproof.format import PartitionField, Row, TableShape, Value
from lakeproof.scenarios.table_api import API_VERBS, ApiCall, FileDeclaration, api_call, file_declarations

SQL_VERBS = (
    "scan",
    "write",
    "validate",
    "swap",
    "swap-unanswered",
    "swap-delayed",
    "arrives",
    "commit",
    "crash",
    "expire",
)
OUTCOMES = ("ok re-run", "ok", "already committed", "conflict", "rejected", "unknown", "nothing left")
_HEADERS = ("table", "policy", "rows", "files", "source", "differs")
_DEFAULT_COLUMNS = ("name", "color", "letter")


class Outcome(NamedTuple):
    """What a step answers. `snapshot` and `check` only of a conflict; `None`: the scenario does not say."""

    word: str
    check: str | None = None
    snapshot: int | None = None

    def __str__(self) -> str:
        tail = f" {self.check}" if self.check else ""
        return self.word + tail + (f" snapshot {self.snapshot}" if self.snapshot is not None else "")


class Step(NamedTuple):
    """One line: an actor, a verb, what it is about, and the answer it must get (`None`: any)."""

    line: int
    actor: str
    verb: str
    text: str = ""
    call: ApiCall | None = None
    expected: Outcome | None = None


class Rows(NamedTuple):
    """A line that says which rows a reader sees now."""

    line: int
    rows: tuple[Row, ...]


class Table(NamedTuple):
    """How the scenario's table is set up."""

    shape: TableShape
    update_mode: Mode = Mode.MERGE_ON_READ
    delete_mode: Mode = Mode.MERGE_ON_READ
    isolation: Isolation = Isolation.SNAPSHOT
    dynamic_overwrite: bool = False


class Scenario(NamedTuple):
    """A parsed scenario file."""

    name: str
    title: str
    source: str
    table: Table
    policies: tuple[str, ...]
    files: tuple[FileDeclaration, ...]
    rows: tuple[tuple[Row, ...], ...]  # one data file each
    steps: tuple[Step | Rows, ...]
    differs: tuple[tuple[str, tuple[Step | Rows, ...]], ...] = ()  # policy, the lines that are otherwise there


def parse(text: str, *, name: str = "scenario") -> Scenario:
    """The scenario that the text describes."""
    reader = _Reader(name)
    for number, raw in enumerate(text.splitlines(), 1):
        reader.line(number, raw)
    return reader.finished()


class _Reader:
    def __init__(self, name: str) -> None:
        self.name, self.title, self.source = name, "", ""
        self.table: Table | None = None
        self.table_line = ""
        self.policies: tuple[str, ...] = ()
        self.files: list[FileDeclaration] = []
        self.initial: list[tuple[Row, ...]] = []
        self.steps: list[Step | Rows] = []
        self.differs: list[tuple[str, tuple[Step | Rows, ...]]] = []

    def line(self, number: int, raw: str) -> None:
        if raw.lstrip().startswith("#"):
            self.title = self.title or raw.strip("# ").strip()
            return
        words = _without_comment(raw).split(None, 1)
        if not words:
            return
        place, rest = f"{self.name}:{number}", words[1].strip() if len(words) > 1 else ""
        if words[0] in _HEADERS:
            getattr(self, f"_{words[0]}")(rest, number, place)
        else:
            self.steps.append(_step(words[0], rest, number, place))

    def _table(self, rest: str, number: int, place: str) -> None:
        self.table, self.table_line = _table(rest, place), rest

    def _policy(self, rest: str, number: int, place: str) -> None:
        self.policies = tuple(word.strip() for word in rest.split(","))

    def _source(self, rest: str, number: int, place: str) -> None:
        self.source = rest

    def _files(self, rest: str, number: int, place: str) -> None:
        self.files.extend(file_declarations(rest, place))

    def _rows(self, rest: str, number: int, place: str) -> None:
        rows = _rows(rest)
        if self.steps:
            self.steps.append(Rows(number, rows))
        elif rows:
            self.initial.append(rows)

    def _differs(self, rest: str, number: int, place: str) -> None:
        policy, colon, lines = rest.partition(":")
        if not colon:
            raise InvalidInput("A `differs` line is «differs POLICY: actor verb outcome»", place=place)
        changed: list[Step | Rows] = []
        for part in lines.split("|"):
            actor, _, tail = part.strip().partition(" ")
            changed.append(Rows(number, _rows(tail)) if actor == "rows" else _step(actor, tail.strip(), number, place))
        self.differs.append((policy.strip(), tuple(changed)))

    def finished(self) -> Scenario:
        place = f"{self.name}:1"
        if not self.policies:
            raise InvalidInput(
                "The scenario names no policy", place=place, hint="add a line such as «policy  lakeproof»"
            )
        if not any(isinstance(step, Step) for step in self.steps):
            raise InvalidInput(
                "The scenario has no step", place=place, hint="add lines such as «w1  scan  DELETE FROM t …»"
            )
        table = self.table or _table("", place)
        width = max((len(row) for rows in self.initial for row in rows), default=0)
        if not table.shape.columns:
            columns = _DEFAULT_COLUMNS[:width] if width else _DEFAULT_COLUMNS[:2]
            table = table._replace(shape=table.shape._replace(columns=columns))
        return Scenario(
            self.name,
            self.title,
            self.source,
            table,
            self.policies,
            tuple(self.files),
            tuple(self.initial),
            tuple(self.steps),
            tuple(self.differs),
        )


def _without_comment(raw: str) -> str:
    return re.sub(r"\s+#\s.*$", "", raw).strip()


def _rows(text: str) -> tuple[Row, ...]:
    if text.strip() in ("none", ""):
        return ()
    return tuple(tuple(_value(word) for word in shlex.split(part)) for part in text.split(";"))


def _value(word: str) -> Value:
    if word == "null":
        return None
    return int(word) if re.fullmatch(r"-?\d+", word) else word


_TABLE_WORDS = re.compile(
    r"""\s*(?:
      (?P<command>update|delete)?\s*(?P<mode>merge-on-read|copy-on-write)
    | (?P<isolation>snapshot|serializable)(?:\s+isolation)?
    | format\s+v(?P<version>[123])
    | partitioned\s+by\s+(?P<partition>.+)
    | columns\s+(?P<columns>.+)
    | (?P<insensitive>case-insensitive)
    | (?P<dynamic>dynamic\s+overwrite)
    )\s*$""",
    re.VERBOSE,
)


def _table(text: str, place: str) -> Table:
    shape, table = TableShape(columns=()), Table(TableShape(columns=()))
    for part in re.split(r",(?![^(\[]*[)\]])", text) if text else ():
        found = _TABLE_WORDS.match(part)
        if not found:
            hint = (
                "merge-on-read, copy-on-write, snapshot isolation, serializable, format v2, partitioned by …, columns …"
            )
            raise InvalidInput(f"«{part.strip()}» says nothing of a table", place=place, hint=hint)
        if found["mode"]:
            mode = Mode(found["mode"])
            if found["command"] != "delete":
                table = table._replace(update_mode=mode)
            if found["command"] != "update":
                table = table._replace(delete_mode=mode)
        elif found["isolation"]:
            table = table._replace(isolation=Isolation(found["isolation"]))
        elif found["version"]:
            shape = shape._replace(format_version=int(found["version"]))
        elif found["partition"]:
            shape = shape._replace(specs=(tuple(_field(word, place) for word in found["partition"].split()),))
        elif found["columns"]:
            shape = shape._replace(columns=tuple(found["columns"].split()))
        elif found["insensitive"]:
            shape = shape._replace(case_sensitive=False)
        else:
            table = table._replace(dynamic_overwrite=True)
    return table._replace(shape=shape)


def _field(word: str, place: str) -> PartitionField:
    found = re.fullmatch(r"([a-z]+(?:\[\d+\])?)\((\w+)\)", word)
    if not found:
        return PartitionField(word)
    try:
        parsed(found[1])
    except InvalidInput as error:
        raise InvalidInput(error.message, place=place, hint=error.hint) from None
    return PartitionField(found[2], found[1])


def _step(actor: str, rest: str, number: int, place: str) -> Step:
    verb, _, tail = rest.partition(" ")
    tail = tail.strip()
    if verb in API_VERBS:
        return Step(number, actor, verb, tail, api_call(verb, tail, place))
    if verb not in SQL_VERBS:
        near = get_close_matches(verb or actor, (*SQL_VERBS, *API_VERBS, *_HEADERS), n=1)
        hint = f"did you mean {near[0]}?" if near else f"verbs are {', '.join((*SQL_VERBS, *API_VERBS))}"
        raise InvalidInput(f"«{verb or actor}» is neither a verb nor a header", place=place, hint=hint)
    if verb == "scan" and not tail:
        raise InvalidInput("`scan` needs the SQL that is run", place=place)
    if verb == "expire":
        if not tail.isdigit():
            raise InvalidInput("`expire` needs the number of a snapshot", place=place)
        return Step(number, actor, verb, tail)
    if verb in ("scan", "write", "crash"):
        return Step(number, actor, verb, tail)
    return Step(number, actor, verb, "", None, _outcome(tail, place) if tail else None)


def _outcome(text: str, place: str) -> Outcome:
    words = " ".join(text.split())
    if words.startswith("conflict"):
        found = re.fullmatch(r"conflict(?: (\w+))?(?: snapshot (\d+))?", words)
        if found:
            return Outcome("conflict", found[1], int(found[2]) if found[2] else None)
    elif words in OUTCOMES:
        return Outcome(words)
    near = get_close_matches(words, OUTCOMES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"outcomes are {', '.join(OUTCOMES)}"
    raise InvalidInput(f"«{words}» is not an outcome", place=place, hint=hint)
