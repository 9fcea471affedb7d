"""Rewrites of data and delete files: the same rows in fewer files, and no delete file that nobody needs."""

from __future__ import annotations

from typing import Any

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.iceberg.tables.metadata_views import view
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def create(lake: Lake, name: str, by: str = "", more: str = "") -> None:
    told = "".join(f"'write.{what}.mode' = 'merge-on-read', " for what in ("delete", "update", "merge"))
    parts = f"partitioned by ({by})" if by else ""
    lake.sql(
        f"create table {name} (id int, part string, v int) using iceberg {parts} "
        f"tblproperties ({told}'commit.retry.min-wait-ms' = '1'{more})"
    )


def insert(lake: Lake, name: str, first: int, last: int) -> None:
    lake.sql(
        f"insert into {name} select /*+ coalesce(1) */ cast(id as int), if(id % 2 = 0, 'even', 'odd'), 0 "
        f"from range({first}, {last})"
    )


def ids(lake: Lake, name: str) -> list[int]:
    return sorted(row.id for row in lake.table(name).scan().collect())


def call(lake: Lake, text: str) -> dict[str, Any]:
    return dict(lake.sql(text).collect()[0].asDict())


def live(lake: Lake, name: str) -> dict[str, list[dict[str, Any]]]:
    """The live files: data files under `data`, delete files under `delete`."""
    files = view(lake.engine.load(f"default.{name}"), "files").to_pylist()
    return {
        "data": [file for file in files if file["content"] == 0],
        "delete": [file for file in files if file["content"] != 0],
    }


def orphans(lake: Lake, name: str) -> tuple[str, ...]:
    table = lake.engine.load(f"default.{name}")
    return remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True).files


def test_small_files_become_one_a_partition_and_dead_rows_go(lake: Lake, name: str) -> None:
    create(lake, name, by="part")
    for first in (0, 10, 20):
        insert(lake, name, first, first + 10)
    lake.sql(f"delete from {name} where id in (3, 4, 25)")
    lake.sql(f"update {name} set v = 1 where id = 6")
    before = ids(lake, name)
    done = call(lake, f"call system.rewrite_data_files('{name}')")
    assert done["rewritten_data_files_count"] == 7
    assert done["added_data_files_count"] == 2
    assert done["removed_delete_files_count"] == 4
    assert done["failed_data_files_count"] == 0
    files = live(lake, name)
    assert len(files["data"]) == 2
    assert files["delete"] == []
    assert ids(lake, name) == before
    assert lake.table(name).snapshots()[-1].operation == "replace"
    again = call(lake, f"call system.rewrite_data_files('{name}')")
    assert set(again.values()) == {0}
    assert orphans(lake, name) == ()


def test_a_predicate_chooses_files_and_partial_progress_commits_each_piece(lake: Lake, name: str) -> None:
    create(lake, name, by="part")
    for first in (0, 10):
        insert(lake, name, first, first + 10)
    done = call(lake, f"""call system.rewrite_data_files(table => '{name}', where => "part = 'odd'")""")
    assert (done["rewritten_data_files_count"], done["added_data_files_count"]) == (2, 1)
    snapshots = len(lake.table(name).snapshots())
    options = "map('rewrite-all', 'true', 'partial-progress.enabled', 'true')"
    call(lake, f"call system.rewrite_data_files(table => '{name}', options => {options})")
    assert len(lake.table(name).snapshots()) == snapshots + 2
    assert len(live(lake, name)["data"]) == 2
    assert ids(lake, name) == list(range(20))


