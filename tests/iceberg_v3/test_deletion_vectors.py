"""Deletion vectors: one for each data file, merged at the head on every attempt, told apart by their place."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commit_hooks import compaction, once, orphans
from lakehouse import Lakehouse, insert, path_of, people, rows_of
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from test_reading_deletes import upsert
from test_snapshots_made import merge_on_read, summary
from vector_tables import THREE, delete, deleting, entries, keys, numbers, paths_of, puffins, table_of, vectors

import lakeproof.commit.snapshots as rules
import lakeproof.iceberg.committing.new_manifests as new_manifests
import lakeproof.iceberg.committing.table_access as table_access
from lakeproof.commit import Command
from lakeproof.commit.policy import ICEBERG_SPARK, LAKEPROOF
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.filters import Compare
from lakeproof.format import row_set
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import delete_where
from lakeproof.iceberg.format_v3.puffin import blob_of, positions_in
from lakeproof.iceberg.history.changes import changes_of, window_between
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.aggregates import count_rows
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests

FAR = 2**62


def test_a_commit_writes_one_puffin_file_with_a_vector_for_each_data_file(lake: Lakehouse) -> None:
    table = table_of(lake, 4, 3)
    one, two = paths_of(table)
    table = delete(table, {one: [0, 2], two: [1]})
    assert {path: rows for path, (_, rows) in vectors(table).items()} == {one: [0, 2], two: [1]}
    assert len(puffins(lake)) == 1
    assert len({key for key, _ in vectors(table).values()}) == 2
    assert numbers(lake.as_pyiceberg_opens_it()) == [1, 3, 4, 6]
    said = summary(table)
    assert (said["added-delete-files"], said["added-dvs"], said["added-position-deletes"]) == ("2", "2", "3")
    assert "added-position-delete-files" not in said
    assert int(said["added-files-size"]) == sum(file[19] for file in entries(table, 1))
    assert count_rows(table) == 4


@pytest.mark.parametrize("policy", [LAKEPROOF, ICEBERG_SPARK], ids=lambda policy: policy.name)
def test_the_next_vector_takes_in_the_one_before_it(lake: Lakehouse, policy: Any) -> None:
    """Also where nothing is asked of rows, and the change is committed as its writer wrote it."""
    table = table_of(lake, 6)
    [path] = paths_of(table)
    first = delete(table, {path: [1]}, policy=policy)
    table = delete(first, {path: [3, 4]}, policy=policy)
    assert vectors(table)[path][1] == [1, 3, 4]
    assert keys(entries(table, 2)) == [vectors(first)[path][0]]
    assert numbers(lake.as_pyiceberg_opens_it()) == [0, 2, 5]
    assert summary(table)["removed-dvs"] == "1"
    assert summary(table)["total-position-deletes"] == "3"


def test_vectors_are_merged_again_on_every_attempt(lake: Lakehouse) -> None:
    """Both delete other rows of one file; the second lost its swap once, and is not run again."""
    table = table_of(lake, 6)
    [path] = paths_of(table)
    answer = deleting(table, {path: [5]}, on_phase=once(lambda: delete(lake.load(), {path: [0, 1]})))
    assert isinstance(answer, Committed)
    assert answer.retries == 1
    assert vectors(answer.table)[path][1] == [0, 1, 5]
    assert numbers(lake.as_pyiceberg_opens_it()) == [2, 3, 4]


def test_the_puffin_of_the_winning_attempt_stays_and_the_others_go(lake: Lakehouse) -> None:
    table = table_of(lake, 6)
    [path] = paths_of(table)
    answer = deleting(table, {path: [5]}, on_phase=once(lambda: delete(lake.load(), {path: [0]})))
    assert isinstance(answer, Committed)
    assert len(puffins(lake)) == 2  # of the other, which an older snapshot needs, and the winner's
    assert orphans(answer.table) == ()
    assert numbers(answer.table) == [1, 2, 3, 4]


def test_a_refused_change_leaves_no_puffin_file(lake: Lakehouse) -> None:
    table = table_of(lake, 3)
    [path] = paths_of(table)
    late = once(lambda: deleting(lake.load(), {path: [1]}, people(100)))
    with pytest.raises(CommitConflict):
        deleting(table, {path: [1]}, people(200), on_phase=late)
    assert len(puffins(lake)) == 1
    assert numbers(lake.load()) == [0, 2, 100]


def test_an_update_is_one_snapshot(lake: Lakehouse) -> None:
    table = table_of(lake, 3)
    [path] = paths_of(table)
    answer = deleting(table, {path: [1]}, people(1, name="new"))
    assert isinstance(answer, Committed)
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(0, "x"), (1, "new"), (2, "x")]
    assert len(answer.table.metadata.snapshots) == 2


@pytest.mark.parametrize("writers", [4, 8])
def test_writers_of_different_rows_of_one_file_all_commit_without_a_rerun(lake: Lakehouse, writers: int) -> None:
    table = table_of(lake, 10 * writers)
    [path] = paths_of(table)
    answers: list[Any] = []
    together = threading.Barrier(writers)

    def work(mine: int) -> None:
        together.wait()
        for turn in range(3):
            here = lake.load()
            rows = people(1000 + 10 * mine + turn) if turn == 2 else ()
            answers.append(deleting(here, {path: [10 * mine + turn]}, rows, reruns_left=True))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(each) for each in answers] == [Committed] * 3 * writers  # none says RunAgain
    gone = {10 * mine + turn for mine in range(writers) for turn in range(3)}
    new = {1000 + 10 * mine + 2 for mine in range(writers)}
    assert numbers(lake.as_pyiceberg_opens_it()) == sorted(set(range(10 * writers)) - gone | new)
    assert orphans(lake.load()) == ()


# ---------------------------------------------------------------- two vectors of one Puffin file


def two_in_one(lake: Lakehouse) -> tuple[Table, list[str]]:
    """Two data files, each with a vector in the same Puffin file."""
    table = table_of(lake, 3, 3)
    paths = paths_of(table)
    return delete(table, {paths[0]: [0], paths[1]: [2]}), paths


def test_one_of_two_vectors_leaves_and_the_other_stays(lake: Lakehouse) -> None:
    table, (one, two) = two_in_one(lake)
    before = vectors(table)
    table = delete(table, {one: [1]})
    assert vectors(table)[two] == before[two]
    assert numbers(lake.as_pyiceberg_opens_it()) == [2, 3, 4]
    table = delete_where(table, Compare("id", "<", 3)).table
    assert list(vectors(table)) == [two]
    table = expire_snapshots(table, older_than_ms=FAR, retain_last=1).table
    assert numbers(lake.as_pyiceberg_opens_it()) == [3, 4]
    assert len(puffins(lake)) == 1


def test_manifests_that_are_written_again_keep_places_and_data_files(lake: Lakehouse) -> None:
    table, _ = two_in_one(lake)
    before = vectors(table)
    table = alter_properties(table, {"commit.manifest.min-count-to-merge": "2"})
    for number in range(3):
        table = insert(table, people(100 + number))
    table = rewrite_manifests(table).table
    assert vectors(table) == before
    assert numbers(lake.as_pyiceberg_opens_it()) == [1, 2, 3, 4, 100, 101, 102]


def test_compaction_drops_the_vectors_of_its_inputs_and_carries_later_deletes_over(lake: Lakehouse) -> None:
    table, (one, two) = two_in_one(lake)
    # The compaction of the tests keeps all rows, so it is of a table without deletes.
    other = insert(insert(lake.create("u", properties=THREE), people(1, 2)), people(3, 4))
    change, files = compaction(other)
    left, _ = paths_of(other)
    answer = commit_change(other, change, files, on_phase=once(lambda: delete(lake.load("u"), {left: [1]})))
    assert isinstance(answer, Committed)
    assert list(vectors(answer.table)) == paths_of(answer.table)
    assert numbers(lake.as_pyiceberg_opens_it("u")) == [1, 3, 4]
    assert orphans(answer.table) == ()
    assert set(vectors(table)) == {one, two}


# ---------------------------------------------------------------- after an upgrade


def shared_delete_file(table: Table, positions: dict[str, list[int]]) -> DataFile:
    """One position delete file for several data files, as engines of version 2 may write it."""
    target = f"{table.location()}/data/shared.parquet"
    pairs = [(path, row) for path in sorted(positions) for row in positions[path]]
    columns = {"file_path": [path for path, _ in pairs], "pos": pa.array([row for _, row in pairs], pa.int64())}
    with table.io.new_output(target).create() as stream:
        pq.write_table(pa.table(columns), stream)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=target,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(pairs),
        file_size_in_bytes=path_of(target).stat().st_size,
    )
    file.spec_id = 0
    return file


def test_the_first_vector_takes_in_the_position_deletes_of_before(lake: Lakehouse) -> None:
    """A reader of a vector looks at no position delete file, not at those that name other data files too."""
    table = table_of(lake, 4, 4, **{"format-version": "2"})
    one, two = paths_of(table)
    table = upsert(table, [shared_delete_file(table, {one: [0], two: [0]})], [])
    table = merge_on_read(table, Command.DELETE, {one: [1]}, [])
    table = alter_properties(table, {"format-version": "3"})
    assert numbers(table) == [2, 3, 5, 6, 7]
    table = delete(table, {one: [2]})
    found = {row["content"]: row for row in plan(table).delete_files.to_pylist()}
    assert found["deletion-vector"]["record_count"] == 3
    assert set(found) == {"position", "deletion-vector"}  # the shared one stays for the other data file
    assert len(entries(table, 2)) == 1
    assert numbers(lake.as_pyiceberg_opens_it()) == [3, 5, 6, 7]
    table = delete(table, {two: [3]})
    assert numbers(lake.as_pyiceberg_opens_it()) == [3, 5, 6]


# ---------------------------------------------------------------- what changed, told from vectors


def test_the_change_feed_tells_only_the_rows_that_a_merged_vector_adds(lake: Lakehouse) -> None:
    table = table_of(lake, 5)
    [path] = paths_of(table)
    first = delete(table, {path: [0]})
    table = delete(first, {path: [3]})
    start, end = first.current_snapshot(), table.current_snapshot()
    assert start is not None
    assert end is not None
    [found] = changes_of(table, window_between(table, start.snapshot_id, end.snapshot_id))
    assert (found.path, found.is_insert) == (path, False)
    assert found.but is not None
    assert found.but.tolist() == [0, 1, 2, 4]


# ---------------------------------------------------------------- wrong variants, each of which a test above finds


def wrong_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector replaces the one before it without taking it in."""
    right = rules.with_older_deletes
    monkeypatch.setattr(rules, "with_older_deletes", lambda new, *more: (tuple(new), right(list(new), *more)[1]))


