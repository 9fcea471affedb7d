"""Row ids of format version 3: kept by what moves or changes rows, given once, shown where they are asked for.

`LAKEPROOF_LINEAGE_STEPS` says how many random commands a table is given, `LAKEPROOF_LINEAGE_PLANTED` how many planted
errors are tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lineage_judge import COLUMNS, MODES, Judge, Walk, last_number, made
from planted_source import planted

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import SCANNED
from lakeproof.spark.jvm.spark41 import execution_of
from lakeproof.spark.lake import Lake
from lakeproof.spark.reading.columns import kept_columns
from lakeproof.spark.row_level import new_rows

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
STEPS = int(os.environ.get("LAKEPROOF_LINEAGE_STEPS", "5"))
WANTED = int(os.environ.get("LAKEPROOF_LINEAGE_PLANTED", "2"))


def _wrong(lake: Lake, name: str, mode: str, seed: int, names: list[str]) -> Iterator[str]:
    """What is not as it must be after each command of a walk."""
    lake.sql(made(name, mode))
    judge, walk = Judge(), Walk(seed)
    for act in walk.acts(names):
        lake.sql(act.text.format(t=name, s=""))
        number = last_number(lake.engine.load(name))
        read: list[Any] = [tuple(row) for row in lake.collect(lake.sql(f"select {COLUMNS} from {name}"))]
        yield from (f"{act.text}: {each}" for each in judge.wrong(act, read, number))
        plain = {row["id"]: (row["v"], row["k"]) for row in lake.engine.load(name).scan().to_arrow().to_pylist()}
        if plain != act.after:
            yield f"{act.text}: PyIceberg reads {plain}, not {act.after}"


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids_through_random_commands(lake: Lake, name: str, mode: str) -> None:
    walk = Walk(1)
    assert list(_wrong(lake, name, mode, 2, ["update", "rewrite", "move", "merge", *walk.random(STEPS)])) == []


@pytest.mark.parametrize("most_told", [new_rows.MOST_TOLD, -1], ids=["told by the write", "kept by Spark"])
@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids_where_they_do_not_come_to_the_driver(
    lake: Lake, name: str, mode: str, most_told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("SMALL_BYTES", 0), ("FEW_ROWS", 0), ("MOST_TOLD", most_told)):
        monkeypatch.setattr(new_rows, limit, value)
    assert list(_wrong(lake, name, mode, 5, ["update", "merge", "move", "update"])) == []


def test_rows_keep_their_ids_where_a_compaction_sorts_them(lake: Lake, name: str) -> None:
    names = ["update", "sort", "overwrite", "merge", "sort", "delete", "manifests", "delete_files", "sort"]
    assert list(_wrong(lake, name, "merge-on-read", 3, names)) == []


def test_rows_with_lists_keep_their_ids_in_a_sorting_compaction(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, a array<int>) using iceberg tblproperties ('format-version'='3')")
    for key in (1, 2, 3):
        lake.sql(f"insert into {name} values ({key}, array({key}))")
    asked = f"select _row_id, _last_updated_sequence_number, id, a[0] from {name} order by id"
    before = rows(asked)
    how = "strategy => 'sort', sort_order => 'id desc', options => map('rewrite-all', 'true')"
    lake.sql(f"call system.rewrite_data_files(table => '{name}', {how})")
    assert rows(asked) == before == [(0, 1, 1, 1), (1, 2, 2, 2), (2, 3, 3, 3)]


class Planted(NamedTuple):
    """An error that the walk must find."""

    name: str
    module: str
    old: str
    new: str


def _planted() -> list[Planted]:
    lines = (Path(__file__).parent / "planted_lineage_errors.tsv").read_text().splitlines()[1:]
    every = [Planted(*line.split("\t")) for line in lines]
    return every[:: max(1, len(every) // WANTED)][:WANTED]


@pytest.mark.parametrize("error", _planted(), ids=lambda error: error.name)
def test_the_judge_finds_a_planted_error(lake: Lake, name: str, error: Planted) -> None:
    with planted(error):
        kept_columns.columns.clear()  # columns that were made before know nothing of the error
        names = ["update", "rewrite", "delete", "rewrite", "sort"]
        found = next(_wrong(lake, name, "copy-on-write", 2, names), None)
    kept_columns.columns.clear()
    assert found is not None, f"nobody saw that {error.name}"


def test_lineage_is_hidden_filtered_and_free(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, v string) using iceberg tblproperties ('format-version'='3')")
    assert rows(f"select _row_id, id from {name}") == []
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    lake.sql(f"insert into {name} values (3, 'c')")
    assert sorted(rows(f"select * from {name}")) == [(1, "a"), (2, "b"), (3, "c")]
    assert rows(f"select id from {name} where _row_id = 2") == [(3,)]
    assert rows(f"select max(_row_id), min(_last_updated_sequence_number), count(*) from {name}") == [(2, 1, 3)]
    assert rows(f"select a.id from {name} a join {name} b on a._row_id = b._row_id + 2") == [(3,)]
    first = rows(f"select snapshot_id from {name}.snapshots order by committed_at")[0][0]
    assert sorted(rows(f"select _row_id, id from {name} version as of {first}")) == [(0, 1), (1, 2)]
    asked, free = (lake.sql(f"select {columns} from {name}") for columns in ("_row_id", "*"))
    assert "_lakeproof_stored_id" in str(execution_of(asked).executedPlan().toString())
    assert "_lakeproof" not in str(execution_of(free).executedPlan().toString())


def test_older_tables_have_no_lineage_and_upgraded_ones_get_it(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1), (2)")
    with pytest.raises(Exception, match="`_row_id` cannot be resolved"):
        rows(f"select _row_id from {name}")
    lake.sql(f"alter table {name} set tblproperties ('format-version'='3')")
    asked = f"select _row_id, _last_updated_sequence_number, id from {name} order by id"
    assert rows(asked) == [(None, None, 1), (None, None, 2)]
    lake.sql(f"insert into {name} values (3)")
    found = rows(asked)
    assert sorted(row_id for row_id, _, _ in found) == [0, 1, 2]
    assert [(number, key) for _, number, key in found] == [(1, 1), (1, 2), (2, 3)]


REWRITTEN = {
    "merge-on-read": ["update {t} set v = 'b' where id = 2", "merge into {t} using (values (2)) s(id) on {t}.id = s.id "
                      "when matched then update set v = 'b'"],
    "copy-on-write": ["update {t} set v = 'b' where id = 2", "delete from {t} where id = 2",
                      "call system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))"],
}  # fmt: skip


@pytest.mark.parametrize(("mode", "text"), [(mode, text) for mode, texts in REWRITTEN.items() for text in texts])
def test_a_row_keeps_the_id_that_another_commit_gave_it_after_the_scan(
    lake: Lake, rows: Rows, name: str, mode: str, text: str
) -> None:
    kinds = ", ".join(f"'write.{kind}.mode'='{mode}'" for kind in ("update", "delete", "merge"))
    lake.sql(f"create table {name} (id int, v string) using iceberg tblproperties ({kinds})")
    lake.sql(f"insert into {name} select id, 'a' from range(4)")
    lake.sql(f"alter table {name} set tblproperties ('format-version'='3')")
    given: dict[int, int] = {}
    again: list[str] = []

    def somebody_else(phase: str) -> None:
        if phase == SCANNED and not given:
            lake.sql(f"insert into {name} values (9, 'other')")
            given.update(rows(f"select id, _row_id from {name}"))

    watched = lake.watched(on_phase=somebody_else, on_rerun=lambda conflict: again.append(conflict.check))
    watched.sql(text.format(t=name))
    assert again == ["row_ids_given"]
    kept: dict[int, int] = dict(rows(f"select id, _row_id from {name}"))
    assert kept == {row: number for row, number in given.items() if row in kept}
    assert len(kept) == (4 if "delete from" in text else 5)


def test_a_column_of_that_name_goes_first_and_is_in_the_way_of_rewrites(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (_row_id int, v string) using iceberg tblproperties ('format-version'='3')")
    lake.sql(f"insert into {name} values (7, 'a')")
    assert rows(f"select _row_id from {name}") == [(7,)]
    with pytest.raises(InvalidInput, match="while a column is called `_row_id`"):
        lake.sql(f"update {name} set v = 'b'")
    assert rows(f"select * from {name}") == [(7, "a")]


def test_files_of_moved_rows_have_the_columns_with_statistics_and_metadata_do_not(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int, v string) using iceberg tblproperties ('format-version'='3')")
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    lake.sql(f"update {name} set v = 'c' where id = 2")
    table = lake.engine.load(name)
    assert [field.name for field in table.schema().fields] == ["id", "v"]
    (snapshot,) = [each for each in [table.current_snapshot()] if each is not None]
    entries = [entry for manifest in snapshot.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)]
    assert entries
    for entry in entries:
        assert 2147483540 in entry.data_file.lower_bounds
        assert 2147483539 in entry.data_file.null_value_counts
