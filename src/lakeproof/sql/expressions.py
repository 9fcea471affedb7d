"""Conditions and values of a statement after every name in them was resolved: what they are of, and of which type.

A `Column` names its relation: `t` is the target, `s` the source of a MERGE or SELECT, `q1`, `q2` … are subqueries.
What has no exact meaning here is `Unknown`: it says which columns it looks at, and how to compute it where it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakeproof.format import Value

TARGET, SOURCE, RUN = "t", "s", "run"
"""The relations of the target row, of the source row, and of what a run of the statement chooses by itself."""


@dataclass(frozen=True)
class Column:
    """A column of a relation, and its kind."""

    relation: str
    name: str
    kind: str


@dataclass(frozen=True)
class Constant:
    """A literal, as a value of its kind."""

    value: Value
    kind: str


@dataclass(frozen=True)
class Call:
    """An operator or function on parts: `and`, `=`, `is null`, `in`, `starts with`, `+`, `lower` …"""

    function: str
    parts: tuple[Node, ...]
    kind: str = "boolean"


@dataclass(frozen=True)
class Query:
    """Rows of one table that match, and what is taken of them.

    `outputs` are computed of each row; with `aggregates` the answer is a single row.
    """

    table: str
    relation: str
    where: Node
    outputs: tuple[Node, ...] = ()
    aggregates: tuple[str, ...] = ()  # one per output: "", count, count distinct, sum, min, max


@dataclass(frozen=True)
class Subquery:
    """A query inside a condition: `exists`, `in` (with the value sought) or `value` (of its single row)."""

    use: str
    query: Query
    sought: Node | None = None
    kind: str = "boolean"


@dataclass(frozen=True)
class Unknown:
    """A part that may be anything. `exact`: how to compute it where every value that it looks at is known."""

    text: str
    columns: tuple[Column, ...]
    kind: str
    exact: Node | None = None


Node = Column | Constant | Call | Subquery | Unknown

TRUE, FALSE, NULL = Constant(True, "boolean"), Constant(False, "boolean"), Constant(None, "null")


def children_of(node: Node) -> tuple[Node, ...]:
    """The nodes right below this one."""
    match node:
        case Call(_, parts):
            return parts
        case Subquery(_, query, sought):
            return (*([sought] if sought is not None else []), query.where, *query.outputs)
    return ()


def every_node(node: Node) -> Iterator[Node]:
    """This node and all below it."""
    yield node
    for part in children_of(node):
        yield from every_node(part)


def columns_in(node: Node) -> tuple[Column, ...]:
    """The columns that a node looks at, those of its unknown parts too."""
    found: dict[Column, None] = {}
    for one in every_node(node):
        if isinstance(one, Column):
            found[one] = None
        elif isinstance(one, Unknown):
            found |= dict.fromkeys(one.columns)
    return tuple(found)


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The parts of a conjunction, or the node itself."""
    if isinstance(node, Call) and node.function == "and":
        return tuple(one for part in node.parts for one in conjuncts(part))
    return (node,)


def both(parts: list[Node]) -> Node:
    """All of these conditions."""
    kept = [part for part in parts if part != TRUE]
    return TRUE if not kept else kept[0] if len(kept) == 1 else Call("and", tuple(kept))
