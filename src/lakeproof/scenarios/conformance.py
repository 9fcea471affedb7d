"""Scenarios as a suite for any implementation: each is put before it line by line, and its rows are judged by meaning.

An implementation may refuse a command; what it may not do is to commit and leave rows that no order of the committed
commands leaves. So no policy is asked: the judge runs every order of what was committed on plain rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, NamedTuple, Protocol

from lakeproof.commit import ONLY_REMOVES, Command, Isolation
from lakeproof.commit.meaning import RowCommand, effect
from lakeproof.errors import InvalidInput, Unavailable
from lakeproof.format import Row
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.text import Rows, Scenario, ScenarioStep

RIGHT, REFUSED, WRONG, SKIPPED, BROKEN = "right", "refused", "wrong rows", "skipped", "broken"
_KNOWN_VERBS = ("scan", "write", "commit")
_MOST_COMMANDS = 5


class Peer(Protocol):
    """An implementation: it gets a request and gives an answer, both as JSON objects."""

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]: ...


class SkippedByPeer(Exception):
    """The implementation says that it has no such thing."""


class Conformance(NamedTuple):
    """What became of one scenario: the outcome, who committed, and the rows with those that were allowed."""

    scenario: str
    outcome: str
    committed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    allowed: tuple[tuple[Row, ...], ...] = ()
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """The result as `lakeproof conformance --json` prints it."""
        return self._asdict()


def applies(scenario: Scenario) -> bool:
    """Whether anybody can take it: SQL commands that scan and commit, no calls of a table API, no other engine."""
    steps = [line for line in scenario.steps if isinstance(line, ScenarioStep)]
    plain = all(step.call is None and step.verb in _KNOWN_VERBS for step in steps)
    upserts = any(step.text.lower().startswith("upsert") for step in steps)
    return plain and not upserts and not scenario.files and not scenario.policy_of and len(actors(scenario)) > 1


def actors(scenario: Scenario) -> tuple[str, ...]:
    """Whoever takes part."""
    return tuple(dict.fromkeys(line.actor for line in scenario.steps if isinstance(line, ScenarioStep)))


def conformed(scenario: Scenario, peer: Peer) -> Conformance:
    """Put a scenario before an implementation, and judge what it leaves."""
    name = scenario.name.rpartition("/")[2].removesuffix(".txt")
    try:
        return _run(name, scenario, peer)
    except SkippedByPeer as said:
        return Conformance(name, SKIPPED, reason=str(said))
    except InvalidInput as error:
        return Conformance(name, BROKEN, reason=error.message)
    finally:
        with suppress(Unavailable):  # a program that is gone has said so before
            peer.ask({"do": "end"})


def _run(name: str, scenario: Scenario, peer: Peer) -> Conformance:
    _asked(peer, beginning(name, scenario))
    history: list[tuple[str, str, RowCommand]] = []  # actor, outcome, command
    open_commands: dict[str, RowCommand] = {}
    for step in scenario.steps:
        if not isinstance(step, ScenarioStep):
            continue
        if step.verb == "scan":
            open_commands[step.actor] = _command(scenario, step)
            _asked(peer, {"do": "scan", "actor": step.actor, "sql": step.text})
        elif step.verb == "commit":
            said = str(_asked(peer, {"do": "commit", "actor": step.actor}).get("answer"))
            if said not in ("ok", "conflict"):
                raise InvalidInput(f"an answer to commit is ok or conflict, not {said}", place=name)
            history.append((step.actor, said, open_commands.pop(step.actor)))
    rows = tuple(sorted((tuple(row) for row in _asked(peer, {"do": "rows"})["rows"]), key=repr))
    committed = [command for _, said, command in history if said == "ok"]
    allowed = tuple(sorted({*outcomes(scenario, committed)}, key=repr))
    refused = tuple(actor for actor, said, _ in history if said == "conflict")
    right = any(Counter(_told(rows)) == Counter(_told(order)) for order in allowed)
    outcome = WRONG if not right else REFUSED if refused else RIGHT
    done = tuple(actor for actor, said, _ in history if said == "ok")
    return Conformance(name, outcome, done, refused, rows, allowed)


def _asked(peer: Peer, request: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = peer.ask(request)
    if "skip" in answer:
        raise SkippedByPeer(str(answer["skip"]))
    if "error" in answer:
        raise InvalidInput(str(answer["error"]), place=str(request["do"]))
    return answer


def beginning(name: str, scenario: Scenario) -> dict[str, Any]:
    """The request that makes a table: its columns, its rows file by file, and how it is set up."""
    table = scenario.table
    return {
        "do": "begin",
        "scenario": name,
        "table": _table_name(scenario),
        "columns": list(table.shape.columns),
        "types": _types(scenario),
        "partitioned_by": [field.column for field in table.shape.specs[-1]],
        "format_version": table.shape.format_version,
        "isolation": str(table.isolation),
        "update_mode": str(table.update_mode),
        "delete_mode": str(table.delete_mode),
        "files": [[list(row) for row in rows] for rows in scenario.rows],
    }


def outcomes(scenario: Scenario, committed: Sequence[RowCommand]) -> Iterator[tuple[Row, ...]]:
    """The rows that an implementation may leave, over every order of the committed commands.

    Serializable: each command runs on the rows that the one before it left. Snapshot: it may have started at any moment
    before, if nobody has since then written a row that it writes, but for two deletes of one row.
    """
    columns = scenario.table.shape.columns
    first = dict(enumerate(row for rows in scenario.rows for row in rows))
    if len(committed) > _MOST_COMMANDS:
        raise SkippedByPeer("too many commands to try every order")
    earlier = scenario.table.isolation is Isolation.SNAPSHOT
    for order in permutations(committed):
        for states in _runs([first], order, columns, earlier=earlier):
            yield tuple(sorted(states[-1].values(), key=repr))


State = dict[int, Row]
"""Rows by an identity that an UPDATE keeps."""


def _runs(
    states: list[State], commands: Sequence[RowCommand], columns: tuple[str, ...], *, earlier: bool
) -> Iterator[list[State]]:
    if not commands:
        yield states
        return
    for start in range(0 if earlier else len(states) - 1, len(states)):
        after = _after(states, start, commands[0], columns)
        if after is not None:
            yield from _runs([*states, after], commands[1:], columns, earlier=earlier)


def _after(states: list[State], start: int, command: RowCommand, columns: tuple[str, ...]) -> State | None:
    """The rows when a command that read the state of `start` commits now; `None`: a row of it was written since."""
    if command.command is Command.REWRITE:
        return states[-1]
    read, now = states[start], dict(states[-1])
    names = list(read)
    done = effect(command, list(read.values()), columns)
    for index, row in done.changed:
        name = names[index]
        if name not in now:
            if row is not None or command.command not in ONLY_REMOVES:
                return None
        elif now[name] != read[name]:
            return None
        elif row is None:
            del now[name]
        else:
            now[name] = row
    fresh = 1 + max((name for state in states for name in state), default=-1)
    return {**now, **{fresh + i: row for i, row in enumerate(done.added)}}


def _command(scenario: Scenario, step: ScenarioStep) -> RowCommand:
    place = f"{scenario.name}:{step.line}"
    return command_of(step.text, scenario.table.shape, scenario.table.dynamic_overwrite, place)


def _table_name(scenario: Scenario) -> str:
    for line in scenario.steps:
        if isinstance(line, ScenarioStep) and line.verb == "scan" and "rewrite_data_files" not in line.text:
            words = line.text.replace("(", " ").split()
            after = {"update": 1, "into": 1, "from": 1, "overwrite": 1}
            for at, word in enumerate(words[:-1]):
                if word.lower() in after and words[at + 1].lower() != "into":
                    return words[at + 1]
    return "t"


def _types(scenario: Scenario) -> list[str]:
    """A column is a number where only numbers are ever in it."""
    known = [row for rows in scenario.rows for row in rows]
    for line in scenario.steps:
        if isinstance(line, Rows):
            known += line.rows
        elif isinstance(line, ScenarioStep) and line.verb == "scan":
            known += _command(scenario, line).rows
    columns = range(len(scenario.table.shape.columns))
    numbers = [[isinstance(row[at], int) for row in known if row[at] is not None] for at in columns]
    return ["bigint" if found and all(found) else "string" for found in numbers]


def _told(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Rows as text: an implementation may give a number back as a word."""
    return [tuple(map(str, row)) for row in rows]
