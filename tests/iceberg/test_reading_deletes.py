"""Delete files are matched to the data files they apply to, and read."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakehouse import PEOPLE, Lakehouse, insert, people, rows_of, write
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
)
from pyiceberg.typedef import Record
from test_snapshots_made import committed, head, merge_on_read
from version_three_tables import deletion_vector_file, version_three

from lakeproof.commit import Command, TableChange
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.format_v3.vectors import VectorPlace
from lakeproof.iceberg.history.changes import _deleted_by_value
from lakeproof.iceberg.pyiceberg_names import NestedField, Schema, StringType, StructType, Table
from lakeproof.iceberg.reading.aggregates import column_range, count_rows
from lakeproof.iceberg.reading.delete_files import DeletesAt, deleted_positions, read_equality_deletes, read_positions
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.evolution import AddColumn, alter_schema
from lakeproof.iceberg.tables.tables import PartitionBy

BY_NAME = [PartitionBy("name")]


def equality_delete(table: Table, ids: list[int], partition: tuple[Any, ...] = (), spec_id: int = 0) -> DataFile:
    """An equality delete as another engine writes it: rows with these ids are gone."""
    path = f"{table.location()}/data/eq-{ids[0]}-{spec_id}-{partition}.parquet"
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    with table.io.new_output(path).create() as stream:
        pq.write_table(pa.table({"id": ids}, schema=schema), stream)
    file = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=len(ids),
        file_size_in_bytes=1,
        equality_ids=[1],
    )
    file.spec_id = spec_id
    return file


def upsert(table: Table, deletes: list[DataFile], rows: list[dict[str, Any]]) -> Table:
    change = TableChange(Command.UPSERT, command_id=str(deletes[0].file_path), scan_snapshot=head(table))
    return committed(commit_change(table, change, NewFiles(tuple(write(table, rows)), tuple(deletes))))


def matched(table: Table) -> dict[tuple[Any, ...], list[str]]:
    """The contents of the delete files that apply, by the first value of each file's row count and partition."""
    found = plan(table)
    words = found.delete_files["content"].to_pylist()
    return {
        (seq, *part): [words[number] for number in numbers]
        for seq, part, numbers in zip(
            found.files["data_sequence_number"].to_pylist(),
            found.partitions(),
            found.files["delete_files"].to_pylist(),
            strict=True,
        )
    }


def test_equality_deletes_apply_to_older_files_of_their_partition(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(1, name="b")])
    table = upsert(table, [equality_delete(table, [1], ("a",))], people(1, name="a"))
    assert matched(table) == {(1, "a"): ["equality"], (1, "b"): [], (2, "a"): []}
    assert count_rows(table) is None
    found = plan(table).delete_files.to_pylist()[0]
    assert read_equality_deletes(table, found["path"], found["equality_ids"]).to_pydict() == {"id": [1]}


def test_equality_deletes_without_a_partition_are_global(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    with table.update_spec() as update:
        update.add_identity("name")
    table = insert(lake.load(), [*people(1, name="a"), *people(2, name="b")])
    table = upsert(table, [equality_delete(table, [1], (), 0)], people(9, name="a"))
    assert {key: value for key, value in matched(table).items() if value} == {
        (1,): ["equality"],
        (2, "a"): ["equality"],
        (2, "b"): ["equality"],
    }


def test_position_deletes_match_as_pyiceberg_matches_them(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, name="a"), *people(3, 4, name="b")])
    first = plan(table).files["path"].to_pylist()
    table = merge_on_read(table, Command.DELETE, {first[0]: [0]}, [])
    table = insert(table, people(5, 6, name="a"))
    table = merge_on_read(table, Command.DELETE, {first[0]: [1], first[1]: [0]}, [])
    found = plan(table)
    paths = found.delete_files["path"].to_pylist()
    ours = {
        path: {paths[number] for number in numbers}
        for path, numbers in zip(found.files["path"].to_pylist(), found.files["delete_files"].to_pylist(), strict=True)
    }
    theirs = {task.file.file_path: {each.file_path for each in task.delete_files} for task in table.scan().plan_files()}
    assert ours == theirs
    assert sorted(map(len, ours.values())) == [0, 1, 2]
    positions = deleted_positions(table, found.delete_files)
    assert {path: rows.tolist() for path, rows in positions.items()} == {first[0]: [0, 1], first[1]: [0]}
    assert count_rows(table) == len(rows_of(table)) == 3
    assert column_range(table, "id") is None


def test_a_delete_file_of_a_whole_partition_applies_to_every_file_not_younger(lake: Lakehouse) -> None:
    """Other engines write one delete file for many data files."""
    table = insert(insert(lake.create(by=BY_NAME), people(1, 2, name="a")), people(3, 4, name="a"))
    paths = plan(table).files["path"].to_pylist()
    target = f"{table.location()}/data/many.parquet"
    with table.io.new_output(target).create() as stream:
        pq.write_table(pa.table({"file_path": sorted(paths), "pos": pa.array([0, 1], pa.int64())}), stream)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=target,
        file_format=FileFormat.PARQUET,
        partition=Record("a"),
        record_count=2,
        file_size_in_bytes=1,
    )
    file.spec_id = 0
    table = upsert(table, [file], people(9, name="a"))
    assert matched(table) == {(1, "a"): ["position"], (2, "a"): ["position"], (3, "a"): ["position"]}
    assert len(rows_of(lake.as_pyiceberg_opens_it())) == 3
    assert count_rows(table) == 3


