"""ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakeproof.sql.create import column, default_text, parse_columns, type_text
from lakeproof.sql.cursor import Cursor
from lakeproof.sql.statements import (
    AddColumnClause,
    AddPartitionField,
    Alter,
    AlterColumn,
    Change,
    CreateRef,
    DropColumnClause,
    DropPartitionField,
    DropRef,
    IdentifierFields,
    Other,
    RenameColumnClause,
    RenameTable,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    SortBy,
    Statement,
    UnsetProperties,
    WriteOrder,
)

T = TypeVar("T")


def parse_alter(cursor: Cursor) -> Statement:
    """ALTER TABLE …; a form that only Spark's own tables know has no changes."""
    if not cursor.accept("alter", "table"):
        return Other(cursor.text)
    made = Alter(cursor.name(), cursor.text)
    changes = _changes(cursor)
    if changes:
        cursor.expect_end()
    return made._replace(changes=changes)


def _changes(cursor: Cursor) -> tuple[Change, ...]:
    if cursor.accept("add"):
        return _add(cursor)
    if cursor.accept("drop"):
        return _drop(cursor)
    if cursor.accept("rename", "to"):
        return (RenameTable(cursor.name()),)
    if cursor.accept("rename", "column"):
        name = cursor.name()
        cursor.expect("to")
        return (RenameColumnClause(name, cursor.name()),)
    if cursor.accept("set", "tblproperties"):
        return (SetProperties(cursor.properties()),)
    if cursor.accept("unset", "tblproperties"):
        cursor.accept("if", "exists")
        return (UnsetProperties(_names(cursor)),)
    if cursor.accept("alter") or cursor.accept("change"):
        cursor.accept("column")
        return _separated(cursor, _alter_column)
    if cursor.accept("set", "location"):
        return (SetLocation(cursor.string()),)
    if cursor.accept("set", "identifier", "fields"):
        return (IdentifierFields(_names(cursor)),)
    if cursor.accept("write"):
        return (_write_order(cursor),)
    if cursor.accept("replace", "columns"):
        return (ReplaceColumns(parse_columns(cursor)),)
    if cursor.accept("replace", "partition", "field"):
        old = cursor.partition_field()
        cursor.expect("with")
        new = cursor.partition_field()
        if cursor.accept("as"):
            new = new._replace(name=cursor.word())
        return (DropPartitionField(old), AddPartitionField(new))
    return _refs(cursor)


def _separated(cursor: Cursor, read: Callable[[Cursor], T]) -> tuple[T, ...]:
    found = [read(cursor)]
    while cursor.accept_mark(","):
        found.append(read(cursor))
    return tuple(found)


def _write_order(cursor: Cursor) -> WriteOrder:
    """`[DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY … | UNORDERED]`, in either order."""
    distribution: str | None = None
    order: tuple[SortBy, ...] = ()
    said = False
    while not cursor.done:
        if cursor.accept("distributed", "by", "partition"):
            distribution = "hash"
        elif cursor.accept("unordered"):
            order = ()
        elif cursor.accept("locally", "ordered", "by"):
            order = sort_order(cursor)
        elif cursor.accept("ordered", "by"):
            order, distribution = sort_order(cursor), distribution or "range"
        else:
            cursor.fail("expected DISTRIBUTED BY PARTITION, ORDERED BY, LOCALLY ORDERED BY or UNORDERED")
        said = True
    if not said:
        cursor.fail("expected DISTRIBUTED BY PARTITION, ORDERED BY, LOCALLY ORDERED BY or UNORDERED")
    return WriteOrder(order, distribution)


def parse_sort_order(text: str) -> tuple[SortBy, ...]:
    """A sort order by itself: `id DESC NULLS LAST, bucket(4, name)`."""
    cursor = Cursor(text)
    found = sort_order(cursor)
    cursor.expect_end()
    return found


def sort_order(cursor: Cursor) -> tuple[SortBy, ...]:
    """Columns or transforms, each with ASC or DESC and NULLS FIRST or LAST."""
    closed = cursor.accept_mark("(")
    found = _separated(cursor, _sort_by)
    if closed:
        cursor.expect_mark(")")
    return found


def _sort_by(cursor: Cursor) -> SortBy:
    field = cursor.partition_field()
    descending = not cursor.accept("asc") and cursor.accept("desc")
    first = cursor.accept("nulls", "first")
    last = not first and cursor.accept("nulls", "last")
    return SortBy(field, descending, nulls_first=first or (not last and not descending))


def _refs(cursor: Cursor) -> tuple[Change, ...]:
    if cursor.accept("create", "or", "replace"):
        return (_create_ref(cursor)._replace(replace=True),)
    if cursor.accept("create"):
        if_not_exists = cursor.peek(1).is_word("if")
        return (_create_ref(cursor, may_exist=if_not_exists),)
    if cursor.peek().is_word("replace") and cursor.peek(1).is_word("branch", "tag"):
        cursor.take()
        return (_create_ref(cursor)._replace(replace=True, must_exist=True),)
    return ()