def test_files_are_packed_up_to_the_target_size(lake: Lake, name: str) -> None:
    create(lake, name)
    for first in range(0, 40, 10):
        insert(lake, name, first, first + 10)
    size = max(file["file_size_in_bytes"] for file in live(lake, name)["data"])
    options = f"map('target-file-size-bytes', '{2 * size + 10}', 'min-file-size-bytes', '{2 * size}')"
    done = call(lake, f"call system.rewrite_data_files(table => '{name}', options => {options})")
    assert (done["rewritten_data_files_count"], done["added_data_files_count"]) == (4, 2)
    assert sorted(file["record_count"] for file in live(lake, name)["data"]) == [20, 20]
    assert ids(lake, name) == list(range(40))


def test_options_and_predicates_that_mean_nothing_are_refused(lake: Lake, name: str) -> None:
    create(lake, name)
    insert(lake, name, 0, 4)
    with pytest.raises(InvalidInput, match="there is no option `colour`"):
        lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('colour', 'red'))")
    with pytest.raises(InvalidInput, match="option `min-input-files` cannot be 'many'"):
        lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('min-input-files', 'many'))")
    with pytest.raises(InvalidInput, match="this predicate does not choose files"):
        lake.sql(f"call system.rewrite_data_files(table => '{name}', where => 'id % 2 = 0')")


def test_delete_files_become_one_for_each_data_file(lake: Lake, name: str) -> None:
    create(lake, name)
    insert(lake, name, 0, 10)
    insert(lake, name, 10, 20)
    for number in (1, 3, 5, 12):
        lake.sql(f"delete from {name} where id = {number}")
    assert len(live(lake, name)["delete"]) == 4
    done = call(lake, f"call system.rewrite_position_delete_files('{name}')")
    assert (done["rewritten_delete_files_count"], done["added_delete_files_count"]) == (3, 1)
    assert [file["record_count"] for file in live(lake, name)["delete"]] in ([1, 3], [3, 1])
    assert ids(lake, name) == [n for n in range(20) if n not in (1, 3, 5, 12)]
    assert lake.table(name).snapshots()[-1].operation == "replace"
    again = call(lake, f"call system.rewrite_position_delete_files('{name}')")
    assert set(again.values()) == {0}
    assert orphans(lake, name) == ()


def test_delete_files_that_somebody_else_dropped_are_planned_again(lake: Lake, name: str) -> None:
    create(lake, name)
    insert(lake, name, 0, 10)
    insert(lake, name, 10, 20)
    for number in (1, 3, 12, 14):
        lake.sql(f"delete from {name} where id = {number}")
    conflicts: list[Any] = []
    waiting = [f"""call system.rewrite_data_files(table => '{name}', where => 'id < 10')"""]

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and waiting:
            lake.sql(waiting.pop())

    watched = lake.watched(on_phase=hook, on_rerun=conflicts.append)
    done = call(watched, f"call system.rewrite_position_delete_files('{name}')")
    assert [conflict.check for conflict in conflicts] == ["missing_delete_paths"]
    assert (done["rewritten_delete_files_count"], done["added_delete_files_count"]) == (2, 1)
    assert ids(lake, name) == [n for n in range(20) if n not in (1, 3, 12, 14)]
    assert orphans(lake, name) == ()


def test_lists_and_maps_are_compacted_in_order(lake: Lake, name: str) -> None:
    told = "tblproperties ('write.delete.mode' = 'merge-on-read')"
    lake.sql(f"create table {name} (id int, l array<int>) using iceberg {told}")
    for first in (0, 5):
        values = ", ".join(f"({n}, array({n}))" for n in range(first, first + 5))
        lake.sql(f"insert into {name} select /*+ coalesce(1) */ * from values {values}")
    lake.sql(f"delete from {name} where id = 1")
    waiting = [f"delete from {name} where id in (2, 7)"]

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and waiting:
            lake.sql(waiting.pop())

    lake.watched(on_phase=hook).sql(f"call system.rewrite_data_files('{name}')")
    found = {row.id: row.l for row in lake.table(name).scan().collect()}
    assert found == {n: [n] for n in (0, 3, 4, 5, 6, 8, 9)}
    assert len(live(lake, name)["data"]) == 1
