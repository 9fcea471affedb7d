"""Rows that no statement can tell apart are one: of each class of rows a few stand for all.

A row is seen through the conditions that statements ask of it, its partition, and the values of columns that are
compared with other rows or copied. Rows are of one class if they look alike, now and after what statements do to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, NamedTuple

from lakeproof.commit.change import Command
from lakeproof.commit.writing import new_file
from lakeproof.filters import may_match_partition
from lakeproof.format import Row, TableShape, Value
from lakeproof.jobs.evaluating import Evaluator
from lakeproof.jobs.first_tables.witnesses import Witnesses
from lakeproof.jobs.hidden import TRUTHS, Columns, Hidden, HiddenColumn
from lakeproof.jobs.meaning import StatementRun
from lakeproof.jobs.reading import JobTable
from lakeproof.sql.expressions import (
    RUN,
    SOURCE,
    TARGET,
    Call,
    Column,
    Constant,
    Node,
    Subquery,
    Unknown,
    columns_in,
    every_node,
)
from lakeproof.sql.job_statements import JobStatement, nodes_of

Seen = Callable[[Row], Any]
MOST_ROWS = 10_000
MOST_EFFECTS, FEWEST_ROWS = 400_000, 1000
"""Rows times runs that are computed at most, if rows are not too few then."""
DEPTH = 2
QUICK = 60_000
"""Rows times runs up to which two steps are looked ahead, else one, and then not every kind of row is known."""
_LOGIC = ("and", "or", "not")


class Classes(NamedTuple):
    """The classes of a table's rows, each with some of its members. `cut`: too many rows for all kinds to be known."""

    members: tuple[tuple[Row, ...], ...]
    cut: bool = False


class Watching:
    """What the statements of a file can see of a row of each relation."""

    def __init__(self, columns: Columns, witnesses: Witnesses) -> None:
        self.columns, self.witnesses = columns, witnesses
        self.of: dict[str, dict[object, Seen]] = {}

    def add(self, number: int, made: JobStatement, hidden: Hidden) -> None:
        """Everything that one statement looks at."""
        self.other_rows = reads_other_rows(made)
        self.tables = {TARGET: made.table, SOURCE: f"#{number}"}
        self.layout: dict[str, tuple[str, ...]] = {
            TARGET: self.columns.of_table(made.table),
            SOURCE: hidden.source_columns,
            RUN: hidden.run_columns,
        }
        if made.source is not None and made.source.table:
            self.tables[SOURCE] = made.source.table
            self.layout[SOURCE] = self.columns.of_table(made.source.table)
        for node in nodes_of(made):
            if isinstance(node, Subquery):
                self.tables[node.query.relation] = node.query.table
                self.layout[node.query.relation] = self.columns.of_table(node.query.table)
        self.evaluator = Evaluator(self.layout, hidden.places, dict(self.columns.tables))
        self.hidden = hidden
        if not reads_other_rows(made) and not (made.source is not None and made.source.free):
            return  # what it does to a row by itself says all
        tops = [made.where, made.on, *(clause.condition for clause in made.clauses)]
        for top in [*tops, made.source.where if made.source is not None else made.where]:
            self.condition(top, plain=True)
        for column, value in columns_written(made, self.columns.of_table(made.table)):
            self.flow(made.table, column, value)

    def condition(self, node: Node, *, plain: bool) -> None:
        """A condition; `plain`: only whether it is true matters, not whether it is false or NULL."""
        relations = {self._place(one)[0] for one in every_node(node) if not isinstance(one, Call | Constant | Subquery)}
        inner = [one for one in every_node(node) if isinstance(one, Subquery)]
        if len(relations) == 1 and not inner:
            self.see(next(iter(relations)), node, plain=plain)
        elif isinstance(node, Call) and node.function in _LOGIC:
            for part in node.parts:
                self.condition(part, plain=plain and node.function != "not")
        elif relations or inner:
            self._apart(node)

    def _apart(self, node: Node) -> None:
        """A comparison across relations: the values themselves are seen."""
        match node:
            case Subquery(_, query, sought):
                self.condition(query.where, plain=True)
                for one in (*([sought] if sought is not None else []), *query.outputs):
                    self._apart(one)
            case Call(_, parts):
                for part in parts:
                    self._apart(part)
            case Constant():
                pass
            case _:
                self.see(self._place(node)[0], node, plain=False)

    def _place(self, node: Node) -> tuple[str, str]:
        if isinstance(node, Column):
            return node.relation, node.name
        assert not isinstance(node, Call | Constant | Subquery)
        return self.hidden.places[node]

    def see(self, relation: str, node: Node, *, plain: bool) -> None:
        if relation == RUN:
            return
        function = self.evaluator.function(node)
        seen: Seen = (
            (lambda row: function({relation: row}, {}) is True)
            if plain
            else (lambda row: function({relation: row}, {}))
        )
        table = self.tables[relation]
        if not self.other_rows and not table.startswith("#"):
            return
        self.of.setdefault(table, {})[(relation, node, plain) if table.startswith("#") else (_bare(node), plain)] = seen

    def flow(self, table: str, column: str, value: Node) -> None:
        """A value is copied to a column that somebody reads: it is seen through the conditions on that column."""
        if not self.witnesses.domain((table, column)).read:
            return
        if isinstance(value, Constant):  # a row that holds it already shows no change
            self.see(TARGET, Call("<=>", (Column(TARGET, column, value.kind), value), "boolean"), plain=True)
            return
        columns = columns_in(value)
        atoms = self.witnesses.atoms((table, column))
        by_run = any(isinstance(one, Unknown) and self._place(one)[0] == RUN for one in every_node(value))
        alone = len({one.relation for one in columns}) == 1 and not by_run and not _has_subquery(value)
        if atoms is not None and alone:
            for atom in atoms:
                self.see(columns[0].relation, _asked_of(atom, value), plain=False)
            return
        for one in columns:
            if one.relation in self.layout:
                self.see(one.relation, one, plain=False)
        for node in every_node(value):
            if isinstance(node, Subquery):
                self.condition(node.query.where, plain=True)


