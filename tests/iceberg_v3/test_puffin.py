"""Vectors as bytes: as every other implementation has them, and refused where they cannot be believed."""

import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from lakehouse import Lakehouse, files_below, path_of
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64
from vector_tables import delete, paths_of, table_of

from lakeproof.errors import InvalidInput
from lakeproof.format import row_set
from lakeproof.iceberg.format_v3.puffin import blob_of, positions_in, puffin_of
from lakeproof.iceberg.format_v3.vectors import VectorPlace, read_vector
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import forget_positions
from lakeproof.iceberg.reading.planning import plan

SHAPES = {
    "one row": [0],
    "a whole container": range(65_536),
    "the most that are listed": range(0, 4096 * 16, 16),
    "one more": range(0, 4097 * 15, 15),
    "runs": [*range(100, 9_000), *range(70_000, 70_003)],
    "holes between containers": [1, 3 * 65_536, 20 * 65_536 + 7],
    "some": sorted(random.Random(1).sample(range(1_000_000), 20_000)),
}


@pytest.mark.parametrize("rows", SHAPES.values(), ids=SHAPES.keys())
def test_a_blob_is_byte_for_byte_what_the_library_of_roaring_bitmaps_writes(rows: list[int]) -> None:
    blob = blob_of(row_set(rows))
    expected = BitMap64(rows)
    expected.run_optimize()
    assert blob[8:-4] == expected.serialize()
    assert struct.unpack(">I", blob[:4])[0] == len(blob) - 8
    assert struct.unpack(">I", blob[-4:])[0] == zlib.crc32(blob[4:-4])
    assert positions_in(blob).tolist() == list(rows)


def test_pyiceberg_reads_a_puffin_file_with_several_vectors() -> None:
    wanted = {f"file:///{name}": list(rows) for name, rows in SHAPES.items()}
    data, blobs = puffin_of({path: row_set(rows) for path, rows in wanted.items()})
    found = deletion_vectors_from_puffin_file(PuffinFile(data))
    assert {each.referenced_data_file: each.to_vector().to_numpy().tolist() for each in found} == wanted
    for path, (offset, size, cardinality) in blobs.items():
        assert cardinality == len(wanted[path])
        assert data[offset : offset + size] == blob_of(row_set(wanted[path]))


# ---------------------------------------------------------------- damaged


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[:at])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: flipped(path, 7), "its length is not what it says"),
        (lambda path: flipped(path, 8), "does not begin as a deletion vector"),
        (lambda path: flipped(path, 30), "its checksum is wrong"),
        (lambda path: cut(path, 40), "its length is not what it says"),
        (lambda path: cut(path, 5), "its length is not what it says"),
    ],
)
def test_a_damaged_vector_is_named_and_nothing_is_written(
    lake: Lakehouse, damage: Callable[[Path], None], told: str
) -> None:
    table = table_of(lake, 6)
    [path] = paths_of(table)
    table = delete(table, {path: [0, 1]})
    [puffin] = Path(lake.warehouse).rglob("*.puffin")
    damage(puffin)
    forget_positions()
    before = files_below(lake.warehouse)
    with pytest.raises(InvalidInput, match=told) as raised:
        delete(table, {path: [3]})
    assert puffin.name in str(raised.value)
    assert files_below(lake.warehouse) == before
    assert lake.load().metadata_location == table.metadata_location


def test_a_vector_whose_count_lies_is_named(lake: Lakehouse) -> None:
    table = table_of(lake, 6)
    table = delete(table, {paths_of(table)[0]: [0, 1]})
    row = plan(table).delete_files.to_pylist()[0]
    place = VectorPlace(row["path"], row["blob_offset"], row["blob_size"])
    assert read_vector(table.io, place._replace(cardinality=2)).tolist() == [0, 1]
    with pytest.raises(InvalidInput, match="it has 2 positions where its manifest says 3"):
        read_vector(table.io, place._replace(cardinality=3))
    with pytest.raises(InvalidInput, match="no manifest says where it lies"):
        read_vector(table.io, place._replace(offset=None))
    path_of(row["path"]).unlink()
    with pytest.raises(InvalidInput, match="missing"):
        read_vector(table.io, place)


def test_only_the_vector_itself_is_read(lake: Lakehouse) -> None:
    """What lies around it in the file may be anything."""
    table: Table = table_of(lake, 6, 6)
    one, two = paths_of(table)
    table = delete(table, {one: [0], two: [1]})
    [puffin] = Path(lake.warehouse).rglob("*.puffin")
    row = min(plan(table).delete_files.to_pylist(), key=lambda each: each["blob_offset"])
    data = puffin.read_bytes()
    puffin.write_bytes(b"xxxx" + data[4 : 4 + row["blob_size"]])
    place = VectorPlace(row["path"], row["blob_offset"], row["blob_size"], 1)
    assert read_vector(table.io, place).tolist() in ([0], [1])
