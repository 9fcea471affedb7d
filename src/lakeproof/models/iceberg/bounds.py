"""Every parameter of the Iceberg model, the named presets, and the workload that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lakeproof.checker.model import SearchBounds
from lakeproof.commit.change import Isolation, Mode
from lakeproof.commit.policy import Policy
from lakeproof.commit.policy_text import named_policy
from lakeproof.commit.writing import first_files
from lakeproof.errors import InvalidInput
from lakeproof.format import PartitionField, TableShape, TableState
from lakeproof.models import parameter_values as values
from lakeproof.models.iceberg.anybody import EQUALITY, EXPIRY, USUAL, WAYS
from lakeproof.models.iceberg.renaming.row_ids import renumbered
from lakeproof.models.iceberg.workload import COLUMNS, KINDS, commands_of
from lakeproof.models.iceberg.world import UNBOUNDED, Anybody, Setup
from lakeproof.models.parameter_values import Parameter, Parameters

_MODES = "merge-on-read|copy-on-write"
AFTER_UPGRADE = "after-upgrade"
_WHOLE_PARTITIONS = ("overwrite-partition", "overwrite-dynamic", "metadata-delete")
PARAMETERS: dict[str, Parameter] = {
    "num-writers": Parameter("count", "2", "how many writers there are; each also compacts"),
    "max-write-ops": Parameter("count or unbounded", "3", "commands in all; unbounded: they never run out"),
    "max-compactions": Parameter("count or unbounded", "0", "compactions in all (also max-compaction-ops)"),
    "others": Parameter(
        "nobody|anybody", "nobody", "anybody: one writer is watched; the others do what any can, for ever"
    ),
    "others-may": Parameter("names", ",".join(USUAL), f"how they commit: {', '.join(WAYS)}"),
    "max-delete-rewrites": Parameter("count", "0", "compactions of position delete files in all"),
    "num-keys": Parameter("count", "1", "values of the first column, which acts as id; or name them with col1-values"),
    "max-rows": Parameter(
        "count or unbounded", "unbounded", "rows of a table at most: nobody starts on more, anybody leaves no more"
    ),
    "col1-values": Parameter("names", "", "the ids, with commas between them"),
    "col2-values": Parameter("names", "red,blue", "the values of the second column"),
    "col3-values": Parameter("names", "A", "the values of the third column"),
    "update-mode": Parameter(_MODES, "merge-on-read", "how UPDATE and MERGE write"),
    "delete-mode": Parameter(_MODES, "merge-on-read", "how DELETE writes"),
    "isolation": Parameter("snapshot|serializable", "snapshot", "what commands promise (also configured-isolation)"),
    "format-version": Parameter("2|3", "2", "3: deletion vectors"),
    "row-ids": Parameter(
        f"false|true|{AFTER_UPGRADE}",
        "false",
        f"rows have ids (format v3): commits hand them out, moves keep them; {AFTER_UPGRADE}: from the first commit on",
    ),
    "allow-updates": Parameter("switch", "true", "there are UPDATEs"),
    "allow-deletes": Parameter("switch", "true", "there are DELETEs"),
    "commands": Parameter("names", "insert,update,delete", f"which commands are run: {', '.join(KINDS)}"),
    "predicates": Parameter("any|id", "any", "UPDATE and DELETE choose rows by any column, or by the first alone"),
    "partitioned": Parameter("switch", "false", "the table is partitioned, by its first column or by partition-by"),
    "partition-by": Parameter("name|color", "name", "by which column a partitioned table is partitioned"),
    "initial": Parameter("empty|one-file|two-files", "empty", "what is in the table: nothing, or one row per key"),
    "duplicates": Parameter("switch", "false", "INSERT may bring an id that is there already"),
    "fused": Parameter("switch", "false", "validation and swap are one step"),
    "measure-aborts": Parameter("auto|true|false", "auto", "ask of every refusal whether it was needless"),
    "max-reruns": Parameter("unbounded|0", "unbounded", "0: a conflict aborts, as in Apache Iceberg"),
    "unknown-outcomes": Parameter("switch", "false", "answers may be lost, requests come late, calls fail"),
    "max-crashes": Parameter("count", "0", "writers that die between two steps"),
    "max-expiries": Parameter("count", "0", "how often all snapshots but the head are expired"),
    "dangling": Parameter("right|literal", "right", "literal: the seed's wording of no_dangling_delete_files"),
    "names": Parameter("canonical|by-age", "canonical", "by-age: files keep names, dead rows and sequence numbers"),
    "lean": Parameter("auto|true|false", "auto", "ghosts forget what no verdict of shipped rules needs"),
}
ALIASES = {"max-compaction-ops": "max-compactions", "configured-isolation": "isolation"}
_OF_WRITER = re.compile(r"(policy|commands)-of-writer-(\d+)")

PRESETS: dict[str, dict[str, str]] = {
    "undelete": {},
    "undelete-serializable": {"isolation": "serializable"},
    "write-skew": {
        "isolation": "serializable",
        "commands": "insert,delete-exists",
        "num-keys": "2",
        "initial": "two-files",
        "max-write-ops": "2",
    },
    "lost-delete": {
        "num-writers": "3",
        "policy-of-writer-2": "iceberg-spark",
        "policy-of-writer-3": "iceberg-spark",
        "commands-of-writer-1": "update:jack",
        "commands-of-writer-2": "delete:sarah",
        "commands-of-writer-3": "insert:john",
        "num-keys": "3",
        "initial": "one-file",
        "update-mode": "copy-on-write",
        "predicates": "id",
        "duplicates": "true",
        "max-write-ops": "3",
    },
    "compaction": {"max-compactions": "1", "num-keys": "2"},
    "two-keys": {"num-keys": "2"},
    "three-writers": {"num-writers": "3"},
    "everything": {
        "commands": "insert,update,delete,merge,delete-exists,insert-select,overwrite,overwrite-partition",
        "num-keys": "2",
        "partitioned": "true",
        "initial": "one-file",
        "max-compactions": "1",
        "max-write-ops": "2",
        "isolation": "serializable",
    },
}


WATCHED = {"num-writers": "1", "max-write-ops": "unbounded", "max-compactions": "unbounded"}
"""What others=anybody sets, unless it is given."""

SETTINGS = Parameters("Iceberg", PARAMETERS, PRESETS, ALIASES)


def parameter_help() -> dict[str, str]:
    """What each parameter says, with its values and its default."""
    more = {
        "policy-of-writer-N": "the policy of one writer; the others have that of --policy",
        "commands-of-writer-N": "what one writer runs, such as delete:jack,insert; the others run everything",
    }
    return SETTINGS.help() | more


class Configured(NamedTuple):
    """A checked configuration: the set-up and the policy of each writer."""

    setup: Setup
    policies: tuple[Policy, ...]
    commands: tuple[tuple[int, ...] | None, ...]  # of each writer; `None`: all
    given: Mapping[str, str]


def configured(parameters: Mapping[str, str], policy: Policy) -> Configured:
    """The configuration that the parameters name; `preset` picks a named one that the others then change."""
    given = SETTINGS.given(parameters, _OF_WRITER.fullmatch)
    own = {name: value for name, value in given.items() if name not in PARAMETERS}
    watched = WATCHED if given.get("others") == "anybody" else {}
    word = SETTINGS.values({**watched, **given})
    setup = _setup(word)
    writers = values.count("num-writers", word["num-writers"], 1, values.MOST_PROCESSES)
    if setup.anybody is not None and writers > 1:
        hint = "the others are in others=anybody"
        raise InvalidInput("Against anybody one writer is watched", place=f"--set num-writers={writers}", hint=hint)
    policies = [policy] * writers
    commands: list[tuple[int, ...] | None] = [None] * writers
    for name, value in own.items():
        what, number = name.split("-", 1)[0], int(name.rsplit("-", 1)[1])
        if not 1 <= number <= writers:
            raise InvalidInput(f"There is no writer {number}: num-writers is {writers}", place=f"--set {name}={value}")
        if what == "policy":
            policies[number - 1] = named_policy(value)
        else:
            commands[number - 1] = _chosen(setup, value, place=f"--set {name}={value}")
    lean = word["lean"] == "true" or (word["lean"] == "auto" and all(one.name == "lakeproof" for one in policies))
    measure = word["measure-aborts"]
    small = setup.max_commands <= 3 and writers <= 2 and setup.max_compactions <= 1
    measured = measure == "true" or (measure == "auto" and small)
    return Configured(
        replace(setup, lean=lean and not measured, measure=measured), tuple(policies), tuple(commands), given
    )


def bounds_of(setup: Setup, writers: int, *, in_order: bool) -> SearchBounds:
    """What a verdict on this set-up is about; `in_order`: each writer runs its own statements once."""
    sizes = {"writers": writers if setup.anybody is None else UNBOUNDED}
    if not in_order:
        sizes |= {"commands": setup.max_commands, "compactions": setup.max_compactions}
    if setup.max_expiries:
        sizes["expiries"] = setup.max_expiries
    if setup.max_crashes:
        sizes["crashes"] = setup.max_crashes
    fixed = [_at_most(size, name) for name, size in sizes.items() if size != UNBOUNDED]
    if in_order:
        fixed.append("each running its statements once")
    ids = {row[0] for command in setup.commands for row in command.rows if command.meaning is None}
    ids |= {row[0] for row in setup.anybody.rows} if setup.anybody is not None else set()
    tables = [_tables(len(ids), setup.max_rows)] if ids and not in_order else []
    silent = [] if setup.measure or in_order else ["whether a refusal was needed (measure-aborts=true asks it)"]
    silent += ["whether a writer comes to rest: whoever never stops may win every swap"] if setup.endless else []
    return SearchBounds(tuple(n for n, size in sizes.items() if size == UNBOUNDED), (*fixed, *tables), tuple(silent))


def _tables(ids: int, rows: int) -> str:
    words = f"tables of up to {ids} {'ids' if ids > 1 else 'id'}"
    return words if rows == UNBOUNDED else f"{words} and {rows} {'rows' if rows > 1 else 'row'}"


def _at_most(size: int, name: str) -> str:
    words = f"{size or 'no'} {_SINGULAR[name] if size == 1 else name}"
    return words if name == "writers" or not size else f"up to {words}"


_SINGULAR = {
    "writers": "writer",
    "commands": "command",
    "compactions": "compaction",
    "expiries": "expiry",
    "crashes": "crash",
}


def _chosen(setup: Setup, value: str, *, place: str) -> tuple[int, ...]:
    """The commands of one writer: `delete:sarah,insert` are the DELETEs that name sarah, and every INSERT."""
    found: list[int] = []
    for part in value.split(","):
        kind, _, word = part.strip().partition(":")
        fit = [i for i, c in enumerate(setup.commands) if str(c).lower().startswith(kind.lower()) and word in str(c)]
        if not fit:
            raise InvalidInput(f"No command of this workload is {part.strip()!r}", place=place, hint="say delete:jack")
        found += fit
    return tuple(dict.fromkeys(found))


def _setup(word: Mapping[str, str]) -> Setup:
    for name, what in PARAMETERS.items():
        if "|" in what.kind:
            values.choice(name, word[name].lower().replace("_", "-").replace("-isolation", ""), what.kind.split("|"))
    keys = _keys(word)
    col2, col3 = (values.names(name, word[name]) for name in ("col2-values", "col3-values"))
    partitioned = values.switch("partitioned", word["partitioned"])
    shape = TableShape(
        COLUMNS, ((PartitionField(word["partition-by"]),) if partitioned else (),), int(word["format-version"])
    )
    kinds = _kinds(word, partitioned=partitioned)
    commands = tuple(c for kind in kinds for c in commands_of(kind, keys, col2, col3, word["predicates"] == "id"))
    equality = any(kind.startswith("upsert") for kind in kinds)
    row_ids = word["row-ids"]
    if row_ids != "false" and shape.format_version < 3:
        raise InvalidInput(
            "Rows have ids in format v3 alone", place=f"--set row-ids={row_ids}", hint="--set format-version=3"
        )
    table = _initial(word["initial"], keys, col2, col3, shape)
    rewrites = values.count("max-delete-rewrites", word["max-delete-rewrites"])
    by_age = word["names"] == "by-age" or equality or word["dangling"] == "literal" or rewrites > 0
    ways = _ways(word)
    if by_age and (ways or "unbounded" in (word["max-write-ops"], word["max-compactions"])):
        text = (
            "A run without end needs canonical names; upserts, delete rewrites and dangling=literal need names by age"
        )
        raise InvalidInput(text, place="--set max-write-ops=unbounded", hint="leave one of the two out")
    return Setup(
        shape=shape,
        commands=commands,
        table=_with_row_ids(table, row_ids),
        update_mode=Mode(word["update-mode"]),
        delete_mode=Mode(word["delete-mode"]),
        isolation=Isolation(word["isolation"].lower().replace("_", "-").replace("-isolation", "")),
        max_commands=_bound("max-write-ops", word["max-write-ops"]),
        max_compactions=_bound("max-compactions", word["max-compactions"]),
        max_delete_rewrites=rewrites,
        max_rows=_bound("max-rows", word["max-rows"]),
        duplicates=values.switch("duplicates", word["duplicates"]),
        fused=values.switch("fused", word["fused"]),
        canonical=not by_age,
        unknown=values.switch("unknown-outcomes", word["unknown-outcomes"]),
        max_crashes=values.count("max-crashes", word["max-crashes"]),
        max_expiries=UNBOUNDED if EXPIRY in ways else values.count("max-expiries", word["max-expiries"]),
        anybody=Anybody(tuple((key, two, three) for key in keys for two in col2 for three in col3), ways)
        if word["others"] == "anybody"
        else None,
        literal_dangling=word["dangling"] == "literal",
        reruns=word["max-reruns"] != "0",
        guarded=any(command.exists for command in commands),
    )


def _with_row_ids(table: TableState, kind: str) -> TableState:
    if kind == "false":
        return table
    upgraded = table._replace(next_row_id=0)
    return upgraded if kind == AFTER_UPGRADE else renumbered(upgraded)


def _bound(name: str, value: str) -> int:
    return UNBOUNDED if value == "unbounded" else values.count(name, value)


def _ways(word: Mapping[str, str]) -> tuple[str, ...]:
    """How everybody else commits; nothing, where nobody else is there."""
    if word["others"] != "anybody":
        return ()
    chosen = values.names("others-may", word["others-may"])
    for way in chosen:
        if way not in WAYS:
            raise values.unknown("Iceberg", "way to commit", way, WAYS, place=f"--set others-may={word['others-may']}")
    if EQUALITY in chosen and word["max-compactions"] != "0":
        text = "Whether a delete by value reaches what a compaction wrote is a matter of ages, which this form has not"
        raise InvalidInput(text, place=f"--set others-may={word['others-may']}", hint="--set max-compactions=0")
    return chosen


def _keys(word: Mapping[str, str]) -> tuple[str, ...]:
    if word["col1-values"]:
        return values.names("col1-values", word["col1-values"])
    number = values.count("num-keys", word["num-keys"], 1)
    return (*values.NAMES, *(f"key{i}" for i in range(len(values.NAMES), number)))[:number]


def _kinds(word: Mapping[str, str], *, partitioned: bool) -> list[str]:
    chosen = values.names("commands", word["commands"], "insert,update,delete")
    for kind in chosen:
        if kind not in KINDS:
            raise values.unknown("Iceberg", "command", kind, KINDS, place=f"--set commands={word['commands']}")
    whole = [kind for kind in chosen if kind in _WHOLE_PARTITIONS]
    if whole and not partitioned:
        text = f"{whole[0]} replaces whole partitions, so the table must be partitioned"
        raise InvalidInput(text, place=f"--set commands={word['commands']}", hint="--set partitioned=true")
    switched = {"update": "allow-updates", "delete": "allow-deletes"}
    return [kind for kind in chosen if kind not in switched or values.switch(switched[kind], word[switched[kind]])]


def _initial(
    kind: str, keys: tuple[str, ...], col2: tuple[str, ...], col3: tuple[str, ...], shape: TableShape
) -> TableState:
    rows = [(key, col2[0], col3[0]) for key in keys]
    if kind == "empty":
        return TableState()
    split = [[row] for row in rows] if kind == "two-files" or shape.specs[0] else [rows]
    return first_files(split, shape)
