"""Manifests are decoded once and kept; a plan says what it saw."""

import bz2
import sqlite3
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from lakehouse import Lakehouse, insert, people

from lakeproof.errors import InvalidInput
from lakeproof.filters import Compare
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.avro import join, read_header
from lakeproof.iceberg.reading.decode import decode_manifests
from lakeproof.iceberg.reading.manifest_cache import SCATTERED, ManifestCache
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.tables import PartitionBy

BY_NAME = [PartitionBy("name")]


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