def does_something(run: StatementRun, table: str) -> bool:
    """Whether a run does to one row of a table what hangs on that row, and on no other."""
    made = run.of.made
    if reads_other_rows(made) or (made.command is Command.INSERT):
        return False
    return table in (made.table, made.source.table if made.source is not None else "")


def _has_subquery(node: Node) -> bool:
    return any(isinstance(one, Subquery) for one in every_node(node))


def _asked_of(atom: Node, value: Node) -> Node:
    """A condition on one column, asked of another value instead."""
    if isinstance(atom, Column):
        return value
    assert isinstance(atom, Call)
    return replace(atom, parts=(value, *atom.parts[1:]))


def _bare(node: Node) -> str:
    """A condition's text without the names of its relations, so that two statements' same conditions are one."""
    return repr(node).replace("relation='t'", "").replace("relation='s'", "")


def reads_other_rows(made: JobStatement) -> bool:
    """Whether what a statement does to a row, or makes of it, hangs on other rows."""
    if any(isinstance(node, Subquery) for node in nodes_of(made)) or made.aggregates:
        return True
    return made.source is not None and bool(made.source.table) and bool(made.clauses)


def columns_written(made: JobStatement, names: Sequence[str]) -> Iterator[tuple[str, Node]]:
    """Every column that a statement writes, with what it writes."""
    yield from made.sets
    yield from zip(names, made.outputs, strict=False)
    for clause in made.clauses:
        yield from clause.sets


