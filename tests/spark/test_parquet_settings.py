"""How Parquet files are written: what the table's properties say, and dictionaries only where values repeat."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
MANY = "select /*+ coalesce(1) */ id, cast(id % 3 as int) v, sha2(cast(id as string), 256) s from range(30000)"


def footers(lake: Lake, name: str) -> list[pq.FileMetaData]:
    return [pq.read_metadata(file.path.removeprefix("file://")) for file in lake.table(name).plan().files]


def with_dictionary(footer: pq.FileMetaData) -> list[str]:
    chunks = [footer.row_group(0).column(number) for number in range(footer.num_columns)]
    return [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page]


def asked(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The columns that each write of Spark's was told to write without a dictionary."""
    from lakeproof.spark.writing import spark_write

    told: list[set[str]] = []
    real = spark_write.parquet_settings

    def settings(*given: Any) -> dict[str, str]:
        found = real(*given)
        told.append({name.partition("#")[2] for name in found if name.startswith("parquet.enable.dictionary")})
        return found

    monkeypatch.setattr(spark_write, "parquet_settings", settings)
    return told


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_what_did_not_repeat_is_written_plainly_the_next_time(
    lake: Lake, rows: Rows, name: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
    lake.sql(f"create table {name} (id bigint, v int, s string) using iceberg tblproperties ({properties})")
    told = asked(monkeypatch)
    lake.sql(f"insert into {name} {MANY}")
    lake.sql(f"insert into {name} {MANY}")
    lake.sql(f"delete from {name} where id % 100 = 0")
    lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert told[0] == set()
    assert all(columns == {"id", "s"} for columns in told[1:])
    assert len(told) == (4 if mode == "copy-on-write" else 3)
    assert {tuple(with_dictionary(footer)) for footer in footers(lake, name)} == {("v",)}
    assert rows(f"select count(*), sum(v), count(distinct s) from {name}") == [(59400, 59400, 29700)]


def test_a_column_that_begins_to_repeat_has_a_dictionary_again(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, v int, s string) using iceberg")
    lake.sql(f"insert into {name} {MANY}")
    one = MANY.replace("sha2(cast(id as string), 256)", "'one'")
    for _ in range(2):
        lake.sql(f"insert into {name} {one}")
    assert sorted(with_dictionary(footer) for footer in footers(lake, name)) == [["v"], ["v"], ["v", "s"]]


SIZES = {
    "row-group-size-bytes": "200000",
    "page-size-bytes": "2000",
    "page-row-limit": "500",
    "dict-size-bytes": "1024",
    "compression-level": "19",
}
BLOOM = {
    "bloom-filter-enabled.column.s": "true",
    "bloom-filter-fpp.column.s": "0.05",
    "bloom-filter-ndv.column.s": "10000",
    "bloom-filter-max-bytes": "200000",
}


def written(lake: Lake, name: str, said: dict[str, str]) -> tuple[pq.FileMetaData, int]:
    """The footer of one file, and how many bytes lie between its last column and the footer."""
    properties = ", ".join(
        f"'write.parquet.{key}'='{value}'" for key, value in {**said, "compression-codec": "zstd"}.items()
    )
    lake.sql(f"create table {name} (id bigint, v int, s string) using iceberg tblproperties ({properties})")
    lake.sql(f"insert into {name} {MANY}")
    (file,) = lake.table(name).plan().files
    (footer,) = footers(lake, name)
    last = footer.row_group(footer.num_row_groups - 1).column(2)
    ends = last.data_page_offset + last.total_compressed_size
    return footer, os.path.getsize(file.path.removeprefix("file://")) - footer.serialized_size - ends


def test_sizes_of_the_table_are_those_of_its_files(lake: Lake, rows: Rows, name: str) -> None:
    plain, _ = written(lake, f"{name}_plain", {})
    asked_for, _ = written(lake, name, SIZES)
    assert (plain.num_row_groups, asked_for.num_row_groups > 3) == (1, True)
    assert rows(f"select count(*), sum(id), count(distinct s) from {name}") == [(30000, 449985000, 30000)]
    harder, _ = written(lake, f"{name}_level", {"compression-level": "19"})
    assert harder.row_group(0).total_byte_size == plain.row_group(0).total_byte_size
    assert size_of(harder) < size_of(plain)


def size_of(footer: pq.FileMetaData) -> int:
    return sum(footer.row_group(0).column(number).total_compressed_size for number in range(footer.num_columns))


def test_a_bloom_filter_is_written_where_it_is_asked_for(lake: Lake, rows: Rows, name: str) -> None:
    _, without = written(lake, f"{name}_plain", {})
    _, between = written(lake, name, BLOOM)
    assert between - without > 4096
    assert rows(f"select id from {name} where s = sha2('77', 256)") == [(77,)]


def test_the_level_is_taken_by_arrow_too(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (id int, l array<int>) using iceberg "
        "tblproperties ('write.parquet.compression-level'='22')"
    )
    lake.sql(f"insert into {name} values (1, array(1))")
    lake.sql(f"insert into {name} select cast(id as int), array(1) from range(3)")
    assert rows(f"select count(*) from {name}") == [(4,)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("row-group-size-bytes", "128MB"),
        ("page-size-bytes", "63"),
        ("page-row-limit", "0"),
        ("compression-level", "23"),
        ("bloom-filter-enabled.column.id", "yes"),
        ("bloom-filter-fpp.column.id", "1.5"),
        ("bloom-filter-ndv.column.id", "many"),
    ],
)
def test_what_no_writer_could_honour_is_refused_where_it_is_set(lake: Lake, name: str, key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"the property write.parquet.{key} cannot be '{value}'"):
        lake.sql(f"create table {name} (id bigint) using iceberg tblproperties ('write.parquet.{key}'='{value}')")
