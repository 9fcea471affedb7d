"""A row-level command is run: scanned, written, committed, and run again from the head where the rules say so.

Every execution has a scan snapshot of its own; all references to the table inside the statement read that one. The
command id stays the same, so that a commit whose answer was lost is found again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from lakeproof.commit import Command, Mode, Policy, RunAgain, TableChange
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.commit import (
    FILES_WRITTEN,
    POLICY_PROPERTY,
    RUNNING_AGAIN,
    SCANNED,
    Committed,
    commit_change,
    remove_files,
)
from lakeproof.iceberg.operations import isolation_of, mode_of
from lakeproof.iceberg.types import Table
from lakeproof.spark.analysis import ParsedCommand
from lakeproof.spark.engine import Engine
from lakeproof.spark.leftovers import removed_if_refused
from lakeproof.spark.options import refuse_staged_writes
from lakeproof.spark.row_level.delete import delete_effect
from lakeproof.spark.row_level.effect import Effect
from lakeproof.spark.row_level.merge import merge_effect
from lakeproof.spark.row_level.update import update_effect
from lakeproof.spark.row_level.written import Prepared, prepared, unused_files
from lakeproof.spark.write import remove_folder

MAX_RERUNS_PROPERTY, DEFAULT_RERUNS = "lakeproof.max-reruns", 5
_log = logging.getLogger("lakeproof")
_EFFECTS: dict[Command, Callable[..., Effect]] = {
    Command.DELETE: delete_effect,
    Command.UPDATE: update_effect,
    Command.MERGE: merge_effect,
}
Find = Callable[..., Effect]


class Done(NamedTuple):
    """What became of a command: its snapshot (`None`: nothing was to be done), and what it took."""

    snapshot_id: int | None
    reruns: int = 0
    retries: int = 0


def run_row_level(engine: Engine, name: str, parsed: ParsedCommand) -> Done:
    """The command as one snapshot of the table `name`."""
    command, find = parsed.command, partial(_EFFECTS[parsed.command], engine, parsed=parsed)
    command_id, reruns = str(uuid.uuid4()), 0
    fallback: Mode | None = None
    while True:
        table = engine.load(name)
        require_writable(table)
        refuse_staged_writes(engine, table)
        policy = engine.context.policy or named_policy(table.properties.get(POLICY_PROPERTY, "lakeproof"))
        mode = fallback or mode_of(table, command)
        base = TableChange(
            command=command,
            mode=Mode.COPY_ON_WRITE if policy.always_copies else mode,
            isolation=isolation_of(table, command),
            command_id=command_id,
        )
        answer = _once(engine, table, base, policy, find, name, reruns)
        if not isinstance(answer, RunAgain):
            return Done(None, reruns) if answer is None else Done(answer.snapshot_id, reruns, answer.retries)
        reruns, fallback = reruns + 1, answer.mode
        engine.context.on_rerun(answer.conflict)
        engine.context.on_phase(RUNNING_AGAIN)
        _log.info("%s on %s runs again (%s): %s", command, name, reruns, answer.conflict.check)


def _once(
    engine: Engine, table: Table, base: TableChange, policy: Policy, find: Find, name: str, reruns: int
) -> Committed | RunAgain | None:
    """One execution from the table's head; `None`: there was nothing to do."""
    on_phase = engine.context.on_phase
    with engine.within(pinned={**engine.context.pinned, name: table}):
        effect = find(table, policy=policy)
        try:
            on_phase(SCANNED)
            if effect.is_nothing:
                return None
            made = prepared(engine, table, base, effect, policy)
        finally:
            effect.release()
    return _committed(engine, table, made, policy, reruns)


def _committed(engine: Engine, table: Table, made: Prepared, policy: Policy, reruns: int) -> Committed | RunAgain:
    """The prepared change, committed; where it certainly was not, none of its files is left."""
    on_phase = engine.context.on_phase
    most = int(table.properties.get(MAX_RERUNS_PROPERTY, DEFAULT_RERUNS))
    with removed_if_refused(lambda: _remove(engine, table, made)):
        on_phase(FILES_WRITTEN)
        answer = commit_change(
            table,
            made.change,
            made.files,
            policy=policy,
            reruns=reruns,
            reruns_left=reruns < most,
            summary=engine.context.summary,
            on_phase=on_phase,
        )
    if isinstance(answer, RunAgain):
        _remove(engine, table, made)
    else:
        remove_files(table, unused_files(answer, made))
    return answer


def _remove(engine: Engine, table: Table, made: Prepared) -> None:
    remove_files(table, (file.file_path for file in (*made.files.data_files, *made.files.delete_files)))
    for folder in made.folders:
        remove_folder(engine.gateway, folder)


def require_writable(table: Table) -> None:
    """Format version 3 can be read, and is refused before any work is done."""
    if table.format_version > 2:
        raise InvalidInput(
            f"tables of format version {table.format_version} can be read but not written",
            place=f"table {'.'.join(table.name())}",
            hint="use a table of format version 2",
        )
