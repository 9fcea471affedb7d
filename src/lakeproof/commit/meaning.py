"""What a command means on rows, before any file: the measure by which a commit is judged.

    effect(rows) -> which rows get which new version, which are gone, which rows are new

A row is named by its place in the list that is handed in; an effect never looks at files, snapshots or time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.errors import LakeproofError
from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, In, IsNull, all_of, any_of, matches
from lakeproof.format import Row, Value


class _Anything(str):
    """Stands for a value that nobody knows beforehand."""

    __slots__ = ()


ANYTHING = _Anything("?")
"""A value that is not known: a model tries every value of its column's domain in its place."""


class Term(NamedTuple):
    """A value to write: a literal, or a column of the target or source row plus a number."""

    value: Value = None
    column: str | None = None
    source: bool = False
    plus: int = 0


class Assignment(NamedTuple):
    """SET column = term."""

    column: str
    term: Term


class Exists(NamedTuple):
    """A subquery on the same table that guards the command: some row must (or must not) match."""

    where: Expression
    negative: bool = False


class Select(NamedTuple):
    """INSERT … SELECT from the same table: one row per match, or one row of aggregates (`count`, `sum`)."""

    where: Expression
    terms: tuple[Term, ...]
    aggregates: tuple[str, ...] = ()  # one per term: "", "count", "count as text" or "sum"


class MergeClause(NamedTuple):
    """WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN update | delete | insert."""

    when: str  # matched | not matched | not matched by source
    then: str  # update | delete | insert
    condition: Expression = ALWAYS
    assignments: tuple[Assignment, ...] = ()
    values: tuple[Term, ...] = ()


class Merge(NamedTuple):
    """MERGE from literal source rows on equal keys."""

    source_columns: tuple[str, ...]
    source: tuple[Row, ...]
    on: tuple[tuple[str, str], ...]  # (target column, source column)
    clauses: tuple[MergeClause, ...]


class Meaning(Protocol):
    """What a command means, where its parts are not spelled out below but computed elsewhere."""

    @property
    def table(self) -> str:
        """The table that it changes, in a model of several tables."""

    @property
    def mode(self) -> Mode | None:
        """How it writes, where that is not the whole model's."""

    @property
    def isolation(self) -> Isolation | None:
        """What it promises, where that is not the whole model's."""

    @property
    def reads(self) -> tuple[Expression, ...]:
        """Which rows of the table it reads beside those that it writes."""

    @property
    def has_subquery(self) -> bool:
        """Whether other rows decide what it does to a row."""

    @property
    def everything(self) -> Expression:
        """All rows of its table."""

    def targets(self, rows: Sequence[Row]) -> Expression:
        """Which rows it may remove or rewrite; `rows` are all rows at the scan."""

    def hits(self, row: Row) -> bool:
        """Whether it removes this row; asked only of commands that remove rows and have no subquery."""

    def matched(self, rows: Sequence[Row]) -> frozenset[int]:
        """The rows that decide what a MERGE inserts: some source row matches them."""

    def effect(self, rows: Sequence[Row]) -> Effect:
        """What it does to these rows."""


class RowCommand(NamedTuple):
    """One command as its meaning: what it reads, removes, rewrites and adds."""

    command: Command
    where: Expression = ALWAYS
    assignments: tuple[Assignment, ...] = ()
    rows: tuple[Row, ...] = ()
    exists: tuple[Exists, ...] = ()
    select: Select | None = None
    merge: Merge | None = None
    text: str = ""
    partition_columns: tuple[str, ...] = ()  # of a dynamic overwrite
    meaning: Meaning | None = None  # then the parts above but for the command and its filter are empty

    def __str__(self) -> str:
        return self.text or str(self.command)


class Effect(NamedTuple):
    """New versions by index of the old row (`None`: gone), and rows that are new."""

    changed: tuple[tuple[int, Row | None], ...] = ()
    added: tuple[Row, ...] = ()


class AmbiguousMerge(LakeproofError):
    """Two source rows match one target row."""


def effect(command: RowCommand, rows: Sequence[Row], columns: tuple[str, ...]) -> Effect:
    """What the command does to these rows."""
    if command.meaning is not None:
        return command.meaning.effect(rows)
    if not guards_allow(command, rows, columns):
        return Effect()
    match command.command:
        case Command.INSERT:
            return Effect(added=command.rows)
        case Command.INSERT_SELECT:
            return Effect(added=selected(command.select, rows, columns)) if command.select else Effect()
        case Command.MERGE:
            return _merged(command.merge, rows, columns) if command.merge else Effect()
        case Command.REWRITE | Command.REWRITE_DELETES:
            return Effect()
    hit = [i for i, row in enumerate(rows) if matches(target_filter(command, columns), row, columns)]
    if command.command is Command.UPDATE:
        new = [(i, assigned(rows[i], command.assignments, columns)) for i in hit]
        return Effect(tuple(new))
    added = command.rows
    if command.command is Command.UPSERT:  # one row a key: the last of them
        added = tuple({row[0]: row for row in command.rows}.values())
    return Effect(tuple((i, None) for i in hit), added)  # DELETE, INSERT OVERWRITE, upsert


def guards_allow(command: RowCommand, rows: Sequence[Row], columns: tuple[str, ...]) -> bool:
    """Whether the command's subqueries allow it to do anything."""
    return all(any(matches(e.where, row, columns) for row in rows) != e.negative for e in command.exists)


