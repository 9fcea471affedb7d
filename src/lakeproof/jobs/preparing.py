"""A jobs file made ready for models: every statement's runs, and the first tables to try.

Nothing here depends on the policy, so it is done once for a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement, count, dropwhile, islice, product, takewhile
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

from lakeproof.commit.change import Command
from lakeproof.commit.writing import new_file
from lakeproof.filters import may_match_file
from lakeproof.format import DataFile, Row, TableShape, Value
from lakeproof.jobs.first_tables.classes import Classes, Look, Watching, classes_of, different_runs, with_hidden
from lakeproof.jobs.first_tables.witnesses import Key, Witnesses
from lakeproof.jobs.hidden import Columns, Hidden, HiddenColumn, hide
from lakeproof.jobs.meaning import Compiled, Promised, StatementRun
from lakeproof.jobs.reading import Jobs, JobTable
from lakeproof.sql.expressions import Unknown
from lakeproof.sql.job_statements import JobStatement

MOST_RUNS = 400
"""Of one statement: source rows and values that are not known, tried one by one."""
MOST_SOURCE_ROWS = 20_000
"""Rows of a source of which nothing is known that are looked at, to find those that statements can tell apart."""
MOST_PAIRS = 6
"""Members of a class that are tried as neighbours in one file, for statistics that differ."""

MOST_FIRST_ROWS = 2
"""Rows of all first tables together, where the set-up gives none."""

T = TypeVar("T")
Content = tuple[tuple[Row, ...], ...]
"""What one table holds: the rows of each data file."""
Choices = list[tuple[Value, ...]]
"""What each column of a row may hold."""
First = tuple[tuple[str, tuple[Row, ...]], ...]
"""A first table: the data files, each with its table and rows."""


class PreparedJobs(NamedTuple):
    """Everything that models of a file need."""

    jobs: Jobs
    columns: Columns
    witnesses: Witnesses
    hidden: tuple[HiddenColumn, ...]
    runs: tuple[tuple[StatementRun, ...], ...]  # of each statement, in the order of the file
    classes: dict[str, Classes]
    cut: tuple[str, ...]
    memories: dict[str, Any]  # by policy: what models of this file have computed already


def prepare_jobs(jobs: Jobs) -> PreparedJobs:
    """The file, ready for models."""
    statements = [one for job in jobs.jobs for one in job.statements]
    witnesses = Witnesses(
        statements,
        {table.name: table.columns for table in jobs.tables},
        {table.name: table.fields for table in jobs.tables},
    )
    _name_first_rows(jobs, witnesses)
    columns, hidden, found = hide(statements, {table.name: table.names for table in jobs.tables}, witnesses)
    watching = Watching(columns, witnesses)
    for number, (made, each) in enumerate(zip(statements, hidden, strict=True)):
        watching.add(number, made, each)
    cut: list[str] = []
    every = [
        _some_runs(number, made, each, watching, jobs, cut)
        for number, (made, each) in enumerate(zip(statements, hidden, strict=True))
    ]
    looks = {table.name: Look(table, columns, watching, every) for table in jobs.tables}
    for name, look in looks.items():
        look.others = {other: one for other, one in looks.items() if other != name}
    classes = {t.name: classes_of(t, witnesses, found, looks[t.name]) for t in jobs.tables}
    for number, made in enumerate(statements):
        if inserts_any_row(made):
            every[number] = list(_any_row_runs(every[number][0], classes[made.table], columns.of_table(made.table)))
            if len(every[number]) < len(classes[made.table].members):
                cut.append(f"only {MOST_RUNS} of the rows that `{made.text}` may add were tried")
    runs = tuple(tuple(different_runs(some, classes, looks)) for some in every)
    cut += [f"not every kind of row of {name} was tried" for name, each in classes.items() if each.cut]
    return PreparedJobs(jobs, columns, witnesses, tuple(found), runs, classes, tuple(cut), {})


def prepare_changed(ready: PreparedJobs, jobs: Jobs) -> PreparedJobs:
    """The file ready after a change: anew only if its partitions are others, for else the same rows are to be tried."""
    if [table.fields for table in jobs.tables] != [table.fields for table in ready.jobs.tables]:
        return prepare_jobs(jobs)
    kept = {job.name for job in jobs.jobs}
    runs: list[tuple[StatementRun, ...]] = []
    of_jobs = [(job.name, made) for job in ready.jobs.jobs for made in job.statements]
    for (name, made), some in zip(of_jobs, ready.runs, strict=True):
        if name in kept and some:
            compiled = some[0].of.with_promises(_promised(made, jobs))
            runs.append(tuple(replace(run, of=compiled, known=run.known) for run in some))
        elif name in kept:
            runs.append(())
    return ready._replace(jobs=jobs, runs=tuple(runs), memories={})


def _promised(made: JobStatement, jobs: Jobs) -> Promised:
    table = jobs.table(made.table)
    return dict(table.modes).get(made.command), dict(table.isolations).get(made.command), table.fields


def inserts_any_row(made: JobStatement) -> bool:
    """Whether this is an INSERT of a row of which nothing is known."""
    return made.command is Command.INSERT and made.source is not None and made.source.free


def _any_row_runs(first: StatementRun, classes: Classes, names: tuple[str, ...]) -> Iterator[StatementRun]:
    """The runs of an INSERT of a row of which nothing is known: one for each class of rows, or some from all over."""
    hidden, outputs = first.of.hidden, first.of.made.outputs
    written = {
        hidden.places[one][1]: name for name, one in zip(names, outputs, strict=False) if isinstance(one, Unknown)
    }
    some = classes.members
    if len(some) > MOST_RUNS:
        some = tuple(some[i * len(some) // MOST_RUNS] for i in range(MOST_RUNS))
    for members in some:
        row = dict(zip(names, members[0], strict=True))
        chosen = (row[written.get(name, name.removeprefix("new "))] for name in hidden.run_columns)
        yield StatementRun(first.number, first.source, tuple(chosen), first.of)


def _name_first_rows(jobs: Jobs, witnesses: Witnesses) -> None:
    """The values of the set-up's rows are named too."""
    for table in jobs.tables:
        for row in (row for rows in table.rows for row in rows):
            for name, value in zip(table.names, row, strict=True):
                if value is not None:
                    witnesses.group((table.name, name)).constants[value] = None


