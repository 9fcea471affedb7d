"""Row ids: none twice, none changed by a manifest that is written again, and given anew on every attempt."""

import random
from typing import Any

import pyarrow as pa
import pytest
from commit_hooks import FAST, once
from lakehouse import Lakehouse, insert, people, rows_of, write
from pyiceberg.manifest import ManifestContent, ManifestFile
from test_other_catalogs import OnlyCommitTable
from test_snapshots_made import BY_NAME

from lakeproof.commit.snapshots import assigned_row_ids
from lakeproof.filters import Compare
from lakeproof.iceberg.committing import produce
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append, delete_where
from lakeproof.iceberg.format_v3.metadata import next_row_id
from lakeproof.iceberg.format_v3.row_ids import entries_of, first_row_ids
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.pyiceberg_private import FIRST_ROW_ID, MANIFEST_FIRST_ROW_ID, file_field
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.reading.segments import Segment, Span
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.tables.refs import create_branch
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests

THREE = {"format-version": "3", **FAST}


def ids(table: Table) -> dict[str, int | None]:
    """The first row id of each live file."""
    files = plan(table).files
    return dict(zip(files["path"].to_pylist(), files["first_row_id"].to_pylist(), strict=True))


def every_id(table: Table) -> list[int]:
    files = plan(table).files.to_pylist()
    return sorted(n for each in files for n in range(each["first_row_id"], each["first_row_id"] + each["record_count"]))


def as_entries(table: Table) -> dict[str, int | None]:
    """The same, by the entries and not by the decoded columns."""
    found = {}
    for manifest in manifests_of(table.io, table.current_snapshot()):
        for entry in entries_of(table.io, manifest):
            if entry.status.value != 2:
                found[entry.data_file.file_path] = file_field(entry.data_file, FIRST_ROW_ID)
    return found


def test_ids_stay_where_manifests_are_written_again(lake: Lakehouse) -> None:
    table = lake.create(by=BY_NAME, properties={**THREE, "commit.manifest.min-count-to-merge": "3"})
    random.seed(4)
    known: dict[str, int | None] = {}
    for number in range(12):
        rows = [row for name in "abc" for row in people(*range(random.randint(1, 4)), name=name)]
        table = insert(table, rows)
        if number % 4 == 3:
            name = random.choice("abc")
            table = delete_where(table, Compare("name", "=", name)).table
        if number % 5 == 4:
            table = rewrite_manifests(table).table
        now = ids(table)
        assert None not in now.values()
        assert all(now[path] == first for path, first in known.items() if path in now)
        assert now == as_entries(table) == ids(lake.load())
        known |= now
        assert len(set(every_id(table))) == len(every_id(table))
        assert max(every_id(table)) < next_row_id(table.metadata)
    assert rows_of(lake.as_pyiceberg_opens_it()) == rows_of(table)


def test_an_upgrade_gives_ids_with_the_next_commit(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(properties=FAST), people(1, 2)), people(3))
    create_branch(table, "b")
    before = alter_properties(table, {"format-version": "3"})
    assert set(ids(before).values()) == {None}
    after = insert(before, people(4))
    assert every_id(after) == [0, 1, 2, 3]
    assert set(ids(before).values()) == {None}  # the old list says nothing of them, and is read again
    other = append(before, write(before, people(5)), CommitOptions(branch="b")).table
    branch = plan(other, snapshot_id=other.metadata.refs["b"].snapshot_id).files.to_pylist()
    starts = [each["first_row_id"] for each in branch]
    assert min(starts) == 4
    assert len(set(starts)) == 3


def racing(lake: Lakehouse) -> Table:
    """Two INSERTs on one head: the second lost its swap once."""
    table = insert(lake.create(properties=THREE), people(1, 2))
    hook = once(lambda: insert(lake.load(), people(3, 4, 5)))
    answer = append(table, write(table, people(6)), CommitOptions(on_phase=hook))
    assert answer.retries == 1
    return answer.table


