"""Steps as SQL, once for the managed table and once for the view of the same rows in plain Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from predicate_forms import Parameter
from random_predicates import Predicate, said
from steps import Alter, Assignment, Clause, Copy, Create, Delete, Insert, Merge, Names, Read, Step, Update

_PLACE = re.compile(r"\{a(\d+)\}")


class Said(NamedTuple):
    """A statement and its arguments."""

    text: str
    arguments: Any = None


def managed(step: Step, table: str) -> Said:
    """What is said to the managed table."""
    match step:
        case Create(columns, partitions, modes, version):
            by = f" partitioned by ({', '.join(partitions)})" if partitions else ""
            more = () if version == 2 else (("format-version", version),)
            told = ", ".join(f"'{key}' = '{value}'" for key, value in (*modes, *more))
            listed = ", ".join(column.ddl for column in columns)
            return Said(f"create table {table} ({listed}) using iceberg{by} tblproperties ({told})")
        case Insert(rows, given):
            into = f"{table} ({', '.join(column.sql for column in given)})" if given else table
            return Said(f"insert into {into} values {values(rows)}")
        case Alter(change):
            return Said(change.format(t=table) if change.startswith("call ") else f"alter table {table} {change}")
        case Read(text, predicate, parameters, names):
            named = f"{_from(table, names)}{f' {names.alias}' if names.alias else ''}"
            text = text.replace("from {t}", f"from {named}", 1).replace("{p}", said(predicate))
            return _with_arguments(_named(text, table, names), parameters)
        case Copy(predicate, parameters, names):
            text = f"insert into {table} select * from {_target(table, names)}{where(predicate)}"
            return _with_arguments(_named(text, table, names), parameters)
        case Delete(predicate, parameters, names):
            text = f"delete from {_target(table, names)}{where(predicate)}"
            return _with_arguments(_named(text, table, names), parameters)
        case Update(assignments, predicate, parameters, names):
            text = f"update {_target(table, names)} set {listed_assignments(assignments)}{where(predicate)}"
            return _with_arguments(_named(text, table, names), parameters)
        case Merge(source, on, clauses):
            acts = " ".join(_clause(clause) for clause in clauses)
            return Said(
                f"merge into {table} t using {source.replace('{t}', table)} s on {on} {acts}".replace("{q}", "t.")
            )


def inlined(text: str, view: str, names: Names, parameters: Sequence[Parameter]) -> str:
    """A text with the plain view in place of the table and literals in place of parameters."""
    text = text.replace("{q}", f"{names.alias or view}.").replace("{t}", view)
    return _PLACE.sub(lambda found: parameters[int(found.group(1))].literal, text)


def where(predicate: Predicate | None) -> str:
    """The WHERE of a predicate."""
    return "" if predicate is None else f" where {said(predicate)}"


def values(rows: Sequence[Sequence[str]]) -> str:
    """The rows of VALUES."""
    return ", ".join(f"({', '.join(row)})" for row in rows)


def listed_assignments(assignments: Sequence[Assignment], prefix: str = "") -> str:
    """The list behind SET."""
    return ", ".join(
        f"{prefix}{one.column.sql}{'.' if one.path else ''}{one.path} = {one.value}" for one in assignments
    )


def _from(table: str, names: Names) -> str:
    return ("", "default.", "spark_catalog.default.")[names.table_parts - 1] + table


def _target(table: str, names: Names) -> str:
    return f"{_from(table, names)}{f' as {names.alias}' if names.alias else ''}"


def _named(text: str, table: str, names: Names) -> str:
    whole = ("", "default.", "spark_catalog.default.")[names.column_parts - 1] + table
    return text.replace("{q}", f"{names.alias or whole}.").replace("{t}", table)


def _with_arguments(text: str, parameters: Sequence[Parameter]) -> Said:
    order = [int(found) for found in _PLACE.findall(text)]
    if not order:
        return Said(text)
    if len(order) % 2:
        return Said(_PLACE.sub(r":a\1", text), {f"a{at}": parameters[at].value for at in order})
    return Said(_PLACE.sub("?", text), [parameters[at].value for at in order])


def _clause(clause: Clause) -> str:
    condition = f" and {said(clause.condition)}" if clause.condition is not None else ""
    return f"when {clause.when}{condition} then {_action(clause)}"


def _action(clause: Clause) -> str:
    if clause.action == "delete":
        return "delete"
    if not clause.assignments:
        return "update set *" if clause.action == "update" else "insert *"
    if clause.action == "update":
        return f"update set {listed_assignments(clause.assignments)}"
    columns = ", ".join(one.column.sql for one in clause.assignments)
    return f"insert ({columns}) values ({', '.join(one.value for one in clause.assignments)})"
