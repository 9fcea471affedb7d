"""A statement's effect on rows as a change of files, made anew: the brute force must not share the model's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jobs_oracle.grammar import Statement, Table
from jobs_oracle.in_sqlite import Effect, Identified, Values
from lakeproof.commit.change import Command, Isolation, Mode, TableChange
from lakeproof.commit.policy import Policy
from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, In, all_of, any_of, applied, matches
from lakeproof.format import (
    Bounds,
    DataFile,
    DeleteContent,
    DeleteFile,
    Move,
    PartitionField,
    TableShape,
    TableState,
    live_rows,
    positions,
    rows_of,
)

COMMANDS = {
    "insert": Command.INSERT,
    "feed": Command.INSERT,
    "insert select": Command.INSERT_SELECT,
    "count": Command.INSERT_SELECT,
    "update": Command.UPDATE,
    "delete": Command.DELETE,
    "merge": Command.MERGE,
    "overwrite": Command.OVERWRITE,
    "truncate": Command.METADATA_DELETE,
}
PROPERTY = {"insert select": "insert", "count": "insert", "overwrite": "insert", "truncate": "delete"}


class Plan(NamedTuple):
    """A change, and the identities of the rows that it brings."""

    change: TableChange
    fresh: frozenset[object] = frozenset()


Place = tuple[str, int]


def shape_of(table: Table) -> TableShape:
    """What the checks know of the table."""
    return TableShape(table.names(), (tuple(PartitionField(c, t) for c, _, t in table.partition),))


def rows_in(head: TableState) -> list[Identified]:
    """The rows that a reader sees; the last value of a stored row is its identity."""
    return [(row[-1], row[:-1]) for _, row in _placed(head)]


def _placed(head: TableState) -> list[tuple[Place, tuple[Any, ...]]]:
    return [((file.path, p), (file.rows or ())[p]) for file, bits in live_rows(head, ()) for p in positions(bits)]


def first_table(files: Sequence[Sequence[Values]], table: Table, name: str) -> TableState:
    """A table that begins with these data files; a file whose rows lie in several partitions is several files."""
    numbered = [[(*row, f"{name}{i}.{j}") for j, row in enumerate(rows)] for i, rows in enumerate(files)]
    made: list[DataFile] = []
    for rows in numbered:
        for group in _grouped(rows, table):
            made.append(_file(f"{name}-first-{len(made)}", group, table)._replace(sequence_number=1))
    return TableState(1, 1, tuple(made)) if made else TableState()


def planned(
    one: Statement,
    effect: Effect,
    head: TableState,
    table: Table,
    policy: Policy,
    name: str,
    mode: str | None,
    source: tuple[Values, ...],
) -> Plan | None:
    """The change that a statement wants to commit; `None`: nothing to do."""
    if not effect.changed and not effect.added:
        return None
    properties = dict(table.properties)
    word = PROPERTY.get(one.kind, one.kind)
    level = (
        properties.get(f"write.{word}.isolation-level", "serializable")
        if COMMANDS[one.kind] is not Command.INSERT
        else "serializable"
    )
    way = Mode(mode or properties.get(f"write.{one.kind}.mode", "copy-on-write"))
    if policy.always_copies or one.kind in ("overwrite", "truncate"):
        way = Mode.COPY_ON_WRITE
    command = COMMANDS[one.kind]
    target = target_filter(one, table, source)
    base = TableChange(
        command=command,
        mode=way,
        isolation=Isolation(level),
        command_id=name,
        scan_snapshot=head.snapshot_id,
        scan_sequence_number=head.sequence_number,
        conflict_filter=_conflict_filter(one, target, policy),
    )
    added = [(*row, f"{name}+{i}") for i, row in enumerate(effect.added)]
    fresh = frozenset(row[-1] for row in added)
    base = base._replace(reads=_reads(one, head, effect, table))
    if policy.replaces_by_filter and one.kind in ("overwrite", "truncate"):
        files = tuple(_file(f"{name}-{i}", group, table) for i, group in enumerate(_grouped(added, table)))
        return Plan(base._replace(added_data_files=files, row_filter=target, reads=()), fresh)
    changed = {place: _new(row, effect) for place, row in _placed(head) if row[-1] in effect.changed}
    if way is Mode.COPY_ON_WRITE and changed:
        return Plan(_copied(base, head, changed, added, table, name), fresh)
    return Plan(_merged(base, head, changed, added, table, name), fresh)


def _new(row: tuple[Any, ...], effect: Effect) -> tuple[Any, ...] | None:
    values = effect.changed[row[-1]]
    return None if values is None else (*values, row[-1])


def target_filter(one: Statement, table: Table, source: tuple[Values, ...]) -> Expression:
    """Which rows a statement may remove or rewrite, as far as metadata can know."""
    match one.kind:
        case "insert" | "feed" | "insert select" | "count":
            return NEVER
        case "overwrite":
            return all_of(Compare(column, "=", value) for column, value in one.partition)
        case "merge":
            if any(clause.when == "not matched by source" for clause in one.clauses):
                return ALWAYS
            names = [column.name for column in one.source_columns]
            keys = [In(left, tuple(dict.fromkeys(row[names.index(right)] for row in source))) for left, right in one.on]
            return all_of([*keys, one.on_more.filter() if one.on_more is not None else ALWAYS])
    return one.where.filter()


def _read_filters(one: Statement) -> list[Expression]:
    found = [one.guard.where.filter()] if one.guard and one.guard.table == one.table else []
    if one.kind in ("insert select", "count") and one.source_table == one.table:
        found.append(one.where.filter())
    return found


def _conflict_filter(one: Statement, target: Expression, policy: Policy) -> Expression:
    if policy.filters_by_all_reads:
        return any_of([target, *_read_filters(one)])
    return ALWAYS if one.kind == "merge" else target


def _reads(one: Statement, head: TableState, effect: Effect, table: Table) -> tuple[tuple[str, int], ...]:
    read = any_of(_read_filters(one))
    found = [
        (file, 1 << p)
        for (file, p), row in _placed(head)
        if row[-1] not in effect.changed and (row[-1] in effect.matched or matches(read, row, table.names()))
    ]
    return rows_of(found)


def compaction(head: TableState, table: Table, policy: Policy, name: str) -> Plan | None:
    """All files of a partition become one, if there are several, or deletes."""
    dirty = any(delete.references(file.path) for delete in head.delete_files for file in head.data_files)
    if len(head.data_files) < 2 and not dirty:
        return None
    groups: dict[tuple[Any, ...], list[tuple[DataFile, int]]] = {}
    for file, bits in live_rows(head, ()):
        groups.setdefault(file.partition, []).append((file, bits))
    added: list[DataFile] = []
    moves: list[Move] = []
    for members in groups.values():
        rows: list[tuple[Any, ...]] = []
        for file, bits in members:
            if bits:
                moves.append(Move(file.path, bits, f"{name}-{len(added)}", len(rows)))
            rows += [(file.rows or ())[p] for p in positions(bits)]
        if rows:
            added.append(_file(f"{name}-{len(added)}", rows, table))
    change = TableChange(
        command=Command.REWRITE,
        mode=Mode.COPY_ON_WRITE,
        command_id=name,
        scan_snapshot=head.snapshot_id,
        scan_sequence_number=head.sequence_number,
        added_data_files=tuple(added),
        removed_data_files=head.data_files,
        kept=rows_of((file.path, bits) for file, bits in live_rows(head, ())),
        mapping=tuple(moves),
    )
    return Plan(change)


# ---------------------------------------------------------------- files


def _partition(row: tuple[Any, ...], table: Table) -> tuple[Any, ...]:
    return tuple(applied(transform, row[table.names().index(column)]) for column, _, transform in table.partition)


def _grouped(rows: Iterable[tuple[Any, ...]], table: Table) -> list[list[tuple[Any, ...]]]:
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(_partition(row, table), []).append(row)
    return list(groups.values())


def _file(path: str, rows: Sequence[tuple[Any, ...]], table: Table) -> DataFile:
    bounds = []
    for i, column in enumerate(table.names()):
        known = [row[i] for row in rows if row[i] is not None]
        if known:
            bounds.append(Bounds(column, min(known), max(known), len(known) < len(rows)))
        else:
            bounds.append(Bounds(column, has_values=False))
    return DataFile(path, _partition(rows[0], table), 0, 0, len(rows), tuple(bounds), tuple(rows))


def _merged(
    base: TableChange,
    head: TableState,
    changed: dict[Place, tuple[Any, ...] | None],
    added: list[tuple[Any, ...]],
    table: Table,
    name: str,
) -> TableChange:
    new = [row for row in changed.values() if row is not None] + added
    files = tuple(_file(f"{name}-{i}", group, table) for i, group in enumerate(_grouped(new, table)))
    targets = rows_of((file, 1 << p) for file, p in changed)
    homes = {file.path: file for file in head.data_files}
    deletes = tuple(
        DeleteFile(f"{name}-d{i}", DeleteContent.POSITIONS, homes[path].partition, 0, positions=((path, bits),))
        for i, (path, bits) in enumerate(targets)
    )
    required = tuple(path for path, _ in targets)
    return base._replace(
        added_data_files=files, added_delete_files=deletes, required_data_files=required, targets=targets
    )


def _copied(
    base: TableChange,
    head: TableState,
    changed: dict[Place, tuple[Any, ...] | None],
    added: list[tuple[Any, ...]],
    table: Table,
    name: str,
) -> TableChange:
    touched = {file for file, _ in changed}
    elsewhere = list(added)
    files: list[DataFile] = []
    moves: list[Move] = []
    kept: list[tuple[str, int]] = []
    for file, bits in live_rows(head, ()):
        if file.path not in touched:
            continue
        stays = [p for p in positions(bits) if (file.path, p) not in changed]
        new = [row for p in positions(bits) if (row := changed.get((file.path, p))) is not None]
        elsewhere += [row for row in new if _partition(row, table) != file.partition]
        rows = [(file.rows or ())[p] for p in stays]
        if stays:
            kept.append((file.path, sum(1 << p for p in stays)))
            moves.append(Move(file.path, sum(1 << p for p in stays), f"{name}-{len(files)}", 0))
        rows += [row for row in new if _partition(row, table) == file.partition]
        if rows:
            files.append(_file(f"{name}-{len(files)}", rows, table))
    for group in _grouped(elsewhere, table):
        files.append(_file(f"{name}-{len(files)}", group, table))
    return base._replace(
        added_data_files=tuple(files),
        removed_data_files=tuple(file for file in head.data_files if file.path in touched),
        targets=rows_of((file, 1 << p) for file, p in changed),
        kept=rows_of(kept),
        mapping=tuple(moves),
    )
