"""Jobs as commands: the table they work on, its properties, its first rows, and what each statement means."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.row_command import RowCommand
from lakeproof.errors import InvalidInput
from lakeproof.format import PartitionField, Row, TableShape
from lakeproof.jobs.text import JobsText, Statement
from lakeproof.models.parameter_values import choice
from lakeproof.sql import parse
from lakeproof.sql.parser import target
from lakeproof.sql.row_commands import Caution, row_command
from lakeproof.sql.statements import CreateTable

_COMMANDS = {
    "delete": (Command.DELETE,),
    "update": (Command.UPDATE,),
    "merge": (Command.MERGE,),
    "insert": (Command.INSERT_SELECT, Command.OVERWRITE, Command.OVERWRITE_PARTITIONS),
}


class ReadJob(NamedTuple):
    """A job whose statements are understood."""

    name: str
    times: int
    commands: tuple[RowCommand, ...]


class Jobs(NamedTuple):
    """A jobs file, understood. `notes` says what could not be taken exactly."""

    name: str
    table: str
    shape: TableShape
    modes: tuple[tuple[Command, Mode], ...]
    isolations: tuple[tuple[Command, Isolation], ...]
    policy: str | None
    rows: tuple[tuple[Row, ...], ...]  # one data file each
    jobs: tuple[ReadJob, ...]
    notes: tuple[str, ...]


def read_jobs(text: JobsText) -> Jobs:
    """The meaning of a jobs file."""
    created, rest = _created(text)
    columns = tuple(column.name for column in created.columns)
    fields = tuple(PartitionField(field.column, field.transform) for field in created.partitions)
    properties = dict(created.properties)
    shape = TableShape(columns, (fields,), int(properties.get("format-version", "2")), case_sensitive=False)
    caution = Caution()
    rows = tuple(_first_rows(statement, columns, created.table, text.name) for statement in rest)
    jobs = tuple(
        ReadJob(job.name, job.times, tuple(_meant(s, shape, created.table, text.name, caution) for s in job.statements))
        for job in text.jobs
    )
    place = f"{text.name}:{text.setup[0].line}"
    return Jobs(
        name=text.name,
        table=created.table,
        shape=shape,
        modes=_modes(properties, place),
        isolations=_isolations(properties, place),
        policy=properties.get("lakeproof.policy"),
        rows=rows,
        jobs=jobs,
        notes=tuple(caution.notes),
    )


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


def _created(text: JobsText) -> tuple[CreateTable, tuple[Statement, ...]]:
    for number, statement in enumerate(text.setup):
        made = _parsed(statement, text.name)
        if isinstance(made, CreateTable):
            if not made.columns:
                raise InvalidInput("The table's columns must be listed", place=f"{text.name}:{statement.line}")
            return made, text.setup[:number] + text.setup[number + 1 :]
    raise InvalidInput(
        "The set-up creates no table, so nothing is known of its columns",
        place=f"{text.name}:1",
        hint="begin with create table … using iceberg",
    )


def _parsed(statement: Statement, name: str) -> object:
    try:
        return parse(statement.text)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=f"{name}:{statement.line}", hint=error.hint) from None


def _first_rows(statement: Statement, columns: tuple[str, ...], table: str, name: str) -> tuple[Row, ...]:
    place = f"{name}:{statement.line}"
    _same_table(statement, table, place)
    command = row_command(statement.text, columns, place=place)
    if command.command is not Command.INSERT:
        raise InvalidInput("Before the first job only CREATE TABLE and INSERT … VALUES are understood", place=place)
    return command.rows


def _meant(statement: Statement, shape: TableShape, table: str, name: str, caution: Caution) -> RowCommand:
    place = f"{name}:{statement.line}"
    if not statement.text.lower().lstrip().startswith("call"):
        _same_table(statement, table, place)
    partition = tuple(field.column for field in shape.specs[0])
    return row_command(statement.text, shape.columns, place=place, caution=caution, partition_columns=partition)


def _same_table(statement: Statement, table: str, place: str) -> None:
    found = target(statement.text)
    if found is not None and found.split(".")[-1].lower() != table.split(".")[-1].lower():
        hint = f"one file is about one table: {table}"
        raise InvalidInput(f"The table {found} is not created in the set-up", place=place, hint=hint)
