"""The commands that writers run: every kind over a few keys and values."""

from __future__ import annotations

from lakeproof.commit.change import Command
from lakeproof.commit.meaning import Assignment, Exists, Merge, MergeClause, RowCommand, Select, Term
from lakeproof.filters import Compare, Expression
from lakeproof.filters.expression import literal
from lakeproof.format import Row

COLUMNS = ("name", "color", "letter")
KINDS = (
    "insert",
    "update",
    "delete",
    "merge",
    "delete-exists",
    "insert-select",
    "overwrite",
    "overwrite-partition",
    "overwrite-dynamic",
    "metadata-delete",
    "upsert",
    "upsert-twice",
)


def commands_of(
    kind: str, keys: tuple[str, ...], col2: tuple[str, ...], col3: tuple[str, ...], by_id: bool
) -> list[RowCommand]:
    """The commands of one kind."""
    rows: list[Row] = [(key, two, three) for key in keys for two in col2 for three in col3]
    one_each: list[Row] = [(key, col2[-1], col3[0]) for key in keys]
    match kind:
        case "insert":
            return [
                RowCommand(Command.INSERT, rows=(row,), text=f"INSERT INTO t VALUES {_worded(row)}") for row in rows
            ]
        case "update":
            return _updates(keys, col2, col3, by_id)
        case "delete":
            return [_delete(Command.DELETE, where) for where in _predicates(keys, col2, col3, by_id)]
        case "merge":
            return [_merge(row) for row in rows]
        case "delete-exists":
            return [_guarded(key, other) for key in keys for other in keys if other != key]
        case "insert-select":
            return [_counted(two) for two in col2]
        case "overwrite":
            text = "INSERT OVERWRITE t VALUES {}"
            return [RowCommand(Command.OVERWRITE, rows=(r,), text=text.format(_worded(r))) for r in one_each]
        case "overwrite-partition":
            return [_static(row) for row in one_each]
        case "overwrite-dynamic":
            text = "INSERT OVERWRITE t VALUES {} (dynamic)"
            return [
                RowCommand(
                    Command.OVERWRITE_PARTITIONS, rows=(r,), text=text.format(_worded(r)), partition_columns=COLUMNS[:1]
                )
                for r in one_each
            ]
        case "upsert-twice":
            return [_upsert_twice((key, col2[0], col3[0]), (key, col2[-1], col3[0])) for key in keys]
        case "metadata-delete":
            return [_delete(Command.METADATA_DELETE, Compare("name", "=", key)) for key in keys]
    return [_upsert(row) for row in one_each]


def _predicates(keys: tuple[str, ...], col2: tuple[str, ...], col3: tuple[str, ...], by_id: bool) -> list[Compare]:
    found = [Compare("name", "=", key) for key in keys]
    if not by_id:
        found += [Compare("color", "=", two) for two in col2] + [Compare("letter", "=", three) for three in col3]
    return found


def _updates(keys: tuple[str, ...], col2: tuple[str, ...], col3: tuple[str, ...], by_id: bool) -> list[RowCommand]:
    found = []
    for where in _predicates(keys, col2, col3, by_id):
        for column, choices in (("color", col2), ("letter", col3)):
            for value in choices:
                if len(choices) > 1 and (where.column, where.value) != (column, value):
                    text = f"UPDATE t SET {column} = '{value}' WHERE {where.column} = {literal(where.value)}"
                    found.append(RowCommand(Command.UPDATE, where, (Assignment(column, Term(value)),), text=text))
    return found


def _delete(command: Command, where: Compare) -> RowCommand:
    return RowCommand(command, where, text=f"DELETE FROM t WHERE {where.column} = {literal(where.value)}")


def _merge(row: Row) -> RowCommand:
    source = tuple(Term(column=name, source=True) for name in COLUMNS)
    clauses = (
        MergeClause("matched", "update", assignments=(Assignment("color", Term(column="color", source=True)),)),
        MergeClause("not matched", "insert", values=source),
    )
    text = (
        f"MERGE INTO t USING (VALUES {_worded(row)}) AS s(name, color, letter) ON t.name = s.name "
        "WHEN MATCHED THEN UPDATE SET color = s.color WHEN NOT MATCHED THEN INSERT *"
    )
    return RowCommand(Command.MERGE, merge=Merge(COLUMNS, (row,), (("name", "name"),), clauses), text=text)


def _guarded(key: str, other: str) -> RowCommand:
    guard: Expression = Compare("name", "=", other)
    text = f"DELETE FROM t WHERE name = '{key}' AND EXISTS (SELECT 1 FROM t x WHERE x.name = '{other}')"
    return RowCommand(Command.DELETE, Compare("name", "=", key), exists=(Exists(guard),), text=text)


def _counted(two: str) -> RowCommand:
    select = Select(Compare("color", "=", two), (Term("total"), Term(), Term("A")), ("", "count as text", ""))
    text = f"INSERT INTO t SELECT 'total', cast(count(*) as string), 'A' FROM t WHERE color = '{two}'"
    return RowCommand(Command.INSERT_SELECT, select=select, text=text)


def _static(row: Row) -> RowCommand:
    text = f"INSERT OVERWRITE t PARTITION (name = {literal(row[0])}) VALUES {_worded(row[1:])}"
    return RowCommand(Command.OVERWRITE, Compare("name", "=", row[0]), rows=(row,), text=text)


def _upsert(row: Row) -> RowCommand:
    where = Compare("name", "=", row[0])
    return RowCommand(Command.UPSERT, where, rows=(row,), text=f"UPSERT INTO t VALUES {_worded(row)}")


def _upsert_twice(first: Row, last: Row) -> RowCommand:
    """Two upserts of one key in one commit, as a sink makes it of two checkpoints: the last must win."""
    where = Compare("name", "=", first[0])
    text = f"UPSERT INTO t VALUES {_worded(first)}, {_worded(last)}"
    return RowCommand(Command.UPSERT, where, rows=(first, last), text=text)


def _worded(row: Row) -> str:
    return "(" + ", ".join(map(literal, row)) + ")"
