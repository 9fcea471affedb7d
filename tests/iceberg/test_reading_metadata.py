"""Manifests are decoded once and kept; delete files are matched and read; a commit window becomes values."""

import bz2
import json
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from lakehouse import Lakehouse, insert, people, rows_of, write
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest_list,
)
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record
from test_commit_attempts import compaction
from test_snapshots_made import committed, head, merge_on_read

from lakeproof.commit import Command, TableChange
from lakeproof.commit.checks import Part
from lakeproof.errors import InvalidInput
from lakeproof.filters import Compare
from lakeproof.format import Bounds, DeleteContent, Operation, row_set
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.committing.new_manifests import DeleteManifestWriter
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.whole_file_commits import delete_where
from lakeproof.iceberg.committing.window import load_window, unseen_snapshots
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.aggregates import column_range, count_rows
from lakeproof.iceberg.reading.avro import join, read_header
from lakeproof.iceberg.reading.decode import decode_manifests
from lakeproof.iceberg.reading.delete_files import deleted_positions, read_equality_deletes, read_positions
from lakeproof.iceberg.reading.manifest_cache import SCATTERED, ManifestCache
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.tables import PartitionBy

BY_NAME = [PartitionBy("name")]


# ---- Avro


def manifest_bytes(table: Table) -> bytes:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return Path(snapshot.manifests(table.io)[0].manifest_path.removeprefix("file://")).read_bytes()


def recoded(data: bytes, codec: str) -> bytes:
    """The same Avro file under another codec."""
    container, inflated = read_header(data), join([data])[0]
    body = read_header(inflated).body
    number, size, block = _split(inflated[body:-16])
    squeezed = {
        "null": lambda x: x,
        "deflate": lambda x: zlib.compress(x)[2:-4],
        "bzip2": bz2.compress,
        "zstandard": zstandard.ZstdCompressor().compress,
        "snappy": lambda x: pa.Codec("snappy").compress(x, asbytes=True) + struct.pack(">I", zlib.crc32(x)),
    }[codec](block)
    assert size == len(block)
    meta = {**container.metadata, "avro.codec": codec.encode()}
    pairs = b"".join(_text(key.encode()) + _text(value) for key, value in meta.items())
    header = b"Obj\x01" + _long(len(meta)) + pairs + b"\x00" + container.sync
    return header + _long(number) + _text(squeezed) + container.sync


def _long(number: int) -> bytes:
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _text(data: bytes) -> bytes:
    return _long(len(data)) + data


def _split(raw: bytes) -> tuple[int, int, bytes]:
    numbers, at = [], 0
    for _ in range(2):
        value = shift = 0
        while True:
            byte = raw[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        numbers.append(value >> 1)
    return numbers[0], numbers[1], raw[at:]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "zstandard", "snappy"])
def test_manifests_of_every_codec_decode_alike(lake: Lakehouse, codec: str) -> None:
    data = manifest_bytes(insert(lake.create(by=BY_NAME), [*people(1, 2, name="a"), *people(3, name="b")]))
    expected, rows = decode_manifests([data])
    assert rows == [2]
    other = recoded(data, codec)
    assert read_header(other).metadata["avro.codec"] == codec.encode()
    assert decode_manifests([other])[0] == expected
    twice, counts = decode_manifests([other, data])
    assert (counts, twice.slice(0, 2), twice.slice(2)) == ([2, 2], expected, expected)


