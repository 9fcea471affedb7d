"""Statements as Iceberg's and Spark's pages spell them: each works, or is refused in one sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def table(lake: Lake, name: str) -> str:
    lake.sql(f"create table {name} (id int, data string) using iceberg")
    lake.sql(f"insert into {name} values (1, 'a')")
    lake.sql(f"insert into {name} values (2, 'b')")
    return name


REFUSED = [
    ("select * from default.{t}.nonsense", "there is no metadata table `nonsense`"),
    ("select * from stream(default.{t})", "a managed table in a query is no stream"),
    ("select * from stream default.{t}", "a managed table in a query is no stream"),
    ("insert into {t} with ('branch' = 'b') values (3, 'c')", "options of a table are not supported here"),
    ("insert into default.{t} with (`branch` = 'b') select * from {t}", "options of a table are not supported here"),
    ("create temporary table v using iceberg options (path '{t}')", "a managed table is not temporary"),
    ("create or replace temp view v using iceberg options (path '{t}')", "a managed table is not temporary"),
    ("create table {t}n (id int, primary key (id)) using iceberg", "no generated columns or constraints"),
    ("create table {t}n (id int, constraint c check (id > 0)) using iceberg", "no generated columns or constraints"),
    ("create table {t}n (id int, unique (id)) using iceberg", "no generated columns or constraints"),
    ("drop table default.{t}.files", "a metadata table has no such statement"),
    ("truncate table default.{t}.files", "a metadata table has no such statement"),
    ("alter table default.{t}.files set tblproperties ('a'='b')", "a metadata table has no such statement"),
    ("show partitions default.{t}.files", "a metadata table has no such statement"),
    ("call system.rewrite_data_files('{t}' as x)", r"expected `,` or `\)`"),
    ("call system.rewrite_data_files(table => '{t}'", "expected"),
    ("call system.rewrite_manifests(table => nope)", "`nope` cannot be resolved"),
    ("call system.rewrite_manifests(table => 7 + 1)", "`table` must be a string, not 8"),
    (
        "call system.rewrite_data_files(table => '{t}', options => map('max-file-size-bytes', '9'))",
        "there is no option `max-file-size-bytes`",
    ),
    (
        "call system.rewrite_data_files(table => '{t}', options => map('target-file-size-bytes', '0'))",
        "`target-file-size-bytes` cannot be 0",
    ),
    (
        "call system.rewrite_data_files(table => '{t}', options => map('partial-progress.max-commits', '0'))",
        "`partial-progress.max-commits` cannot be 0",
    ),
    (
        "call system.rewrite_data_files(table => '{t}', "
        "options => map('target-file-size-bytes', '10', 'min-file-size-bytes', '11'))",
        "`min-file-size-bytes` cannot be 11",
    ),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(lake: Lake, table: str, text: str, said: str) -> None:
    for run in (lake.sql, lake.spark.sql):
        with pytest.raises(InvalidInput, match=said):
            run(text.format(t=table))
    assert lake.spark.table(table).count() == 2


def test_a_name_of_many_parts_that_nobody_has_is_not_found(lake: Lake, name: str) -> None:
    for missing in (f"default.{name}.files", f"default.{name}.files.files", f"{name}.a.b", f"default.{name}.branch_b"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            lake.spark.sql(f"select * from {missing}").collect()


def test_arguments_of_call_are_computed(lake: Lake, rows: Rows, table: str) -> None:
    first, last = (each.snapshot_id for each in lake.table(table).snapshots())
    assert rows(f"call system.expire_snapshots('{table}', current_timestamp() - interval 7 days)")[0][0] == 0
    assert rows(f"call system.expire_snapshots(table => '{table}', older_than => date_sub(current_date(), 7))")
    oldest = f"(select snapshot_id from default.{table}.snapshots order by committed_at limit 1)"
    moved = rows(f"call system.rollback_to_snapshot(table => concat('{table}', ''), snapshot_id => {oldest})")
    assert moved == [(last, first)]


@pytest.mark.parametrize("text", ["call nobody.system.rewrite_data_files('t')", "show procedures"])
def test_procedures_that_no_catalog_has(lake: Lake, text: str) -> None:
    """From Spark 4.2 on, a catalog that is not there is said to have no such routine."""
    for run in (lake.sql, lake.spark.sql):
        with pytest.raises(
            (InvalidInput, AnalysisException), match=r"no catalog has this one|Cannot resolve routine `nobody`"
        ):
            run(text)


def test_columns_of_metadata_tables_are_described(lake: Lake, rows: Rows, table: str) -> None:
    described = rows(f"describe default.{table}.snapshots")
    assert ("committed_at", "timestamp", None) in described
    assert rows(f"describe extended {table}.snapshots") == described
    assert ("snapshot_id",) in rows(f"show columns in default.{table}.snapshots")


def test_a_partition_field_is_there_once(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int, ts timestamp) using iceberg partitioned by (month(ts))")
    with pytest.raises(InvalidInput, match="`ts` is partitioned by month already, as `ts_month`"):
        lake.sql(f"alter table {name} add partition field months(ts) as m")
