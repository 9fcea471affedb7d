"""What happens to a random table, step by step, as data: one step is one statement."""

from __future__ import annotations

from typing import NamedTuple

from column_kinds import Column
from predicate_forms import Parameter
from random_predicates import Predicate


class Create(NamedTuple):
    """The table is made."""

    columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    modes: tuple[tuple[str, str], ...] = ()
    version: int = 2


class Insert(NamedTuple):
    """Rows are added: one INSERT, all columns in their order, or those that are named."""

    rows: tuple[tuple[str, ...], ...]
    named: tuple[Column, ...] = ()


class Alter(NamedTuple):
    """The schema or the partitioning changes; the columns after it, and how plain Spark computes each of them.

    A `call` in place of the change is a procedure, which leaves the rows as they are.
    """

    change: str
    columns: tuple[Column, ...]
    values: tuple[str, ...]


class Names(NamedTuple):
    """How a statement calls its table: an alias, or none; how much of the name it says, in FROM and before columns."""

    alias: str = ""
    table_parts: int = 1
    column_parts: int = 1


class Read(NamedTuple):
    """A query; `{p}` in the text is the predicate."""

    text: str
    predicate: Predicate
    parameters: tuple[Parameter, ...] = ()
    names: Names = Names()


class Delete(NamedTuple):
    """DELETE; without a predicate every row goes."""

    predicate: Predicate | None
    parameters: tuple[Parameter, ...] = ()
    names: Names = Names()


class Copy(NamedTuple):
    """INSERT … SELECT of the table's own rows."""

    predicate: Predicate
    parameters: tuple[Parameter, ...] = ()
    names: Names = Names()


class Assignment(NamedTuple):
    """A column, or a field of a struct (`path`), and its new value."""

    column: Column
    path: str
    value: str


class Update(NamedTuple):
    """UPDATE; without a predicate every row changes."""

    assignments: tuple[Assignment, ...]
    predicate: Predicate | None
    parameters: tuple[Parameter, ...] = ()
    names: Names = Names()


class Clause(NamedTuple):
    """One WHEN of a MERGE; no assignments of an update or an insert: `*`."""

    when: str
    action: str
    condition: Predicate | None = None
    assignments: tuple[Assignment, ...] = ()


class Merge(NamedTuple):
    """MERGE into the table called `t` from a source called `s`."""

    source: str
    on: str
    clauses: tuple[Clause, ...]
    source_columns: tuple[Column, ...]


Statement = Read | Delete | Update | Merge | Insert | Copy
Step = Create | Alter | Statement


class Episode(NamedTuple):
    """The life of one table under the settings of one session."""

    seed: int
    ansi: bool
    time_zone: str
    steps: tuple[Step, ...]