def test_a_cut_manifest_is_refused(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    data = manifest_bytes(table)
    with pytest.raises(ValueError, match="cut or damaged"):
        join([data[:-3]])
    with pytest.raises(ValueError, match="not an Avro file"):
        join([b"something else"])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = Path(snapshot.manifests(table.io)[0].manifest_path.removeprefix("file://"))
    path.write_bytes(data[:-3])
    with pytest.raises(InvalidInput, match="cut or damaged"):
        plan(table, cache=ManifestCache(None))
    path.unlink()
    with pytest.raises(InvalidInput, match="a file of the table is missing"):
        plan(table, cache=ManifestCache(None))


# ---- the cache


def test_a_new_commit_decodes_one_new_manifest(lake: Lakehouse, tmp_path: Path) -> None:
    cache = ManifestCache(tmp_path / "cache")
    table = insert(lake.create(), people(1))
    for number in range(3):
        assert plan(table, cache=cache).files.num_rows == number + 1
        assert cache.decoded == number + 1
        table = insert(table, people(number))
    assert plan(table, cache=cache).files == plan(table, cache=ManifestCache(None)).files


def test_another_process_finds_the_decoded_manifests_on_disk(lake: Lakehouse, tmp_path: Path) -> None:
    table = insert(insert(lake.create(by=BY_NAME), people(1, name="a")), people(2, name="b"))
    expected = plan(table, cache=ManifestCache(tmp_path / "cache")).files
    fresh = ManifestCache(tmp_path / "cache")
    assert plan(table, cache=fresh).files == expected
    assert fresh.decoded == 0
    assert plan(table, p.EqualTo("name", "b"), cache=fresh).files.num_rows == 1


@pytest.mark.parametrize("damage", ["torn", "flipped", "gone", "index"])
def test_a_damaged_cache_only_means_decoding_again(lake: Lakehouse, tmp_path: Path, damage: str) -> None:
    table = insert(lake.create(), people(1, 2))
    folder = tmp_path / "cache"
    expected = plan(table, cache=ManifestCache(folder)).files
    (file,) = folder.glob("*.arrow")
    data = bytearray(file.read_bytes())
    if damage == "torn":
        file.write_bytes(data[:-10])
    elif damage == "flipped":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif damage == "gone":
        file.unlink()
    else:
        (folder / "index.db").write_bytes(b"no database" * 1000)
    fresh = ManifestCache(folder)
    assert plan(table, cache=fresh).files == expected
    assert fresh.decoded == 1


def test_the_folder_stays_below_its_limit(lake: Lakehouse, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    table = lake.create()
    for number in range(6):
        table = insert(table, people(number))
        cache = ManifestCache(folder, disk_bytes=20_000)
        assert plan(table, cache=cache).files.num_rows == number + 1
    kept = list(folder.glob("*.arrow"))
    assert 0 < sum(file.stat().st_size for file in kept) <= 20_000
    with sqlite3.connect(folder / "index.db") as index:
        assert index.execute("select count(*) from segments").fetchone() == (len(kept),)


def test_memory_below_what_a_plan_needs_still_plans(lake: Lakehouse) -> None:
    table = lake.create(properties={"commit.manifest-merge.enabled": "false"})
    for number in range(4):
        table = insert(table, people(number))
    assert plan(table, cache=ManifestCache(None, memory_bytes=1)).files.num_rows == 4


def test_many_small_manifests_are_gathered_into_one_segment(lake: Lakehouse) -> None:
    cache = ManifestCache(None)
    table = lake.create(properties={"commit.manifest-merge.enabled": "false"})
    for number in range(SCATTERED + 2):
        table = insert(table, people(number))
        found = plan(table, cache=cache)
    assert found.files.num_rows == SCATTERED + 2
    assert len(plan(table, cache=cache).picked) == 2  # those gathered, and the newest
    assert sorted(found.files["data_sequence_number"].to_pylist()) == list(range(1, SCATTERED + 3))


def test_a_folder_that_cannot_be_written_is_no_matter(lake: Lakehouse, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ManifestCache(tmp_path / "file" / "cache")
    assert plan(insert(lake.create(), people(1)), cache=cache).files.num_rows == 1


# ---- plans


def test_a_plan_says_what_it_saw(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(by=BY_NAME), people(1, name="a")), [*people(2, name="b"), *people(3, name="c")])
    found = plan(table, p.EqualTo("NAME", "b"))
    assert (found.files.num_rows, found.files_seen) == (1, 3)
    assert (found.manifests_seen, found.manifests_read) == (2, 1)
    assert found.bytes_kept == found.files["size"][0].as_py()
    assert (found.rows_kept, found.partitions()) == (1, [("b",)])
    assert found.files["format"].to_pylist() == ["PARQUET"]
    with pytest.raises(InvalidInput, match="color"):
        plan(table, p.EqualTo("color", "red"))


def test_predicates_of_filters_plan_too(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, name="a"), *people(2, name="b")])
    assert plan(table, from_filter(Compare("name", "=", "a"), table.schema())).partitions() == [("a",)]


