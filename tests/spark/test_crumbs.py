"""Small files of a partition join a larger file where a command writes all of them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakeproof.format import DataFile
from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.spark.compaction.plan import MOST_JOINED, with_crumbs
from lakeproof.spark.lake import Lake
from lakeproof.spark.row_level.scanned_files import Home

Rows = Callable[[str], list[tuple[Any, ...]]]


def home(name: str, size: int, partition: int = 0) -> Home:
    return Home(DataFile(name), (partition,), size)


def names(pieces: list[Any]) -> list[list[str]]:
    return [[each.path for each in piece] for piece in pieces]


@pytest.mark.parametrize(
    ("sizes", "target", "pieces"),
    [
        pytest.param([100, 90], 1000, [["f0"], ["f1"]], id="files of one size stay apart"),
        pytest.param([100, 10, 10], 1000, [["f0"], ["f1"], ["f2"]], id="two crumbs are not worth a scan"),
        pytest.param([100, 80, 9, 8, 7], 1000, [["f1", "f2", "f3", "f4"], ["f0"]], id="three join the smaller one"),
        pytest.param([100, 9, 8, 7], 110, [["f0", "f1"], ["f2", "f3"]], id="no file is larger than the target"),
    ],
)
def test_pieces(sizes: list[int], target: int, pieces: list[list[str]]) -> None:
    assert names(with_crumbs([home(f"f{n}", size) for n, size in enumerate(sizes)], target)) == pieces


def test_partitions_stay_apart_and_there_are_not_too_many_scans() -> None:
    homes = [home(f"f{p}.{n}", 100 if n == 0 else 1, p) for p in range(MOST_JOINED + 5) for n in range(4)]
    pieces = with_crumbs(homes, 1000)
    assert all(len({each.partition for each in piece}) == 1 for piece in pieces)
    assert sorted(each.path for piece in pieces for each in piece) == sorted(each.path for each in homes)
    assert sum(len(piece) > 1 for piece in pieces) == MOST_JOINED


def filled(lake: Lake, name: str, version: int) -> str:
    """Two partitions of a large file each, and three crumbs in one of them."""
    lake.sql(
        f"create table {name} (id bigint, v int, p int) using iceberg partitioned by (p) tblproperties "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read', 'commit.retry.min-wait-ms'='1')"
    )
    lake.sql(f"insert into {name} select /*+ repartition(1) */ id, 0, cast(id % 2 as int) from range(20000)")
    for n in range(3):
        lake.sql(f"insert into {name} select /*+ repartition(1) */ {20000 + 100 * n} + id, 0, 0 from range(20)")
    return f"update {name} set v = 1 where id % 5 = 0"


@pytest.mark.spark
@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_crumbs_are_all_there(lake: Lake, rows: Rows, name: str, version: int) -> None:
    update = filled(lake, name, version)
    before = rows(f"select id, p from {name} order by 1")
    ids = rows(f"select id, _row_id from {name} order by 1") if version == 3 else []
    lake.sql(update)
    counts = [count for (count,) in rows(f"select record_count from {name}.files order by 1")]
    assert len(counts) == 4
    assert rows(f"select id, p from {name} order by 1") == before
    assert rows(f"select count(*) from {name} where v <> int(id % 5 = 0)") == [(0,)]
    if version == 3:
        assert rows(f"select id, _row_id from {name} order by 1") == ids


@pytest.mark.spark
@pytest.mark.parametrize("version", [2, 3])
def test_a_late_delete_follows_its_rows_out_of_the_crumbs(lake: Lake, rows: Rows, name: str, version: int) -> None:
    update = filled(lake, name, version)
    waiting = [update]
    gone = {1, 5, 20003, 20005, 20119, 20211}  # the UPDATE writes 5 and 20005 anew, so that they match no longer

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and waiting:
            lake.sql(waiting.pop())

    conflicts: list[Any] = []
    text = f"delete from {name} where id in ({', '.join(map(str, sorted(gone)))}) and v = 0"
    before = {id_ for (id_,) in rows(f"select id from {name}")}
    lake.watched(on_phase=hook, on_rerun=conflicts.append).sql(text)
    assert (waiting, conflicts) == ([], [])
    after = {id_ for (id_,) in rows(f"select id from {name}")}
    assert (gone <= before, before - after) == (True, {1, 20003, 20119, 20211})