class Look:
    """How a row looks to the runs of all statements: what each does to it, and how the rows look that come of it."""

    def __init__(
        self,
        table: JobTable,
        columns: Columns,
        watching: Watching,
        runs: Sequence[Sequence[StatementRun]],
    ) -> None:
        self.table, self.columns = table, columns
        self.seen = list(watching.of.get(table.name, {}).values())
        self.runs = [run for some in runs for run in some if does_something(run, table.name)]
        self.shape = TableShape(columns.of_table(table.name), (table.fields,))
        filters = [run.plain_targets for run in self.runs if run.of.made.table == table.name]
        self.filters = list(dict.fromkeys(filters)) if table.fields else []
        self.others: dict[str, Look] = {}  # of the file's other tables
        self.known: dict[tuple[Row, int], int] = {}
        self.numbers: dict[object, int] = {}

    def of(self, row: Row, depth: int) -> int:
        """The number of this look: rows of one number look alike."""
        key = (row, depth)
        if key not in self.known:
            now = tuple(one(row) for one in self.seen)
            partition = new_file(0, [row], self.shape) if self.filters else None
            where = tuple(may_match_partition(one, partition, self.shape) for one in self.filters) if partition else ()
            later = tuple(self.after(run, row, depth - 1) for run in self.runs) if depth else ()
            self.known[key] = self.numbers.setdefault((depth, now, where, later), len(self.numbers))
        return self.known[key]

    def after(self, run: StatementRun, row: Row, depth: int) -> object:
        """What a run makes of a row that is alone in its table."""
        packed = self.columns.packed(self.table.name, row)
        done = run.effect([packed])
        if not done.changed and not done.added:
            return None
        changed = tuple(None if new is None else (new == packed, self._other(new, depth)) for _, new in done.changed)
        return changed, tuple(self._other(new, depth) for new in done.added)

    def _other(self, packed: Row, depth: int) -> object:
        table, row = self.columns.unpacked(packed)
        return self.others[table].of(row, depth) if table in self.others else self.of(row, depth)


def classes_of(table: JobTable, witnesses: Witnesses, hidden: Sequence[HiddenColumn], look: Look) -> Classes:
    """The classes of a table's rows."""
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_EFFECTS // (1 + len(look.runs))))
    rows = list(islice(_universe(table, witnesses, hidden), most + 1))
    depth = DEPTH if len(rows) * len(look.runs) < QUICK else 1
    found: dict[int, list[Row]] = {}
    for row in rows[:most]:
        found.setdefault(look.of(row, depth), []).append(row)
    return Classes(tuple(tuple(members) for members in found.values()), len(rows) > most or depth < DEPTH)


def different_runs(
    runs: Sequence[StatementRun], classes: Mapping[str, Classes], looks: Mapping[str, Look]
) -> list[StatementRun]:
    """The runs of a statement that do not all do the same to every row."""
    found: dict[object, StatementRun] = {}
    if len(runs) < 2:
        return list(runs)
    for run in runs:
        if reads_other_rows(run.of.made):
            return list(runs)
        table = run.of.made.table
        rows = classes[table].members if does_something(run, table) else ()
        does = tuple(looks[table].after(run, members[0], 1) for members in rows)
        found.setdefault((does, _empty(run, looks[table])), run)
    return list(found.values())


def _empty(run: StatementRun, look: Look) -> object:
    """What a run adds to an empty table."""
    return tuple(look._other(row, 1) for row in run.effect(()).added)


def _universe(table: JobTable, witnesses: Witnesses, hidden: Sequence[HiddenColumn]) -> Iterator[Row]:
    """Every row of the values that its columns are tried with."""
    choices: list[tuple[Value, ...]] = []
    for name in table.names:
        tried = witnesses.domain((table.name, name)).tried()
        choices.append(tuple(value for value in tried if value is not None) if name in table.not_null else tried)
    mine = [one for one in hidden if one.table == table.name]
    for plain in product(*choices):
        yield from with_hidden(plain, table.names, mine)


def with_hidden(plain: Row, names: tuple[str, ...], hidden: Sequence[HiddenColumn]) -> Iterator[Row]:
    """A row with every value that its hidden columns may have."""
    known = [one.value(plain, names) for one in hidden]
    for more in product(*(TRUTHS if value is None else value for value in known)):
        yield (*plain, *more)
