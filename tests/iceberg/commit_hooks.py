"""What happens to a commit in the tests: somebody is faster, the catalog does not answer, a request arrives late."""

import sqlite3
import time
from typing import Any

import pyarrow.parquet as pq
from lakehouse import Lakehouse, write
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from test_snapshots_made import head

from lakeproof.commit import Command, Mode, TableChange
from lakeproof.filters import Compare
from lakeproof.format import Move, all_rows, row_set
from lakeproof.iceberg.committing.commit import METADATA_WRITTEN
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import data_file_values
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}
LISTENERS: list[Any] = []
"""Kept alive: SQLAlchemy knows a listener by its address, which a later one could have."""


def once(what: Any, at: str = METADATA_WRITTEN) -> Any:
    """A hook that does something the first time that a phase is reached."""
    left = [what]

    def hook(phase: str) -> None:
        if phase == at and left:
            left.pop()()

    return hook


def orphans(table: Table) -> tuple[str, ...]:
    return remove_orphan_files(table, older_than_ms=time.time_ns() // 1_000_000 + 1000, dry_run=True).files


def fail_once(when: str, then: Any = None) -> None:
    """The next event of that kind in the catalog's database fails without an answer."""

    of: Any = Engine if when == "before_cursor_execute" else Session

    def fail(*_about: Any) -> None:
        event.remove(of, when, fail)
        if then is not None:
            then()
        raise OperationalError("update", {}, sqlite3.OperationalError("disk I/O error"))

    LISTENERS.append(fail)
    event.listen(of, when, fail)


def copy_on_write(table: Table, rows: list[dict[str, Any]], kept: list[int], targets: list[int], **more: Any) -> Any:
    """An UPDATE of the table's one file as a runtime hands it over."""
    old = data_file_values(table, plan(table).picked)
    files = write(table, rows)
    path, new = old[0].path, files[0].file_path
    change = TableChange(
        Command.UPDATE,
        Mode.COPY_ON_WRITE,
        command_id=str(time.time_ns()),
        scan_snapshot=head(table),
        removed_data_files=tuple(old),
        targets=((path, row_set(targets)),),
        kept=((path, row_set(kept)),) if kept else (),
        mapping=(Move(path, row_set(kept), new, 0),),
        conflict_filter=Compare("id", "=", 1),
    )
    return commit_change(table, change, NewFiles(tuple(files)), **more)


def compaction(table: Table) -> tuple[TableChange, NewFiles]:
    """All files of the table packed into one, in order."""
    inputs = data_file_values(table, plan(table).picked)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    moves = []
    contents = []
    for value in inputs:
        with table.io.new_input(value.path).open() as stream:
            contents.append(pq.read_table(stream).to_pylist())
    files = write(table, [row for content in contents for row in content])
    start = 0
    for value in inputs:
        moves.append(Move(value.path, all_rows(value.record_count), files[0].file_path, start))
        start += value.record_count
    change = TableChange(
        Command.REWRITE,
        command_id=str(time.time_ns()),
        scan_snapshot=snapshot.snapshot_id,
        scan_sequence_number=snapshot.sequence_number or 0,
        removed_data_files=tuple(inputs),
        kept=tuple(sorted((value.path, all_rows(value.record_count)) for value in inputs)),
        mapping=tuple(moves),
    )
    return change, NewFiles(tuple(files))


class LateRequest:
    """The first request to swap gets no answer, and reaches the catalog when the test says so."""

    def __init__(self, lake: Lakehouse, then: Any = None) -> None:
        self.lake = lake
        self.sent: list[Any] = []
        LISTENERS.append(self)
        event.listen(Engine, "before_cursor_execute", self._note)
        fail_once("before_commit", then)

    def _note(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("UPDATE") and not self.sent:
            self.sent.append((statement, parameters))

    def arrives(self) -> None:
        with sqlite3.connect(self.lake.folder / "catalog.db") as connection:
            assert connection.execute(*self.sent[0]).rowcount == 1


def fail_next_read() -> None:
    """The next time that the catalog's database is asked where the table is, it does not answer."""

    def fail(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SELECT"):
            event.remove(Engine, "before_cursor_execute", fail)  # the error ends the round of listeners
            raise OperationalError("select", {}, sqlite3.OperationalError("disk I/O error"))

    LISTENERS.append(fail)
    event.listen(Engine, "before_cursor_execute", fail)


def nth(*what: Any) -> Any:
    """A hook that does these things one after the other, each time that metadata is written."""
    left = list(what)
    return lambda phase: left.pop(0)() if phase == METADATA_WRITTEN and left else None


def expire_all_but_the_head(lake: Lakehouse) -> None:
    expire_snapshots(lake.load(), older_than_ms=time.time_ns() // 1_000_000 + 1, retain_last=1)