# ---------------------------------------------------------------- runs of a statement


def _some_runs(
    number: int, made: JobStatement, hidden: Hidden, watching: Watching, jobs: Jobs, cut: list[str]
) -> list[StatementRun]:
    """The runs of one statement, as many as may be; `cut` hears if there are more."""
    choices = _source_choices(number, made, hidden, watching.witnesses)
    some = list(islice(_runs(number, made, hidden, choices, watching, jobs), MOST_RUNS + 1))
    more = len(some) > MOST_RUNS and not inserts_any_row(made)
    if more or prod(map(len, choices)) > MOST_SOURCE_ROWS:
        cut.append(f"only {MOST_RUNS} of the source rows and unknown values of `{made.text}` were tried")
    return some[:MOST_RUNS]


def _runs(
    number: int, made: JobStatement, hidden: Hidden, choices: Choices, watching: Watching, jobs: Jobs
) -> Iterator[StatementRun]:
    if made.command is Command.REWRITE:
        return
    compiled = Compiled(made, watching.columns, hidden, _promised(made, jobs))
    for source in _source_rows(number, made, choices, watching):
        for chosen in product(*hidden.run.values()):
            yield StatementRun(number, source, chosen, compiled)


def _source_choices(number: int, made: JobStatement, hidden: Hidden, witnesses: Witnesses) -> Choices:
    """What each column of a free source's row may hold, hidden ones last."""
    if made.source is None or not made.source.free:
        return []
    domains = [witnesses.domain((f"#{number}", column.name)) for column in made.source.columns]
    return [*(one.tried() if one.read else one.values[-1:] for one in domains), *hidden.source_truths.values()]


def _source_rows(number: int, made: JobStatement, choices: Choices, watching: Watching) -> Iterator[Row | None]:
    """The rows of a free source that statements can tell apart; `None`: no row, or the source is known."""
    if made.source is None or not made.source.free:
        yield None
        return
    seen = list(watching.of.get(f"#{number}", {}).values())
    known: set[tuple[object, ...]] = set()
    for row in islice(product(*choices), MOST_SOURCE_ROWS):
        look = tuple(one(row) for one in seen)
        if look not in known:
            known.add(look)
            yield row
    if any(clause.when == "not matched by source" for clause in made.clauses):
        yield None


# ---------------------------------------------------------------- first tables


def first_tables(ready: PreparedJobs) -> Iterator[First]:
    """The first tables, small ones first: the set-up's own, or at most two rows per table, in one file or in two."""
    if any(table.rows for table in ready.jobs.tables):
        yield from _given(ready)
        return
    names = [table.name for table in ready.jobs.tables]
    choices = [Kept(_tables_of(ready, table)) for table in ready.jobs.tables]
    for size in range(MOST_FIRST_ROWS + 1):
        for parts in _in_turn([_of_sizes(choices, sizes) for sizes in _divided(size, len(choices))]):
            yield tuple((name, rows) for name, part in zip(names, parts, strict=True) for rows in part)


