"""Rows are followed by their ids through a rewrite of any engine, against an answer that is computed from the rows."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakehouse import Lakehouse, insert, people
from lakehouse import rows_of as rows_of_table
from pyiceberg.io.pyarrow import schema_to_pyarrow

import lakeproof.iceberg.format_v3.row_moves as row_moves
from lakeproof.commit import Command, Isolation, Mode, RunAgain, TableChange
from lakeproof.commit.checks import Part
from lakeproof.filters import Compare
from lakeproof.format import DeleteContent, DeleteFile, Move, Snapshot, positions, row_set, rows_of
from lakeproof.format import row_ids as format_row_ids
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.footers import WrittenFile, data_files_from_footers
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.pointer import stage, swap
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.window import load_snapshot
from lakeproof.iceberg.format_v3.row_ids import LAST_UPDATED_FIELD, ROW_ID_FIELD
from lakeproof.iceberg.format_v3.row_moves import ids_of_rows, replaced_files, with_moves
from lakeproof.iceberg.pyiceberg_names import DataFile, LongType, NestedField, Schema, Table
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.branches import MAIN
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.tables.refs import create_branch

THREE = {"format-version": "3"}
STORED = (
    NestedField(ROW_ID_FIELD, "_row_id", LongType()),
    NestedField(LAST_UPDATED_FIELD, "_last_updated_sequence_number", LongType()),
)


class Stored(NamedTuple):
    """A row as a rewrite writes it: where it came from, and whether it is a new version."""

    row: Mapping[str, Any]
    id: int | None = None
    last_updated: int | None = None
    origin: tuple[str, int] | None = None


def written(table: Table, rows: Sequence[Stored]) -> DataFile:
    """A data file that stores ids, as any engine of format v3 writes it."""
    schema = Schema(*table.schema().fields, *STORED)
    metadata = table.metadata.model_copy(update={"schemas": [schema], "current_schema_id": schema.schema_id})
    wide = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    path = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    told = [{**each.row, "_row_id": each.id, "_last_updated_sequence_number": each.last_updated} for each in rows]
    with table.io.new_output(path).create() as stream:
        pq.write_table(pa.Table.from_pylist(told, schema=schema_to_pyarrow(schema)), stream)
    (file,) = data_files_from_footers(wide, [WrittenFile(path, (), 0)])
    return file


def rewritten(
    lake: Lakehouse, removed: Iterable[str], added: Iterable[DataFile], operation: str = "overwrite"
) -> Table:
    """The table after another engine replaced files and recorded nothing."""
    table = lake.load()
    change = FileChange(operation, added_data_files=tuple(added), removed_data_files=tuple(removed))
    snapshot = Producer(table, lake.cache).produce(table, table.current_snapshot(), change)
    return swap(table, stage(table, snapshot, MAIN, []))


def read(table: Table) -> dict[str, list[Stored]]:
    """Every row with its id, by file."""
    found = {}
    for file in plan(table).files.to_pylist():
        content = pq.read_table(file["path"].removeprefix("file://"), partitioning=None).to_pylist()
        first, number = file["first_row_id"], file["data_sequence_number"]
        found[file["path"]] = [
            Stored(
                {"id": row["id"], "name": row["name"]},
                first + at if row.get("_row_id") is None else row["_row_id"],
                number if row.get("_last_updated_sequence_number") is None else row["_last_updated_sequence_number"],
                (file["path"], at),
            )
            for at, row in enumerate(content)
        ]
    return found


def last(lake: Lakehouse, table: Table) -> Snapshot:
    head = table.current_snapshot()
    assert head is not None
    return load_snapshot(table, head.snapshot_id, Part(True, True, True), cache=lake.cache)


Places = set[tuple[str, int, str, int]]


def told(snapshot: Snapshot) -> Places:
    moves: Sequence[Move] = snapshot.mapping or ()
    return {(m.old_file, p, m.new_file, m.start + i) for m in moves for i, p in enumerate(positions(m.rows))}


def a_rewrite(lake: Lakehouse, dice: random.Random) -> tuple[Table, Places, dict[str, list[Stored]]]:
    """Some files become others: rows are kept, changed, dropped, shuffled and added. What moved; the rows before."""
    table = lake.load()
    before = read(table)
    removed = dice.sample(sorted(before), dice.randint(1, len(before)))
    rows = [
        stored if dice.random() < 0.6 else stored._replace(row={**stored.row, "name": "changed"}, last_updated=None)
        for path in removed
        for stored in before[path]
        if dice.random() < 0.8
    ]
    if dice.random() < 0.5:
        dice.shuffle(rows)
    rows += [Stored(row) for row in people(*range(dice.randint(1, 2)), name="new")]
    cut = dice.randint(0, len(rows))
    moved: Places = set()
    files = []
    for part in (rows[:cut], rows[cut:]):
        if part:
            files.append(written(table, part))
            moved |= {
                (*each.origin, files[-1].file_path, at)
                for at, each in enumerate(part)
                if each.origin is not None and each.last_updated is not None
            }
    return rewritten(lake, removed, files), moved, before


def filled(lake: Lakehouse) -> None:
    table = lake.create(properties=THREE)
    for name in "abc":
        table = insert(table, people(1, 2, 3, 4, 5, name=name))


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_found_where_a_rewrite_put_them(lake: Lakehouse, seed: int) -> None:
    dice = random.Random(seed)
    filled(lake)
    for _ in range(3):
        table, moved, before = a_rewrite(lake, dice)
        snapshot = last(lake, table)
        assert snapshot.mapping is None
        assert told(with_moves(table, snapshot, lake.cache)) == moved
        rows = [stored for stored in (row for rows in before.values() for row in rows) if dice.random() < 0.3]
        mine = rows_of((each.origin[0], 1 << each.origin[1]) for each in rows if each.origin is not None)
        wanted = ids_of_rows(table, snapshot.parent_id, mine, lake.cache)
        assert wanted is not None
        assert wanted.tolist() == sorted(each.id for each in rows if each.id is not None)
        places = {each.origin for each in rows}
        assert told(with_moves(table, snapshot, lake.cache, wanted)) == {m for m in moved if m[:2] in places}


def test_only_files_that_may_hold_a_wanted_id_are_read(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(lake)
    before = read(lake.load())
    new = {path: written(lake.load(), rows) for path, rows in before.items()}
    table = rewritten(lake, before, new.values())
    asked: list[str] = []
    real = row_moves._read_columns

    def watched(io: Any, file: row_moves.NumberedFile) -> Any:
        asked.append(file.path)
        return real(io, file)

    monkeypatch.setattr(row_moves, "_read_columns", watched)
    chosen = sorted(before)[1]
    wanted = np.array([before[chosen][2].id])
    assert told(with_moves(table, last(lake, table), lake.cache, wanted)) == {(chosen, 2, new[chosen].file_path, 2)}
    assert {new[chosen].file_path} <= {*asked} <= {*before, new[chosen].file_path}


def test_what_has_no_ids_or_too_many_moves_is_not_followed(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create(properties={"format-version": "2"})
    table = insert(table, people(1, 2))
    old = [file["path"] for file in plan(table).files.to_pylist()]
    plain = rewritten(lake, old, [written(table, [Stored({"id": 1, "name": "x"})])])
    assert with_moves(plain, last(lake, plain), lake.cache).mapping is None
    monkeypatch.setattr(format_row_ids, "MOST_BYTES", 0)
    lake.catalog.drop_table("default.t")
    filled(lake)
    rows = [row for rows in read(lake.load()).values() for row in rows]
    table = rewritten(lake, read(lake.load()), [written(lake.load(), rows[::-1])])
    assert with_moves(table, last(lake, table), lake.cache).mapping is None


def test_an_id_that_comes_twice_says_nothing() -> None:
    def rows(path: str, *ids: int) -> format_row_ids.FileRowIds:
        known = np.array(ids, np.int64)
        return format_row_ids.FileRowIds(path, np.arange(len(ids)), known, known * 0)

    moves = format_row_ids.moves_by_row_ids([rows("old", 1, 2, 3)], [rows("a", 3, 1), rows("b", 1)])
    assert moves == (Move("old", row_set([2]), "a", 0),)


def test_the_files_of_a_snapshot_are_told_with_their_ids(lake: Lakehouse) -> None:
    filled(lake)
    table, _, _ = a_rewrite(lake, random.Random(1))
    head = table.current_snapshot()
    assert head is not None
    found = replaced_files(table, head, lake.cache)
    assert found.removed
    assert found.added
    assert None not in (*found.removed, *found.added)


def test_a_file_of_before_the_upgrade_has_other_ids_on_another_branch(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2))
    (path,) = plan(table).files["path"].to_pylist()
    create_branch(table, "b")
    alter_properties(table, THREE)
    insert(lake.load(), people(3))
    table = insert(lake.load(), people(4), branch="b")
    heads = [table.metadata.refs[name].snapshot_id for name in ("main", "b")]
    found = [ids_of_rows(table, head, ((path, 0b11),), lake.cache) for head in heads]
    firsts = [
        next(file["first_row_id"] for file in plan(table, snapshot_id=head).files.to_pylist() if file["path"] == path)
        for head in heads
    ]
    assert firsts[0] != firsts[1]
    assert [each.tolist() for each in found if each is not None] == [[first, first + 1] for first in firsts]


def an_update(table: Table, isolation: Isolation, key: int) -> tuple[TableChange, NewFiles]:
    """UPDATE of the row of that id as a writer of ours prepares it: a vector, and the new version with its id."""
    head = table.current_snapshot()
    assert head is not None
    (path, at), stored = next(
        (each.origin, each) for rows in read(table).values() for each in rows if each.row["id"] == key and each.origin
    )
    new = written(table, [Stored({"id": key, "name": "ours"}, stored.id)])
    rows = ((path, 1 << at),)
    change = TableChange(
        Command.UPDATE,
        Mode.MERGE_ON_READ,
        isolation,
        command_id="ours",
        scan_snapshot=head.snapshot_id,
        scan_sequence_number=head.sequence_number or 0,
        conflict_filter=Compare("id", "=", key),
        targets=rows,
        required_data_files=(path,),
        added_delete_files=(DeleteFile(f"vector of {path}", DeleteContent.VECTOR, positions=rows),),
    )
    return change, NewFiles((new,))


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("changed", [None, 2, 1])
def test_an_update_commits_beside_a_rewrite_that_left_its_row_alone(
    lake: Lakehouse, isolation: Isolation, changed: int | None
) -> None:
    """`changed`: another engine's copy-on-write gives this row a new version; `None`: it compacts."""
    insert(insert(lake.create(properties=THREE), people(1, 2)), people(3))
    change, files = an_update(lake.load(), isolation, 1)
    rows = [
        stored._replace(row={"id": changed, "name": "theirs"}, last_updated=None)
        if stored.row["id"] == changed
        else stored
        for rows in read(lake.load()).values()
        for stored in rows
    ]
    operation = "replace" if changed is None else "overwrite"
    rewritten(lake, read(lake.load()), [written(lake.load(), rows[::-1])], operation)
    answer = commit_change(lake.load(), change, files, reruns_left=True)
    assert isinstance(answer, RunAgain if changed == 1 else Committed), answer
    names = {1: "theirs" if changed == 1 else "ours", 2: "theirs" if changed == 2 else "x", 3: "x"}
    assert sorted(rows_of_table(lake.load())) == sorted(names.items())
