"""Small models whose traces the reports are tested with: an undelete on a table, a livelock, a long walk, a ring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, Outcome, Process, Step, always, eventually, reachable

COMMANDS = {
    "UPDATE": "UPDATE t SET color = 'blue' WHERE name = 'jack'",
    "DELETE": "DELETE FROM t WHERE name = 'jack'",
}
CHECKS = {
    "UPDATE": ("data_files_exist", "no_new_delete_files"),
    "DELETE": ("data_files_exist",),
}


class Snapshot(NamedTuple):
    """A committed table: its data files with their rows, and its delete files with the data files they empty."""

    operation: str
    by: str
    data: tuple[tuple[str, str], ...]
    deletes: tuple[tuple[str, str], ...] = ()
    expected: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        gone = {target for _, target in self.deletes}
        return tuple(row for name, row in self.data if name not in gone)


class Writer(NamedTuple):
    """A writer's phase, the snapshot it scanned, and the head it validated against."""

    command: str
    phase: str = "idle"
    scan: int = 0
    head: int = 0
    validation: str = ""


Table = tuple[Snapshot, ...]


def start(table: Table, own: Writer) -> Iterator[Outcome]:
    """The writer decides what to do and remembers the snapshot it reads from."""
    if own.phase == "idle":
        yield Outcome(table, own._replace(phase="started", scan=len(table)), label=COMMANDS[own.command])


def write_files(table: Table, own: Writer) -> Iterator[Outcome]:
    """The writer reads its rows and writes data and delete files that nothing refers to yet."""
    if own.phase == "started":
        rows = table[own.scan - 1].rows
        yield Outcome(table, own._replace(phase="written" if rows else "done"))


def write_metadata(table: Table, own: Writer) -> Iterator[Outcome]:
    """The writer validates against the head and writes the metadata of the next snapshot."""
    if own.phase != "written":
        return
    deletes_since = len(table[-1].deletes) > len(table[own.scan - 1].deletes)
    if deletes_since and "no_new_delete_files" in CHECKS[own.command]:
        said = "refused: no_new_delete_files"
        yield Outcome(table, own._replace(phase="done", validation=said), marks=("refused by no_new_delete_files",))
    else:
        said = "passed: " + ", ".join(CHECKS[own.command])
        yield Outcome(table, own._replace(phase="prepared", head=len(table), validation=said))


def swap(table: Table, own: Writer) -> Iterator[Outcome]:
    """The writer swaps the table pointer, or finds that somebody was faster and validates again."""
    if own.phase != "prepared":
        return
    if own.head != len(table):
        yield Outcome(table, own._replace(phase="written", validation=""), marks=("swap lost",))
        return
    done = own._replace(phase="done", validation="")
    yield Outcome((*table, committed(table, own)), done, marks=(f"{own.command} committed",))


def committed(table: Table, own: Writer) -> Snapshot:
    """The next snapshot: the rows that the writer read are deleted, an update adds their new versions."""
    head, number = table[-1], len(table)
    read = dict(table[own.scan - 1].data)
    gone = {target for _, target in table[own.scan - 1].deletes}
    targets = [name for name in read if name not in gone]
    deletes = tuple((f"delete-{number}", target) for target in targets)
    if own.command == "DELETE":
        return Snapshot("delete", own.command, head.data, head.deletes + deletes, ())
    new = (f"data-{number + 1}", "jack blue A")
    return Snapshot("overwrite", own.command, (*head.data, new), head.deletes + deletes, ("jack blue A",))


def described(names: tuple[str, ...], table: Table, owns: tuple[Writer, ...]) -> dict[str, Any]:
    """The table and its writers, as table models describe them."""
    by = {own.command: name for name, own in zip(names, owns, strict=True)}
    return {
        "table": {
            "catalog": f"metadata-{len(table)}",
            "columns": ["name", "color", "letter"],
            "snapshots": [described_snapshot(table, number, by) for number in range(1, len(table) + 1)],
            "files": files(table),
        },
        "writers": [
            {"name": name, "phase": own.phase, "command": COMMANDS[own.command] if own.phase != "idle" else ""}
            | {"scan_snapshot": own.scan or None, "validation": own.validation}
            for name, own in zip(names, owns, strict=True)
        ],
    }