def _divided(rows: int, tables: int) -> list[tuple[int, ...]]:
    """How so many rows may lie in so many tables."""
    return [each for each in product(range(rows + 1), repeat=tables) if sum(each) == rows]


def _in_turn(some: list[Iterator[T]]) -> Iterator[T]:
    """One of each iterator, then the next of each: what one has many of must not hide the others."""
    while some:
        left: list[Iterator[T]] = []
        for one in some:
            for item in islice(one, 1):
                yield item
                left.append(one)
        some = left


def _of_sizes(choices: list[Kept[Content]], sizes: tuple[int, ...]) -> Iterator[tuple[Content, ...]]:
    """One content of each table, with so many rows in each; a table's contents come with the small ones first."""
    if not choices:
        yield ()
        return
    larger = dropwhile(lambda content: _rows_in(content) < sizes[0], choices[0])
    for content in takewhile(lambda content: _rows_in(content) == sizes[0], larger):
        for rest in _of_sizes(choices[1:], sizes[1:]):
            yield (content, *rest)


def _rows_in(content: Content) -> int:
    return sum(len(file) for file in content)


class Kept(Generic[T]):
    """What an iterator gives, taken from it when first asked for, and kept for the next time."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items, self._known = items, list[T]()

    def __iter__(self) -> Iterator[T]:
        for at in count():
            if at == len(self._known):
                try:
                    self._known.append(next(self._items))
                except StopIteration:
                    return
            yield self._known[at]


def _given(ready: PreparedJobs) -> Iterator[First]:
    """The set-up's rows; hidden values of a row may be anything, unless they can be computed."""
    options: list[list[tuple[str, Row]]] = []
    places: list[int] = []
    number = 0
    for table in ready.jobs.tables:
        mine = [one for one in ready.hidden if one.table == table.name]
        for rows in table.rows:
            for row in rows:
                options.append([(table.name, wide) for wide in with_hidden(row, table.names, mine)])
                places.append(number)
            number += 1
    for chosen in product(*options):
        files: dict[int, tuple[str, list[Row]]] = {}
        for place, (table_name, row) in zip(places, chosen, strict=True):
            files.setdefault(place, (table_name, []))[1].append(row)
        yield tuple((name, tuple(rows)) for name, rows in files.values())


def _tables_of(ready: PreparedJobs, table: JobTable) -> Iterator[Content]:
    """The contents that one table is tried with."""
    classes = ready.classes[table.name].members
    usual = _Usual(ready, table)
    yield ()
    for members in classes:
        if usual([members[0]]):
            yield ((members[0],),)
    shape = TableShape(ready.columns.of_table(table.name), (table.fields,))
    for one, other in combinations_with_replacement(classes, 2):
        if usual([one[0], other[0]]) or usual([other[0], one[0]]):
            yield ((one[0],), (other[0],))
            yield from _neighbours(ready, table, shape, one, other)


class _Usual:
    """Whether rows use unnamed values in their order: every other choice is the same but for names."""

    def __init__(self, ready: PreparedJobs, table: JobTable) -> None:
        self.columns: list[tuple[int, Key, tuple[tuple[Value, ...], ...]]] = []
        for at, name in enumerate(table.names):
            key = (table.name, name)
            self.columns.append((at, ready.witnesses.find(key), ready.witnesses.domain(key).twins))

    def __call__(self, rows: list[Row]) -> bool:
        met: dict[tuple[Key, tuple[Value, ...]], int] = {}
        for row in rows:
            for at, group, twins in self.columns:
                for some in twins:
                    if row[at] in some:
                        number = some.index(row[at])
                        if number > met.get((group, some), 0):
                            return False
                        met[group, some] = max(met.get((group, some), 0), number + 1)
        return True


def _neighbours(
    ready: PreparedJobs, table: JobTable, shape: TableShape, one: tuple[Row, ...], other: tuple[Row, ...]
) -> Iterator[tuple[tuple[Row, ...], ...]]:
    """Two rows in one file: once for each thing that the file's statistics may say to the statements' filters."""
    runs = [run for some in ready.runs for run in some[:4] if run.of.made.table == table.name]
    filters = list(dict.fromkeys(run.plain_targets for run in runs))
    known: set[tuple[bool, ...]] = set()
    for left, right in product(one[:MOST_PAIRS], other[:MOST_PAIRS]):
        file: DataFile = new_file(0, [left, right], shape)
        if new_file(0, [right], shape).partition != file.partition:
            return
        says = tuple(may_match_file(expression, file, shape) for expression in filters)
        if says not in known:
            known.add(says)
            yield ((left, right),)
