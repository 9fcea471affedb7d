"""What one run of a statement does to rows: its statement, the source row and the values that this run has.

A `StatementRun` is what a model's command asks for its effect; the conflict filter is all that commit checks learn of
it. Long because it is one value: what every kind of statement does is a method or two of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.meaning import Effect
from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, IsNull, all_of, any_of, applied
from lakeproof.format import PartitionField, Row, Value
from lakeproof.jobs.conflict_filters import as_filter, equated, merged_rows_filter, read_filters, replaced_rows_filter
from lakeproof.jobs.evaluating import Computed, Evaluator, aggregated
from lakeproof.jobs.hidden import Columns, Hidden
from lakeproof.sql.expressions import RUN, SOURCE, TARGET, TRUE, Subquery, conjuncts
from lakeproof.sql.job_statements import JobStatement, WhenClause, nodes_of

Promised = tuple[Mode | None, Isolation | None, tuple[PartitionField, ...]]
"""How a statement's table writes for it, what it promises (`None`: as every command), and its partitions."""


class Compiled:
    """A statement's functions, made once for all its runs."""

    def __init__(self, made: JobStatement, columns: Columns, hidden: Hidden, promised: Promised) -> None:
        self.made, self.columns, self.hidden = made, columns, hidden
        layout = {TARGET: columns.of_table(made.table), SOURCE: hidden.source_columns, RUN: hidden.run_columns}
        if made.source is not None and made.source.table:
            layout[SOURCE] = columns.of_table(made.source.table)
        evaluator = Evaluator(layout, hidden.places, {name: columns.of_table(name) for name in columns.tables})
        function = evaluator.function
        self.where, self.on = function(made.where), function(made.on)
        self.source_where = function(made.source.where) if made.source is not None else function(made.where)
        self.sets = [(name, function(value)) for name, value in made.sets]
        self.outputs = [function(value) for value in made.outputs]
        self.rows = [[function(v) for v in row] for row in made.source.rows] if made.source is not None else []
        self.clauses = [
            (clause, function(clause.condition), [(name, function(value)) for name, value in clause.sets])
            for clause in made.clauses
        ]
        self.names = columns.of_table(made.table)
        matched = [clause for clause in made.clauses if clause.when == "matched"]
        only_removes = len(matched) == 1 and matched[0].then == "delete" and matched[0].condition == TRUE
        self.ambiguous = bool(matched) and not only_removes  # a target row that two source rows match is an error
        inner = any(isinstance(node, Subquery) for node in nodes_of(made))
        self.has_subquery = inner or bool(made.source and made.source.table)
        reads = read_filters(made)
        self.reads = tuple(columns.placed(one, made.table) for one in reads)
        self.mode, self.isolation, self.fields = promised

    def with_promises(self, promised: Promised) -> Compiled:
        """The same functions for a table that promises something else."""
        other = copy(self)
        other.mode, other.isolation, other.fields = promised
        return other


