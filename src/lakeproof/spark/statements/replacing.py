"""REPLACE TABLE and CREATE OR REPLACE TABLE of managed tables, and what writers of DataFrames call so.

It is the same table afterwards, and its old snapshots are there by their ids. A query that reads the table which it
replaces reads one snapshot, and runs again if what it read was changed before the commit.
"""

from __future__ import annotations

import uuid
from functools import partial

from pyspark.sql import DataFrame

from lakeproof.commit import Command, RunAgain, TableChange
from lakeproof.commit.planning import Run, run_until_done
from lakeproof.errors import InvalidInput
from lakeproof.filters import any_of
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED, Committed
from lakeproof.iceberg.format_v3.metadata import require_kept
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import TableAt
from lakeproof.iceberg.tables.replacing import Replacing, replace_with_rows, replace_without_rows, replacement
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.names_in_force import names_mean
from lakeproof.spark.reading.file_groups import NAME_MAPPING
from lakeproof.spark.row_level.insert import Running, insert_isolation, rows_read_of
from lakeproof.spark.row_level.rerun import note_rerun, reruns_left
from lakeproof.spark.row_level.scan_filters import Asked, asked_of_table
from lakeproof.spark.row_level.target import analyzer_of
from lakeproof.spark.statements import ddl
from lakeproof.spark.statements.names import qualified
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused
from lakeproof.spark.writing.settings import refuse_settings
from lakeproof.spark.writing.spark_write import write_rows
from lakeproof.sql import statements as s


def create_or_replace(engine: Engine, made: s.CreateTable) -> None:
    """The table is as the statement says, made or replaced."""
    name = qualified(engine, made.table)
    table = engine.find(name) if made.replace else None
    if table is None:
        _refuse_missing(made, name)
        ddl.create(engine, made._replace(replace=False))
        return
    _refuse(engine, made, table)
    if made.query is None:
        schema = ddl.schema_of(engine, made.columns, f"table {name}")
        replace_without_rows(table, replacement(**ddl.details_of(engine, made, schema)))
        return
    with translate_spark_errors(engine.gateway, made.query):
        once = partial(_replaced_once, engine, made, name, str(uuid.uuid4()))
        run_until_done(once, partial(note_rerun, engine, f"REPLACE of {name}"))


def replace_from_rows(engine: Engine, made: s.CreateTable, name: str, rows: DataFrame) -> None:
    """The table `name` with these rows instead, as a writer of DataFrames describes it."""
    table = engine.find(name)
    if table is None:
        _refuse_missing(made, name)
        ddl.create_from_rows(engine, made._replace(replace=False), name, rows)
        return
    _refuse(engine, made._replace(query=made.table), table)
    with translate_spark_errors(engine.gateway):
        said = asked_of_table(engine, table, rows)
        if said.heads - {table.metadata.current_snapshot_id}:
            hint = "read it again and write at once"
            raise InvalidInput(
                "these rows were read from the table before it changed", place=f"table {name}", hint=hint
            )
        _replaced(engine, made, table, rows, said, Running(str(uuid.uuid4()), 0, reruns_left=False))


def _refuse_missing(made: s.CreateTable, name: str) -> None:
    if made.must_exist:
        raise InvalidInput(f"there is no table `{name}` to replace", hint="say CREATE OR REPLACE TABLE")


def _refuse(engine: Engine, made: s.CreateTable, table: Table) -> None:
    place = f"table {'.'.join(table.name())}"
    if isinstance(table, TableAt):
        raise InvalidInput("a branch or tag cannot be replaced", place=place, hint="replace the table itself")
    require_kept(table)
    ddl.refuse_unmakable(engine, made, place)
    told = dict(made.properties)
    if any(column.default is not None for column in made.columns):
        hint = "set them afterwards: alter table … alter column … set default …"
        raise InvalidInput("REPLACE TABLE takes no defaults", place=place, hint=hint)
    if NAME_MAPPING in table.properties or made.provider.lower() == "orc" or told.get("write.format.default") == "orc":
        hint = "drop the table, or make one under another name"
        raise InvalidInput("a table whose files are read by column name cannot be replaced", place=place, hint=hint)
    if told.get("format-version", str(table.format_version)) != str(table.format_version):
        raise InvalidInput(
            f"the table is of format version {table.format_version} and stays so", place=place, hint="upgrade it before"
        )


def _replaced_once(engine: Engine, made: s.CreateTable, name: str, command_id: str, run: Run) -> Committed | RunAgain:
    table = engine.load(name)
    assert made.query is not None
    with names_mean(engine, pinned={name: table}):
        rows = engine.gateway.dataframe(analyzer_of(engine).parsed(made.query))
        said = asked_of_table(engine, table, rows)
    return _replaced(engine, made, table, rows, said, Running(command_id, run.reruns, reruns_left(table, run)))


def _replaced(
    engine: Engine, made: s.CreateTable, table: Table, rows: DataFrame, said: Asked, running: Running
) -> Committed | RunAgain:
    refuse_settings(engine.gateway)
    watch = engine.watch
    wanted = replacement(**ddl.details_of(engine, made, rows.schema))
    staged = wanted.of(table)
    change = _change(engine, table, said)._replace(command_id=running.command_id)
    watch.on_phase(SCANNED)
    written = write_rows(engine.gateway, staged.table, rows)
    with removed_if_refused(lambda: remove_folder(engine.gateway, written.folder)):
        watch.on_phase(FILES_WRITTEN)
        answer = replace_with_rows(
            table,
            Replacing(wanted, staged, change, watch.policy_of(table), dict(watch.summary)),
            written.files,
            watch.on_phase,
            reruns=running.reruns,
            reruns_left=running.reruns_left,
        )
    if isinstance(answer, RunAgain):
        remove_folder(engine.gateway, written.folder)
    return answer


def _change(engine: Engine, table: Table, said: Asked) -> TableChange:
    """Rows that are added; what others change of the rest of the table is replaced with it."""
    head = table.current_snapshot()
    change = TableChange(
        command=Command.INSERT,
        scan_snapshot=None if head is None else head.snapshot_id,
        scan_sequence_number=0 if head is None else head.sequence_number or 0,
    )
    if not said.reads:
        return change
    return change._replace(
        command=Command.INSERT_SELECT,
        isolation=insert_isolation(table),
        conflict_filter=any_of(said.reads),
        reads=rows_read_of(engine, table, said),
    )
