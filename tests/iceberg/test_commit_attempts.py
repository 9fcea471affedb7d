"""A commit among others: lost swaps, unknown outcomes, conflicts, kills. No row is lost or doubled by any of them."""

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from lakehouse import Lakehouse, files_below, insert, people, rows_of, write
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from test_snapshots_made import committed, head, merge_on_read

from lakeproof.commit import Command, Conflict, Isolation, Mode, RunAgain, TableChange
from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput
from lakeproof.filters import Compare
from lakeproof.format import Move, all_rows, row_set
from lakeproof.iceberg.committing.commit import ATTEMPTING, METADATA_WRITTEN, SWAPPED
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import data_file_values
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables import catalogs
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import load_table
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}


def once(what: Any, at: str = METADATA_WRITTEN) -> Any:
    """A hook that does something the first time that a phase is reached."""
    left = [what]

    def hook(phase: str) -> None:
        if phase == at and left:
            left.pop()()

    return hook


def orphans(table: Table) -> tuple[str, ...]:
    return remove_orphan_files(table, older_than_ms=time.time_ns() // 1_000_000 + 1000, dry_run=True).files


def test_a_lost_swap_is_tried_again_on_the_new_head(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    hook = once(lambda: insert(lake.load(), people(2)))
    answer = append(table, write(table, people(3)), CommitOptions(on_phase=hook))
    assert answer.retries == 1
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]
    assert [s.sequence_number for s in answer.table.metadata.snapshots] == [1, 2, 3]
    assert orphans(answer.table) == ()


def test_a_writer_that_started_from_an_old_head_does_not_even_try_it(lake: Lakehouse) -> None:
    stale = insert(lake.create(), people(1))
    insert(lake.load(), people(2))
    assert append(stale, write(stale, people(3))).retries == 0
    assert len(rows_of(lake.load())) == 3


def test_the_phases_come_in_order(lake: Lakehouse) -> None:
    seen: list[str] = []
    table = lake.create()
    append(table, write(table, people(1)), CommitOptions(on_phase=seen.append))
    assert seen == [ATTEMPTING, METADATA_WRITTEN, SWAPPED]


def test_a_commit_that_may_not_retry_is_rejected_and_leaves_nothing(lake: Lakehouse) -> None:
    table = insert(lake.create(properties={"commit.retry.num-retries": "0"}), people(1))
    files = write(table, people(3))
    hook = once(lambda: insert(lake.load(), people(2)))
    with pytest.raises(CommitRejected):
        append(table, files, CommitOptions(on_phase=hook))
    assert rows_of(lake.load()) == [(1, "x"), (2, "x")]
    assert orphans(lake.load()) == (files[0].file_path,)  # the data file is its writer's


def test_a_command_that_committed_already_is_not_committed_again(lake: Lakehouse) -> None:
    table = lake.create()
    files = write(table, people(1))
    first = append(table, files, CommitOptions(command_id="once"))
    second = append(table, files, CommitOptions(command_id="once"))
    assert second.snapshot_id == first.snapshot_id
    assert len(lake.load().metadata.snapshots) == 1
    assert orphans(lake.load()) == ()


LISTENERS: list[Any] = []
"""Kept alive: SQLAlchemy knows a listener by its address, which a later one could have."""


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


def test_an_unknown_outcome_that_was_a_commit_is_found(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    hook = once(lambda: fail_once("after_commit"))
    answer = append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert (answer.retries, len(answer.table.metadata.snapshots)) == (0, 2)
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_an_unknown_outcome_that_was_none_is_tried_again(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    hook = once(lambda: fail_once("before_commit"))
    answer = append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert len(answer.table.metadata.snapshots) == 2
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_an_outcome_that_nobody_can_look_up_stays_unknown_and_nothing_is_removed(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    metadata = Path(table.location().removeprefix("file://")) / "metadata"
    before = files_below(metadata)
    hook = once(lambda: fail_once("before_commit", then=lambda: fail_once("before_cursor_execute")))
    with pytest.raises(CommitUnknown, match="nobody knows whether INSERT"):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert sorted(Path(name).suffix for name in files_below(metadata) - before) == [".avro", ".avro", ".json"]
    assert rows_of(lake.load()) == [(1, "x")]


def test_a_busy_database_is_a_lost_swap(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "BUSY_TIMEOUT_MS", 50)
    catalog = open_catalog(lake.uri, lake.warehouse)
    lake.create(properties=FAST)
    table = load_table(catalog, "t")
    holder = sqlite3.connect(lake.folder / "catalog.db", check_same_thread=False)
    holder.execute("begin immediate")
    threading.Timer(0.6, holder.rollback).start()
    answer = append(table, write(table, people(1)))
    assert answer.retries >= 2
    assert rows_of(lake.load()) == [(1, "x")]


def test_an_interrupt_before_the_swap_leaves_no_metadata(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    files = write(table, people(2))

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        append(table, files, CommitOptions(on_phase=once(interrupt)))
    assert rows_of(lake.load()) == [(1, "x")]
    assert orphans(lake.load()) == (files[0].file_path,)


@pytest.mark.parametrize("phase", [METADATA_WRITTEN, SWAPPED])
def test_a_killed_writer_leaves_the_last_committed_state_and_only_orphans(lake: Lakehouse, phase: str) -> None:
    insert(lake.create(), people(1))
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from lakehouse import Lakehouse, people, write
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
table = Lakehouse(Path({str(lake.folder)!r})).load()
append(table, write(table, people(2)), CommitOptions(on_phase=lambda phase: phase == {phase!r} and os._exit(9)))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 9
    table = lake.load()
    happened = phase == SWAPPED
    assert rows_of(table) == ([(1, "x"), (2, "x")] if happened else [(1, "x")])
    left = [Path(each).suffix for each in orphans(table)]
    assert sorted(left) == ([] if happened else [".avro", ".avro", ".parquet"])


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


def test_two_rewrites_of_one_file_cannot_both_commit(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    committed(copy_on_write(table, [*people(2), *people(1, name="new")], kept=[1], targets=[0]))
    again = copy_on_write(stale, [*people(2), *people(1, name="other")], kept=[1], targets=[0], reruns_left=True)
    assert isinstance(again, RunAgain)
    assert (again.conflict.check, again.mode) == ("target_rows", Mode.MERGE_ON_READ)
    with pytest.raises(CommitConflict) as caught:
        copy_on_write(stale, [*people(2), *people(1, name="other")], kept=[1], targets=[0])
    assert "UPDATE on default.t was not committed" in str(caught.value)
    assert isinstance(caught.value.conflict, Conflict)
    assert rows_of(lake.load()) == [(1, "new"), (2, "x")]


def test_a_rewrite_carries_over_a_delete_that_came_between(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [2]}, [])
    new_rows = [*people(2), *people(3), *people(1, name="new")]
    committed(copy_on_write(stale, new_rows, kept=[1, 2], targets=[0]))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "new"), (2, "x")]


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


def test_a_compaction_lands_beside_a_delete(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3, 4))
    change, files = compaction(table)
    path = sorted(plan(table).files["path"].to_pylist())
    merge_on_read(lake.load(), Command.DELETE, {path[1]: [0]}, [])
    gone = rows_of(lake.load())
    table = committed(commit_change(table, change, files))
    assert rows_of(lake.as_pyiceberg_opens_it()) == gone
    assert len(gone) == 3
    assert plan(table).files.num_rows == 1
    assert plan(table).delete_files.num_rows == 1  # the one carried over; the old one points nowhere and is gone


def test_a_late_delete_follows_its_row_through_a_compaction(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3, 4))
    stale = lake.load()
    first = plan(stale).files["path"][0].as_py()
    change, files = compaction(table)
    committed(commit_change(table, change, files))
    answer = merge_on_read(stale, Command.DELETE, {first: [1]}, [])
    assert len(rows_of(lake.as_pyiceberg_opens_it())) == 3
    assert plan(answer).delete_files["referenced_file"].to_pylist() == [files.data_files[0].file_path]


def test_two_deletes_of_one_row_agree(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [0, 1]}, [])
    merge_on_read(stale, Command.DELETE, {path: [1, 2]}, [])
    assert rows_of(lake.as_pyiceberg_opens_it()) == []


