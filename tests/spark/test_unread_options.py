"""What a reader, a writer, a property or a setting says is honoured, or refused in a sentence: never ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from session_settings import setting

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def table(lake: Lake, name: str) -> str:
    """Two rows in two snapshots; the branch `b` and the tag `g` are at the first."""
    lake.sql(f"create table {name} (id int, data string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'a')")
    lake.sql(f"alter table {name} create branch b")
    lake.sql(f"alter table {name} create tag g")
    lake.sql(f"insert into {name} values (2, 'b')")
    return name


def row(lake: Lake) -> Any:
    return lake.spark.createDataFrame([(7, "x")], "id int, data string")


def test_options_of_save_as_table_are_those_of_the_writer(lake: Lake, rows: Rows, table: str) -> None:
    row(lake).write.saveAsTable(table, mode="append", branch="b")
    row(lake).write.format("iceberg").save(table, mode="append", branch="b")
    assert rows(f"select count(*) from {table}") == [(2,)]
    assert rows(f"select count(*) from {table}.branch_b") == [(3,)]
    row(lake).write.option("snapshot-property.MyKey", "v").mode("append").saveAsTable(table)
    assert lake.table(table).snapshots()[-1].summary["MyKey"] == "v"


def test_metadata_tables_are_read_at_the_version_of_the_options(lake: Lake, table: str) -> None:
    first = lake.table(table).snapshots()[0].snapshot_id
    files = f"default.{table}.files"
    assert lake.spark.read.table(files).count() == 2
    for option, value in (("snapshot-id", first), ("versionAsOf", first), ("branch", "b"), ("tag", "g")):
        assert lake.spark.read.option(option, value).table(files).count() == 1, option
        assert lake.spark.read.format("iceberg").option(option, value).load(files).count() == 1, option


REFUSED_READS: list[tuple[Callable[[Any, str], Any], str]] = [
    (lambda read, t: read.option("nonsense", "1").table(f"default.{t}.files"), "read option `nonsense`"),
    (lambda read, t: read.option("start-snapshot-id", "1").table(f"default.{t}.files"), "`start-snapshot-id` is not"),
    (lambda read, t: read.option("branch", "b").table(f"`{t}$snapshots`"), "takes no read options"),
    (lambda read, t: read.option("branch", "b").table(f"default.{t}.tag_g"), "tag `g` is a version already"),
    (lambda read, t: read.option("tag", "g").table(f"default.{t}.branch_b"), "branch b is a version already"),
    (lambda read, t: read.schema("id int").option("branch", "b").table(t), "a managed table has its own schema"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED_READS)
def test_reads_that_ask_for_more(lake: Lake, table: str, call: Callable[[Any, str], Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call(lake.spark.read, table)


def test_a_name_that_is_a_version_takes_no_other(lake: Lake, table: str) -> None:
    first = lake.table(table).snapshots()[0].snapshot_id
    for version in ("tag_g", "branch_b"):
        with pytest.raises(InvalidInput, match="is a version already"):
            lake.sql(f"select * from default.{table}.{version} version as of {first}")


REFUSED_WRITES: list[tuple[Callable[[Any, str], Any], str]] = [
    (lambda df, t: df.write.saveAsTable(t, mode="append", nonsense="1"), "write option `nonsense`"),
    (lambda df, t: df.write.saveAsTable(t, mode="append", partitionBy="data"), "partitionBy says other partitions"),
    (lambda df, t: df.write.partitionBy("data").mode("append").insertInto(t), "partitionBy says other partitions"),
    (lambda df, t: df.write.bucketBy(4, "id").mode("append").saveAsTable(t), "bucketBy cannot change it"),
    (lambda df, t: df.write.clusterBy("id").mode("append").saveAsTable(t), "clusterBy cannot change it"),
    (lambda df, t: df.writeTo(f"{t}n").using("iceberg").option("write-format", "orc").create(), "`write-format`"),
    (lambda df, t: df.writeTo(t).using("iceberg").option("branch", "b").createOrReplace(), "`branch` is not"),
    (lambda df, t: df.write.format("iceberg").option("nonsense", "1").saveAsTable(f"{t}n"), "`nonsense` is not"),
    (lambda df, t: df.write.format("iceberg").clusterBy("id").saveAsTable(f"{t}n"), "cannot be clustered"),
    (lambda df, t: df.writeTo(t).option("mergeSchema", "yes").append(), "`mergeschema` must be true or false"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED_WRITES)
def test_writes_that_ask_for_more(lake: Lake, table: str, call: Callable[[Any, str], Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call(row(lake), table)
    assert lake.spark.table(table).count() == 2
    assert not lake.spark.catalog.tableExists(f"{table}n")


def test_a_new_table_is_told_of_its_first_snapshot(lake: Lake, name: str) -> None:
    row(lake).write.format("iceberg").option("snapshot-property.k", "v").saveAsTable(name)
    row(lake).writeTo(name).using("iceberg").option("snapshot-property.k", "w").createOrReplace()
    assert [each.summary["k"] for each in lake.table(name).snapshots()] == ["v", "w"]


def test_partition_columns_that_the_table_has_are_agreed_to(lake: Lake, rows: Rows, name: str) -> None:
    row(lake).write.format("iceberg").partitionBy("data").saveAsTable(name)
    row(lake).write.partitionBy("data").mode("append").saveAsTable(name)
    assert rows(f"select count(*) from {name}") == [(2,)]


def test_options_of_create_table_are_properties(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg options ('write.delete.mode'='merge-on-read')")
    assert ("write.delete.mode", "merge-on-read") in rows(f"show tblproperties {name}")
    with pytest.raises(InvalidInput, match=r"write\.delete\.mode cannot be 'mor'"):
        lake.sql(f"create table {name}2 (id int) using iceberg options ('write.delete.mode'='mor')")


@pytest.mark.parametrize(
    ("name_of", "value"),
    [
        ("write.object-storage.enabled", "true"),
        ("write.location-provider.impl", "my.Provider"),
        ("encryption.key-id", "k"),
        ("write.distribution-mode", "round-robin"),
        ("write.merge.distribution-mode", "x"),
        ("write.parquet.compression-codec", "zip"),
        ("write.metadata.metrics.default", "some"),
        ("write.metadata.metrics.column.id", "truncate(0)"),
        ("gc.enabled", "perhaps"),
        ("commit.manifest-merge.enabled", "1"),
        ("commit.manifest.target-size-bytes", "8MB"),
    ],
)
def test_properties_that_nothing_honours(lake: Lake, table: str, name_of: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"the property {name_of} cannot be '"):
        lake.sql(f"alter table {table} set tblproperties ('{name_of}'='{value}')")


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
def test_every_codec_that_is_taken_is_written(lake: Lake, rows: Rows, name: str, codec: str) -> None:
    lake.sql(
        f"create table {name} (id int, l array<int>) using iceberg "
        f"tblproperties ('write.parquet.compression-codec'='{codec}')"
    )
    lake.sql(f"insert into {name} values (1, array(1))")
    lake.sql(f"insert into {name} select cast(id as int), array(1) from range(3)")
    lake.sql(f"create table {name}p (id int) using iceberg tblproperties ('write.parquet.compression-codec'='{codec}')")
    lake.sql(f"insert into {name}p values (1)")
    lake.sql(f"insert into {name}p select cast(id as int) from range(3)")
    assert rows(f"select count(*) from {name}") == rows(f"select count(*) from {name}p") == [(4,)]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("snapshot-property.k", "v"),
        ("merge-schema", "true"),
        ("compression-codec", "gzip"),
        ("distribution-mode", "none"),
        ("check-nullability", "false"),
    ],
)
def test_settings_of_apache_iceberg_that_say_what_is_written(lake: Lake, table: str, said: str, value: str) -> None:
    df = row(lake)
    writes: list[Callable[[], Any]] = [
        lambda: lake.sql(f"insert into {table} values (3, 'c')"),
        lambda: lake.sql(f"update {table} set data = 'z'"),
        lambda: lake.sql(f"create table {table}n using iceberg as select 1 id"),
        lambda: lake.sql(f"create or replace table {table} using iceberg as select 1 id"),
        lambda: df.writeTo(table).append(),
        lambda: df.write.mode("append").saveAsTable(table),
    ]
    with setting(lake, f"spark.sql.iceberg.{said}", value):
        for write in writes:
            with pytest.raises(InvalidInput, match=rf"the session's setting spark\.sql\.iceberg\.{said} is not"):
                write()
        assert lake.spark.table(table).count() == 2


def test_settings_that_change_no_answer_are_let_alone(lake: Lake, table: str) -> None:
    with (
        setting(lake, "spark.sql.iceberg.vectorization.enabled", "false"),
        setting(lake, "spark.sql.iceberg.check-nullability", "true"),
    ):
        lake.sql(f"insert into {table} values (3, 'c')")
    assert lake.spark.table(table).count() == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("remove-dangling-deletes", "perhaps"),
        ("use-starting-sequence-number", "1"),
        ("max-concurrent-file-group-rewrites", "many"),
    ],
)
def test_options_of_compaction_are_read_even_if_they_ask_nothing(
    lake: Lake, table: str, option: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match=f"option `{option}` cannot be '{value}'"):
        lake.sql(f"call system.rewrite_data_files(table => '{table}', options => map('{option}', '{value}'))")
