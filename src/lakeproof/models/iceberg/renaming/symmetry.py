"""Renamings of values that no step and no property can tell apart: ids among each other, and the values of a column.

They are declared where every command has a renamed twin among the commands and no check asks for statistics of files:
lower and upper bounds have an order, rows have none. A renamed table is canonical again, so files and positions move;
a writer's places move with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, permutations, product
from math import factorial, prod

from lakeproof.checker.model import ValueSymmetry
from lakeproof.commit.change import Command, TableChange
from lakeproof.commit.checks import WITHOUT_BOUNDS
from lakeproof.commit.meaning import Assignment, Merge, MergeClause, RowCommand, Select, Term
from lakeproof.commit.policy import Policy
from lakeproof.commit.writing import Place
from lakeproof.filters import And, Compare, Expression, In, Or
from lakeproof.format import DataFile, DeleteFile, Row, TableState, Value
from lakeproof.models.iceberg.naming import FORGOTTEN, Names, canonical, renamed_op, renamed_rows
from lakeproof.models.iceberg.renaming.row_ids import IdMoves, swapped_ids
from lakeproof.models.iceberg.renaming.sorting import SortedChange, sorted_change
from lakeproof.models.iceberg.world import COMPACTION, DEAD, Conflicted, Ghost, Op, Own, Setup, Shared

MOST = 48
"""Trying more renamings than this costs more than they save."""


class Moves(tuple[tuple[str, str, tuple[int, ...]], ...]):
    """How places move: old file, new file, new position of each old one."""

    @cached_property
    def names(self) -> Names:
        """The same by old file; what is left of files without a live row stays where it is."""
        return {old: (new, places) for old, new, places in self} | {FORGOTTEN: (FORGOTTEN, ())}

    @cached_property
    def ids(self) -> IdMoves:
        """How the ids of rows move with their places."""
        return swapped_ids(self)


@dataclass(frozen=True, eq=False)
class TableRenaming:
    """One permutation of the values of each column. Tables are few and worlds many, so each table is renamed once."""

    setup: Setup
    values: tuple[Mapping[Value, Value], ...]  # a column each
    commands: tuple[int, ...] = ()  # what each command becomes
    known: dict[TableState, tuple[TableState, Moves]] = field(default_factory=dict)
    changes: dict[TableChange, SortedChange] = field(default_factory=dict)

    def row(self, row: Row) -> Row:
        """The renamed row; values that nobody lists stay."""
        return tuple([names.get(value, value) for names, value in zip(self.values, row, strict=True)])

    def value(self, column: str, value: Value) -> Value:
        """The renamed value of a column."""
        return self.values[self.setup.shape.columns.index(column)].get(value, value)

    def partition(self, file: DataFile | DeleteFile) -> tuple[Value, ...]:
        """The file's renamed partition; what is partitioned by a column keeps its values as they are."""
        spec = self.setup.shape.specs[file.spec_id]
        return tuple(self.value(part.column, value) for part, value in zip(spec, file.partition, strict=True))

    def table(self, table: TableState) -> tuple[TableState, Moves]:
        """The renamed table under canonical names, and how places moved."""
        found = self.known.get(table)
        if found is None:
            files = tuple(
                file._replace(partition=self.partition(file), rows=tuple(map(self.row, file.rows or ())))
                for file in table.data_files
            )
            renamed, names = canonical(table._replace(data_files=files), self.setup)
            moves = Moves((old, new, places) for old, (new, places) in names.items())
            found = self.known[table] = (renamed, moves)
        return found

    def shared(self, shared: Shared) -> Shared:
        """The renamed table, and the renamed ids that are on their way."""
        pending = shared.pending
        if pending:
            ids = self.values[0]
            pending = tuple(sorted((ids.get(one, one) for one in pending), key=repr))  # type: ignore[call-overload]
        return shared._replace(table=self.table(shared.table)[0], pending=pending)

    def places(self, shared: Shared) -> Moves:
        """How the places of this table move."""
        return self.table(shared.table)[1]

    def own(self, own: Own, moves: Moves) -> Own:
        """The renamed writer, beside a table whose places move like this."""
        if not isinstance(own, Op | Conflicted):
            return own
        names = moves.names
        command = own.command if own.command == COMPACTION else self.commands[own.command]
        if isinstance(own, Conflicted):
            return own._replace(command=command)
        op = self.change(own.change).of(own)._replace(command=command)
        ids = moves.ids if any(file.lineage is not None for file in op.change.added_data_files) else None
        return renamed_op(op, op.window, renamed_ghost(op.ghost, names), names, replaced=False, ids=ids)

    def change(self, change: TableChange) -> SortedChange:
        """The change with renamed values; its places are renamed elsewhere. Changes are few, like tables."""
        found = self.changes.get(change)
        if found is None:
            found = self.changes[change] = self._changed(change)
        return found

    def _changed(self, change: TableChange) -> SortedChange:
        rows = [[self.row(row) for row in file.rows or ()] for file in change.added_data_files]
        removed, deletes = change.removed_data_files, change.added_delete_files
        renamed = change._replace(
            removed_data_files=tuple(file._replace(partition=self.partition(file)) for file in removed),
            added_delete_files=tuple(file._replace(partition=self.partition(file)) for file in deletes),
            conflict_filter=self.expression(change.conflict_filter),
        )
        return sorted_change(renamed, rows, self.setup.shape)

    def expression(self, where: Expression) -> Expression:
        """The predicate that is true of renamed rows where this one is true of the rows."""
        match where:
            case Compare(column, operator, value):
                return Compare(column, operator, self.value(column, value))
            case In(column, values, negative):
                return In(column, tuple(self.value(column, value) for value in values), negative)
            case And(parts):
                return And(tuple(map(self.expression, parts)))
            case Or(parts):
                return Or(tuple(map(self.expression, parts)))
        return where

    def command(self, command: RowCommand) -> RowCommand:
        """The renamed command, without its text."""
        select, columns = command.select, self.setup.shape.columns
        if select is not None:
            terms = zip(columns, select.terms, strict=True)
            terms_after = tuple(self.term(column, term) for column, term in terms)
            select = Select(self.expression(select.where), terms_after, select.aggregates)
        return command._replace(
            where=self.expression(command.where),
            assignments=self.assignments(command.assignments),
            rows=tuple(map(self.row, command.rows)),
            exists=tuple(guard._replace(where=self.expression(guard.where)) for guard in command.exists),
            select=select,
            merge=command.merge and self.merge(command.merge),
            text="",
        )

    def merge(self, merge: Merge) -> Merge:
        """The renamed source and clauses of a MERGE whose source has the table's columns."""
        columns = self.setup.shape.columns

        def renamed(clause: MergeClause) -> MergeClause:
            values = tuple(self.term(*pair) for pair in zip(columns, clause.values, strict=False))
            set_to, condition = self.assignments(clause.assignments), self.expression(clause.condition)
            return clause._replace(condition=condition, assignments=set_to, values=values)

        return merge._replace(source=tuple(map(self.row, merge.source)), clauses=tuple(map(renamed, merge.clauses)))

    def assignments(self, assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
        """The same columns set to renamed values."""
        return tuple(Assignment(one.column, self.term(one.column, one.term)) for one in assignments)

    def term(self, column: str, term: Term) -> Term:
        """A renamed literal; what is read of a column is renamed by its row."""
        return term if term.column is not None else term._replace(value=self.value(column, term.value))


def renamed_ghost(ghost: Ghost, names: Names) -> Ghost:
    """The ghost after all places moved."""

    def moved(place: Place | None) -> Place | None:
        if place is None or place == DEAD:
            return place
        file, places = names[place[0]]
        return file, places[place[1]]

    return Ghost(
        tuple(tuple(map(moved, file)) for file in ghost.origins),
        ghost.mine and renamed_rows(ghost.mine, names),
        renamed_rows(ghost.hits, names),
        frozenset(renamed_rows(rows, names) for rows in ghost.others),
        renamed_rows(ghost.removes, names),
    )


def symmetries(
    setup: Setup, policies: tuple[Policy, ...], chosen: tuple[tuple[int, ...] | None, ...]
) -> tuple[ValueSymmetry, ...]:
    """The renamings under which each writer's commands (`None`: all) stay the same; none where values have an order."""
    if not _values_have_no_order(setup, policies):
        return ()
    plain = [command._replace(text="") for command in setup.commands]
    found = []
    for renaming in islice(_candidates(setup), 1, None):
        after = [renaming.command(command) for command in setup.commands]
        if not all(command in plain for command in after) or not _keeps_rows(setup, renaming):
            continue
        numbers = tuple(plain.index(command) for command in after)
        if all(one is None or {numbers[i] for i in one} == {*one} for one in chosen):
            found.append(TableRenaming(setup, renaming.values, numbers))
    return tuple(ValueSymmetry(one.shared, one.own, one.places) for one in found)


def _values_have_no_order(setup: Setup, policies: tuple[Policy, ...]) -> bool:
    """Whether names are canonical, nothing but rows is asked, and no evidence of a conflict is kept."""
    if not setup.canonical or setup.keeps_bounds or setup.measure or setup.told:
        return False
    kinds = {Command.REWRITE, *(command.command for command in setup.commands)}
    lines = [line for policy in policies for line in policy.lines if kinds.intersection(line.commands)]
    asked = {check for line in lines for part in line[2:] for check in part}
    return asked <= WITHOUT_BOUNDS and not any(command.meaning is not None for command in setup.commands)


def _keeps_rows(setup: Setup, renaming: TableRenaming) -> bool:
    rows = setup.anybody.rows if setup.anybody is not None else ()
    return {*map(renaming.row, rows)} == {*rows}


def _candidates(setup: Setup) -> Iterator[TableRenaming]:
    """Every permutation of the values that commands write, column by column; first the one that changes nothing."""
    rows = [row for command in setup.commands for row in command.rows]
    rows += [row for command in setup.commands if command.merge is not None for row in command.merge.source]
    rows += setup.anybody.rows if setup.anybody is not None else ()
    listed = [tuple(dict.fromkeys(row[i] for row in rows)) for i in range(len(setup.shape.columns))]
    if prod(factorial(len(values)) for values in listed) > MOST:
        listed = [values if i else () for i, values in enumerate(listed)]
    for orders in product(*map(permutations, listed)):
        yield TableRenaming(setup, tuple(dict(zip(*pair, strict=True)) for pair in zip(listed, orders, strict=True)))