def test_a_row_that_is_named_twice_is_gone_once(lake: Lakehouse) -> None:
    """No delete file of another engine promises more: neither within a file, nor beside others, nor up to the end."""
    table = insert(lake.create(by=BY_NAME), people(1, 2, 3, name="a"))
    path = plan(table).files["path"].to_pylist()[0]
    for number, positions in enumerate(([0, 0, 99], [0, 1])):
        target = f"{table.location()}/data/many-{number}.parquet"
        with table.io.new_output(target).create() as stream:
            pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": pa.array(positions)}), stream)
        file = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES,
            file_path=target,
            file_format=FileFormat.PARQUET,
            partition=Record("a"),
            record_count=len(positions),
            file_size_in_bytes=1,
        )
        file.spec_id = 0
        table = upsert(table, [file], people(9 + number, name="b"))
    assert count_rows(table) == count_rows(table) == 3
    assert deleted_positions(table, plan(table).delete_files)[path].tolist() == [0, 1, 99]


def test_deletion_vectors_are_read(lake: Lakehouse, tmp_path: Path) -> None:
    """Two vectors of one file, one after the other: what is kept of the first is not taken for the second."""
    vectors, io = {"file:///a": [0, 7], "file:///b": [3]}, lake.create().io
    places = deletion_vector_file(tmp_path / "v.puffin", vectors)
    for path, rows in vectors.items():
        file = f"file://{tmp_path}/v.puffin"
        found = read_positions(io, DeletesAt(file, "PUFFIN", path, VectorPlace(file, *places[path], len(rows))))
        assert {name: positions.tolist() for name, positions in found.items()} == {path: rows}


def test_positions_are_numpy_arrays(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    path = plan(table).files["path"][0].as_py()
    table = merge_on_read(table, Command.DELETE, {path: [2, 0]}, [])
    found = deleted_positions(table, plan(table).delete_files)[path]
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]


def test_a_table_of_format_version_3_is_planned_with_its_deletion_vectors(lake: Lakehouse, tmp_path: Path) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, 3, name="a"), *people(4, 5, name="b")])
    before = plan(table)
    paths = dict(zip([part[0] for part in before.partitions()], before.files["path"].to_pylist(), strict=True))
    puffin = tmp_path / "v.puffin"
    rows = {"a": [0, 2], "b": [1]}
    places = deletion_vector_file(puffin, {paths[name]: rows[name] for name in rows})
    vectors = []
    for name in ("a", "b"):
        file = DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.POSITION_DELETES,
            file_path=f"file://{puffin}",
            file_format=FileFormat.PUFFIN,
            partition=Record(name),
            record_count=len(rows[name]),
            file_size_in_bytes=1,
            referenced_data_file=paths[name],
            content_offset=places[paths[name]][0],
            content_size_in_bytes=places[paths[name]][1],
        )
        file.spec_id = 0
        vectors.append(file)
    found = plan(version_three(table, vectors))
    assert found.delete_files["content"].to_pylist() == ["deletion-vector"] * 2
    assert found.delete_files["blob_offset"].to_pylist() == [places[paths[name]][0] for name in rows]
    named = found.delete_files["referenced_file"].to_pylist()
    pairs = zip(found.files["path"].to_pylist(), found.files["delete_files"].to_pylist(), strict=True)
    assert {path: [named[n] for n in numbers] for path, numbers in pairs} == {path: [path] for path in paths.values()}
    positions = deleted_positions(table, found.delete_files)
    assert {path: rows.tolist() for path, rows in positions.items()} == {paths["a"]: [0, 2], paths["b"]: [1]}
    assert count_rows(version_three(table, vectors)) == 2


@pytest.mark.parametrize("column", ["extra", "inner.part"])
def test_equality_deletes_tell_the_feed_of_young_columns_and_of_fields_inside_structs(
    lake: Lakehouse, column: str
) -> None:
    """A file that is older than the column has its initial default in every row; a field is found inside its struct."""
    inner = StructType(NestedField(4, "part", StringType(), required=False))
    schema = Schema(*PEOPLE.fields, NestedField(3, "inner", inner, required=False))
    table = lake.create(schema=schema, properties={"format-version": "3"})
    table = insert(table, [{"id": n, "name": "x", "inner": {"part": part}} for n, part in enumerate("aab")])
    table = alter_schema(table, [AddColumn("extra", StringType(), default="young")])
    field_id = table.schema().find_field(column).field_id
    told = pa.field("part", pa.string(), metadata={"PARQUET:field_id": str(field_id)})
    gone = pa.table({"part": ["young" if column == "extra" else "a"]}, schema=pa.schema([told]))
    path = f"{table.location()}/data/eq.parquet"
    if column != "extra":
        around = pa.field("inner", pa.struct([told]), metadata={"PARQUET:field_id": "3"})
        gone = pa.table([pa.array([{"part": "a"}], around.type)], schema=pa.schema([around]))
    with table.io.new_output(path).create() as stream:
        pq.write_table(gone, stream)
    found = _deleted_by_value(table, plan(table).files["path"][0].as_py(), [{"path": path, "equality_ids": [field_id]}])
    assert found.tolist() == ([0, 1, 2] if column == "extra" else [0, 1])
