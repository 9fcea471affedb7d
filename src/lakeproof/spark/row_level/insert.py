"""INSERT that reads its own table, or replaces a part of it: what it saw may not have changed, or it runs again.

An INSERT of rows from elsewhere never conflicts. One that reads its own table would otherwise add a sum, or overwrite
rows, that were computed from a table which has changed since.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lakeproof.commit import Command, Isolation, Mode, RunAgain, TableChange
from lakeproof.commit.planning import Run, replaces_by_filter
from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.filters import Expression, any_of, columns_of
from lakeproof.format import DataFile, Rows, rows_of
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED, Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import data_file_value
from lakeproof.iceberg.committing.whole_file_commits import PartialFiles, isolation_of, partition_filter, whole_files
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import AppendRows, Engine, Overwrite, OverwritePartitions, WriteMode
from lakeproof.spark.row_level.expired import again_if_expired
from lakeproof.spark.row_level.rerun import require_writable, reruns_left
from lakeproof.spark.row_level.row_positions import as_rows, head_source, other_files, placed_scan, places_in
from lakeproof.spark.row_level.scan_filters import Asked, condition_of
from lakeproof.spark.row_level.scanned_files import dead_rows, homes_of, kept_rows
from lakeproof.spark.statements.analysis import ParsedInsert
from lakeproof.spark.statements.insert_analysis import ResolvedInsert, resolve_insert
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused
from lakeproof.spark.writing.settings import refuse_settings
from lakeproof.spark.writing.spark_write import WrittenFiles, write_rows

_COMMANDS: dict[type, Command] = {
    AppendRows: Command.INSERT_SELECT,
    Overwrite: Command.OVERWRITE,
    OverwritePartitions: Command.OVERWRITE_PARTITIONS,
}


class Running(NamedTuple):
    """The statement that an INSERT is part of: its id, how often it ran before, and whether it may run again."""

    command_id: str
    reruns: int
    reruns_left: bool


def run_insert(engine: Engine, name: str, parsed: ParsedInsert, command_id: str, run: Run) -> Committed | RunAgain:
    """The statement, run once from the table's head; all its references to the table read one snapshot."""
    found = resolve_insert(engine, name, parsed)
    left = reruns_left(found.table, run)
    try:
        return insert(engine, found, Running(command_id, run.reruns, left))
    except (LakeproofError, PySparkException, Py4JError, OSError) as error:
        known = isinstance(error, LakeproofError) and not isinstance(error, InvalidInput)
        again = again_if_expired(engine, name, found.table, Mode.MERGE_ON_READ) if left and not known else None
        if again is None:
            raise
        return again


def insert(engine: Engine, found: ResolvedInsert, running: Running | None = None) -> Committed | RunAgain:
    """The rows as one snapshot; what the statement read or replaces is followed as the policy says.

    `running` is `None` where Spark itself runs the statement: it cannot run again.
    """
    table, rows, mode, said = found
    require_writable(table)
    refuse_settings(engine.gateway)
    policy = engine.watch.policy_of(table)
    at_head = replaces_by_filter(_COMMANDS[type(mode)], policy, can_run_again=running is not None)
    if not said.reads and at_head:
        return engine.write(table, rows, mode)
    reads = rows_read_of(engine, table, said) if said.reads else ()
    on_phase = engine.watch.on_phase
    on_phase(SCANNED)
    written = write_rows(engine.gateway, table, rows)
    with removed_if_refused(lambda: remove_folder(engine.gateway, written.folder)):
        change = _change(engine, table, said, reads, mode, written)
        on_phase(FILES_WRITTEN)
        answer = _committed(engine, table, change, written, running or Running(str(uuid.uuid4()), 0, reruns_left=False))
    if isinstance(answer, RunAgain):
        remove_folder(engine.gateway, written.folder)
    return answer


def _committed(
    engine: Engine, table: Table, change: TableChange, written: WrittenFiles, running: Running
) -> Committed | RunAgain:
    return commit_change(
        table,
        change._replace(command_id=running.command_id),
        NewFiles(written.files),
        policy=engine.watch.policy_of(table),
        reruns=running.reruns,
        reruns_left=running.reruns_left,
        summary=engine.watch.summary,
        on_phase=engine.watch.on_phase,
    )


def _change(
    engine: Engine, table: Table, said: Asked, reads: Rows, mode: WriteMode, written: WrittenFiles
) -> TableChange:
    head = table.current_snapshot()
    base = TableChange(
        command=Command.INSERT,
        scan_snapshot=None if head is None else head.snapshot_id,
        scan_sequence_number=0 if head is None else head.sequence_number or 0,
    )
    if isinstance(mode, AppendRows) and not said.reads:
        return base
    base = base._replace(
        command=Command.INSERT_SELECT,
        isolation=insert_isolation(table),
        conflict_filter=any_of(said.reads),
        reads=reads,
    )
    if isinstance(mode, AppendRows):
        return base
    where, gone = _replaced(engine, table, mode, written)
    paths = {file.path for file in gone}
    return base._replace(
        command=_COMMANDS[type(mode)],
        mode=Mode.COPY_ON_WRITE,
        conflict_filter=any_of([where, *said.reads]),
        removed_data_files=gone,
        targets=rows_of((file.path, file.all_rows) for file in gone),
        reads=tuple((path, rows) for path, rows in reads if path not in paths),
        mapping=(),
    )


def _replaced(
    engine: Engine, table: Table, mode: WriteMode, written: WrittenFiles
) -> tuple[Expression, tuple[DataFile, ...]]:
    """The overwritten part and its files, as the statement read them: what others add meanwhile is not theirs."""
    if isinstance(mode, Overwrite):
        found = whole_files(table, mode.filter)
        if found.partial:
            raise PartialFiles(
                f"the predicate takes only some rows of {len(found.partial)} files",
                place=found.partial[0].path,
                hint="use a predicate on partition columns, or a row-level command",
            )
        return mode.filter, found.whole
    values = [data_file_value(table, file) for file in written.files]
    partitions = {(value.spec_id, value.partition) for value in values}
    homes = [home.file for home in homes_of(engine, table).values()]
    gone = tuple(file for file in homes if (file.spec_id, file.partition) in partitions)
    return any_of(partition_filter(table, value) for value in values), gone


def rows_read_of(engine: Engine, table: Table, said: Asked) -> Rows:
    """The rows that the query may have read; all of them where it has no predicate, or where rows have no places."""
    wanted = any_of(said.reads)
    if not columns_of(wanted) or other_files(head_source(engine, table)):
        homes = homes_of(engine, table)
        dead = dead_rows(engine, table, homes.values())
        return rows_of((path, kept_rows(home, dead)) for path, home in homes.items())
    scan = placed_scan(engine, table)
    return as_rows(scan.found(places_in(scan.rows.filter(condition_of(wanted, scan.rows)))))


def insert_isolation(table: Table) -> Isolation:
    """`write.insert.isolation-level`, by default serializable as for the other commands."""
    return isolation_of(table, "insert")
