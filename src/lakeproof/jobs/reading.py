"""A jobs file as its meaning: the tables that the set-up creates, their first rows, and the statements of each job."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.errors import InvalidInput
from lakeproof.filters.transforms import applied
from lakeproof.format import PartitionField, Row
from lakeproof.jobs.first_tables.gaps import fresh
from lakeproof.jobs.text import Job, JobsText, Statement
from lakeproof.models.parameter_values import choice
from lakeproof.sql import parse_statement
from lakeproof.sql.expressions import Constant, Subquery
from lakeproof.sql.job_reading.table_names import is_end_of
from lakeproof.sql.job_statements import JobStatement, nodes_of
from lakeproof.sql.kinds import kind_of
from lakeproof.sql.reading_jobs import read_statement
from lakeproof.sql.statements import CreateTable

_DYNAMIC = re.compile(r"\s*set\s+spark\.sql\.sources\.partitionOverwriteMode\s*=\s*'?dynamic'?\s*$", re.IGNORECASE)
_COMMANDS = {
    "delete": (Command.DELETE, Command.METADATA_DELETE),
    "update": (Command.UPDATE,),
    "merge": (Command.MERGE,),
    "insert": (Command.INSERT_SELECT, Command.OVERWRITE, Command.OVERWRITE_PARTITIONS),
}


class JobTable(NamedTuple):
    """A table of the file. `columns`: lower-case name → (name, kind); `rows`: one data file each."""

    name: str
    columns: dict[str, tuple[str, str]]
    not_null: frozenset[str]
    fields: tuple[PartitionField, ...]
    modes: tuple[tuple[Command, Mode], ...]
    isolations: tuple[tuple[Command, Isolation], ...]
    format_version: int
    rows: tuple[tuple[Row, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(name for name, _ in self.columns.values())


class ReadJob(NamedTuple):
    """A job whose statements are understood. `line`: where it begins."""

    name: str
    times: int
    statements: tuple[JobStatement, ...]
    line: int = 0


class Jobs(NamedTuple):
    """A jobs file, understood. `notes`: what is taken cautiously. `open`: why no verdict on it can be "holds"."""

    name: str
    tables: tuple[JobTable, ...]
    policy: str | None
    jobs: tuple[ReadJob, ...]
    notes: tuple[str, ...]
    open: tuple[str, ...]

    def table(self, name: str) -> JobTable:
        """The table of this name."""
        return next(table for table in self.tables if table.name == name)


def read_jobs(text: JobsText) -> Jobs:
    """The meaning of a jobs file."""
    created: dict[str, CreateTable] = {}
    inserts: list[Statement] = []
    dynamic = False
    for statement in text.setup:
        made = _parsed(statement, text.name)
        if isinstance(made, CreateTable):
            _create(made, created, f"{text.name}:{statement.line}")
        elif _DYNAMIC.match(statement.text):
            dynamic = True
        else:
            inserts.append(statement)
    if not created:
        raise InvalidInput(
            "The set-up creates no table, so nothing is known of its columns",
            place=f"{text.name}:1",
            hint="begin with create table … using iceberg",
        )
    tables = {name: _table(name, made, text) for name, made in created.items()}
    columns = {name: table.columns for name, table in tables.items()}
    for statement in inserts:
        name, rows = _first_rows(statement, columns, text.name)
        tables[name] = tables[name]._replace(rows=(*tables[name].rows, rows))
    jobs = tuple(_job(job, tables, text.name) for job in text.jobs)
    if dynamic:
        jobs = tuple(job._replace(statements=tuple(_by_partitions(s, tables) for s in job.statements)) for job in jobs)
    statements = [one for job in jobs for one in job.statements]
    notes = tuple(dict.fromkeys(note for one in statements for note in one.notes))
    left = tuple(dict.fromkeys(why for one in statements for why in one.open))
    _refuse_mixed(tuple(tables.values()), jobs, text.name)
    policies = [dict(made.properties).get("lakeproof.policy") for made in created.values()]
    policy = next((one for one in policies if one), None)
    return Jobs(text.name, tuple(tables.values()), policy, jobs, notes, left)


def independent_parts(jobs: Jobs) -> list[Jobs]:
    """The file in parts that have no table in common: what one does, the others cannot see."""
    groups: list[set[str]] = []
    for job in jobs.jobs:
        met = {name for one in job.statements for name in tables_of(one)}
        groups = [group for group in groups if not group & met] + [met.union(*(g for g in groups if g & met))]
    return [
        jobs._replace(
            tables=tuple(table for table in jobs.tables if table.name in group),
            jobs=tuple(job for job in jobs.jobs if job.statements[0].table in group),
        )
        for group in groups
    ]


def tables_of(made: JobStatement) -> set[str]:
    """The tables of the file that a statement changes or reads."""
    inner = {node.query.table for node in nodes_of(made) if isinstance(node, Subquery)}
    source = {made.source.table} if made.source is not None and made.source.table else set()
    return {made.table, *inner, *source, *made.reads}


def _job(job: Job, tables: dict[str, JobTable], name: str) -> ReadJob:
    columns = {key: table.columns for key, table in tables.items()}
    made: list[JobStatement] = []
    for one in job.statements:
        place = f"{name}:{one.line}"
        made.append(read_statement(one.text, columns, place=place))
        _refuse_partition(made[-1], tables, place)
    return ReadJob(job.name, job.times, tuple(made), job.line)


def _refuse_partition(made: JobStatement, tables: dict[str, JobTable], place: str) -> None:
    """PARTITION (column = value) needs a table that is partitioned by the column itself."""
    identity = [one.column for one in tables[made.table].fields if one.transform == "identity"]
    odd = [column for column, _ in made.partition if column not in identity]
    if odd:
        raise InvalidInput(f"PARTITION ({odd[0]} = …): {made.table} is not partitioned by {odd[0]}", place=place)


def _by_partitions(made: JobStatement, tables: dict[str, JobTable]) -> JobStatement:
    """An INSERT OVERWRITE where Spark overwrites only the partitions that it writes to."""
    if made.command is not Command.OVERWRITE or len(made.partition) >= len(tables[made.table].fields):
        return made
    return replace(made, command=Command.OVERWRITE_PARTITIONS)


def _refuse_mixed(tables: tuple[JobTable, ...], jobs: tuple[ReadJob, ...], name: str) -> None:
    """What one model of several tables cannot say."""
    if len({table.format_version for table in tables}) > 1:
        raise InvalidInput("The tables of one file must have one format version", place=f"{name}:1")
    for job in jobs:
        compacted = {one.table for one in job.statements if one.command is Command.REWRITE}
        if len(compacted) > 1:
            raise InvalidInput(
                f"The job {job.name} compacts two tables", place=f"{name}:{job.line}", hint="make it two"
            )


def _create(made: CreateTable, created: dict[str, CreateTable], place: str) -> None:
    name = made.table.replace("`", "").lower()
    if not made.columns:
        raise InvalidInput("The table's columns must be listed", place=place)
    if made.query is not None:
        hint = "say its first rows with INSERT … VALUES"
        raise InvalidInput("CREATE TABLE … AS SELECT is not understood in the set-up", place=place, hint=hint)
    if any(is_end_of(name, other) or is_end_of(other, name) for other in created):
        raise InvalidInput(f"The table {name} is created twice", place=place)
    for column in made.columns:
        if column.default is not None:
            hint = "write the value in every INSERT that leaves the column out"
            raise InvalidInput(f"The checker knows no defaults; `{column.name}` has one", place=place, hint=hint)
    created[name] = made


def _table(name: str, made: CreateTable, text: JobsText) -> JobTable:
    place = f"{text.name}:{next(s.line for s in text.setup if s.text.strip() == made.text.strip())}"
    properties = dict(made.properties)
    columns = {column.name.lower(): (column.name, kind_of(column.type)) for column in made.columns}
    version = properties.get("format-version", "2")
    if version not in ("1", "2", "3"):
        raise InvalidInput(f"'format-version' = '{version}' does not exist", place=place, hint="it is 2 or 3")
    fields = tuple(_field(one.column, one.transform, columns, place) for one in made.partitions)
    return JobTable(
        name=name,
        columns=columns,
        not_null=frozenset(column.name for column in made.columns if not column.nullable),
        fields=fields,
        modes=_modes(properties, place),
        isolations=_isolations(properties, place),
        format_version=int(version),
    )


def _field(column: str, transform: str, columns: dict[str, tuple[str, str]], place: str) -> PartitionField:
    """A partition field whose transform fits its column."""
    if column.lower() not in columns:
        hint = f"the columns are {', '.join(name for name, _ in columns.values())}"
        raise InvalidInput(f"There is no column {column!r} to partition by", place=place, hint=hint)
    name, kind = columns[column.lower()]
    try:
        applied(transform, fresh(kind, 1)[0])
    except TypeError:
        raise InvalidInput(f"{transform} does not fit the column {name} ({kind})", place=place) from None
    return PartitionField(name, transform)


def _modes(properties: dict[str, str], place: str) -> tuple[tuple[Command, Mode], ...]:
    """How each row-level command writes; copy-on-write unless the table says otherwise, as in Iceberg."""
    chosen = {
        word: Mode(_property(properties, f"write.{word}.mode", "copy-on-write", [*Mode], place))
        for word in ("delete", "update", "merge")
    }
    return tuple((command, mode) for word, mode in chosen.items() for command in _COMMANDS[word])


def _isolations(properties: dict[str, str], place: str) -> tuple[tuple[Command, Isolation], ...]:
    """What each command promises; serializable unless the table says otherwise, as in Iceberg."""
    chosen = {
        word: Isolation(_property(properties, f"write.{word}.isolation-level", "serializable", [*Isolation], place))
        for word in _COMMANDS
    }
    return tuple((command, isolation) for word, isolation in chosen.items() for command in _COMMANDS[word])


def _property(properties: dict[str, str], name: str, default: str, choices: list[str], place: str) -> str:
    try:
        return choice(name, properties.get(name, default), [str(one) for one in choices])
    except InvalidInput as error:
        raise InvalidInput(error.message, place=place, hint=error.hint.replace("=", " = ")) from None


def _parsed(statement: Statement, name: str) -> object:
    try:
        return parse_statement(statement.text)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=f"{name}:{statement.line}", hint=error.hint) from None


def _first_rows(
    statement: Statement, columns: dict[str, dict[str, tuple[str, str]]], name: str
) -> tuple[str, tuple[Row, ...]]:
    place = f"{name}:{statement.line}"
    made = read_statement(statement.text, columns, place=place)
    rows = made.source.rows if made.source is not None else ()
    if made.command is not Command.INSERT or not rows:
        raise InvalidInput("Before the first job only CREATE TABLE and INSERT … VALUES are understood", place=place)
    found: list[Row] = []
    for row in rows:
        if not all(isinstance(value, Constant) for value in row):
            raise InvalidInput("The first rows must be literals of their columns' types", place=place)
        found.append(tuple(value.value for value in row if isinstance(value, Constant)))
    return made.table, tuple(found)
