"""What a writer reads and writes before it commits: a command on the rows of one snapshot becomes a change.

Works on tables whose row values are known (models, scenarios). A new data file is called `+0`, `+1` … until a commit
gives it a name. `origins` is a ghost: for each row written, the place of the row whose new version it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode, TableChange
from lakeproof.commit.meaning import RowCommand, effect, is_read, read_filter, target_filter
from lakeproof.commit.planning import Plan, conflict_filter, mode_for, replaces_by_filter
from lakeproof.commit.policy import Policy
from lakeproof.commit.validation import RunAgain
from lakeproof.filters import ALWAYS, Compare, Expression, all_of, any_of, applied, matches
from lakeproof.format import (
    Bounds,
    DataFile,
    DeleteContent,
    DeleteFile,
    Move,
    Row,
    RowLineage,
    Rows,
    RowSet,
    TableShape,
    TableState,
    Value,
    images,
    inherited,
    live_rows,
    positions,
    row_set,
    rows_of,
)

Place = tuple[str, int]
"""Where a row is: data file and position."""

Origins = tuple[tuple[Place | None, ...], ...]
"""Per new data file and row: the place of the row that it is a version of; `None`: a new row."""


class Written(NamedTuple):
    """A change, and the ghost that knows where its rows came from."""

    change: TableChange
    origins: Origins = ()


class _NewRows(NamedTuple):
    """What a command makes of the rows: new versions of those at some places (`None`: deleted), and rows added."""

    new: dict[Place, Row | None]
    added: tuple[Row, ...]


def placed(table: TableState, columns: tuple[str, ...]) -> list[tuple[Place, Row]]:
    """Every row that a reader sees, with its place."""
    found: list[tuple[Place, Row]] = []
    for file, bits in live_rows(table, columns):
        if file.rows:
            found.extend(((file.path, p), file.rows[p]) for p in positions(bits))
    return found


def plan_of(
    command: RowCommand,
    shape: TableShape,
    policy: Policy,
    *,
    table_mode: Mode,
    isolation: Isolation,
    again: RunAgain | None = None,
    rows: Sequence[Row] = (),
) -> Plan:
    """How a command commits whose meaning is known; `rows` are those of its scan, where other rows decide."""
    kind, columns = command.command, shape.columns
    target, everything = target_filter(command, columns, rows), read_filter(command, columns, rows)
    found = conflict_filter(kind, policy, target=target, everything=everything)
    if command.meaning is not None and found == ALWAYS:
        found = command.meaning.everything
    mode, by_filter = mode_for(kind, policy, table_mode, again), replaces_by_filter(kind, policy)
    flags = policy.squashes_upserts, policy.filters_by_written_partitions, policy.mints_row_ids
    return Plan(kind, mode, isolation, found, by_filter, *flags)


def written(command: RowCommand, table: TableState, shape: TableShape, plan: Plan, command_id: str) -> Written | None:
    """What the command writes when it scans this snapshot; `None`: nothing to do."""
    here = placed(table, shape.columns)
    done = effect(command, [row for _, row in here], shape.columns)
    if not done.changed and not done.added:
        return None
    base = plan.change(
        command_id=command_id, scan_snapshot=table.snapshot_id, scan_sequence_number=table.sequence_number
    )
    new = {here[index][0]: row for index, row in done.changed}
    reads = _reads(command, here, new, shape)
    if plan.by_filter:
        return _replaced(base, command, done.added, shape)
    if command.command is Command.UPSERT:
        return _upserted(base, command, command.rows if plan.squashes_upserts else done.added, shape)
    found = with_new_rows(base._replace(reads=reads), table, new, done.added, shape, mints=plan.mints_row_ids)
    if plan.by_written_partitions and shape.specs[-1]:
        return found._replace(change=found.change._replace(conflict_filter=_written_partitions(found.change, shape)))
    return found


def _written_partitions(change: TableChange, shape: TableShape) -> Expression:
    """The partitions that a change writes, as a filter; they are taken by value."""
    columns = [field.column for field in shape.specs[-1]]
    data = {file.partition for file in (*change.added_data_files, *change.removed_data_files)}
    partitions = sorted(data | {file.partition for file in change.added_delete_files}, key=repr)
    return any_of(all_of(map(Compare, columns, ["="] * len(columns), values)) for values in partitions)


def with_new_rows(
    base: TableChange,
    table: TableState,
    new: dict[Place, Row | None],
    added: tuple[Row, ...],
    shape: TableShape,
    *,
    mints: bool = False,
) -> Written:
    """The change, in its mode, with these rows given new versions (`None`: deleted) and these added."""
    write = _copy_files if base.mode is Mode.COPY_ON_WRITE and new else _delete_by_position
    return with_lineage(write(base, table, _NewRows(new, added), shape), table, mints=mints)


def with_lineage(done: Written, table: TableState, *, mints: bool = False) -> Written:
    """The new files with what they store of rows that were there before: their ids, and of a mere copy its last change.

    `mints`: a row that changed is written as if it were new.
    """
    if table.next_row_id is None:
        return done
    known = {file.path: inherited(file) for file in table.data_files}

    def stored(origin: Place | None, *, copied: bool) -> RowLineage:
        if origin is None or (mints and not copied):
            return None, None
        number, updated = known[origin[0]][origin[1]]
        return number, updated if copied else None

    files = []
    for file, origins in zip(done.change.added_data_files, done.origins, strict=True):
        copies = images(done.change.mapping or (), file.path)
        rows = tuple(stored(origin, copied=bool(copies >> p & 1)) for p, origin in enumerate(origins))
        files.append(file._replace(lineage=rows if any(number is not None for number, _ in rows) else None))
    change = done.change._replace(added_data_files=tuple(files), before_row_ids=table.lacks_row_ids)
    return done._replace(change=change)


def rewritten(table: TableState, files: Sequence[str], shape: TableShape, command_id: str) -> Written:
    """A compaction of these files into one per partition; its rows keep their order."""
    inputs = [(file, bits) for file, bits in live_rows(table, shape.columns) if file.path in files]
    groups: dict[tuple[int, tuple[Value, ...]], list[tuple[DataFile, RowSet]]] = {}
    for file, bits in inputs:
        groups.setdefault((file.spec_id, file.partition), []).append((file, bits))
    added: list[DataFile] = []
    origins: list[tuple[Place | None, ...]] = []
    moves: list[Move] = []
    for members in groups.values():
        rows: list[Row] = []
        origin: list[Place | None] = []
        for file, bits in members:
            if bits:
                moves.append(Move(file.path, bits, f"+{len(added)}", len(rows)))
            for p in positions(bits):
                rows.append((file.rows or ())[p])
                origin.append((file.path, p))
        if rows:
            added.append(new_file(len(added), rows, shape))
            origins.append(tuple(origin))
    change = TableChange(
        command=Command.REWRITE,
        mode=Mode.COPY_ON_WRITE,
        command_id=command_id,
        scan_snapshot=table.snapshot_id,
        scan_sequence_number=table.sequence_number,
        added_data_files=tuple(added),
        removed_data_files=tuple(file for file, _ in inputs),
        kept=rows_of((file.path, bits) for file, bits in inputs),
        mapping=tuple(moves),
    )
    return with_lineage(Written(change, tuple(origins)), table)


def deletes_rewritten(table: TableState, command_id: str) -> Written | None:
    """Every position delete of a data file in one delete file; `None`: no data file has two."""
    by_file: dict[str, list[DeleteFile]] = {}
    for delete in table.delete_files:
        if delete.content is DeleteContent.POSITIONS and delete.positions:
            by_file.setdefault(delete.positions[0][0], []).append(delete)
    several = {path: files for path, files in by_file.items() if len(files) > 1 and table.has(path)}
    if not several:
        return None
    merged = tuple(
        files[0]._replace(path=f"+d{i}", positions=rows_of(pair for file in files for pair in file.positions or ()))
        for i, files in enumerate(several.values())
    )
    change = TableChange(
        command=Command.REWRITE_DELETES,
        command_id=command_id,
        scan_snapshot=table.snapshot_id,
        scan_sequence_number=table.sequence_number,
        added_delete_files=merged,
        removed_delete_files=tuple(file for files in several.values() for file in files),
    )
    return Written(change)


def new_file(index: int, rows: Sequence[Row], shape: TableShape) -> DataFile:
    """A data file that is not committed yet."""
    partition = partition_of(rows[0], shape)
    bounds = tuple(column_bounds(name, [row[i] for row in rows]) for i, name in enumerate(shape.columns))
    return DataFile(f"+{index}", partition, len(shape.specs) - 1, 0, len(rows), bounds, tuple(rows))


def first_files(groups: Sequence[Sequence[Row]], shape: TableShape) -> TableState:
    """A table that begins with these data files, all of its first snapshot: data-1, data-1a, data-1b …"""
    files = [new_file(i, group, shape) for i, group in enumerate(groups)]
    named = [
        file._replace(path="data-1" + ("" if i == 0 else letter(i)), sequence_number=1) for i, file in enumerate(files)
    ]
    return TableState(1, 1, tuple(named)) if named else TableState()


def letter(number: int) -> str:
    """a, b, c … for the second, third, fourth file of one commit."""
    return chr(ord("a") + number - 1)


def partition_of(row: Row, shape: TableShape) -> tuple[Value, ...]:
    """The partition that a row belongs to under the newest spec."""
    spec = shape.specs[-1]
    return tuple(applied(field.transform, row[shape.columns.index(field.column)]) for field in spec)


def column_bounds(column: str, values: Sequence[Value]) -> Bounds:
    """The statistics that a writer leaves of a column."""
    known: list[Any] = [value for value in values if value is not None]
    if not known:
        return Bounds(column, has_values=False)
    if len({type(value) for value in known}) > 1:
        return Bounds(column)
    return Bounds(column, min(known), max(known), len(known) < len(values))


def _reads(command: RowCommand, here: list[tuple[Place, Row]], new: dict[Place, Row | None], shape: TableShape) -> Rows:
    where = [guard.where for guard in command.exists]
    where += command.meaning.reads if command.meaning is not None else ()
    if command.select is not None:
        where.append(command.select.where)
    merge, columns = command.merge, shape.columns
    matched = command.meaning.matched([row for _, row in here]) if command.meaning is not None else frozenset[int]()
    if not where and merge is None and not matched:
        return ()
    any_read = any_of(where)

    def reads(row: Row) -> bool:
        return matches(any_read, row, columns) or (merge is not None and is_read(merge, row, columns))

    found = [place for i, (place, row) in enumerate(here) if place not in new and (i in matched or reads(row))]
    return rows_of((file, 1 << p) for file, p in found)


def _replaced(base: TableChange, command: RowCommand, added: tuple[Row, ...], shape: TableShape) -> Written:
    """What leaves the table is decided at the head: all that matches the filter, or lies in the partitions written."""
    files, origins = _grouped([(row, None) for row in added], 0, shape)
    if command.command is Command.OVERWRITE_PARTITIONS:
        partitions = tuple(dict.fromkeys((file.spec_id, file.partition) for file in files))
        return Written(base._replace(added_data_files=files, replaced_partitions=partitions), origins)
    return Written(base._replace(added_data_files=files, row_filter=command.where), origins)


def _upserted(base: TableChange, command: RowCommand, added: tuple[Row, ...], shape: TableShape) -> Written:
    """A streaming engine's upsert: an equality delete of the keys, and the new rows."""
    key = shape.columns[0]
    keys = tuple(dict.fromkeys((row[0],) for row in added))
    bounds = (column_bounds(key, [values[0] for values in keys]),)
    delete = DeleteFile(
        "+e", DeleteContent.EQUALITY, positions=(), equality_columns=(key,), equality_values=keys, bounds=bounds
    )
    change = base._replace(added_data_files=(new_file(0, added, shape),), added_delete_files=(delete,))
    return Written(change, (tuple(None for _ in added),))


