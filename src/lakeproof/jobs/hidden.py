"""Columns that a jobs file does not have but its model needs: one for the truth of each condition that is not known.

A condition that looks at rows of a table is a hidden column `?1`, `?2` … of that table: true of some rows, false of
others, NULL of others. One that looks at a free source's row is a column of that source. One that looks at nothing, and
every value that is not known, is what a run of the statement chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakeproof.filters import NEVER, Compare, Expression, all_of
from lakeproof.filters.expression import rebuilt
from lakeproof.format import Row, Value
from lakeproof.jobs.evaluating import Computed, Evaluator
from lakeproof.jobs.first_tables.witnesses import Domain, Witnesses
from lakeproof.sql.expressions import RUN, SOURCE, TARGET, Node, Subquery, Unknown, every_node
from lakeproof.sql.job_statements import JobStatement, nodes_of

TRUTHS: tuple[Value, ...] = (True, False, None)
TABLE = "table"
"""In a file of several tables: the column that says which table a row is of."""


@dataclass
class Columns:
    """The columns of every table, hidden ones last, and how rows of several tables are kept in one model's table."""

    tables: dict[str, tuple[str, ...]]

    @property
    def several(self) -> bool:
        """Whether the file has more than one table."""
        return len(self.tables) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the model's table."""
        if not self.several:
            return next(iter(self.tables.values()))
        return (TABLE, *(self.named(table, name) for table, names in self.tables.items() for name in names))

    def named(self, table: str, column: str) -> str:
        """The name of a table's column in the model's table."""
        return f"{table}.{column}" if self.several else column

    def of_table(self, table: str) -> tuple[str, ...]:
        """The columns of one table."""
        return self.tables[table]

    def packed(self, table: str, row: Row) -> Row:
        """A table's row as a row of the model's table."""
        if not self.several:
            return row
        found: list[Value] = [table]
        for name, columns in self.tables.items():
            found += row if name == table else [None] * len(columns)
        return tuple(found)

    def unpacked(self, row: Row) -> tuple[str, Row]:
        """The table that a row of the model's table is of, and its own values."""
        if not self.several:
            return next(iter(self.tables)), row
        at = 1
        for name, columns in self.tables.items():
            if name == row[0]:
                return name, row[at : at + len(columns)]
            at += len(columns)
        raise KeyError(row[0])

    def placed(self, expression: Expression, table: str) -> Expression:
        """A filter on a table's columns as one on the model's table."""
        if not self.several or expression == NEVER:
            return expression
        named = rebuilt(expression, lambda leaf: leaf._replace(column=self.named(table, leaf.column)))
        return all_of([Compare(TABLE, "=", table), named])

    def split(self, rows: Sequence[Row]) -> dict[str, list[tuple[int, Row]]]:
        """The rows of each table, with their places in the list."""
        found: dict[str, list[tuple[int, Row]]] = {name: [] for name in self.tables}
        for index, row in enumerate(rows):
            table, values = self.unpacked(row)
            found[table].append((index, values))
        return found


@dataclass
class HiddenColumn:
    """A condition on a table's rows that is not known. `inputs`: the columns that it looks at."""

    table: str
    name: str
    text: str
    inputs: tuple[str, ...]
    computed: Computed | None
    relation: str
    domains: tuple[Domain, ...]

    def value(self, row: Row, names: tuple[str, ...]) -> tuple[Value] | None:
        """Its value for a row of values that the file names; `None`: it may be anything."""
        if self.computed is None:
            return None
        for name, domain in zip(self.inputs, self.domains, strict=True):
            held = row[names.index(name)]
            if held is not None and held not in domain.named:
                return None
        return (self.computed({self.relation: row}, {}),)


