"""An INSERT as Spark resolves it: one snapshot for all its references, whoever commits meanwhile; and who drives it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.spark.catalog import SessionCatalog
from lakeproof.spark.jvm import spark41, versions
from lakeproof.spark.jvm.gateway import items_of
from lakeproof.spark.lake import ANSWERING, Lake, refuse_missing
from lakeproof.spark.reading.scan import catalog_table
from lakeproof.spark.writing.writable import Insertable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("lookup", [1, 2], ids=["before the first lookup", "between two lookups"])
def test_somebody_commits_while_spark_looks_at_the_table(
    lake: Lake, name: str, lookup: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sql(f"create table {name} (id bigint, n bigint) using iceberg")
    lake.sql(f"insert into {name} values (1, 0)")
    other = lake.engine.load(f"default.{name}")
    real, seen = SessionCatalog.loadTable, list[int]()

    def load(self: SessionCatalog, *given: Any) -> Any:
        seen.append(len(seen))
        if len(seen) == lookup:
            with other.transaction() as change:
                change.append(lake.table(name).scan().limit(1).toArrow().select(["id", "n"]))
        return real(self, *given)

    monkeypatch.setattr(SessionCatalog, "loadTable", load)
    lake.sql(f"insert into {name} select 9, count(*) from {name}")
    monkeypatch.undo()
    found = [(row.id, row.n) for row in lake.table(name).scan().collect()]
    assert sorted(found) == [(1, 0), (1, 0), (9, 2)]
    assert len(seen) > 2, "it was resolved again"


def test_statements_that_spark_drives_itself_are_written_and_refused_as_ours(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    lake.sql(f"execute immediate 'insert into {name} values (5)'")
    lake.spark.range(6, 7).writeTo(name).append()
    assert sorted(row.id for row in lake.table(name).scan().collect()) == [5, 6]
    with pytest.raises(InvalidInput, match="overwritten by") as refused:
        lake.spark.range(1).writeTo(name).overwrite(F.col("id") % 2 == 0)
    assert "lakeproof error" not in str(refused.value)
    with pytest.raises(InvalidInput, match="overwritten by"):
        lake.sql(f"insert into {name} replace where id % 2 = 0 select 1")
    lake.sql(f"insert into {name} replace where id <= 6 and id is not null select 8")
    assert [row.id for row in lake.table(name).scan().collect()] == [8]
    with pytest.raises(InvalidInput, match="option `x` is not supported"):
        lake.spark.range(1).writeTo(name).option("x", "1").append()


def test_a_statement_that_a_text_holds_is_run_as_if_it_stood_there(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    lake.sql(f"insert into {name} values (5), (6), (7)")
    lake.sql(f"execute immediate 'delete from {name} where id = 5'")
    lake.sql(f"declare or replace variable command string default 'update {name} set id = id + 10 where id = (3 + 3)'")
    lake.sql("execute immediate concat(command, ' and true')")
    assert sorted(row.id for row in lake.sql(f"execute immediate 'select * from {name}'").collect()) == [7, 16]
    assert [
        row.n for row in lake.sql(f"execute immediate 'select count(*) n from {name} where id > ?' using 9").collect()
    ] == [1]
    with pytest.raises(InvalidInput, match="values for queries and INSERT only"):
        lake.sql(f"execute immediate 'delete from {name} where id > :a' using 0 as a")
    with pytest.raises(InvalidInput, match="Syntax error") as refused:
        lake.sql("execute immediate 'select 1 +'")
    assert "select 1 +\n" in str(refused.value)
    lake.sql("drop temporary variable command")


def test_create_as_in_a_text_makes_no_table_when_its_rows_fail(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidInput, match="bad row"):
        lake.sql(f"execute immediate 'create table {name} using iceberg as select int(raise_error(\"bad row\")) as a'")
    assert not lake.spark.catalog.tableExists(name)
    lake.sql(f"execute immediate 'create table {name} using iceberg as select 1 as a'")
    assert len(list(lake.engine.load(f"default.{name}").history())) == 1


def test_the_arguments_of_case_classes_are_those_of_this_spark(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    gateway, table = lake.engine.gateway, lake.engine.load(f"default.{name}")
    source = lake.engine.scan(table).source
    made = catalog_table(gateway, source, gateway.empty_schema)
    assert tuple(items_of(made.productElementNames().toSeq())) == spark41.CATALOG_TABLE_FIELDS
    storage = gateway.named(spark41.CATALOG_STORAGE_FORMAT).empty()
    spec = gateway.scala_map({})
    fields = spark41.CATALOG_PARTITION_FIELDS
    partition = spark41.case_class(gateway, spark41.CATALOG_TABLE_PARTITION, fields, spec=spec, storage=storage)
    assert tuple(items_of(partition.productElementNames().toSeq())) == fields


def test_a_version_that_nobody_tried_is_asked_for_what_would_go_wrong(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = lake.engine.gateway
    assert versions.was_tried()
    assert versions.find_unknown(gateway, ANSWERING, spark41.ARGUMENTS) == []
    more = {**spark41.ARGUMENTS, (spark41.FILE_FORMAT_WRITER, "write"): 13}
    monkeypatch.setattr(versions, "catalog_table_fields", lambda: spark41.CATALOG_TABLE_FIELDS[:-1])
    unknown = versions.find_unknown(gateway, {spark41.FILE_INDEX: Insertable}, more)
    assert "answer to FileIndex.listFiles" in unknown
    assert unknown[-2:] == [
        "FileFormatWriter.write with 13 arguments",
        f"known field CatalogTable.{spark41.CATALOG_TABLE_FIELDS[-1]}",
    ]


def test_a_session_that_lacks_a_class_is_refused_by_its_name(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark41.find_missing(lake.engine.gateway) == []
    monkeypatch.setattr(spark41, "CLASSES", (*spark41.CLASSES, "org.apache.spark.sql.Nowhere"))
    missing = spark41.find_missing(lake.engine.gateway)
    assert missing == ["org.apache.spark.sql.Nowhere"]
    with pytest.raises(InvalidInput, match=r"has no org\.apache\.spark\.sql\.Nowhere"):
        refuse_missing(missing)
