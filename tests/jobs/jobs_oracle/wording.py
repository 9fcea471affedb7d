"""A random jobs file as the text that `lakeproof check` reads."""

from __future__ import annotations

from typing import Any

from jobs_oracle.grammar import File, Statement, Table, spark


def text_of(file: File) -> str:
    """The whole file."""
    parts = [_created(table) for table in file.tables]
    for table, rows in file.rows:
        parts.append(f"insert into {table} values {', '.join(_row(row) for row in rows)};")
    for job in file.jobs:
        parts.append(f"-- job: {job.name}")
        parts += [f"{statement_text(one)};" for one in job.statements]
    return "\n".join(parts) + "\n"


def _created(table: Table) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    partition = ", ".join(said for _, said, _ in table.partition)
    by = f" partitioned by ({partition})" if partition else ""
    properties = ", ".join(f"'{name}'='{value}'" for name, value in table.properties)
    return f"create table {table.name} ({columns}) using iceberg{by} tblproperties ({properties});"


def _row(row: tuple[object, ...]) -> str:
    return "(" + ", ".join(spark(value) for value in row) + ")"  # type: ignore[arg-type]


def _where(one: Statement) -> str:
    parts = [f"({one.where.spark()})"]
    if one.guard:
        parts.append(one.guard.said(one.guard.where.spark()))
    return " and ".join(parts)


def statement_text(one: Statement) -> str:
    """One statement in Spark's SQL."""
    name = one.table
    match one.kind:
        case "insert":
            return f"insert into {name} values {', '.join(map(_row, one.rows))}"
        case "feed":
            return f"insert into {name} select * from feed"
        case "insert select" | "count":
            terms = ", ".join(term if isinstance(term, str) else term.spark() for term in _selected(one))
            return f"insert into {name} select {terms} from {one.source_table} t where {_where(one)}"
        case "update":
            sets = ", ".join(f"{column} = {term.spark()}" for column, term in one.sets)
            return f"update {name} t set {sets} where {_where(one)}"
        case "delete":
            return f"delete from {name} t where {_where(one)}"
        case "truncate":
            return f"truncate table {name}"
        case "overwrite":
            fixed = ", ".join(f"{column} = {spark(value)}" for column, value in one.partition)
            into = f" partition ({fixed})" if fixed else ""
            return f"insert overwrite {name}{into} values {', '.join(map(_row, one.rows))}"
        case "merge":
            return _merge(one)
    return f"call system.rewrite_data_files('{name}')"


def _selected(one: Statement) -> list[Any]:
    """The selected terms; a counting SELECT has count(*) in place of its first."""
    return ["count(*)", *one.terms[1:]] if one.kind == "count" else list(one.terms)


def _merge(one: Statement) -> str:
    columns = ", ".join(column.name for column in one.source_columns)
    using = f"{one.source_table or 'incoming'} s"
    if one.source:
        using = f"(values {', '.join(map(_row, one.source))}) as s({columns})"
    on = " and ".join(f"t.{left} = s.{right}" for left, right in one.on)
    if one.on_more is not None:
        on += f" and {one.on_more.spark()}"
    said = [f"merge into {one.table} t using {using} on {on}"]
    for clause in one.clauses:
        also = f" and {clause.condition.spark()}" if clause.condition is not None else ""
        sets = ", ".join(f"{column} = {term.spark()}" for column, term in clause.sets)
        if clause.then == "update":
            then = f"update set {sets}"
        elif clause.then == "insert":
            names = ", ".join(column for column, _ in clause.sets)
            then = f"insert ({names}) values ({', '.join(term.spark() for _, term in clause.sets)})"
        else:
            then = "delete"
        said.append(f"when {clause.when}{also} then {then}")
    return "\n  ".join(said)
