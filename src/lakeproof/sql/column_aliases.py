"""`merge into t using (values …) as s(id, v) on …`: the aliases of a MERGE source, moved to where Spark takes them."""

from __future__ import annotations

from lakeproof.sql.cursor import Cursor


def with_aliases_inside(text: str) -> str | None:
    """The MERGE with `using (select * from source as s(id, v)) as s`; `None`: its source names no columns.

    >>> with_aliases_inside("merge into t using (values (1)) as s(id) on t.id = s.id when matched then delete")
    'merge into t using (select * from (values (1)) as s(id)) as s on t.id = s.id when matched then delete'
    """
    cursor = Cursor(text)
    while not (cursor.done or cursor.accept("using")):
        cursor.take()
    start = cursor.peek().start
    if cursor.peek().value == "(" and cursor.peek().kind == "mark":
        cursor.balanced()
    elif cursor.peek().kind in ("word", "quoted"):
        cursor.name()
    cursor.accept("as")
    alias = cursor.peek()
    if alias.kind not in ("word", "quoted"):
        return None
    cursor.take()
    if not (cursor.peek().kind == "mark" and cursor.peek().value == "("):
        return None
    cursor.balanced()
    end = cursor.tokens[cursor.at - 1].end
    name = text[alias.start : alias.end]
    return f"{text[:start]}(select * from {text[start:end]}) as {name}{text[end:]}"