def test_an_update_of_a_deleted_row_runs_again(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    merge_on_read(table, Command.DELETE, {path: [0]}, [])
    with pytest.raises(CommitConflict) as caught:
        merge_on_read(stale, Command.UPDATE, {path: [0]}, people(1, name="new"))
    assert isinstance(caught.value.conflict, Conflict)
    assert (caught.value.conflict.check, caught.value.conflict.files) == ("target_rows", (path,))


@pytest.mark.parametrize(
    ("meanwhile", "conflict"),
    [
        pytest.param((7, 8), None, id="the bounds rule it out"),
        pytest.param((0, 5), None, id="the bounds allow it, the rows do not"),
        pytest.param((0, 1), "new_rows_match", id="a row that the command would have read"),
    ],
)
def test_serializable_asks_about_rows_that_came_between(
    lake: Lakehouse, meanwhile: tuple[int, ...], conflict: str | None
) -> None:
    stale = insert(lake.create(), people(1, 2))
    change = TableChange(
        Command.UPDATE,
        isolation=Isolation.SERIALIZABLE,
        command_id="u",
        scan_snapshot=head(stale),
        targets=((plan(stale).files["path"][0].as_py(), row_set([0])),),
        conflict_filter=Compare("id", "=", 1),
    )
    files = NewFiles(tuple(write(stale, people(1, name="new"))))
    insert(lake.load(), people(*meanwhile))
    if conflict is None:
        committed(commit_change(stale, change, files))
        assert len(rows_of(lake.as_pyiceberg_opens_it())) == 4
    else:
        with pytest.raises(CommitConflict) as caught:
            commit_change(stale, change, files)
        assert isinstance(caught.value.conflict, Conflict)
        assert caught.value.conflict.check == conflict


def test_a_window_with_an_expired_snapshot_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    stale = lake.load()
    path = plan(table).files["path"][0].as_py()
    for number in range(3, 6):
        table = insert(table, people(number))
    expire_snapshots(table, older_than_ms=time.time_ns() // 1_000_000 + 1, retain_last=1)
    with pytest.raises(CommitConflict) as caught:
        merge_on_read(stale, Command.DELETE, {path: [0]}, [])
    assert isinstance(caught.value.conflict, Conflict)
    assert caught.value.conflict.check == "history_known"


def test_a_table_made_anew_under_its_name_is_another_table(lake: Lakehouse) -> None:
    stale = insert(lake.create(), people(1))
    lake.catalog.drop_table(("default", "t"))
    lake.create()
    with pytest.raises(InvalidInput, match="dropped and made anew"):
        append(stale, write(stale, people(2)))


@pytest.mark.slow
def test_processes_that_append_at_once_lose_and_double_nothing(lake: Lakehouse) -> None:
    lake.create(properties={"commit.retry.min-wait-ms": "10"})
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from lakehouse import Lakehouse, insert, people
lake = Lakehouse(Path({str(lake.folder)!r}))
for number in range(12):
    insert(lake.load(), people(int(sys.argv[1]) * 100 + number))
"""
    started = [subprocess.Popen([sys.executable, "-c", code, str(n)], stderr=subprocess.PIPE) for n in range(4)]
    ended = [(each.wait(120), each.stderr.read().decode()[-500:] if each.stderr else "") for each in started]
    assert ended == [(0, "")] * 4
    table = lake.as_pyiceberg_opens_it()
    assert sorted(row[0] for row in rows_of(table)) == [n * 100 + k for n in range(4) for k in range(12)]
    assert [s.sequence_number for s in table.metadata.snapshots] == list(range(1, 49))
    assert orphans(lake.load()) == ()


# ---------------------------------------------------------------- requests that are answered late or never


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


def test_a_late_request_that_wins_over_the_second_one_keeps_its_files(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []
    hook = nth(lambda: late.append(LateRequest(lake)), lambda: late[0].arrives())
    answer = append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]
    assert [s.snapshot_id for s in lake.load().metadata.snapshots][-1] == answer.snapshot_id
    assert orphans(lake.load()) == ()


def test_a_lost_swap_does_not_settle_an_earlier_request(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def lands_and_is_expired() -> None:
        late[0].arrives()
        insert(lake.load(), people(3))
        expire_all_but_the_head(lake)

    hook = nth(lambda: late.append(LateRequest(lake)), lands_and_is_expired)
    with pytest.raises(CommitUnknown, match="look for snapshot"):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def test_a_late_request_that_lands_after_its_writer_gave_up_is_readable(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []
    hook = nth(lambda: late.append(LateRequest(lake, then=fail_next_read)))
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.load()) == [(1, "x")]
    late[0].arrives()
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_a_lost_swap_after_which_nobody_can_look_is_unknown(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def lands_and_the_catalog_is_gone() -> None:
        late[0].arrives()
        fail_next_read()

    hook = nth(lambda: late.append(LateRequest(lake)), lands_and_the_catalog_is_gone)
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(2)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_an_interrupt_while_a_request_is_open_removes_nothing_and_says_so(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    late: list[LateRequest] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        append(
            table,
            write(table, people(2)),
            CommitOptions(on_phase=nth(lambda: late.append(LateRequest(lake)), interrupt)),
        )
    assert "nobody knows whether INSERT" in caught.value.__notes__[0]
    late[0].arrives()
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_a_lost_answer_whose_snapshot_was_expired_is_never_committed_again(lake: Lakehouse) -> None:
    table = lake.create(properties=FAST)  # scanned empty: an expiry leaves a line without a visible hole

    def committed_then_expired() -> None:
        for number in (2, 3):
            insert(lake.load(), people(number))
        expire_all_but_the_head(lake)

    hook = once(lambda: fail_once("after_commit", then=committed_then_expired))
    with pytest.raises(CommitUnknown):
        append(table, write(table, people(1)), CommitOptions(on_phase=hook))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]


def reads_the_table(table: Table) -> TableChange:
    """An INSERT … SELECT of the table's own rows, at serializable."""
    scanned = table.current_snapshot()
    number = None if scanned is None else scanned.snapshot_id
    return TableChange(Command.INSERT_SELECT, isolation=Isolation.SERIALIZABLE, command_id="r", scan_snapshot=number)


@pytest.mark.parametrize(("others", "known"), [((2,), True), ((2, 3), False)])
@pytest.mark.parametrize("first", [(), (1,)])
def test_an_expiry_neither_hides_a_hole_in_the_window_nor_invents_one(
    lake: Lakehouse, first: tuple[int, ...], others: tuple[int, ...], *, known: bool
) -> None:
    table = lake.create()
    if first:
        insert(table, people(*first))
    stale = lake.load()
    files = write(stale, people(9))
    for number in others:
        insert(lake.load(), people(number))
    expire_all_but_the_head(lake)
    with pytest.raises(CommitConflict) as caught:
        commit_change(stale, reads_the_table(stale), NewFiles(tuple(files)))
    assert isinstance(caught.value.conflict, Conflict)
    assert caught.value.conflict.check == ("new_rows_match" if known else "history_known")


def test_metadata_files_that_are_gone_already_do_not_fail_a_commit(lake: Lakehouse) -> None:
    keep_one = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    table = insert(lake.create(properties=keep_one), people(1))
    Path(table.metadata.metadata_log[-1].metadata_file.removeprefix("file://")).unlink()
    insert(table, people(2))
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x")]


def test_no_two_tries_share_a_name_and_each_has_the_number_of_its_snapshot(lake: Lakehouse) -> None:
    table = insert(lake.create(properties=FAST), people(1))
    seen: list[set[str]] = []
    metadata = Path(table.location().removeprefix("file://")) / "metadata"

    def note(phase: str) -> None:
        if phase == METADATA_WRITTEN:
            seen.append(files_below(metadata))
            if len(seen) < 3:
                insert(lake.load(), people(10 + len(seen)))

    answer = append(table, write(table, people(2)), CommitOptions(on_phase=note))
    assert answer.retries == 2
    own = answer.table.current_snapshot()
    assert own is not None
    mine = [m for m in own.manifests(answer.table.io) if m.added_snapshot_id == own.snapshot_id]
    assert {m.sequence_number for m in mine} == {own.sequence_number} == {4}
    assert {e.sequence_number for m in mine for e in m.fetch_manifest_entry(answer.table.io)} == {4}
