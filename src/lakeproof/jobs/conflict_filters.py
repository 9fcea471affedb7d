"""What a metadata filter can know of a condition: true of every row of which the condition is.

A part that files cannot be asked about (an unknown function, another table, a correlated subquery) is taken as true.
"""

from __future__ import annotations

from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, IsNull, StartsWith, all_of, any_of
from lakeproof.format import Value
from lakeproof.sql.expressions import SOURCE, TARGET, Call, Column, Constant, Node, Subquery, conjuncts
from lakeproof.sql.job_statements import JobStatement, nodes_of

_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def as_filter(node: Node, relation: str, *, positive: bool = True) -> Expression:
    """The filter on the columns of one relation; `positive=False`: of the rows where the condition is false."""
    match node:
        case Constant(value):
            return ALWAYS if value is positive else NEVER
        case Column(there, name, "boolean") if there == relation:
            return Compare(name, "=", positive)
        case Call("and" | "or" as word, parts):
            found = [as_filter(part, relation, positive=positive) for part in parts]
            return all_of(found) if (word == "and") == positive else any_of(found)
        case Call("not", (part,)):
            return as_filter(part, relation, positive=not positive)
        case Call(name, (Column(there, column, kind), *rest)) if there == relation:
            return _leaf(name, column, kind, rest[0] if rest else None, positive)
    return ALWAYS


def _leaf(name: str, column: str, kind: str, other: Node | None, positive: bool) -> Expression:
    if name == "is null":
        return IsNull(column, negative=not positive)
    if not isinstance(other, Constant) or other.value is None or not _comparable(other, kind):
        return ALWAYS
    value: Value = other.value
    if name == "starts with":
        return StartsWith(column, str(value), negative=not positive)
    if name == "<=>":
        return Compare(column, "=", value) if positive else any_of([Compare(column, "!=", value), IsNull(column)])
    if name in _NEGATED:
        return Compare(column, name if positive else _NEGATED[name], value)
    return ALWAYS


def _comparable(other: Constant, kind: str) -> bool:
    return other.kind == kind or {other.kind.partition("(")[0], kind.partition("(")[0]} <= {"int", "decimal"}


def replaced_rows_filter(made: JobStatement) -> Expression:
    """The rows that INSERT OVERWRITE replaces."""
    return all_of(
        IsNull(name) if value.value is None else Compare(name, "=", value.value) for name, value in made.partition
    )


def merged_rows_filter(made: JobStatement, keys: dict[str, tuple[Value, ...]]) -> Expression:
    """The rows that a MERGE may touch. `keys`: for each target column that ON equates, the source's values."""
    if any(clause.when == "not matched by source" for clause in made.clauses):
        return ALWAYS
    parts: list[Expression] = []
    for node in conjuncts(made.on):
        pair = equated(node)
        if pair is not None:
            found = [value for value in keys[pair[0].name] if value is not None]
            parts.append(any_of(Compare(pair[0].name, "=", value) for value in found))
        else:
            parts.append(as_filter(node, TARGET))
    return all_of(parts)


def equated(node: Node) -> tuple[Column, Column] | None:
    """The target and source column that a condition of ON equates."""
    if isinstance(node, Call) and node.function == "=":
        one, other = node.parts
        if isinstance(one, Column) and isinstance(other, Column):
            if (one.relation, other.relation) == (SOURCE, TARGET):
                one, other = other, one
            if (one.relation, other.relation) == (TARGET, SOURCE):
                return one, other
    return None


def read_filters(made: JobStatement) -> list[Expression]:
    """What a statement reads of its own table beside its target rows: subqueries, wherever they stand, and a SELECT."""
    found = [
        as_filter(node.query.where, node.query.relation)
        for node in nodes_of(made)
        if isinstance(node, Subquery) and node.query.table == made.table
    ]
    if made.source is not None and made.source.table == made.table:
        found.append(as_filter(made.source.where, SOURCE))
    return found
