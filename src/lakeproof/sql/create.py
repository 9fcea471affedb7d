"""CREATE TABLE."""

from __future__ import annotations

from lakeproof.sql.cursor import Cursor
from lakeproof.sql.statements import ColumnDefinition, CreateLike, CreateTable, Other, PartitionTransform, Statement


def parse_create(cursor: Cursor) -> Statement:
    """CREATE [OR REPLACE] TABLE …; CREATE of anything else is Spark's."""
    must_exist = cursor.accept("replace")
    replace = must_exist or cursor.accept("create", "or", "replace")
    if not replace:
        cursor.expect("create")
    if not cursor.accept("table"):
        return Other(cursor.text)
    if_not_exists = cursor.accept("if", "not", "exists")
    made = CreateTable(cursor.name(), cursor.text, if_not_exists=if_not_exists, replace=replace, must_exist=must_exist)
    if cursor.accept("like"):
        return _like(cursor, made)
    if cursor.peek().value == "(":
        made = made._replace(columns=parse_columns(cursor))
    while not cursor.done:
        before = cursor.at
        made = _clause(cursor, made)
        if made.query is not None:
            break
        if cursor.at == before:
            cursor.fail("did not expect this in CREATE TABLE")
    return made


def _like(cursor: Cursor, made: CreateTable) -> Statement:
    found = CreateLike(made.table, cursor.name(), cursor.text, if_not_exists=made.if_not_exists)
    while not cursor.done:
        if cursor.accept("using"):
            found = found._replace(provider=cursor.name())
        elif cursor.accept("tblproperties"):
            found = found._replace(properties=cursor.properties())
        elif cursor.accept("location"):
            found = found._replace(location=cursor.string())
        else:
            return Other(cursor.text)
    return Other(cursor.text) if made.replace else found


def _clause(cursor: Cursor, made: CreateTable) -> CreateTable:
    if cursor.accept("using"):
        return made._replace(provider=cursor.name())
    if cursor.accept("options"):
        return made._replace(options=cursor.properties())
    if cursor.accept("tblproperties"):
        return made._replace(properties=cursor.properties())
    if cursor.accept("partitioned", "by"):
        fields, added = _partitions(cursor)
        return made._replace(partitions=fields, columns=(*made.columns, *added))
    if cursor.accept("location"):
        return made._replace(location=cursor.string())
    if cursor.accept("comment"):
        return made._replace(comment=cursor.string())
    if cursor.peek().is_word("clustered"):
        cursor.expect("clustered", "by")
        cursor.balanced()
        if cursor.accept("sorted", "by"):
            cursor.balanced()
        cursor.expect("into")
        cursor.take()
        cursor.expect("buckets")
        return made._replace(clauses=(*made.clauses, "clustered by … into … buckets"))
    if cursor.accept("cluster", "by"):
        cursor.balanced()
        return made._replace(clauses=(*made.clauses, "cluster by"))
    if cursor.peek().is_word("row", "stored", "skewed", "default"):
        clauses = (*made.clauses, cursor.peek().value.lower())
        cursor.at = len(cursor.tokens)
        return made._replace(clauses=clauses)
    cursor.accept("as")
    if cursor.peek().is_word("select", "with", "values", "from", "table") or cursor.peek().value == "(":
        return made._replace(query=cursor.rest())
    return made


def parse_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """`(name type [NOT NULL] [DEFAULT expression] [COMMENT '…'], …)`."""
    cursor.expect_mark("(")
    found = [column(cursor)]
    while cursor.accept_mark(","):
        found.append(column(cursor))
    cursor.expect_mark(")")
    return tuple(found)


_NO_CONSTRAINTS = "managed tables have no generated columns or constraints"


def _is_constraint(cursor: Cursor) -> bool:
    """Whether a constraint of the table stands where a column may."""
    after = cursor.peek(1)
    if cursor.peek().is_word("primary", "foreign"):
        return after.is_word("key")
    return (cursor.peek().is_word("unique", "check") and after.value == "(") or cursor.peek().is_word("constraint")


def column(cursor: Cursor) -> ColumnDefinition:
    """One column; its type is the text up to what follows it."""
    if _is_constraint(cursor):
        cursor.fail(_NO_CONSTRAINTS)
    name = cursor.name()
    cursor.accept_mark(":")
    kind = type_text(cursor)
    nullable, comment, default = True, None, None
    while True:
        if cursor.accept("not", "null"):
            nullable = False
        elif cursor.accept("comment"):
            comment = cursor.string()
        elif cursor.accept("default"):
            default = default_text(cursor)
        elif cursor.peek().is_word("generated", "primary", "unique", "check"):
            cursor.fail(_NO_CONSTRAINTS)
        else:
            return ColumnDefinition(name, kind, nullable, comment, default)


def default_text(cursor: Cursor) -> str:
    """The expression of a default: the text up to what may follow it."""
    start, depth = cursor.at, 0
    while not cursor.done:
        token = cursor.peek()
        ends = token.is_word("comment", "first", "after") or (token.is_word("not") and cursor.peek(1).is_word("null"))
        if depth == 0 and (ends or (token.kind == "mark" and token.value in (",", ")"))):
            break
        if token.kind == "mark":
            depth += (token.value == "(") - (token.value == ")")
        cursor.take()
    if cursor.at == start:
        cursor.fail("expected the value of the default")
    return cursor.text[cursor.tokens[start].start : cursor.tokens[cursor.at - 1].end]


def type_text(cursor: Cursor) -> str:
    """A type with its brackets: `decimal(7, 2)`, `map<string, array<int>>`."""
    first = cursor.peek()
    if first.kind not in ("word", "quoted"):
        cursor.fail("expected a type")
    if cursor.take().is_word("interval"):
        while cursor.peek().is_word("year", "month", "day", "hour", "minute", "second", "to"):
            cursor.take()
    depth = 0
    while not cursor.done:
        token = cursor.peek()
        if token.kind == "mark" and token.value in ("(", "<"):
            depth += 1
        elif token.kind == "mark" and token.value in (")", ">", "<>"):
            if depth == 0:
                break
            depth -= token.value != "<>"
        elif depth == 0:
            break
        cursor.take()
    if depth:
        cursor.fail("this type is not closed")
    return cursor.text[first.start : cursor.tokens[cursor.at - 1].end]


def _partitions(cursor: Cursor) -> tuple[tuple[PartitionTransform, ...], tuple[ColumnDefinition, ...]]:
    """Columns, transforms, or new columns with their types."""
    cursor.expect_mark("(")
    fields, added = [], []
    while True:
        follows = cursor.peek(1)
        if cursor.peek().kind in ("word", "quoted") and follows.kind == "word":
            new = column(cursor)
            added.append(new)
            fields.append(PartitionTransform(new.name))
        else:
            fields.append(cursor.partition_field())
        if not cursor.accept_mark(","):
            break
    cursor.expect_mark(")")
    return tuple(fields), tuple(added)
