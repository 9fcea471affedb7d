"""A statement of a jobs file as its meaning: names resolved, types known, what is not known said.

A `JobStatement` changes one table; what it reads may be others.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeproof.commit.change import Command
from lakeproof.sql.expressions import TRUE, Column, Constant, Node, every_node


@dataclass(frozen=True)
class SourceRows:
    """Where a MERGE or an INSERT takes rows from: a table of the file, listed rows, or a free source (neither)."""

    columns: tuple[Column, ...]
    table: str = ""
    rows: tuple[tuple[Node, ...], ...] = ()
    where: Node = TRUE
    free: bool = False


@dataclass(frozen=True)
class WhenClause:
    """WHEN … THEN …: `then` is update, delete or insert."""

    when: str
    then: str
    condition: Node = TRUE
    sets: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True)
class JobStatement:
    """What a statement does to one table."""

    command: Command
    table: str
    text: str
    where: Node = TRUE
    sets: tuple[tuple[str, Node], ...] = ()
    outputs: tuple[Node, ...] = ()  # of INSERT: one value per column, computed of each source row
    aggregates: tuple[str, ...] = ()
    source: SourceRows | None = None
    on: Node = TRUE
    clauses: tuple[WhenClause, ...] = ()
    partition: tuple[tuple[str, Constant], ...] = ()
    notes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()  # tables of the file that unknown parts read
    open: tuple[str, ...] = ()  # unknown parts that read a table of the file: no verdict can be "holds"


def nodes_of(made: JobStatement) -> list[Node]:
    """Every node of a statement."""
    tops: list[Node] = [made.where, made.on, *made.outputs, *(value for _, value in made.sets)]
    if made.source is not None:
        tops += [made.source.where, *(value for row in made.source.rows for value in row)]
    for clause in made.clauses:
        tops += [clause.condition, *(value for _, value in clause.sets)]
    return [node for top in tops for node in every_node(top)]
