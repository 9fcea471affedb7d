"""Ways in which Spark would silently read wrong rows, lose ids or write stray files: each is shut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from spark_files import files_below

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_a_view_of_a_managed_table_cannot_be_inserted_into(lake: Lake, rows: Rows, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (id int, v string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'a')")
    before = files_below(warehouse / "default" / name)
    lake.table(name).scan().createOrReplaceTempView(f"{name}_view")
    for attempt in (
        lambda: lake.spark.sql(f"insert into {name}_view values (2, 'b')"),
        lambda: lake.spark.sql(f"insert overwrite {name}_view values (2, 'b')"),
        lambda: lake.spark.range(1).selectExpr("cast(id as int) id", "'x' v").write.insertInto(f"{name}_view"),
    ):
        with pytest.raises(PySparkException):
            attempt()
    assert files_below(warehouse / "default" / name) == before
    assert rows(f"select * from {name}") == [(1, "a")]


def test_a_reused_name_does_not_meet_the_old_column(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (a int, b string, st struct<x: int, y: string>) using iceberg")
    lake.sql(f"insert into {name} values (1, 'old', named_struct('x', 1, 'y', 'old')), (2, null, null)")
    lake.sql(f"alter table {name} rename column b to b2")
    lake.sql(f"alter table {name} add column b string")
    lake.sql(f"alter table {name} drop column st.y")
    lake.sql(f"alter table {name} add column st.y string")
    lake.sql(f"insert into {name} values (3, 'b2', named_struct('x', 3, 'y', 'new'), 'b')")
    lake.sql(f"alter table {name} alter column st after b")
    assert rows(f"select a from {name} where b is null order by a") == [(1,), (2,)]
    assert rows(f"select a from {name} where b = 'old'") == []
    assert rows(f"select a, b2, b from {name} where b2 = 'old'") == [(1, "old", None)]
    assert rows(f"select a from {name} where st.y is null order by a") == [(1,), (2,)]
    assert rows(f"select a, st.y from {name} where st.y = 'new'") == [(3, "new")]
    assert rows(f"select a, st.x from {name} where st.x = 1") == [(1, 1)]


def test_a_renamed_struct_keeps_its_values_when_one_field_is_read(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, st struct<x: int, y: string>, l array<struct<p: int>>) using iceberg")
    lake.sql(f"insert into {name} values (1, named_struct('x', 7, 'y', 'p'), array(named_struct('p', 5)))")
    lake.sql(f"alter table {name} rename column st to st2")
    lake.sql(f"alter table {name} rename column st2.y to yy")
    lake.sql(f"alter table {name} rename column l to l2")
    assert rows(f"select st2.yy from {name}") == [("p",)]
    assert rows(f"select st2.x from {name} where st2.yy = 'p'") == [(7,)]
    assert rows(f"select l2.p from {name}") == [([5],)]
    assert rows(f"select st2 from {name}") == [((7, "p"),)]


def test_columns_are_found_by_id_whatever_happened_to_them(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (a int, b float, c decimal(5, 2), d string) using iceberg")
    lake.sql(f"insert into {name} values (1, 1.5, 2.25, 'x')")
    for change in (
        "rename column a to a1", "alter column a1 type bigint", "alter column b type double", "drop column d",
        "alter column c type decimal(9, 2)", "alter column c first", "add column d string",
    ):  # fmt: skip
        lake.sql(f"alter table {name} {change}")
    lake.sql(f"insert into {name} values (1000000.25, 5000000000, 2.5, 'y')")
    assert lake.table(name).columns == ["c", "a1", "b", "d"]
    assert [tuple(map(str, row)) for row in rows(f"select * from {name} order by a1")] == [
        ("2.25", "1", "1.5", "None"),
        ("1000000.25", "5000000000", "2.5", "y"),
    ]
    assert rows(f"select a1 from {name} where a1 > 3000000000") == [(5000000000,)]


def test_ids_are_in_the_files_also_for_literals_and_nested_fields(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint, k string, st struct<x: int, y: string>) using iceberg")
    lake.sql(f"insert into {name} select id, 'const', named_struct('x', 1, 'y', null) from range(3)")
    ids = field_ids(lake.table(name).plan().files[0].path)
    assert ids == {"id": 1, "k": 2, "st": 3, "st.x": 4, "st.y": 5}


def test_ids_of_list_elements_and_map_entries_are_in_the_files(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(
        f"create table {name} (id int, l array<int>, m map<string, struct<a: int, b: array<string>>>, p string) "
        "using iceberg partitioned by (p, bucket(2, id))"
    )
    lake.sql(
        f"insert into {name} select cast(id as int), array(1, cast(id as int)), "
        "map('k', named_struct('a', 1, 'b', array('x'))), if(id % 2 = 0, 'a %2F=b', null) from range(4)"
    )
    ids = field_ids(lake.table(name).plan().files[0].path)
    schema = lake.engine.load(f"default.{name}").schema()
    wanted = {schema.find_column_name(number) for number in ids.values()}
    assert {"l.element", "m.key", "m.value", "m.value.a", "m.value.b.element"} <= wanted
    assert rows(f"select l, m['k'].b[0], p from {name} where id = 2") == [([1, 2], "x", "a %2F=b")]
    assert rows(f"select count(*) from {name} where p is null") == [(2,)]


def test_odd_values_of_a_partition_column_come_back_as_they_were(lake: Lake, rows: Rows, name: str) -> None:
    values = ["", "~", "~x", "__HIVE_DEFAULT_PARTITION__", "a:b/c", "100 %", "é ü", "x=y", "[1]{2}", "a%20b", " ", None]
    given = lake.spark.createDataFrame([(number, value) for number, value in enumerate(values)], "id int, p string")
    lake.sql(f"create table {name} (id int, p string) using iceberg partitioned by (p)")
    lake.table(name).append(given)
    assert rows(f"select id, p from {name} order by id") == list(enumerate(values))
    for number, value in enumerate(values[:-1]):
        found = lake.table(name).scan().filter(F.col("p") == value)
        assert [row.id for row in found.collect()] == [number], value
        assert [scan.plan.files.num_rows for scan in lake.scans(found)] == [1], value
    pyiceberg = lake.engine.load(f"default.{name}").scan().to_arrow().sort_by("id")
    assert pyiceberg["p"].to_pylist() == values


def test_a_cached_dataframe_is_found_again_by_table_and_snapshot(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} values (1), (2), (3)")
    cached = lake.sql(f"select * from {name} where id < 3").cache()
    assert cached.count() == 2
    again = lake.sql(f"select * from {name} where id < 3")
    assert "InMemory" in again._jdf.queryExecution().optimizedPlan().toString()
    lake.sql(f"insert into {name} values (0)")
    fresh = lake.sql(f"select * from {name} where id < 3")
    assert fresh.count() == 3
    cached.unpersist()


def test_no_path_of_a_managed_table_can_be_written_by_a_statement(lake: Lake, name: str, warehouse: Path) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    folder = warehouse / "default" / name
    with pytest.raises(InvalidInput, match="managed table"):
        lake.sql(f"insert overwrite directory '{folder}/data' using parquet select 1")
    with pytest.raises(InvalidInput, match="managed table"):
        lake.sql(f"create table {name}_own (id int) using parquet location '{folder}'")


def field_ids(path: str) -> dict[str, int]:
    """Field ids in a file's footer, by the column's name."""
    found: dict[str, int] = {}

    def walk(field: Any, prefix: str) -> None:
        name = f"{prefix}{field.name}"
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            found[name] = int(number)
        for at in range(getattr(field.type, "num_fields", 0)):
            walk(field.type.field(at), f"{name}.")

    for field in pq.read_schema(path.removeprefix("file://")):
        walk(field, "")
    return found