def _delete_by_position(base: TableChange, table: TableState, rows: _NewRows, shape: TableShape) -> Written:
    """Merge-on-read: delete files for the rows that change, and their new versions in data files of their own."""
    new, added = rows
    fresh = [(row, place) for place, row in new.items() if row is not None] + [(row, None) for row in added]
    files, origins = _grouped(fresh, 0, shape)
    targets = rows_of((file, 1 << p) for file, p in new)
    homes = {file.path: file for file in table.data_files}
    content = DeleteContent.VECTOR if shape.format_version >= 3 else DeleteContent.POSITIONS
    deletes = tuple(
        DeleteFile(f"+d{i}", content, homes[path].partition, homes[path].spec_id, positions=((path, bits),))
        for i, (path, bits) in enumerate(targets)
    )
    change = base._replace(
        added_data_files=files,
        added_delete_files=deletes,
        required_data_files=tuple(path for path, _ in targets),
        targets=targets,
    )
    return Written(change, origins)


def _copy_files(base: TableChange, table: TableState, edits: _NewRows, shape: TableShape) -> Written:
    """Copy-on-write: every file with a row that changes is written anew, and the old one removed."""
    new = edits.new
    touched = {file for file, _ in new}
    elsewhere: list[tuple[Row, Place | None]] = [(row, None) for row in edits.added]
    files: list[DataFile] = []
    origins: list[tuple[Place | None, ...]] = []
    moves, kept = [], []
    for file, bits in live_rows(table, shape.columns):
        if file.path not in touched:
            continue
        stays = row_set(p for p in positions(bits) if (file.path, p) not in new)
        updated = [(row, (file.path, p)) for p in positions(bits) if (row := new.get((file.path, p))) is not None]
        elsewhere += [(row, place) for row, place in updated if partition_of(row, shape) != file.partition]
        updated = [(row, place) for row, place in updated if partition_of(row, shape) == file.partition]
        rows = [(file.rows or ())[p] for p in positions(stays)]
        if stays:
            kept.append((file.path, stays))
            moves.append(Move(file.path, stays, f"+{len(files)}", 0))
        if rows or updated:
            files.append(new_file(len(files), rows + [row for row, _ in updated], shape))
            origins.append((*((file.path, p) for p in positions(stays)), *(place for _, place in updated)))
    more, more_origins = _grouped(elsewhere, len(files), shape)
    change = base._replace(
        added_data_files=(*files, *more),
        removed_data_files=tuple(file for file in table.data_files if file.path in touched),
        targets=rows_of((file, 1 << p) for file, p in new),
        kept=rows_of(kept),
        mapping=tuple(moves),
    )
    return Written(change, (*origins, *more_origins))


def _grouped(
    fresh: Sequence[tuple[Row, Place | None]], start: int, shape: TableShape
) -> tuple[tuple[DataFile, ...], Origins]:
    """New rows as one file per partition."""
    if not fresh:
        return (), ()
    groups: dict[tuple[Value, ...], list[tuple[Row, Place | None]]] = {}
    for row, place in fresh:
        groups.setdefault(partition_of(row, shape), []).append((row, place))
    files = tuple(new_file(start + i, [row for row, _ in group], shape) for i, group in enumerate(groups.values()))
    return files, tuple(tuple(place for _, place in group) for group in groups.values())
