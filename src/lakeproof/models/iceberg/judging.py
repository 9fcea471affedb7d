"""The judge: was this commit one that its isolation level allows? It knows the truth; no rule may ask it.

SERIALIZABLE  the rows after the commit are those of the command replayed on the rows before it.
SNAPSHOT      there is a snapshot s' from the scan to the head such that the commit did what the command means at s',
              and nobody after s' wrote a row that it writes, but for two deletes of one row.
COMPACTION    the rows after are the rows before.
ANY           no row twice, no command committed twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation
from lakeproof.commit.meaning import RowCommand, effect
from lakeproof.commit.writing import Place
from lakeproof.filters import ALWAYS
from lakeproof.format import Row, Rows, images, positions
from lakeproof.models.iceberg.world import COMPACTION, DEAD, Op, Setup

NOTHING = RowCommand(Command.REWRITE)


class After(NamedTuple):
    """The rows after a commit: by identity, the new ones, and those whose identity was gone or comes twice."""

    by_identity: dict[Place, Row]
    added: Counter[Row]
    zombies: int
    twice: bool


def after(rows: Iterable[tuple[Place, Row]], new_files: dict[str, tuple[Place | None, ...]]) -> After:
    """Name each row after a commit by what it is a version of."""
    known: dict[Place, Row] = {}
    added: Counter[Row] = Counter()
    zombies, twice = 0, False
    for (file, position), row in rows:
        origins = new_files.get(file)
        identity = (file, position) if origins is None else origins[position]
        if identity is None:
            added[row] += 1
        elif identity == DEAD:
            zombies += 1
        else:
            twice = twice or identity in known
            known[identity] = row
    return After(known, added, zombies, twice)


def verdict(
    setup: Setup, op: Op, before: dict[Place, Row], result: After, *, committed_before: bool = False
) -> tuple[str, ...]:
    """The properties that this commit violates."""
    if committed_before:
        return ("consistent_read", "isolation_kept")
    command = NOTHING if op.command == COMPACTION else setup.commands[op.command]
    if not result.twice and not result.zombies:
        if _is_serial(setup, command, before, result):
            return ()
        if op.command != COMPACTION and op.change.isolation is Isolation.SNAPSHOT:
            mine = () if op.ghost.mine is None else (op.ghost.mine,)
            if any(_is(setup, command, op, rows, before, result) for rows in (*mine, *op.ghost.others)):
                return ()
    if (
        not setup.lean
        and _is(setup, command, op, _meant(op), before, result)
        and not result.twice
        and not result.zombies
    ):
        return ("isolation_kept",)
    return ("consistent_read", "isolation_kept")


def misses_a_write(setup: Setup, op: Op, before: dict[Place, Row]) -> bool:
    """Whether the command, run now, would write a row that the change does not: also one that has its value already.

    `UPDATE … SET color = 'blue'` writes a row that is blue (format v3 stamps it), though no reader can tell.
    """
    if op.change.isolation is not Isolation.SERIALIZABLE or op.change.command not in (Command.UPDATE, Command.MERGE):
        return False
    places = list(before)
    written = {(file, p) for file, bits in op.as_is for p in positions(bits)}
    now = effect(setup.commands[op.command], list(before.values()), setup.shape.columns).changed
    return any(places[index] not in written for index, _ in now)


def _is_serial(setup: Setup, command: RowCommand, before: dict[Place, Row], result: After) -> bool:
    places = list(before)
    done = effect(command, list(before.values()), setup.shape.columns)
    expected = dict(before)
    for index, row in done.changed:
        if row is None:
            del expected[places[index]]
        else:
            expected[places[index]] = row
    return expected == result.by_identity and Counter(done.added) == result.added


def _meant(op: Op) -> Rows:
    """What the change meant at its scan: the rows it removes or rewrites, by where they are now."""
    if op.change.command in ONLY_REMOVES:
        return op.ghost.removes
    found: dict[str, int] = {}
    for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True):
        copied = images(op.change.mapping or (), file.path)  # rows that copy-on-write keeps as they are
        for position, origin in enumerate(origins):
            if origin is not None and origin != DEAD and not copied >> position & 1:
                found[origin[0]] = found.get(origin[0], 0) | 1 << origin[1]
    return tuple(sorted(found.items()))


def expected(setup: Setup, op: Op, before: dict[Place, Row]) -> tuple[Row, ...]:
    """The rows that a reader should see after a commit that nothing justifies: what the command meant at its scan."""
    command = NOTHING if op.command == COMPACTION else setup.commands[op.command]
    if command.meaning is not None:
        rows = _as_written(op, _meant(op), before)
    else:
        rows = _done(setup, command, _meant(op), before)
    added = _new_rows(op) if op.command != COMPACTION else Counter[Row]()
    return tuple(sorted((*rows.values(), *added.elements()), key=repr))


def _is(setup: Setup, command: RowCommand, op: Op, rows: Rows, before: dict[Place, Row], result: After) -> bool:
    """Whether the commit did exactly this: the command on these rows, and its own new rows."""
    if command.meaning is not None:
        return _as_written(op, rows, before) == result.by_identity and _new_rows(op) == result.added
    return _done(setup, command, rows, before) == result.by_identity and _new_rows(op) == result.added


def _as_written(op: Op, rows: Rows, before: dict[Place, Row]) -> dict[Place, Row]:
    """The rows after exactly these got the versions that the change wrote for them, or went."""
    versions = {
        origin: row
        for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True)
        for row, origin in zip(file.rows or (), origins, strict=True)
        if origin is not None
    }
    done = dict(before)
    for file, bits in rows:
        for p in positions(bits):
            if (file, p) in versions and op.change.command not in ONLY_REMOVES:
                done[file, p] = versions[file, p]
            else:
                done.pop((file, p), None)
    return done


def _done(setup: Setup, command: RowCommand, rows: Rows, before: dict[Place, Row]) -> dict[Place, Row]:
    """The rows after the command was done to exactly these, whatever they hold by now."""
    done = dict(before)
    if command is NOTHING:
        return done
    alone = command._replace(exists=(), where=ALWAYS)
    for file, bits in rows:
        for p in positions(bits):
            old = done.get((file, p))
            if old is None:
                continue
            changed = effect(alone, [old], setup.shape.columns).changed
            new = changed[0][1] if changed else None if command.command in ONLY_REMOVES else old
            if new is None:
                del done[file, p]
            else:
                done[file, p] = new
    return done


def _new_rows(op: Op) -> Counter[Row]:
    added: Counter[Row] = Counter()
    for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True):
        for row, origin in zip(file.rows or (), origins, strict=True):
            if origin is None:
                added[row] += 1
    return added
