"""SIGKILL while every command stands at every phase of its own: the table is as if it had not run, or has run.

A session costs seconds, so one process holds all writers, each on a table of its own, and all die at once, in the
middle of what they do, Spark's JVM with them. What a killed writer leaves depends on its own phase alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from test_row_level_processes import HERE, MERGE, files_of, rows_of

from lakeproof.iceberg.committing.commit import PHASES, SCANNED, SWAPPED
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.peer]
Pairs = list[tuple[int, int]]
START = [(n, 0) for n in range(10) if n not in (7, 8)]
MODES = ("merge-on-read", "copy-on-write")


class Killed(NamedTuple):
    """A command, the rows that it makes of those of the start, and the modes in which it differs."""

    statement: str
    after: Pairs
    modes: tuple[str, ...] = MODES


COMMANDS = {
    "DELETE": Killed("delete from {t} where id = 3", [row for row in START if row[0] != 3]),
    "UPDATE": Killed("update {t} set v = 1 where id < 3", [(n, 1 if n < 3 else 0) for n, _ in START]),
    "MERGE": Killed(MERGE, [(n, 5 if n == 1 else 0) for n, _ in START] + [(50, 5)]),
    "INSERT": Killed("insert into {t} values (60, 6)", [*START, (60, 6)], MODES[:1]),
    "INSERT SELECT": Killed("insert into {t} select 60, count(*) from {t}", [*START, (60, 8)], MODES[:1]),
    "INSERT OVERWRITE": Killed("insert overwrite {t} values (60, 6)", [(60, 6)], MODES[:1]),
    "rewrite_data_files": Killed("call system.rewrite_data_files('{t}')", START, MODES[:1]),
    "rewrite_position_delete_files": Killed("call system.rewrite_position_delete_files('{t}')", START, MODES[:1]),
}


class Case(NamedTuple):
    """One writer on a table of its own, and what was there before it began."""

    command: str
    phase: str
    table: str
    files: frozenset[str] = frozenset()


def prepared(lake: Lake, name: str) -> list[Case]:
    """A table for each command, mode and phase."""
    cells = [(command, mode, phase) for command in COMMANDS for mode in COMMANDS[command].modes for phase in PHASES]
    cases = []
    for number, (command, mode, phase) in enumerate(cells):
        table = f"{name}_{number}"
        create(lake, table, mode)
        cases.append(Case(command, phase, table, frozenset(files_of(lake, table))))
    return cases


def create(lake: Lake, table: str, mode: str) -> None:
    """Two data files, the second with two delete files."""
    told = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("update", "merge"))
    lake.sql(
        f"create table {table} (id int, v int) using iceberg "
        f"tblproperties ({told}, 'write.delete.mode' = 'merge-on-read')"
    )
    for first in (0, 5):
        lake.sql(f"insert into {table} select cast(id as int), 0 from range({first}, {first + 5}, 1, 1)")
    for gone in (7, 8):
        lake.sql(f"delete from {table} where id = {gone}")
    lake.sql(f"alter table {table} set tblproperties ('write.delete.mode' = '{mode}')")


def killed_while_standing(cases: list[Case], warehouse: Path) -> list[str]:
    """Where the writers stood when their process and its JVM were killed."""
    told = [(COMMANDS[case.command].statement.format(t=case.table), case.phase) for case in cases]
    process = subprocess.Popen(
        [sys.executable, str(HERE / "standing_writers.py"), f"sqlite:///{warehouse}/catalog.db", str(warehouse)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own: Python and the JVM die by one signal
    )
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(told), file=process.stdin, flush=True)
    stood = process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    return list(json.loads(stood))


def orphans(lake: Lake, case: Case, *, dry_run: bool = True) -> set[str]:
    table = lake.engine.load(f"default.{case.table}")
    found = remove_orphan_files(table, older_than_ms=2**62, dry_run=dry_run, allow_young=True).files
    return {path.removeprefix("file://") for path in found}


def test_killed_at_every_phase_of_every_command(lake: Lake, name: str, warehouse: Path) -> None:
    cases = prepared(lake, name)
    assert len(cases) == 44
    assert rows_of(lake, cases[0].table) == START
    assert killed_while_standing(cases, warehouse) == [case.phase for case in cases]
    for case in cases:
        after = COMMANDS[case.command].after
        new = files_of(lake, case.table) - case.files
        assert bool(new) == (case.phase != SCANNED), case
        assert rows_of(lake, case.table) == (after if case.phase == SWAPPED else START), case
        assert orphans(lake, case) == (set() if case.phase == SWAPPED else new), case
        orphans(lake, case, dry_run=False)
        assert files_of(lake, case.table) == (case.files | new if case.phase == SWAPPED else case.files), case
        if case.phase != SWAPPED:  # nothing of the dead writer is in the way of the next
            lake.sql(COMMANDS[case.command].statement.format(t=case.table))
            assert rows_of(lake, case.table) == after, case
        lake.sql(f"drop table {case.table} purge")