@dataclass
class Hidden:
    """What one statement has of hidden values: where each unknown part's value is, and what a run chooses."""

    places: dict[Unknown, tuple[str, str]] = field(default_factory=dict)
    source_columns: tuple[str, ...] = ()
    source_hidden: dict[str, Computed | None] = field(default_factory=dict)
    source_truths: dict[str, tuple[Value, ...]] = field(default_factory=dict)  # what each of these may be
    run: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    table: tuple[HiddenColumn, ...] = ()  # of the target

    @property
    def run_columns(self) -> tuple[str, ...]:
        """The names of what a run chooses."""
        return tuple(self.run)

    @property
    def looks_at(self) -> dict[str, tuple[str, ...]]:
        """For each hidden column of the target: the columns that it looks at."""
        return {one.name: one.inputs for one in self.table}

    def plain(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that are not hidden."""
        return names[: len(names) - len(self.table)]

    def value(self, name: str, row: Row, names: tuple[str, ...], chosen: Row) -> Value:
        """The value of a hidden column for a new row."""
        one = next(column for column in self.table if column.name == name)
        known = one.value(row, names)
        return known[0] if known is not None else chosen[self.run_columns.index(f"new {name}")]

    def listed_row(self, number: int, values: Row, chosen: Row) -> Row:
        """A listed source row with its hidden values."""
        more: list[Value] = []
        for name, computed in self.source_hidden.items():
            if computed is None:
                more.append(chosen[self.run_columns.index(f"{name} of {number}")])
            else:
                more.append(computed({SOURCE: values}, {}))
        return (*values, *more)


def hide(
    statements: list[JobStatement], tables: Mapping[str, tuple[str, ...]], witnesses: Witnesses
) -> tuple[Columns, list[Hidden], list[HiddenColumn]]:
    """The columns of every table with the hidden ones, and the hidden values of each statement."""
    found: list[HiddenColumn] = []
    made = [_Hider(number, one, tables, witnesses, found) for number, one in enumerate(statements)]
    columns = Columns(
        {name: (*names, *(one.name for one in found if one.table == name)) for name, names in tables.items()}
    )
    for hider in made:
        hider.finish(found)
    return columns, [hider.hidden for hider in made], found


def _truths(node: Unknown) -> tuple[Value, ...]:
    """What an unknown condition may be; a choice is made, or not."""
    return TRUTHS if node.kind == "boolean" else TRUTHS[:2]


class _Hider:
    """Finds the unknown parts of one statement."""

    def __init__(
        self,
        number: int,
        made: JobStatement,
        tables: Mapping[str, tuple[str, ...]],
        witnesses: Witnesses,
        found: list[HiddenColumn],
    ) -> None:
        self.number, self.made, self.tables, self.witnesses = number, made, tables, witnesses
        source = made.source
        self.where: dict[str, str] = {TARGET: made.table}
        if source is not None and source.table:
            self.where[SOURCE] = source.table
        for node in nodes_of(made):
            if isinstance(node, Subquery):
                self.where[node.query.relation] = node.query.table
        names = tuple(column.name for column in source.columns) if source is not None else ()
        self.hidden = Hidden(source_columns=names)
        for node in self.conditions():
            self.condition(node, found)
        for column, value in self.values():
            if isinstance(value, Unknown):
                self.chosen(column, value)

    def conditions(self) -> Iterator[Unknown]:
        """The unknown conditions, not the unknown values."""
        tops: list[Node] = [self.made.where, self.made.on, *(clause.condition for clause in self.made.clauses)]
        if self.made.source is not None:
            tops.append(self.made.source.where)
        tops += [value for _, value in self.values() if not isinstance(value, Unknown)]
        for top in tops:
            yield from (node for node in every_node(top) if isinstance(node, Unknown))

    def values(self) -> Iterator[tuple[str, Node]]:
        """What is written to each column."""
        made, names = self.made, self.tables[self.made.table]
        yield from made.sets
        yield from zip(names, made.outputs, strict=False)
        for clause in made.clauses:
            yield from clause.sets
        if made.source is not None and not made.source.columns:
            for row in made.source.rows:
                yield from zip(names, row, strict=True)

    def condition(self, node: Unknown, found: list[HiddenColumn]) -> None:
        if node in self.hidden.places:
            return
        relations = [column.relation for column in node.columns if column.relation in self.where]
        if relations:
            relation = TARGET if TARGET in relations else relations[0]
            self.hidden.places[node] = (relation, self.of_table(node, relation, found))
        elif any(column.relation == SOURCE for column in node.columns):
            name = f"?s{len(self.hidden.source_hidden) + 1}"
            self.hidden.source_truths[name] = _truths(node)
            self.hidden.source_hidden[name] = self.computed(node, SOURCE, self.hidden.source_columns)
            self.hidden.places[node] = (SOURCE, name)
        else:
            name = f"?r{len(self.hidden.run) + 1}"
            self.hidden.run[name] = _truths(node)
            self.hidden.places[node] = (RUN, name)

    def of_table(self, node: Unknown, relation: str, found: list[HiddenColumn]) -> str:
        """The hidden column for this condition: the same one for the same text on the same table."""
        table = self.where[relation]
        old = next((one for one in found if (one.table, one.text) == (table, node.text)), None)
        if old is not None:
            return old.name
        name = f"?{len(found) + 1}"
        inputs = tuple(dict.fromkeys(column.name for column in node.columns if column.relation == relation))
        alone = all(column.relation == relation for column in node.columns)
        computed = self.computed(node, relation, self.tables[table]) if alone else None
        domains = tuple(self.witnesses.domain((table, column)) for column in inputs)
        found.append(HiddenColumn(table, name, node.text, inputs, computed, relation, domains))
        return name

    def computed(self, node: Unknown, relation: str, names: tuple[str, ...]) -> Computed | None:
        return None if node.exact is None else Evaluator({relation: names}, {}, {}).function(node.exact)

    def chosen(self, column: str, node: Unknown) -> None:
        """A value that is not known: any of its columns'; where it is a condition too, what that is for each row."""
        domain = self.witnesses.domain((self.made.table, column))
        values = (*domain.values, None) if domain.read else domain.values[-1:]
        where, name = self.hidden.places.setdefault(node, (RUN, f"?r{len(self.hidden.run) + 1}"))
        if where == RUN:
            known = self.hidden.run.get(name, ())
            self.hidden.run[name] = (*known, *(value for value in values if value not in known))

    def finish(self, found: list[HiddenColumn]) -> None:
        """What a run chooses for the hidden columns of the rows that it writes."""
        hidden, made = self.hidden, self.made
        hidden.table = tuple(one for one in found if one.table == made.table)
        written = {column for column, _ in self.values()}
        inserts = bool(made.outputs or (made.source and made.source.rows)) or any(
            c.then == "insert" for c in made.clauses
        )
        for one in hidden.table:
            if inserts or written & set(one.inputs):
                hidden.run[f"new {one.name}"] = TRUTHS
        listed = len(made.source.rows) if made.source is not None else 0
        for name, computed in hidden.source_hidden.items():
            for number in range(listed if computed is None else 0):
                hidden.run[f"{name} of {number}"] = hidden.source_truths[name]
        hidden.source_columns = (*hidden.source_columns, *hidden.source_hidden)
