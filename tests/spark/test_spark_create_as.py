"""CREATE TABLE … AS SELECT on real Spark: the table with its rows, or neither, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, METADATA_WRITTEN, SCANNED, SWAPPED
from lakeproof.spark.lake import Lake
from lakeproof.spark.statements import ddl

pytestmark = pytest.mark.spark


def test_a_query_that_fails_leaves_neither_table_nor_folder(lake: Lake, name: str, warehouse: Path) -> None:
    with pytest.raises(InvalidInput, match="no more"):
        lake.sql(f"create table {name} using iceberg as select if(id > 3, raise_error('no more'), id) a from range(9)")
    assert lake.engine.find(f"default.{name}") is None
    assert not (warehouse / "default" / name).exists()
    lake.sql(f"create table {name} using iceberg as select 1 as a")
    assert (warehouse / "default" / name).exists()


@pytest.mark.parametrize("way", ["writeTo", "saveAsTable"])
def test_a_writer_that_fails_leaves_no_table_and_one_that_succeeds_made_it_at_once(
    lake: Lake, name: str, warehouse: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = lake.spark.range(9).selectExpr("if(id > 3, raise_error('no more'), id) a", "id % 2 p")

    def make(rows: DataFrame) -> None:
        if way == "writeTo":
            rows.writeTo(name).using("iceberg").partitionedBy("p").tableProperty("comment", "made").create()
        else:
            rows.write.format("iceberg").partitionBy("p").saveAsTable(name)

    with pytest.raises(InvalidInput, match="no more"):
        make(rows)
    assert lake.engine.find(f"default.{name}") is None
    assert not (warehouse / "default" / name).exists()
    seen: list[bool] = []
    real = ddl.write_rows

    def looking(*given: Any) -> Any:
        seen.append(lake.engine.find(f"default.{name}") is not None)
        return real(*given)

    monkeypatch.setattr(ddl, "write_rows", looking)
    make(lake.spark.range(4).selectExpr("id a", "id % 2 p"))
    assert seen == [False], "while its rows are written nobody sees the table"
    table = lake.engine.load(f"default.{name}")
    assert [str(field.name) for field in table.spec().fields] == ["p"]
    assert table.properties.get("comment") == ("made" if way == "writeTo" else None)
    assert len(lake.table(name).snapshots()) == 1
    assert lake.collect(lake.sql(f"select sum(a) s from {name}"))[0].s == 6
    with pytest.raises(InvalidInput, match="already a table"):
        make(lake.spark.range(4).selectExpr("id a", "id % 2 p"))


def test_the_table_is_seen_with_its_rows_and_not_before(lake: Lake, name: str) -> None:
    seen: list[tuple[str, bool]] = []

    def look(phase: str) -> None:
        seen.append((phase, lake.engine.find(f"default.{name}") is not None))

    lake.watched(on_phase=look).sql(f"create table {name} using iceberg as select id from range(3)")
    assert seen == [(SCANNED, False), (FILES_WRITTEN, False), (METADATA_WRITTEN, False), (SWAPPED, True)]
    assert len(lake.table(name).snapshots()) == 1
    assert lake.collect(lake.sql(f"select count(*) c from {name}"))[0].c == 3


def test_a_table_that_somebody_else_made_meanwhile_keeps_its_row(lake: Lake, name: str) -> None:
    left = [True]

    def somebody_else(phase: str) -> None:
        if phase == FILES_WRITTEN and left:
            left.pop()
            lake.sql(f"create table {name} (id bigint) using iceberg")
            lake.sql(f"insert into {name} values (7)")

    with pytest.raises(InvalidInput, match="already a table"):
        lake.watched(on_phase=somebody_else).sql(f"create table {name} using iceberg as select id from range(3)")
    assert [row.id for row in lake.collect(lake.sql(f"select * from {name}"))] == [7]
