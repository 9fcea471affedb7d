"""Format version 3: row ids and deletion vectors that are wrong are found."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaging import Words, change_words, head_of
from lakehouse import Lakehouse, insert, path_of, people
from version_three_tables import deletion_vector_file

from lakeproof.audit import Depth, audit_raw
from lakeproof.commit import POLICIES
from lakeproof.iceberg.inspecting.opening import open_loaded
from lakeproof.iceberg.inspecting.puffin import judge_vector
from lakeproof.iceberg.inspecting.raw_files import Damaged
from lakeproof.iceberg.mending.avro_records import AvroFile, read_avro, write_avro
from lakeproof.iceberg.pyiceberg_names import Table

FIRST_ROW_ID, ADDED_SNAPSHOT = 520, 503


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = Lakehouse(tmp_path)
    return insert(insert(lake.create(properties={"format-version": "3"}), people(1, 2, 3)), people(4, 5))


def found_in(table: Table) -> set[tuple[str, str]]:
    looked = audit_raw(open_loaded(table, "t"), POLICIES["lakeproof"], depth=Depth(pages=True))
    return {(one.kind, one.severity) for one in looked.findings}


def test_a_good_table_of_version_three(table: Table) -> None:
    assert table.format_version == 3
    assert found_in(table) == set()


def in_the_head_s_list(change: Callable[[list[dict[str, Any]], str], None]) -> Callable[[Table], None]:
    """The lines of the head's list, oldest first, are others."""

    def plant(table: Table) -> None:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        place = path_of(snapshot.manifest_list)
        file: AvroFile = read_avro(place.read_bytes())
        name = file.name(FIRST_ROW_ID)
        change(sorted(file.records, key=lambda line: line["sequence_number"]), name)
        place.write_bytes(write_avro(file))

    return plant


def line_says(number: int, value: int | None) -> Callable[[Table], None]:
    def change(lines: list[dict[str, Any]], name: str) -> None:
        lines[number][name] = value

    return in_the_head_s_list(change)


def words_say(change: Callable[[Words], object]) -> Callable[[Table], None]:
    def plant(table: Table) -> None:
        def changed(words: Words) -> None:
            change(words)

        change_words(table, changed)

    return plant


ROWS, MAY = "rows_wrong", "may_become_wrong"


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        pytest.param(line_says(1, 1), {("row_ids_twice", ROWS)}, id="two files share row ids"),
        pytest.param(
            line_says(0, 50),
            {("row_ids_changed", ROWS), ("next_row_id", MAY)},
            id="a file has other ids than before",
        ),
        pytest.param(line_says(1, None), {("row_ids_missing", MAY)}, id="a file without row ids"),
        pytest.param(
            words_say(lambda words: words.update({"next-row-id": 1})), {("next_row_id", MAY)}, id="ids that come again"
        ),
        pytest.param(
            words_say(lambda words: head_of(words).update({"first-row-id": 1})),
            {("next_row_id", ROWS)},
            id="a snapshot that begins with ids of its parent",
        ),
        pytest.param(
            words_say(lambda words: head_of(words).update({"added-rows": 99})),
            {("next_row_id", MAY)},
            id="a snapshot that took more ids than were given away",
        ),
    ],
)
def test_row_ids_that_are_wrong(table: Table, plant: Callable[[Table], None], expected: set[tuple[str, str]]) -> None:
    plant(table)
    assert found_in(table) == expected


# ---------------------------------------------------------------- deletion vectors, as values

NAMED = "file:///t/a.parquet"


def entry(**other: Any) -> dict[str, Any]:
    said = {"referenced_file": NAMED, "blob_offset": 4, "blob_size": None, "record_count": 3}
    return {**said, **other}


@pytest.fixture
def puffin(tmp_path: Path) -> bytes:
    path = tmp_path / "v.puffin"
    deletion_vector_file(path, {NAMED: [0, 2, 5]})
    return path.read_bytes()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def kinds_of(data: bytes, told: dict[str, Any], rows: int = 10) -> list[str]:
    return [kind for kind, _ in judge_vector(data, told, {NAMED: rows})]


def test_a_good_vector(puffin: bytes) -> None:
    assert kinds_of(puffin, entry()) == []


@pytest.mark.parametrize(
    ("damage", "told", "kind"),
    [
        pytest.param(lambda data: flipped(data, 20), {}, "damaged_vector", id="a flipped byte: the checksum says so"),
        pytest.param(lambda data: flipped(data, 5), {}, "damaged_vector", id="an unknown length"),
        pytest.param(lambda data: flipped(data, 8), {}, "damaged_vector", id="other magic bytes"),
        pytest.param(lambda data: data, {"record_count": 4}, "vector_cardinality", id="another number of rows"),
        pytest.param(lambda data: data, {"blob_offset": 9}, "vector_reference", id="nothing begins there"),
        pytest.param(lambda data: data, {"blob_size": 9}, "vector_reference", id="another size"),
        pytest.param(lambda data: data, {"blob_offset": None}, "vector_reference", id="no place at all"),
        pytest.param(
            lambda data: data, {"referenced_file": "file:///t/b.parquet"}, "vector_reference", id="of another file"
        ),
    ],
)
def test_a_vector_that_is_wrong(
    puffin: bytes, damage: Callable[[bytes], bytes], told: dict[str, Any], kind: str
) -> None:
    assert kinds_of(damage(puffin), entry(**told)) == [kind]


def test_positions_beyond_the_data_file(puffin: bytes) -> None:
    assert kinds_of(puffin, entry(), rows=5) == ["position_beyond_file"]


def test_a_cardinality_in_the_footer_that_is_wrong(puffin: bytes) -> None:
    data = puffin.replace(b'"cardinality": "3"', b'"cardinality": "7"')
    assert zlib.crc32(data) != zlib.crc32(puffin)
    assert kinds_of(data, entry()) == ["vector_cardinality"]


@pytest.mark.parametrize("cut", [4, 40])
def test_a_puffin_file_that_is_cut(puffin: bytes, cut: int) -> None:
    with pytest.raises(Damaged):
        kinds_of(puffin[:-cut], entry())
