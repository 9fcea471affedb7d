"""UPDATE, DELETE and MERGE: their parts as SQL text, by sqlglot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from lakeproof.sql.cursor import Cursor
from lakeproof.sql.lexer import error_at
from lakeproof.sql.statements import Delete, Merge, MergeClause, Statement, Update


def update(cursor: Cursor) -> Statement:
    """UPDATE t [AS a] SET … [WHERE …]."""
    node = _parsed(cursor, exp.Update)
    if not node.expressions:
        cursor.at = len(cursor.tokens)
        cursor.fail("expected an assignment")
    table, alias = _table(node.this)
    pairs = tuple((_name(one.this), _sql(one.expression)) for one in node.expressions)
    return Update(table, cursor.text, alias, pairs, _condition(node.args.get("where")))


def delete(cursor: Cursor) -> Statement:
    """DELETE FROM t [AS a] [WHERE …]."""
    node = _parsed(cursor, exp.Delete)
    table, alias = _table(node.this)
    return Delete(table, cursor.text, alias, _condition(node.args.get("where")))


def merge(cursor: Cursor) -> Statement:
    """MERGE INTO t [AS a] USING s ON … WHEN …."""
    node = _parsed(cursor, exp.Merge)
    table, alias = _table(node.this)
    using = node.args["using"]
    clauses = tuple(_clause(one) for one in node.args["whens"].expressions)
    return Merge(table, cursor.text, alias, _source(using), using.alias or None, _sql(node.args["on"]), clauses)


def _source(using: Any) -> str:
    """The source without its alias; an alias that names columns too stays, inside a query of its own."""
    if using.args.get("alias") is None:
        return _sql(using)
    if using.args["alias"].columns:
        return f"(SELECT * FROM {_sql(using)})"
    source = using.copy()
    source.set("alias", None)
    return _sql(source)


def _clause(node: exp.When) -> MergeClause:
    when = "matched" if node.args.get("matched") else "not matched"
    if node.args.get("source"):
        when = "not matched by source"
    condition = node.args.get("condition")
    then, said = node.args["then"], None if condition is None else _sql(condition)
    if isinstance(then, exp.Update):
        pairs = [(_name(one.this), _sql(one.expression)) for one in then.expressions if isinstance(one, exp.EQ)]
        return MergeClause(when, "update", said, tuple(pairs))
    if isinstance(then, exp.Insert):
        return MergeClause(when, "insert", said, _inserted(then))
    return MergeClause(when, "delete", said)


def _inserted(node: exp.Insert) -> tuple[tuple[str, str], ...]:
    if node.expression is None or isinstance(node.this, exp.Star):
        return ()
    names = [_name(one) for one in node.this.expressions]
    return tuple(zip(names, (_sql(one) for one in node.expression.expressions), strict=True))


def _parsed(cursor: Cursor, kind: Callable[..., Any]) -> Any:
    try:
        node = sqlglot.parse_one(cursor.text, read="spark")
    except sqlglot.errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = int(first.get("line") or 1), int(first.get("col") or 1)
        offset = sum(len(one) + 1 for one in cursor.text.split("\n")[: line - 1]) + column - 1
        offset = max(0, offset - len(str(first.get("highlight") or " ")) + 1)
        said = str(first.get("description") or "this does not parse").rstrip(".")
        raise error_at(cursor.text, offset, said) from None
    except sqlglot.errors.TokenError:  # our own lexer takes the quotes that Spark takes; sqlglot stumbles over some
        raise error_at(cursor.text, 0, "this does not parse: a quote or a comment may not be closed") from None
    if not isinstance(node, kind):  # type: ignore[arg-type]
        cursor.fail("this does not parse")
    return node


def _table(node: Any) -> tuple[str, str | None]:
    parts = [part.name for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part]
    return ".".join(f"`{part}`" if "." in part else part for part in parts), node.alias or None


def _name(node: Any) -> str:
    return ".".join(part.name for part in node.parts) if isinstance(node, exp.Column) else str(node.name)


def _condition(where: Any) -> str | None:
    return None if where is None else _sql(where.this)


def _sql(node: Any) -> str:
    return str(node.sql(dialect="spark"))