# ---- delete files


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


def deletion_vector_file(path: Path, vectors: dict[str, list[int]]) -> None:
    """A Puffin file with 64-bit roaring bitmaps of array containers, as format version 3 has them."""
    blobs, entries = b"PFA1", []
    for name, positions in vectors.items():
        array = struct.pack(f"<{len(positions)}H", *positions)
        bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + array
        vector = b"\xd1\xd3\x39\x64" + struct.pack("<QI", 1, 0) + bitmap
        blob = struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        entries.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(blobs),
                "length": len(blob),
                "properties": {"referenced-data-file": name, "cardinality": str(len(positions))},
            }
        )
        blobs += blob
    footer = json.dumps({"blobs": entries}).encode()
    path.write_bytes(blobs + b"PFA1" + footer + struct.pack("<I", len(footer)) + b"\0\0\0\0" + b"PFA1")


def test_deletion_vectors_are_read(lake: Lakehouse, tmp_path: Path) -> None:
    deletion_vector_file(tmp_path / "v.puffin", {"file:///a": [0, 7], "file:///b": [3]})
    found = read_positions(lake.create().io, f"file://{tmp_path}/v.puffin", "PUFFIN")
    assert {path: rows.tolist() for path, rows in found.items()} == {"file:///a": [0, 7], "file:///b": [3]}


# ---- the commit window


def test_a_window_holds_what_each_commit_did(lake: Lakehouse) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, name="a"), *people(7, name="b")])
    scan = head(table)
    paths = dict(
        zip([part[0] for part in plan(table).partitions()], plan(table).files["path"].to_pylist(), strict=True)
    )
    table = insert(table, people(3, 5, name="b"), command_id="mine")
    table = merge_on_read(table, Command.DELETE, {paths["a"]: [1]}, [])
    table = delete_where(table, Compare("name", "=", "b")).table
    found = unseen_snapshots(table, scan_snapshot=scan, head_snapshot=head(table))
    assert found.missing is None
    window = load_window(table, found.unseen, Part(True, True, True), columns=("id",))
    appended, deleted, dropped = window
    assert [each.operation for each in window] == [Operation.APPEND, Operation.DELETE, Operation.DELETE]
    assert [each.sequence_number for each in window] == [2, 3, 4]
    assert appended.command_id == "mine"
    (added,) = appended.added_data_files
    assert (added.partition, added.record_count, added.sequence_number) == (("b",), 2, 2)
    assert added.bounds == (Bounds("id", 3, 5, has_nulls=False, has_values=True, has_nans=True),)
    (positions,) = deleted.added_delete_files
    assert (positions.content, positions.positions) == (DeleteContent.POSITIONS, ((paths["a"], row_set([1])),))
    assert {file.path for file in dropped.removed_data_files} == {paths["b"], added.path}
    assert sorted(file.sequence_number for file in dropped.removed_data_files) == [1, 2]
    assert dropped.adds_no_data


def test_only_what_is_asked_for_is_loaded(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    unseen = unseen_snapshots(table, scan_snapshot=None, head_snapshot=head(table)).unseen
    lake.cache.decoded = 0
    window = load_window(table, unseen, Part(), cache=ManifestCache(None))
    assert [each.added_data_files for each in window] == [(), ()]
    assert lake.cache.decoded == 0
    window = load_window(table, unseen, Part(added_data_files=True), cache=ManifestCache(None))
    assert [len(each.added_data_files) for each in window] == [1, 1]


def test_a_compaction_in_the_window_tells_where_its_rows_went(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1, 2)), people(3))
    scan = head(table)
    change, files = compaction(table)
    table = committed(commit_change(table, change, files))
    (seen,) = load_window(table, [head(table)], Part(True, True, True))
    assert seen.operation is Operation.REPLACE
    assert seen.mapping == change.mapping
    assert len(seen.removed_data_files) == 2
    assert scan != head(table)


