"""One commit, try by try: lost swaps, unknown outcomes, interrupts, kills. None of them loses or doubles a row."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commit_hooks import (
    FAST,
    fail_once,
    once,
    orphans,
)
from lakehouse import Lakehouse, files_below, insert, people, rows_of, write

from in_part import in_part
from lakeproof.errors import CommitRejected, CommitUnknown, InvalidInput
from lakeproof.iceberg.committing.commit import ATTEMPTING, METADATA_WRITTEN, SWAPPED
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.tables import catalogs
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import load_table


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


@pytest.mark.parametrize("phase", in_part([METADATA_WRITTEN, SWAPPED], every=2))
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
