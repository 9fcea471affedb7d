"""SQL text → statement. What is not ours to understand stays text and goes to Spark as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from lakeproof.errors import InvalidInput
from lakeproof.sql.alter import parse_alter
from lakeproof.sql.create import parse_create
from lakeproof.sql.cursor import Cursor
from lakeproof.sql.lexer import split, tokens_of
from lakeproof.sql.statements import (
    Argument,
    AsOf,
    Computed,
    Describe,
    Drop,
    ExecuteImmediate,
    Explain,
    Insert,
    InsertDirectory,
    Literal,
    Other,
    ProcedureCall,
    QueryStatement,
    Refresh,
    RowLevel,
    Show,
    ShowExtended,
    Statement,
    Truncate,
)

_MODES = ("extended", "formatted", "codegen", "cost", "logical")
_BEFORE_NAME = frozenset(
    "create replace or table if not exists alter drop truncate insert into overwrite update delete from merge "  # noqa: SIM905
    "describe desc extended formatted show partitions columns in tblproperties explain".split()
)
_QUERIES = ("select", "with", "values", "from", "table")


def parse_statement(text: str) -> Statement:
    """The statement that the text asks for; a mistake that is seen here is an `InvalidInput` with the place marked."""
    pieces = split(text)
    body = pieces[0].text if len(pieces) == 1 else text.strip()
    cursor = Cursor(with_views_quoted(body))
    first = cursor.peek()
    if first.value == "(" or first.is_word(*_QUERIES):
        return QueryStatement(cursor.text)
    reader = _READERS.get(first.value.lower()) if first.kind == "word" else None
    return reader(cursor) if reader else Other(cursor.text)


def parse_all(text: str) -> list[Statement]:
    """The statements of a text, in order."""
    return [parse_statement(piece.text) for piece in split(text)]


def target(text: str) -> str | None:
    """The table that a statement is about, also where the rest of it does not parse; `None`: it names none here."""
    cursor = Cursor(with_views_quoted(text.strip()))
    if not cursor.peek().is_word(*_READERS):
        return None
    while cursor.peek().is_word(*_BEFORE_NAME):
        cursor.take()
    return cursor.name() if cursor.peek().kind in ("word", "quoted") else None


def asks_for_management(text: str) -> bool:
    """Whether a CREATE TABLE, as far as it can be read, asks for a managed table."""
    values = [token.value.lower() for token in tokens_of(text)]
    pairs = list(pairwise(values))
    return ("using", "iceberg") in pairs or any(
        name == "addtablemanagement" and "true" in values[at + 1 : at + 3] for at, name in enumerate(values)
    )


def with_views_quoted(text: str) -> str:
    """`t$snapshots` may be written without quotes, and its column `numDeletedFiles` as the first version spelled it."""
    if "$" not in text:
        return text
    tokens = tokens_of(text)
    of_snapshots = any(re.search(r"\$snapshots(_view)?$", token.value, re.IGNORECASE) for token in tokens)
    for token in reversed(tokens):
        if token.kind == "word" and "$" in token.value.strip("$"):
            text = f"{text[: token.start]}`{token.value}`{text[token.end :]}"
        elif of_snapshots and token.kind in ("word", "quoted") and token.value.lower() == "numddeletedfiles":
            text = f"{text[: token.start]}numDeletedFiles{text[token.end :]}"
    return text


def _as_of(cursor: Cursor) -> Statement:
    cursor.expect("as", "of")
    cursor.accept("timestamp")
    instant = cursor.literal()
    if isinstance(instant, bool | float) or instant is None:
        cursor.at -= 1
        cursor.fail("expected a time such as '2024-01-31 12:00:00' or epoch milliseconds")
    query = cursor.rest()
    if not cursor.peek().is_word(*_QUERIES) and cursor.peek().value != "(":
        cursor.fail("expected a query after AS OF")
    return AsOf(instant, query, cursor.text)


def _insert(cursor: Cursor) -> Statement:
    cursor.expect("insert")
    verb = cursor.take()
    if verb.is_word("overwrite") and (cursor.accept("local", "directory") or cursor.accept("directory")):
        return _directory(cursor)
    if not verb.is_word("into", "overwrite"):
        cursor.at -= 1
        cursor.fail("expected INTO or OVERWRITE")
    cursor.accept("table")
    table = cursor.name()
    if cursor.done:
        cursor.fail("expected rows: VALUES, SELECT or TABLE")
    return Insert(table, cursor.text)


def _directory(cursor: Cursor) -> Statement:
    if cursor.peek().kind == "string":
        return InsertDirectory(cursor.string(), cursor.text)
    while not (cursor.done or cursor.accept("options")):
        cursor.take()
    options = {} if cursor.done else {key.lower(): value for key, value in cursor.properties()}
    return InsertDirectory(options.get("path", ""), cursor.text)


def _execute(cursor: Cursor) -> Statement:
    if not cursor.accept("execute", "immediate"):
        return Other(cursor.text)
    start, depth = cursor.peek().start, 0
    while not (cursor.done or (depth == 0 and cursor.peek().is_word("into", "using"))):
        mark = cursor.take()
        depth += {"(": 1, ")": -1}.get(mark.value, 0) if mark.kind == "mark" else 0
    return ExecuteImmediate(cursor.text[start : cursor.peek().start], cursor.done, cursor.text)


def _drop(cursor: Cursor) -> Statement:
    if not cursor.accept("drop", "table"):
        return Other(cursor.text)
    if_exists = cursor.accept("if", "exists")
    table = cursor.name()
    purge = cursor.accept("purge")
    cursor.expect_end()
    return Drop(table, cursor.text, if_exists, purge)


def _truncate(cursor: Cursor) -> Statement:
    cursor.expect("truncate", "table")
    table = cursor.name()
    return Truncate(table, cursor.text) if cursor.done else Other(cursor.text)


def _describe(cursor: Cursor) -> Statement:
    cursor.take()
    if cursor.peek().is_word("function", "database", "schema", "namespace", "catalog", "query", "history", "procedure"):
        return Other(cursor.text)
    if cursor.peek().is_word(*_QUERIES) and not cursor.peek().is_word("table"):
        return Other(cursor.text)
    cursor.accept("table")
    extended = cursor.accept("extended") or cursor.accept("formatted")
    described = Describe(cursor.name(), cursor.text, extended)
    if cursor.peek().kind in ("word", "quoted") and not cursor.peek().is_word("partition"):
        described = described._replace(column=cursor.name())
    return described if cursor.done else Other(cursor.text)


def _show(cursor: Cursor) -> Statement:
    cursor.expect("show")
    if cursor.accept("create", "table"):
        table = cursor.name()
        return Show("create table", cursor.text, table) if cursor.done else Other(cursor.text)
    if cursor.accept("partitions"):
        table = cursor.name()
        return Show("partitions", cursor.text, table) if cursor.done else Other(cursor.text)
    if cursor.accept("tblproperties"):
        shown = Show("tblproperties", cursor.text, cursor.name())
        if cursor.accept_mark("("):
            shown = shown._replace(name=cursor.string() if cursor.peek().kind == "string" else cursor.name())
            cursor.expect_mark(")")
        return shown if cursor.done else Other(cursor.text)
    if cursor.accept("table", "extended"):
        namespace = cursor.name() if cursor.accept("in") or cursor.accept("from") else ""
        cursor.accept("like")
        pattern = cursor.string() if cursor.peek().kind == "string" else ""
        return ShowExtended(pattern, cursor.text, namespace) if pattern and cursor.done else Other(cursor.text)
    if cursor.accept("columns", "in") or cursor.accept("columns", "from"):
        table = cursor.name()
        return Show("columns", cursor.text, table) if cursor.done else Other(cursor.text)
    return Other(cursor.text)


def _call(cursor: Cursor) -> Statement:
    cursor.expect("call")
    procedure = cursor.name().lower()
    bare = procedure.removeprefix("lakeproof.").removeprefix("spark_catalog.").removeprefix("system.")
    cursor.expect_mark("(")
    arguments = []
    while not cursor.accept_mark(")"):
        arguments.append(_argument(cursor))
        if not cursor.accept_mark(",") and cursor.peek().value != ")":
            cursor.fail("expected `,` or `)`")
    cursor.expect_end()
    return ProcedureCall(bare, cursor.text, tuple(arguments))


def _argument(cursor: Cursor) -> Argument:
    name = None
    if cursor.peek(1).value in ("=>", "=") and cursor.peek().kind in ("word", "quoted"):
        name = cursor.word().lower()
        cursor.take()
    if cursor.peek().is_word("array", "map") and cursor.peek(1).value == "(":
        cursor.take()
        return Argument(_several(cursor), name)
    start = cursor.at
    with suppress(InvalidInput):
        value = cursor.literal()
        if cursor.peek().kind != "mark" or cursor.peek().value in (",", ")"):
            return Argument(value, name)
    cursor.at = start
    return Argument(Computed(cursor.until_comma()), name)


def _several(cursor: Cursor) -> tuple[Literal, ...]:
    cursor.expect_mark("(")
    found: list[Literal] = []
    while not cursor.accept_mark(")"):
        found.append(cursor.literal())
        cursor.accept_mark(",")
    return tuple(found)


def _refresh(cursor: Cursor) -> Statement:
    if not cursor.accept("refresh", "table"):
        return Other(cursor.text)
    table = cursor.name()
    return Refresh(table, cursor.text) if cursor.done else Other(cursor.text)


def _explain(cursor: Cursor) -> Statement:
    cursor.expect("explain")
    mode = cursor.take().value.lower() if cursor.peek().is_word(*_MODES) else "simple"
    if cursor.done:
        cursor.fail("expected a statement to explain")
    return Explain(mode, cursor.rest(), cursor.text)


_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "create": parse_create,
    "replace": parse_create,
    "insert": _insert,
    "as": _as_of,
    "update": lambda cursor: RowLevel(cursor.text),
    "delete": lambda cursor: RowLevel(cursor.text),
    "merge": lambda cursor: RowLevel(cursor.text),
    "alter": parse_alter,
    "drop": _drop,
    "truncate": _truncate,
    "describe": _describe,
    "desc": _describe,
    "show": _show,
    "call": _call,
    "refresh": _refresh,
    "explain": _explain,
    "execute": _execute,
}