@dataclass(frozen=True)
class StatementRun:
    """One run. Two runs are equal if their statement, source row and chosen values are."""

    number: int
    source: Row | None
    chosen: Row
    of: Compiled = field(compare=False, repr=False)
    known: dict[tuple[Row, ...], Effect] = field(default_factory=dict, compare=False, repr=False)

    # ------------------------------------------------------------ what checks learn

    @property
    def reads(self) -> tuple[Expression, ...]:
        """What is read of its own table besides the rows that are written."""
        return self.of.reads

    @property
    def has_subquery(self) -> bool:
        """Whether other rows decide what is done to a row."""
        return self.of.has_subquery

    @property
    def table(self) -> str:
        """The table that is written."""
        return self.of.made.table

    @property
    def mode(self) -> Mode | None:
        """How its table writes for this command."""
        return self.of.mode

    @property
    def isolation(self) -> Isolation | None:
        """What its table promises for this command."""
        return self.of.isolation

    @property
    def everything(self) -> Expression:
        """All rows of the table that is written."""
        return self.of.columns.placed(ALWAYS, self.table)

    def targets(self, rows: Sequence[Row]) -> Expression:
        """The rows that may be removed or rewritten, as a filter; `rows` are all rows at the scan."""
        return self.of.columns.placed(self._targets(rows), self.table)

    @property
    def plain_targets(self) -> Expression:
        """The target rows as a filter on the table's own columns, where no other table is read."""
        return self._targets(())

    def _targets(self, rows: Sequence[Row]) -> Expression:
        made = self.of.made
        match made.command:
            case Command.INSERT | Command.INSERT_SELECT:
                return NEVER
            case Command.METADATA_DELETE:
                return ALWAYS
            case Command.OVERWRITE:
                return replaced_rows_filter(made)
            case Command.OVERWRITE_PARTITIONS:
                return self._written_partitions(rows)
            case Command.MERGE:
                return merged_rows_filter(made, self._keys(rows))
        return as_filter(made.where, TARGET)

    def _partition(self, row: Row) -> tuple[Value, ...]:
        fields = self.of.fields
        return tuple(applied(one.transform, row[self.of.names.index(one.column)]) for one in fields)

    def _written_partitions(self, rows: Sequence[Row]) -> Expression:
        """The partitions of the rows that are added, as a filter; what a transform hides may be any."""
        if any(one.transform != "identity" for one in self.of.fields):
            return ALWAYS
        tables = {name: [row for _, row in held] for name, held in self.of.columns.split(rows).items()}
        parts = dict.fromkeys(self._partition(row) for row in self._added(tables))
        names = [one.column for one in self.of.fields]
        return any_of(
            all_of(IsNull(n) if v is None else Compare(n, "=", v) for n, v in zip(names, part, strict=True))
            for part in parts
        )

    def _keys(self, rows: Sequence[Row]) -> dict[str, tuple[Value, ...]]:
        tables = self.of.columns.split(rows)
        sources = self._sources({name: [row for _, row in held] for name, held in tables.items()})
        source = self.of.made.source
        assert source is not None
        names = self.of.columns.of_table(source.table) if source.table else self.of.hidden.source_columns
        found: dict[str, tuple[Value, ...]] = {}
        for node in conjuncts(self.of.made.on):
            pair = equated(node)
            if pair is not None:
                at = names.index(pair[1].name)
                found[pair[0].name] = tuple(dict.fromkeys(row[at] for row in sources))
        return found

    def hits(self, row: Row) -> bool:
        """Whether a DELETE without subqueries takes this row."""
        table, values = self.of.columns.unpacked(row)
        if table != self.of.made.table:
            return False
        made = self.of.made
        if made.command in (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS):
            return self._replaced(values, self._added({}))
        return made.command is Command.METADATA_DELETE or self.of.where({TARGET: values, RUN: self.chosen}, {}) is True

    def matched(self, rows: Sequence[Row]) -> frozenset[int]:
        """The rows that a source row of a MERGE matches, where it inserts as well."""
        made = self.of.made
        if made.command is not Command.MERGE or not any(clause.when == "not matched" for clause in made.clauses):
            return frozenset()
        split = self.of.columns.split(rows)
        tables = {name: [row for _, row in held] for name, held in split.items()}
        sources = self._sources(tables)
        return frozenset(i for i, row in split[made.table] if any(self._joins(row, one, tables) for one in sources))

    # ------------------------------------------------------------ what is done

    def effect(self, rows: Sequence[Row]) -> Effect:
        """What this run does to these rows."""
        key = tuple(rows)
        if key not in self.known:
            self.known[key] = self._effect(key)
        return self.known[key]

    def _effect(self, rows: tuple[Row, ...]) -> Effect:
        made, columns = self.of.made, self.of.columns
        split = columns.split(rows)
        tables = {name: [row for _, row in held] for name, held in split.items()}
        mine = split[made.table]
        changed: list[tuple[int, Row | None]] = []
        added: list[Row] = []
        match made.command:
            case Command.UPDATE | Command.DELETE:
                for index, row in mine:
                    bound = {TARGET: row, RUN: self.chosen}
                    if self.of.where(bound, tables) is True:
                        removes = made.command is Command.DELETE
                        changed.append((index, None if removes else self._set(row, self.of.sets, bound, tables)))
            case Command.METADATA_DELETE:
                changed = [(index, None) for index, _ in mine]
            case Command.MERGE:
                done = self._merged(mine, tables)
                if done is None:
                    return Effect()
                changed, added = done
            case _:
                added = self._added(tables)
                if made.command in (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS):
                    changed = [(index, None) for index, row in mine if self._replaced(row, added)]
        pack = columns.packed
        return Effect(
            tuple((index, None if row is None else pack(made.table, row)) for index, row in changed),
            tuple(pack(made.table, row) for row in added),
        )

    def _replaced(self, row: Row, added: Sequence[Row]) -> bool:
        """Whether an INSERT OVERWRITE that adds these rows replaces this one."""
        if self.of.made.command is Command.OVERWRITE_PARTITIONS:
            return self._partition(row) in {self._partition(new) for new in added}
        pairs = [(row[self.of.names.index(name)], value.value) for name, value in self.of.made.partition]
        return all(held == wanted for held, wanted in pairs)

    def _set(
        self, row: Row, sets: list[tuple[str, Computed]], bound: Mapping[str, Row], tables: Mapping[str, list[Row]]
    ) -> Row:
        new = list(row)
        for name, value in sets:
            new[self.of.names.index(name)] = value(bound, tables)
        return self._rehidden(new, {name for name, _ in sets})

    def _rehidden(self, new: list[Value], touched: set[str]) -> Row:
        """The hidden values of a new row: computed where all that they look at is known, else as the run chooses."""
        for name, inputs in self.of.hidden.looks_at.items():
            if touched & set(inputs):
                new[self.of.names.index(name)] = self.of.hidden.value(name, tuple(new), self.of.names, self.chosen)
        return tuple(new)

    # ------------------------------------------------------------ INSERT

    def _added(self, tables: Mapping[str, list[Row]]) -> list[Row]:
        made = self.of.made
        run = {RUN: self.chosen}
        if self.of.rows:
            return [self._inserted([value(run, tables) for value in row]) for row in self.of.rows]
        hit = [
            {SOURCE: row, RUN: self.chosen}
            for row in self._sources(tables)
            if self.of.source_where({SOURCE: row, RUN: self.chosen}, tables) is True
        ]
        if made.aggregates:
            return [self._inserted(self._aggregated(hit, tables))]
        return [self._inserted([value(bound, tables) for value in self.of.outputs]) for bound in hit]

    def _aggregated(self, hit: list[dict[str, Row]], tables: Mapping[str, list[Row]]) -> list[Value]:
        out: list[Value] = []
        for name, value in zip(self.of.made.aggregates, self.of.outputs, strict=True):
            if name:
                out.append(aggregated(name, [value(bound, tables) for bound in hit]))
            else:
                out.append(value({RUN: self.chosen}, tables))
        return out

    def _inserted(self, values: list[Value]) -> Row:
        wide = [*values, *(None for _ in self.of.names[len(values) :])]
        return self._rehidden(wide, set(self.of.names))

    def _sources(self, tables: Mapping[str, list[Row]]) -> list[Row]:
        source = self.of.made.source
        if source is None:
            return []
        if source.table:
            return tables[source.table]
        if self.of.rows:
            return [self._listed(number, row, tables) for number, row in enumerate(self.of.rows)]
        return [] if self.source is None else [self.source]

    def _listed(self, number: int, row: list[Computed], tables: Mapping[str, list[Row]]) -> Row:
        values = tuple(value({RUN: self.chosen}, tables) for value in row)
        return self.of.hidden.listed_row(number, values, self.chosen)

    # ------------------------------------------------------------ MERGE

    def _merged(
        self, mine: list[tuple[int, Row]], tables: Mapping[str, list[Row]]
    ) -> tuple[list[tuple[int, Row | None]], list[Row]] | None:
        """New versions and new rows; `None`: two source rows match one target row, so the statement fails.

        That is Spark's rule, whatever the clauses' conditions say; only if all that can happen is that a matched row
        goes, it may be matched twice.
        """
        changed: list[tuple[int, Row | None]] = []
        sources = self._sources(tables)
        met: set[int] = set()
        for index, row in mine:
            joined = [i for i, one in enumerate(sources) if self._joins(row, one, tables)]
            met.update(joined)
            if len(joined) > 1 and self.of.ambiguous:
                return None
            source, when = (sources[joined[0]], "matched") if joined else (None, "not matched by source")
            if clause := self._first(when, row, source, tables):
                changed.append((index, self._outcome(clause, row, source, tables)))
        added = []
        for i, source in enumerate(sources):
            clause = self._first("not matched", None, source, tables) if i not in met else None
            if clause:
                given = {name: value({SOURCE: source, RUN: self.chosen}, tables) for name, value in clause[2]}
                added.append(self._inserted([given.get(name) for name in self.of.hidden.plain(self.of.names)]))
        return changed, added

    def _joins(self, row: Row, source: Row, tables: Mapping[str, list[Row]]) -> bool:
        return self.of.on({TARGET: row, SOURCE: source, RUN: self.chosen}, tables) is True

    def _bound(self, row: Row | None, source: Row | None) -> dict[str, Row]:
        given = {TARGET: row, SOURCE: source, RUN: self.chosen}
        return {name: held for name, held in given.items() if held is not None}

    def _first(
        self, when: str, row: Row | None, source: Row | None, tables: Mapping[str, list[Row]]
    ) -> tuple[WhenClause, Computed, list[tuple[str, Computed]]] | None:
        bound = self._bound(row, source)
        fitting = (one for one in self.of.clauses if one[0].when == when)
        return next((one for one in fitting if one[1](bound, tables) is True), None)

    def _outcome(
        self,
        clause: tuple[WhenClause, Computed, list[tuple[str, Computed]]],
        row: Row,
        source: Row | None,
        tables: Mapping[str, list[Row]],
    ) -> Row | None:
        if clause[0].then == "delete":
            return None
        return self._set(row, clause[2], self._bound(row, source), tables)
