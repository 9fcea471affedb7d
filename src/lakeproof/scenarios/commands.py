"""The SQL of a `scan` line as a command on the scenario's table, with every column known."""

from __future__ import annotations

import re
from functools import lru_cache

from lakeproof.commit import Command
from lakeproof.commit.meaning import RowCommand
from lakeproof.errors import InvalidInput
from lakeproof.filters import Expression, bound
from lakeproof.format import TableShape
from lakeproof.sql.row_commands import row_command

_UPSERT = "upsert into "


_TARGET = re.compile(
    r"\s*(?:upsert\s+into|insert\s+(?:into|overwrite)(?:\s+table)?|update|delete\s+from|merge\s+into)\s+([\w.`]+)"
    r"|\s*call\s+[\w.`]*rewrite_data_files\s*\(\s*(?:table\s*=>\s*)?'([^']+)'",
    re.IGNORECASE,
)


def target_of(text: str, place: str) -> str | None:
    """The table that a statement changes, in small letters; `None`: it names none."""
    found = _TARGET.match(text)
    if found:
        return (found[1] or found[2]).replace("`", "").lower()
    if not re.match(r"\s*(upsert|insert|update|delete|merge)\b", text, re.IGNORECASE):
        return None  # what else it is, its reader says
    hint = "INSERT INTO t, INSERT OVERWRITE t, UPSERT INTO t, UPDATE t, DELETE FROM t, MERGE INTO t"
    raise InvalidInput(f"'{' '.join(text.split()[:3])} …' names no table to change", place=place, hint=hint)


@lru_cache(maxsize=4096)
def command_of(text: str, shape: TableShape, dynamic_overwrite: bool, place: str) -> RowCommand:
    """The command; `UPSERT INTO t VALUES …` is a streaming engine's: equality deletes of the first column, and rows."""
    upserts = text.lower().startswith(_UPSERT)
    command = row_command(
        f"INSERT INTO {text[len(_UPSERT) :]}" if upserts else text,
        shape.columns,
        place=place,
        dynamic_overwrite=dynamic_overwrite,
        partition_columns=tuple(field.column for field in shape.specs[-1]),
    )
    if upserts:
        command = command._replace(command=Command.UPSERT, text=text)
    if command.select is not None and len(command.select.terms) != len(shape.columns):
        text = f"The table has {len(shape.columns)} columns to fill, SELECT gives {len(command.select.terms)}"
        raise InvalidInput(text, place=place)
    try:
        return _bound(command, shape)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=place, hint=error.hint) from None


def _bound(command: RowCommand, shape: TableShape) -> RowCommand:
    """The command with each predicate's columns spelled as the table spells them."""

    def spelled(where: Expression, columns: tuple[str, ...] = shape.columns) -> Expression:
        return bound(where, columns, case_sensitive=shape.case_sensitive)

    select, merge = command.select, command.merge
    if merge is not None:
        of_source = merge.source_columns
        clauses = tuple(
            one._replace(condition=spelled(one.condition, of_source if one.when == "not matched" else shape.columns))
            for one in merge.clauses
        )
        merge = merge._replace(clauses=clauses)
    return command._replace(
        where=spelled(command.where),
        exists=tuple(one._replace(where=spelled(one.where)) for one in command.exists),
        select=select._replace(where=spelled(select.where)) if select else None,
        merge=merge,
    )