def _add(cursor: Cursor) -> tuple[Change, ...]:
    if cursor.accept("partition", "field"):
        field = cursor.partition_field()
        if cursor.accept("as"):
            field = field._replace(name=cursor.word())
        return (AddPartitionField(field),)
    if not (cursor.accept("columns") or cursor.accept("column")):
        return ()
    closed = cursor.accept_mark("(")
    found: list[Change] = [_add_column(cursor)]
    while cursor.accept_mark(","):
        found.append(_add_column(cursor))
    if closed:
        cursor.expect_mark(")")
    return tuple(found)


def _add_column(cursor: Cursor) -> AddColumnClause:
    new = AddColumnClause(column(cursor))
    while True:
        if cursor.accept("first"):
            new = new._replace(first=True)
        elif cursor.accept("after"):
            new = new._replace(after=cursor.name())
        elif cursor.accept("comment"):
            new = new._replace(column=new.column._replace(comment=cursor.string()))
        else:
            return new


def _drop(cursor: Cursor) -> tuple[Change, ...]:
    if cursor.accept("partition", "field"):
        return (DropPartitionField(cursor.partition_field()),)
    for kind in ("branch", "tag"):
        if cursor.accept(kind):
            if_exists = cursor.accept("if", "exists")
            return (DropRef(kind, cursor.word(), if_exists),)
    if cursor.accept("identifier", "fields"):
        return (IdentifierFields(_names(cursor), dropped=True),)
    if cursor.accept("columns") or cursor.accept("column"):
        if_exists = cursor.accept("if", "exists")
        return tuple(DropColumnClause(name, if_exists) for name in _names(cursor))
    return ()


def _names(cursor: Cursor) -> tuple[str, ...]:
    closed = cursor.accept_mark("(")
    found = [cursor.string() if cursor.peek().kind == "string" else cursor.name()]
    while cursor.accept_mark(","):
        found.append(cursor.string() if cursor.peek().kind == "string" else cursor.name())
    if closed:
        cursor.expect_mark(")")
    return tuple(found)


def _alter_column(cursor: Cursor) -> AlterColumn:
    name = cursor.name()
    if cursor.accept("type"):
        return AlterColumn(name, type=type_text(cursor))
    if cursor.accept("comment"):
        return AlterColumn(name, comment=cursor.string())
    if cursor.accept("first"):
        return AlterColumn(name, first=True)
    if cursor.accept("after"):
        return AlterColumn(name, after=cursor.name())
    if cursor.accept("drop", "not", "null"):
        return AlterColumn(name, nullable=True)
    if cursor.accept("drop", "default"):
        return AlterColumn(name, drop_default=True)
    if cursor.accept("set", "default"):
        return AlterColumn(name, default=default_text(cursor))
    if not cursor.accept("set", "not", "null"):
        cursor.fail("expected TYPE, COMMENT, FIRST, AFTER, DROP NOT NULL, SET DEFAULT or DROP DEFAULT")
    return AlterColumn(name, nullable=False)


def _create_ref(cursor: Cursor, *, may_exist: bool = False) -> CreateRef:
    kind = "branch" if cursor.accept("branch") else "tag" if cursor.accept("tag") else ""
    if not kind:
        cursor.fail("expected BRANCH or TAG")
    if_not_exists = may_exist and cursor.accept("if", "not", "exists")
    name = cursor.word()
    snapshot = None
    if cursor.accept("as", "of", "version"):
        given = cursor.literal()
        if not isinstance(given, int):
            cursor.at -= 1
            cursor.fail("expected a snapshot id")
        snapshot = given
    return CreateRef(kind, name, snapshot, if_not_exists, retention=_retention(cursor, kind))


def _retention(cursor: Cursor, kind: str) -> tuple[tuple[str, int], ...]:
    """`RETAIN 7 DAYS`, and of a branch `WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS`; either may be left out."""
    found = []
    if cursor.accept("retain"):
        found.append(("max_ref_age_ms", _positive(cursor) * _unit_ms(cursor)))
    if kind == "branch" and cursor.accept("with", "snapshot", "retention"):
        number = _positive(cursor)
        if cursor.accept("snapshots"):
            found.append(("min_snapshots_to_keep", number))
            if cursor.done:
                return tuple(found)
            number = _positive(cursor)
        found.append(("max_snapshot_age_ms", number * _unit_ms(cursor)))
    return tuple(found)


def _positive(cursor: Cursor) -> int:
    if cursor.peek().value == "0":
        cursor.fail("expected a number above 0")
    return cursor.whole_number()


_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}


def _unit_ms(cursor: Cursor) -> int:
    if not cursor.peek().is_word(*_UNITS_MS):
        cursor.fail("expected DAYS, HOURS or MINUTES")
    return _UNITS_MS[cursor.take().value.lower()]
