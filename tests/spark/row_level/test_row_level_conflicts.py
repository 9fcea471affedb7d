"""Two writers on one real table: what is followed, carried over, run again or refused, and what is left on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakeproof.cli.commands.sql import tell_rerun
from lakeproof.errors import CommitConflict, CommitUnknown
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, METADATA_WRITTEN, SCANNED, SWAPPED
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.replay.stepping import ENDED, SteppedWriter
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def create(lake: Lake, name: str, mode: str = "merge-on-read", isolation: str = "snapshot", more: str = "") -> None:
    told = "".join(
        f"'write.{what}.mode' = '{mode}', 'write.{what}.isolation-level' = '{isolation}', "
        for what in ("delete", "update", "merge")
    )
    told += f"'commit.retry.min-wait-ms' = '1'{more}"
    lake.sql(f"create table {name} (id int, name string, v int) using iceberg tblproperties ({told})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), concat('n', id), 0 from range(10)")


def rows(lake: Lake, name: str) -> dict[int, tuple[str, int]]:
    found = [(row.id, (row.name, row.v)) for row in lake.table(name).scan().collect()]
    assert len(dict(found)) == len(found)  # no row twice
    return dict(found)


def run(lake: Lake, text: str, *, at: str, meanwhile: Sequence[str]) -> list[Any]:
    """The statement, and what others commit when it first reaches that phase."""
    waiting = list(meanwhile)

    def hook(phase: str) -> None:
        if phase == at:
            while waiting:
                lake.sql(waiting.pop(0))

    conflicts: list[Any] = []
    lake.watched(on_phase=hook, on_rerun=conflicts.append).sql(text)
    assert not waiting
    return conflicts


def orphans(lake: Lake, name: str) -> tuple[str, ...]:
    table = lake.engine.load(f"default.{name}")
    return remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True).files


def last(lake: Lake, name: str) -> dict[str, str]:
    return lake.table(name).snapshots()[-1].summary


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_other_rows_of_the_same_file_are_nobodys_business(lake: Lake, name: str, mode: str) -> None:
    create(lake, name, mode, isolation="serializable")
    others = [f"update {name} set v = 5 where id = 2", f"delete from {name} where id = 3"]
    conflicts = run(lake, f"update {name} set v = 1 where id = 1", at=FILES_WRITTEN, meanwhile=others)
    found = rows(lake, name)
    assert (found[1], found[2], 3 in found, len(found)) == (("n1", 1), ("n2", 5), False, 9)
    # Merge-on-read deletes other rows of the file; a file that copy-on-write replaced is gone, and the command runs
    # again as merge-on-read.
    assert [conflict.check for conflict in conflicts] == ([] if mode == "merge-on-read" else ["replaced_files"])
    assert ("added-delete-files" in last(lake, name)) == (mode == "merge-on-read" or bool(conflicts))
    assert orphans(lake, name) == ()


def test_a_delete_looks_at_the_new_version_of_its_row(
    lake: Lake, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create(lake, name)
    others = [f"update {name} set v = 7 where name = 'n4'"]
    conflicts = run(lake, f"delete from {name} where name = 'n4'", at=FILES_WRITTEN, meanwhile=others)
    assert [(conflict.check, conflict.fate) for conflict in conflicts] == [("target_rows", "updated")]
    tell_rerun(conflicts[0])
    said = capsys.readouterr().err
    assert said.startswith("note: runs again from the head: somebody else updated rows of ")
    assert said.endswith(" that the command writes too (target_rows)\n")
    assert 4 not in rows(lake, name)
    assert last(lake, name)["lakeproof.reruns"] == "1"
    assert orphans(lake, name) == ()


def test_a_delete_leaves_a_row_that_no_longer_matches(lake: Lake, name: str) -> None:
    create(lake, name)
    others = [f"update {name} set name = 'spared' where id = 4"]
    conflicts = run(lake, f"delete from {name} where name in ('n4', 'n5')", at=FILES_WRITTEN, meanwhile=others)
    found = rows(lake, name)
    assert conflicts == []
    assert (found[4], 5 in found) == (("spared", 0), False)
    assert orphans(lake, name) == ()


def test_a_compaction_carries_deletes_over_and_a_late_delete_follows_its_rows(lake: Lake, name: str) -> None:
    create(lake, name)
    lake.sql(f"insert into {name} values (20, 'n20', 0), (21, 'n21', 0)")
    compact = f"call system.rewrite_data_files('{name}')"
    others = [f"delete from {name} where id in (3, 20)", f"update {name} set v = 9 where id = 8"]
    assert run(lake, compact, at=METADATA_WRITTEN, meanwhile=others) == []
    said = last(lake, name)
    assert lake.table(name).snapshots()[-1].operation == "replace"
    assert said["added-position-deletes"] == "3"  # 3, 20 and the old version of 8
    mapping = Path(said["lakeproof.mapping"].removeprefix("file://"))
    assert mapping.name == f"mapping-{lake.table(name).snapshots()[-1].snapshot_id}.parquet"
    assert mapping.exists()
    assert run(lake, f"delete from {name} where id in (7, 21)", at=FILES_WRITTEN, meanwhile=[compact]) == []
    assert set(rows(lake, name)) == {0, 1, 2, 4, 5, 6, 8, 9}
    assert rows(lake, name)[8] == ("n8", 9)
    assert orphans(lake, name) == ()


def test_a_compaction_plans_again_what_somebody_else_replaced(lake: Lake, name: str) -> None:
    create(lake, name, "copy-on-write")
    lake.sql(f"insert into {name} values (20, 'n20', 0)")
    compact = f"call system.rewrite_data_files('{name}')"
    conflicts = run(lake, compact, at=FILES_WRITTEN, meanwhile=[f"delete from {name} where id = 3"])
    assert [conflict.check for conflict in conflicts] == ["replaced_files"]
    assert last(lake, name)["lakeproof.reruns"] == "1"
    assert set(rows(lake, name)) == {0, 1, 2, 4, 5, 6, 7, 8, 9, 20}
    assert len(lake.table(name).plan().files) == 1
    assert orphans(lake, name) == ()


def test_serializable_sees_rows_that_a_subquery_read(lake: Lake, name: str) -> None:
    create(lake, name, isolation="serializable")
    text = f"delete from {name} where id = 1 and exists (select 1 from {name} x where x.id = 2)"
    other = f"delete from {name} where id = 2 and exists (select 1 from {name} x where x.id = 1)"
    conflicts = run(lake, text, at=FILES_WRITTEN, meanwhile=[other])
    assert [conflict.check for conflict in conflicts] == ["rows_read"]
    assert 1 in rows(lake, name)  # its guard is gone, so it deletes nothing
    assert 2 not in rows(lake, name)
    assert orphans(lake, name) == ()


def test_an_insert_of_a_sum_is_computed_again(lake: Lake, name: str) -> None:
    create(lake, name)
    text = f"insert into {name} select 99, 'sum', cast(sum(id) as int) from {name} where id < 5"
    conflicts = run(lake, text, at=FILES_WRITTEN, meanwhile=[f"delete from {name} where id = 4"])
    assert [conflict.check for conflict in conflicts] == ["rows_read"]
    assert rows(lake, name)[99] == ("sum", 0 + 1 + 2 + 3)
    assert last(lake, name)["lakeproof.command"] == "INSERT SELECT"
    assert last(lake, name)["lakeproof.reruns"] == "1"
    assert orphans(lake, name) == ()


def test_a_conflict_that_reaches_the_user_says_which_check_why_and_what_next(lake: Lake, name: str) -> None:
    create(lake, name, more=", 'lakeproof.max-reruns' = '0'")
    before = lake.table(name).snapshots()[-1].snapshot_id
    with pytest.raises(CommitConflict) as refused:
        run(
            lake,
            f"update {name} set v = 1 where id = 1",
            at=FILES_WRITTEN,
            meanwhile=[f"update {name} set v = 2 where id = 1"],
        )
    now = lake.table(name).snapshots()[-1].snapshot_id
    lines = str(refused.value).splitlines()
    assert lines[0] == f"UPDATE on default.{name} was not committed"
    assert lines[1] == "  check    target_rows"
    assert lines[2].startswith(f"  because  snapshot {now} updated rows of ")
    assert lines[2].endswith(" that the UPDATE writes too")
    assert lines[3] == f"  read at  snapshot {before}; the table is now at snapshot {now}"
    assert lines[4] == f"  next     run the UPDATE again; it will scan snapshot {now}"
    assert rows(lake, name)[1] == ("n1", 2)
    assert orphans(lake, name) == ()


def test_a_commit_whose_answer_is_lost_is_found_and_not_made_twice(lake: Lake, name: str) -> None:
    create(lake, name)
    lost: list[Any] = []

    def hook(phase: str) -> None:
        if phase == SWAPPED and not lost:
            lost.append(phase)
            raise CommitUnknown("the answer was lost")

    lake.watched(on_phase=hook).sql(f"update {name} set v = v + 1")
    assert {v for _, v in rows(lake, name).values()} == {1}
    assert len(lake.table(name).snapshots()) == 2
    assert orphans(lake, name) == ()


def test_a_statement_reads_one_snapshot_however_often_it_names_the_table(lake: Lake, name: str) -> None:
    create(lake, name)
    text = f"update {name} set v = (select count(*) from {name}) where id = 1"
    with stepped(lake, text) as writer:
        writer.until([SCANNED])
        lake.sql(f"insert into {name} values (50, 'x', 0)")
        writer.until([])
    assert rows(lake, name)[1] == ("n1", 10)  # snapshot isolation: the new row was not there


def test_two_writers_go_step_by_step(lake: Lake, name: str) -> None:
    create(lake, name)
    with (
        stepped(lake, f"update {name} set v = 1 where id = 1") as one,
        stepped(lake, f"delete from {name} where id = 2") as two,
    ):
        assert one.until([METADATA_WRITTEN]) == METADATA_WRITTEN
        assert two.until([METADATA_WRITTEN]) == METADATA_WRITTEN
        assert two.until([]) == ENDED
        assert one.until([METADATA_WRITTEN]) == METADATA_WRITTEN  # lost the swap, validated again
        assert one.until([]) == ENDED
        assert one.error is None
        assert two.error is None
    assert [snapshot.operation for snapshot in lake.table(name).snapshots()] == ["append", "delete", "overwrite"]
    told = [one.summary.get("lakeproof.retries") for one in lake.table(name).snapshots()]
    assert told == [None, None, "1"]
    assert (rows(lake, name)[1], 2 in rows(lake, name)) == (("n1", 1), False)
    assert orphans(lake, name) == ()


@contextmanager
def stepped(lake: Lake, text: str) -> Iterator[SteppedWriter]:
    writer = SteppedWriter(lake, lambda watched: watched.sql(text))
    yield writer
    writer.abandon()