def test_a_rolled_back_scan_is_not_in_the_history(lake: Lakehouse) -> None:
    table = insert(insert(lake.create(), people(1)), people(2))
    second = head(table)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    table = insert(lake.load(), people(3))
    assert unseen_snapshots(table, scan_snapshot=second, head_snapshot=head(table)).missing == second


def test_positions_are_numpy_arrays(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1, 2, 3))
    path = plan(table).files["path"][0].as_py()
    table = merge_on_read(table, Command.DELETE, {path: [2, 0]}, [])
    found = deleted_positions(table, plan(table).delete_files)[path]
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]


class VersionThreeDeletes(DeleteManifestWriter):
    """Writes the fields of format version 3 that name a deletion vector; PyIceberg knows them but writes none."""

    @property
    def version(self) -> Any:
        return 3

    def new_writer(self) -> Any:
        schema = self._with_partition(3)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)


def version_three(table: Table, delete_files: list[DataFile]) -> Table:
    """The table as another engine left it: format version 3, with these delete files in one more snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    number = (snapshot.sequence_number or 0) + 1
    path = f"{table.location()}/metadata/vectors.avro"
    writer = VersionThreeDeletes(table.spec(), table.schema(), table.io.new_output(path), 99, "deflate")
    with writer:
        for file in delete_files:
            entry = ManifestEntry.from_args(
                _table_format_version=3, status=ManifestEntryStatus.ADDED, snapshot_id=99, data_file=file
            )
            writer.add_entry(entry)
    listed = f"{table.location()}/metadata/snap-99.avro"
    with write_manifest_list(2, table.io.new_output(listed), 99, snapshot.snapshot_id, number, "deflate") as lists:
        lists.add_manifests([*snapshot.manifests(table.io), writer.to_manifest_file()])
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    newest = {
        **metadata["snapshots"][-1],
        "snapshot-id": 99,
        "parent-snapshot-id": snapshot.snapshot_id,
        "sequence-number": number,
        "summary": {"operation": "delete"},
        "manifest-list": listed,
        "first-row-id": 0,
        "added-rows": 0,
    }
    metadata.update({"format-version": 3, "next-row-id": 10, "current-snapshot-id": 99, "last-sequence-number": number})
    metadata["snapshots"].append(newest)
    metadata["refs"]["main"]["snapshot-id"] = 99
    target = Path(table.location().removeprefix("file://")) / "metadata" / "v3.metadata.json"
    target.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(f"file://{target}")


def test_a_table_of_format_version_3_is_planned_with_its_deletion_vectors(lake: Lakehouse, tmp_path: Path) -> None:
    table = insert(lake.create(by=BY_NAME), [*people(1, 2, 3, name="a"), *people(4, 5, name="b")])
    before = plan(table)
    paths = dict(zip([part[0] for part in before.partitions()], before.files["path"].to_pylist(), strict=True))
    puffin = tmp_path / "v.puffin"
    deletion_vector_file(puffin, {paths["a"]: [0, 2], paths["b"]: [1]})
    vectors = []
    for name in ("a", "b"):
        file = DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.POSITION_DELETES,
            file_path=f"file://{puffin}",
            file_format=FileFormat.PUFFIN,
            partition=Record(name),
            record_count=2,
            file_size_in_bytes=1,
            referenced_data_file=paths[name],
            content_offset=4,
            content_size_in_bytes=10,
        )
        file.spec_id = 0
        vectors.append(file)
    found = plan(version_three(table, vectors))
    assert found.delete_files["content"].to_pylist() == ["deletion-vector"] * 2
    assert found.delete_files["blob_offset"].to_pylist() == [4, 4]
    named = found.delete_files["referenced_file"].to_pylist()
    pairs = zip(found.files["path"].to_pylist(), found.files["delete_files"].to_pylist(), strict=True)
    assert {path: [named[n] for n in numbers] for path, numbers in pairs} == {path: [path] for path in paths.values()}
    positions = deleted_positions(table, found.delete_files)
    assert {path: rows.tolist() for path, rows in positions.items()} == {paths["a"]: [0, 2], paths["b"]: [1]}
    assert count_rows(version_three(table, vectors)) == 2
