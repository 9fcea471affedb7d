"""How a change becomes the new head, what the judge says of it, and what it is to the others."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.commit.change import Command
from lakeproof.commit.snapshots import new_snapshot
from lakeproof.commit.validation import Commit, CommitWith
from lakeproof.commit.writing import Origins, Place, placed
from lakeproof.format import (
    DeleteContent,
    Row,
    Snapshot,
    TableState,
    equality_hits,
    moves_by_row_ids,
    row_ids_of,
    rows_of,
    visible,
)
from lakeproof.models.iceberg import judging
from lakeproof.models.iceberg.naming import Names, canonical, named_by_age
from lakeproof.models.iceberg.renaming.row_ids import id_moves
from lakeproof.models.iceberg.world import COMPACTION, UNBOUNDED, Conflicted, Event, Logged, Op, Setup, Shared, Writer


def ended(writer: Writer, shared: Shared, own: Op | Conflicted) -> Shared:
    """The shared value when a command is no longer under way."""
    pending = shared.pending
    if pending and own.command != COMPACTION:
        command = writer.setup.commands[own.command]
        if command.command is Command.INSERT:
            brought = {row[0] for row in command.rows}
            pending = tuple(one for one in pending if one not in brought)
    return shared._replace(under_way=shared.under_way - 1, pending=pending)


def apply_change(writer: Writer, shared: Shared, op: Op, answer: Commit | CommitWith) -> tuple[TableState, Snapshot]:
    """The new head and its snapshot, as `commit/` makes them, before names are given; other tables stay as they are."""
    head = shared.table
    number = 1 if writer.setup.canonical else head.sequence_number + 1
    name = writer.table_of(op)
    mine = head if name is None else only_table(head, name)
    table, snapshot = new_snapshot(mine, op.change, answer, writer.policy, writer.setup.shape, number)
    if name is None:
        return table, snapshot
    others = [file for file in head.data_files if file not in mine.data_files]
    deletes = [file for file in head.delete_files if file not in mine.delete_files]
    both = table._replace(data_files=(*others, *table.data_files), delete_files=(*deletes, *table.delete_files))
    return both, snapshot


def only_table(head: TableState, name: str) -> TableState:
    """The files of one of several tables."""
    return head._replace(
        data_files=tuple(file for file in head.data_files if file.partition[0] == name),
        delete_files=tuple(file for file in head.delete_files if file.partition[0] == name),
    )


def fits(setup: Setup, table: TableState) -> bool:
    """Whether a table has no more live rows than the set-up follows."""
    return setup.max_rows == UNBOUNDED or len(placed(table, setup.shape.columns)) <= setup.max_rows


class Landed(NamedTuple):
    """A head and what it is made of: the rows around it, under which names it goes on, what it is to others."""

    before: dict[Place, Row]
    result: judging.After
    table: TableState
    names: Names
    event: Event


def landed(setup: Setup, head: TableState, table: TableState, snapshot: Snapshot, origins: Origins) -> Landed:
    """The new head under the names that it goes on with, and what its commit is to those who did not make it."""
    columns = setup.shape.columns
    before = dict(placed(head, columns))
    new_files = {file.path: each for file, each in zip(snapshot.added_data_files, origins, strict=True)}
    rows_after = placed(table, columns)
    result = judging.after(rows_after, new_files)
    named, names = canonical(table, setup) if setup.canonical else named_by_age(table, table.sequence_number)
    event = _event(setup, snapshot, head, before, result, rows_after, new_files, names)
    if setup.canonical:
        event = event._replace(ids=id_moves(head, table, named, names))
    return Landed(before, result, named, names, event)


def committed(writer: Writer, shared: Shared, op: Op, answer: Commit | CommitWith) -> tuple[Shared, Event]:
    """The shared value after a commit, and what it is to the others."""
    setup = writer.setup
    table, snapshot = apply_change(writer, shared, op, answer)
    new = landed(setup, shared.table, table, snapshot, op.ghost.origins)
    violated = judging.violations(judging.Judged(setup, op, new.before, new.result, shared.table, table, snapshot))
    after = ended(writer, shared, op)._replace(table=new.table, violated=violated)
    if setup.told:
        expected = judging.expected(setup, op, new.before) if "consistent_read" in violated else None
        after = after._replace(log=(*shared.log, logged(writer, op, snapshot, new, expected)))
    return after, new.event


def logged(writer: Writer, op: Op, snapshot: Snapshot, new: Landed, expected: tuple[Row, ...] | None) -> Logged:
    """The snapshot for a report."""
    command = f"compact {op.group}" if op.command == COMPACTION else str(writer.setup.commands[op.command])
    return logged_by(writer.name, command, writer.setup, snapshot, new, expected)


def logged_by(
    name: str, command: str, setup: Setup, snapshot: Snapshot, new: Landed, expected: tuple[Row, ...] | None = None
) -> Logged:
    """The snapshot for a report, under the names that its files are known by."""
    table = new.table
    added = tuple(file._replace(path=new.names[file.path][0]) for file in snapshot.added_data_files)
    old = {file.path for file in snapshot.added_delete_files}
    deletes = tuple(file for file in table.delete_files if file.sequence_number == table.sequence_number and old)
    rows = visible(table, setup.shape.columns)
    named = snapshot._replace(added_data_files=added, added_delete_files=deletes)
    return Logged(named, table, name, command, rows, rows if expected is None else expected)


def _event(
    setup: Setup,
    snapshot: Snapshot,
    head: TableState,
    before: dict[Place, Row],
    result: judging.After,
    rows_after: list[tuple[Place, Row]],
    new_files: dict[str, tuple[Place | None, ...]],
    names: Names,
) -> Event:
    place_of: dict[Place, Place] = {}
    fresh = []
    for (file, position), row in rows_after:
        new_name, places = names[file]
        place = (new_name, places[position])
        origins = new_files.get(file)
        identity = (file, position) if origins is None else origins[position]
        if identity is not None and identity in before:
            place_of[identity] = place
        if identity is None or before.get(identity) != row:
            fresh.append((place, row))
    truth = tuple(
        (old, place_of.get(old), old in place_of and result.by_identity[old] != row) for old, row in before.items()
    )
    guarded = setup.guarded
    at = {(file, p): (names[file][0], names[file][1][p]) for (file, p), _ in rows_after} if guarded else {}
    return Event(
        _seen(setup, snapshot, head),
        tuple((old, new, places) for old, (new, places) in names.items()),
        truth,
        tuple(fresh),
        tuple((at[place], row) for place, row in rows_after) if guarded else (),
    )


def followed_by_ids(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the mapping that row ids tell, whoever made it and whatever it recorded."""
    files = (*snapshot.removed_data_files, *snapshot.added_data_files)
    known = [found for file in files if (found := row_ids_of(file)) is not None]
    if not snapshot.removed_data_files or len(known) < len(files):
        return snapshot
    removed = len(snapshot.removed_data_files)
    return snapshot._replace(mapping=moves_by_row_ids(known[:removed], known[removed:]))


def _seen(setup: Setup, snapshot: Snapshot, head: TableState) -> Snapshot:
    """The snapshot as others see it: equality deletes with the rows that they hit, and nothing that nobody asks."""
    columns = setup.shape.columns
    if head.next_row_id is not None:
        snapshot = followed_by_ids(snapshot)
    deletes = []
    for file in snapshot.added_delete_files:
        if file.content is DeleteContent.EQUALITY:
            hit = rows_of((data.path, equality_hits(data, file, columns)) for data in head.data_files)
            file = file._replace(positions=hit)
        deletes.append(file)
    if not setup.canonical:
        return snapshot._replace(added_delete_files=tuple(deletes), command_id="")
    return snapshot._replace(
        added_data_files=tuple(f._replace(first_row_id=None, lineage=None) for f in snapshot.added_data_files),
        added_delete_files=tuple(deletes),
        removed_data_files=tuple(
            file._replace(rows=None, bounds=file.bounds if setup.keeps_bounds else (), first_row_id=None, lineage=None)
            for file in snapshot.removed_data_files
        ),
        removed_delete_files=(),
        command_id="",
    )