def target_filter(command: RowCommand, columns: tuple[str, ...], rows: Sequence[Row] = ()) -> Expression:
    """The rows that the command removes or rewrites; for a MERGE those whose key is in the source."""
    if command.meaning is not None:
        return command.meaning.targets(rows)
    if command.command is Command.OVERWRITE_PARTITIONS:
        at = [columns.index(name) for name in command.partition_columns]
        parts = sorted({tuple(row[i] for i in at) for row in command.rows}, key=repr)
        pairs = [all_of(_equals(columns[i], v) for i, v in zip(at, part, strict=True)) for part in parts]
        return any_of(pairs) if at else ALWAYS
    if command.merge is not None:
        return merge_filter(command.merge)
    if command.command in (Command.INSERT, Command.INSERT_SELECT):
        return NEVER
    return command.where


def _equals(column: str, value: Value) -> Expression:
    """The column has this partition value; null is one, too."""
    return IsNull(column) if value is None else Compare(column, "=", value)


def merge_filter(merge: Merge) -> Expression:
    """The target rows that a MERGE may touch: all of them if it has a clause for rows without a source."""
    if any(clause.when == "not matched by source" for clause in merge.clauses):
        return ALWAYS
    keys = []
    for target, source in merge.on:
        at = merge.source_columns.index(source)
        keys.append(In(target, tuple(dict.fromkeys(row[at] for row in merge.source))))
    return all_of(keys)


def read_filter(command: RowCommand, columns: tuple[str, ...], rows: Sequence[Row] = ()) -> Expression:
    """Every predicate by which the command reads its table: the target's, the subqueries', the SELECT's."""
    if command.meaning is not None:
        return any_of([command.meaning.targets(rows), *command.meaning.reads])
    parts = [target_filter(command, columns), *(guard.where for guard in command.exists)]
    if command.select is not None:
        parts.append(command.select.where)
    return any_of(parts)


def assigned(
    row: Row,
    assignments: tuple[Assignment, ...],
    columns: tuple[str, ...],
    source: Row = (),
    source_columns: tuple[str, ...] = (),
) -> Row:
    """The row with the assignments made."""
    new = list(row)
    for assignment in assignments:
        new[columns.index(assignment.column)] = valued(assignment.term, row, columns, source, source_columns)
    return tuple(new)


def valued(
    term: Term, row: Row, columns: tuple[str, ...], source: Row = (), source_columns: tuple[str, ...] = ()
) -> Value:
    """The value of a term for a row."""
    if term.column is None:
        return term.value
    names, values = (source_columns, source) if term.source else (columns, row)
    found = values[names.index(term.column)]
    return found + term.plus if term.plus and isinstance(found, int | float) else found


def selected(select: Select, rows: Sequence[Row], columns: tuple[str, ...]) -> tuple[Row, ...]:
    """The rows that an INSERT … SELECT adds."""
    hit = [row for row in rows if matches(select.where, row, columns)]
    if not any(select.aggregates):
        return tuple(tuple(valued(term, row, columns) for term in select.terms) for row in hit)
    out: list[Value] = []
    for term, aggregate in zip(select.terms, select.aggregates, strict=True):
        if aggregate == "count":
            out.append(len(hit) + term.plus)
        elif aggregate == "count as text":
            out.append(str(len(hit)))
        elif aggregate == "sum":
            found: list[Any] = [valued(term, row, columns) for row in hit]
            known = [value for value in found if value is not None]
            out.append(sum(known) if known else None)
        else:
            out.append(term.value)
    return (tuple(out),)


def _merged(merge: Merge, rows: Sequence[Row], columns: tuple[str, ...]) -> Effect:
    changed: list[tuple[int, Row | None]] = []
    matched_sources: set[int] = set()
    for index, row in enumerate(rows):
        sources = [i for i, source in enumerate(merge.source) if _joins(merge, row, source, columns)]
        matched_sources.update(sources)
        outcome = _clause(merge, "matched" if sources else "not matched by source", row, columns)
        if outcome is None:
            continue
        if len(sources) > 1:
            raise AmbiguousMerge(f"source rows {sources} match one target row")
        source = merge.source[sources[0]] if sources else ()
        new = (
            None
            if outcome.then == "delete"
            else assigned(row, outcome.assignments, columns, source, merge.source_columns)
        )
        changed.append((index, new))
    added = []
    for i, source in enumerate(merge.source):
        clause = next(
            (
                c
                for c in merge.clauses
                if c.when == "not matched" and matches(c.condition, source, merge.source_columns)
            ),
            None,
        )
        if i not in matched_sources and clause:
            added.append(tuple(valued(term, (), (), source, merge.source_columns) for term in clause.values))
    return Effect(tuple(changed), tuple(added))


def is_read(merge: Merge, row: Row, columns: tuple[str, ...]) -> bool:
    """Whether a row that a MERGE leaves alone decides what it inserts: some source row matches it."""
    inserts = any(clause.when == "not matched" for clause in merge.clauses)
    return inserts and any(_joins(merge, row, source, columns) for source in merge.source)


def _joins(merge: Merge, row: Row, source: Row, columns: tuple[str, ...]) -> bool:
    for target, name in merge.on:
        left, right = row[columns.index(target)], source[merge.source_columns.index(name)]
        if left is None or right is None or left != right:
            return False
    return True


def _clause(merge: Merge, when: str, row: Row, columns: tuple[str, ...]) -> MergeClause | None:
    return next((c for c in merge.clauses if c.when == when and matches(c.condition, row, columns)), None)