def wrong_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector leaves by the path of its Puffin file."""

    def without(self: Any, manifest: Any, removed: frozenset[str]) -> Any:
        found, gone, paths = [], [], {key.partition("#")[0] for key in removed}
        for entry in self.entries(manifest):
            hit = entry.data_file.file_path in paths
            gone += [entry.data_file] if hit else []
            status = new_manifests.DELETED if hit else new_manifests.EXISTING
            found.append(new_manifests.restated(entry, status, self.snapshot_id if hit else entry.snapshot_id))
        return self.write(found, manifest.partition_spec_id, manifest.content), gone

    monkeypatch.setattr(new_manifests.ManifestMaker, "without", without)


def wrong_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is named is looked for among manifests alone."""
    right = table_access.own_files
    monkeypatch.setattr(
        table_access, "own_files", lambda *about: frozenset(p for p in right(*about) if not p.endswith(".puffin"))
    )


@pytest.mark.parametrize(
    ("plant", "found_by"),
    [
        (wrong_merge, test_vectors_are_merged_again_on_every_attempt),
        (wrong_merge, test_the_first_vector_takes_in_the_position_deletes_of_before),
        (wrong_identity, test_one_of_two_vectors_leaves_and_the_other_stays),
        (wrong_clean_up, test_the_puffin_of_the_winning_attempt_stays_and_the_others_go),
    ],
)
def test_a_wrong_variant_is_found(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Any], None], found_by: Callable[[Any], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, LookupError, InvalidInput)):
        found_by(lake)


def test_merging_a_million_positions(lake: Lakehouse) -> None:
    """What a figure is told of elsewhere is at least right: positions in every kind of container."""
    rows = np.random.default_rng(7).integers(0, 10_000_000, 1_000_000)
    rows = np.unique(np.concatenate([rows, np.arange(500_000, 700_000)]))
    started = time.perf_counter()
    merged = blob_of(row_set(positions_in(blob_of(row_set(rows)))) | 1 << 20_000_000)
    print(f"a vector of {len(rows):,} positions, written, read and merged: {time.perf_counter() - started:.3f} s")
    assert np.array_equal(positions_in(merged), np.append(rows, 20_000_000))