def described_snapshot(table: Table, number: int, by: dict[str, str]) -> dict[str, Any]:
    """One snapshot with its manifests and rows."""
    snapshot, before = table[number - 1], table[number - 2] if number > 1 else Snapshot("", "", ())
    contents = (
        ("data", dict(snapshot.data), dict(before.data)),
        ("deletes", dict(snapshot.deletes), dict(before.deletes)),
    )
    return {
        "id": number,
        "sequence_number": number,
        "operation": snapshot.operation,
        "parent": number - 1 or None,
        "committed_by": by.get(snapshot.by, ""),
        "command": COMMANDS.get(snapshot.by, ""),
        "metadata": f"metadata-{number}",
        "manifest_list": f"manifest-list-{number}",
        "manifests": [
            {
                "name": f"manifest-{number}-{content}",
                "content": content,
                "entries": [{"status": "existing" if file in old else "added", "file": file} for file in now],
            }
            for content, now, old in contents
            if now
        ],
        "rows": [row.split() for row in snapshot.rows],
        "expected": [row.split() for row in snapshot.expected],
    }


def files(table: Table) -> dict[str, Any]:
    """Every committed file with what is in it."""
    gone = {target for _, target in table[-1].deletes}
    data = {
        name: {"kind": "data", "rows": [row.split()], "deleted": [0] if name in gone else []}
        for name, row in table[-1].data
    }
    deletes = {name: {"kind": "position deletes", "deletes": [[target, 0]]} for name, target in table[-1].deletes}
    return data | deletes


def undelete() -> Model:
    """An UPDATE and a DELETE of one row at the same time: the DELETE does not look for new delete files."""
    names = ("recolour", "privacy")
    first = Snapshot("append", "", (("data-1", "jack red A"),), expected=("jack red A",))
    return Model(
        name="toy table",
        shared=(first,),
        processes=(Process(names[0], Writer("UPDATE"), "updater"), Process(names[1], Writer("DELETE"), "deleter")),
        steps=(
            Step("start", start),
            Step("write_files", write_files),
            Step("write_metadata", write_metadata),
            Step("swap", swap),
        ),
        properties=(
            always(
                "consistent_read", lambda table: all(s.rows == s.expected for s in table), seed_name="ConsistentRead"
            ),
            always("no_more_than_three_snapshots", lambda table: len(table) <= 3),
            reachable("some DELETE committed", "DELETE committed"),
            reachable("some swap lost", "swap lost"),
            reachable("some INSERT committed", "INSERT committed"),
        ),
        parameters={"policy": "iceberg-spark", "isolation": "snapshot", "num-writers": 2},
        describe=lambda table, owns: described(names, table, owns),
        is_final=lambda table, own: own.phase in ("idle", "done"),
    )


def polite() -> Model:
    """Two processes that each step back when the other wants too: it can go on for ever."""

    def want(wants: tuple[int, ...], own: tuple[int, str]) -> Iterator[Outcome]:
        """Says that it wants to go first."""
        if own[1] == "idle":
            yield Outcome(tuple(sorted({*wants, own[0]})), (own[0], "wants"))

    def look(wants: tuple[int, ...], own: tuple[int, str]) -> Iterator[Outcome]:
        """Goes in if nobody else wants to, and steps back if somebody does."""
        if own[1] != "wants":
            return
        if wants == (own[0],):
            yield Outcome(wants, (own[0], "in"))
        else:
            yield Outcome(tuple(w for w in wants if w != own[0]), (own[0], "idle"), marks=("gave up",))

    return Model(
        name="after you",
        shared=(),
        processes=(Process("alice", (0, "idle"), "a"), Process("bob", (1, "idle"), "b")),
        steps=(Step("want", want), Step("look", look)),
        properties=(eventually("somebody_goes_in", lambda wants, owns: any(own[1] == "in" for own in owns)),),
    )


def long_walk(length: int = 60, actors: int = 2) -> Model:
    """Actors count together to a number that must not be reached."""

    def count(shared: tuple[int, int], own: int) -> Iterator[Outcome]:
        """Counts one further when it is its turn."""
        number, turn = shared
        if turn == own and number < length:
            yield Outcome((number + 1, (turn + 1) % actors), own, label=f"says {number + 1}")

    return Model(
        name="counting",
        shared=(0, 0),
        processes=tuple(Process(f"counter-{i + 1}", i, f"k{i}") for i in range(actors)),
        steps=(Step("count", count),),
        properties=(always("never_there", lambda shared: shared[0] < length),),
        describe=lambda shared, owns: {
            "number": shared[0],
            "turn": f"counter-{shared[1] + 1}",
            "said": list(range(shared[0])),
        },
    )
