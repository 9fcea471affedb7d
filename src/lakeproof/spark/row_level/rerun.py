"""A row-level command is run: scanned, written, committed, and run again from the head where the rules say so.

Every execution has a scan snapshot of its own; all references to the table inside the statement read that one. The
command id stays the same, so that a commit whose answer was lost is found again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lakeproof.commit import Command, Conflict, Policy, RunAgain, TableChange
from lakeproof.commit.planning import MAX_RERUNS, Run, mode_for
from lakeproof.errors import LakeproofError
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, RUNNING_AGAIN, SCANNED, Committed
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import isolation_of, mode_of
from lakeproof.iceberg.format_v3.metadata import require_kept
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import ref_of
from lakeproof.iceberg.tables.properties import whole_number
from lakeproof.spark.engine import Engine
from lakeproof.spark.names_in_force import names_mean
from lakeproof.spark.row_level.delete import delete_effect
from lakeproof.spark.row_level.effect import RowEffect
from lakeproof.spark.row_level.expired import again_if_expired
from lakeproof.spark.row_level.merge import merge_effect
from lakeproof.spark.row_level.prepared import PreparedChange, prepare_change
from lakeproof.spark.row_level.update import update_effect
from lakeproof.spark.statements.analysis import ParsedCommand
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused
from lakeproof.spark.writing.settings import refuse_settings

MAX_RERUNS_PROPERTY = "lakeproof.max-reruns"
_log = logging.getLogger("lakeproof")
_EFFECTS: dict[Command, Callable[..., RowEffect]] = {
    Command.DELETE: delete_effect,
    Command.UPDATE: update_effect,
    Command.MERGE: merge_effect,
}
Find = Callable[..., RowEffect]


def run_row_level(
    engine: Engine, name: str, parsed: ParsedCommand, command_id: str, run: Run
) -> Committed | RunAgain | None:
    """The command, run once from the head of the table `name`; `None`: there was nothing to do."""
    command, find = parsed.command, partial(_EFFECTS[parsed.command], engine, parsed=parsed)
    table = engine.session_table(engine.load(name))
    require_writable(table)
    refuse_settings(engine.gateway)
    policy = engine.watch.policy_of(table)
    mode = mode_for(command, policy, mode_of(table, command), run.again)
    base = TableChange(command, mode, isolation_of(table, command), command_id)
    return _once(engine, table, base, policy, find, name, run)


def note_rerun(engine: Engine, what: str, run: Run, conflict: Conflict) -> None:
    """Tell whoever watches that a command runs again."""
    engine.watch.on_rerun(conflict)
    engine.watch.on_phase(RUNNING_AGAIN)
    _log.info("%s runs again (%s): %s", what, run.reruns, conflict.check)


def reruns_left(table: Table, run: Run) -> bool:
    """Whether the command may run again, as the table says."""
    return run.left(whole_number(table.properties, MAX_RERUNS_PROPERTY, MAX_RERUNS))


def _once(
    engine: Engine, table: Table, base: TableChange, policy: Policy, find: Find, name: str, run: Run
) -> Committed | RunAgain | None:
    """One execution from the table's head; `None`: there was nothing to do."""
    try:
        made = _prepared(engine, table, base, policy, find, name)
    except (LakeproofError, PySparkException, Py4JError, OSError):
        again = again_if_expired(engine, name, table, base.mode) if reruns_left(table, run) else None
        if again is None:
            raise
        return again
    return None if made is None else _committed(engine, table, made, policy, run)


def _prepared(
    engine: Engine, table: Table, base: TableChange, policy: Policy, find: Find, name: str
) -> PreparedChange | None:
    with names_mean(engine, pinned={name: table}):
        effect = find(table, policy=policy)
    try:
        engine.watch.on_phase(SCANNED)
        return None if effect.is_nothing else prepare_change(engine, table, base, effect, policy)
    finally:
        effect.release()


def _committed(engine: Engine, table: Table, made: PreparedChange, policy: Policy, run: Run) -> Committed | RunAgain:
    """The prepared change, committed; where it certainly was not, none of its files is left."""
    on_phase = engine.watch.on_phase
    with removed_if_refused(lambda: _remove(engine, table, made)):
        on_phase(FILES_WRITTEN)
        answer = commit_change(
            table,
            made.change,
            made.files,
            policy=policy,
            reruns=run.reruns,
            reruns_left=reruns_left(table, run),
            summary=engine.watch.summary,
            on_phase=on_phase,
        )
    if isinstance(answer, RunAgain):
        _remove(engine, table, made)
    return answer


def _remove(engine: Engine, table: Table, made: PreparedChange) -> None:
    remove_files(table, (file.file_path for file in (*made.files.data_files, *made.files.delete_files)))
    for folder in made.folders:
        remove_folder(engine.gateway, folder)


def require_writable(table: Table) -> None:
    """Versions that stay, and tables of which a part would be lost, are refused before any work is done."""
    ref_of(table)
    require_kept(table)