def test_ids_are_given_again_after_a_lost_swap(lake: Lakehouse) -> None:
    table = racing(lake)
    assert every_id(table) == [0, 1, 2, 3, 4, 5]
    assert [each.first_row_id for each in table.metadata.snapshots] == [0, 2, 5]


def test_ids_given_before_the_retry_would_be_found(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "next_row_id", lambda metadata: min(2, next_row_id(metadata)))
    table = racing(lake)
    assert len(set(every_id(table))) < len(every_id(table))


def test_the_first_attempt_does_not_number_the_manifests_of_the_second(lake: Lakehouse) -> None:
    """PyIceberg's copy of a manifest shares its values: what a lost attempt gave away must not stay."""
    table = insert(lake.create(properties=THREE), people(1))
    snapshot = table.current_snapshot()
    producer = produce.Producer(table)
    change = produce.FileChange("append", tuple(write(table, people(2))))
    producer.produce(table, snapshot, change)
    head = insert(table, people(3, 4))
    again = producer.produce(head, head.current_snapshot(), change)
    mine = [m for m in manifests_of(table.io, again) if m.added_snapshot_id == again.snapshot_id]
    assert [(m.sequence_number, m[MANIFEST_FIRST_ROW_ID]) for m in mine] == [(3, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_columns_inherit_as_the_rule_says(seed: int) -> None:
    """The rule for whole columns against the rule itself, on entries that have ids, have none, or are deleted."""
    chance = random.Random(seed)
    rows = chance.randint(1, 12)
    stored = [chance.choice([None, None, 1000 + 10 * n]) for n in range(rows)]
    status = [chance.choice([0, 1, 2]) for _ in range(rows)]
    counts = [chance.randint(1, 9) for _ in range(rows)]
    columns = {"status": status, "record_count": counts, "first_row_id": stored}
    segment = Segment(pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}))
    cut, expected = chance.randint(0, rows), []
    spans = []
    for start, end, first in ((0, cut, 50), (cut, rows, chance.choice([None, 500]))):
        manifest = ManifestFile.from_args(_table_format_version=3, content=ManifestContent.DATA, first_row_id=first)
        spans.append(Span(manifest, start, end - start))
        live = [n for n in range(start, end) if status[n] != 2]
        told = dict(zip(live, (stored[n] for n in live), strict=True))
        if first is not None:
            told = dict(zip(live, assigned_row_ids(first, ((stored[n], counts[n]) for n in live))[0], strict=True))
        expected += [told[n] if n in told else stored[n] for n in range(start, end)]
    assert [None if number < 0 else number for number in first_row_ids(segment, spans).tolist()] == expected


def test_decoded_manifests_on_disk_carry_row_ids(lake: Lakehouse, tmp_path: Any) -> None:
    table = insert(lake.create(by=BY_NAME, properties=THREE), [*people(1, name="a"), *people(2, name="b")])
    table = delete_where(table, Compare("name", "=", "a")).table
    folder = tmp_path / "cache"
    for _ in range(2):
        found = plan(table, cache=ManifestCache(folder)).files
        assert found["first_row_id"].to_pylist() == list(ids(table).values())


def test_a_commit_to_another_branch_meanwhile_is_a_lost_swap(lake: Lakehouse) -> None:
    """A request to a server names its own branch alone, and takes row ids from all of the table's."""
    table = insert(lake.create(properties=THREE), people(1))
    create_branch(table, "b")
    there = OnlyCommitTable(lake.catalog).load_table(("default", "t"))
    files = write(lake.load(), people(2, 3))
    hook = once(lambda: append(lake.load(), files, CommitOptions(branch="b")))
    answer = append(there, write(there, people(4)), CommitOptions(on_phase=hook))
    assert answer.retries == 1
    assert [each.first_row_id for each in answer.table.metadata.snapshots] == [0, 1, 3]
    assert every_id(lake.load()) == [0, 3]
