"""Streams of plain PySpark that name no managed table are Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def test_other_streams_stay_sparks_own(lake: Lake, name: str, tmp_path: Path) -> None:
    lake.spark.range(3).write.parquet(str(tmp_path / "in"))
    rows = lake.spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    assert lake.spark.table(name).count() == 3


def test_a_table_of_sparks_own_is_read_and_written_by_spark(lake: Lake, name: str, tmp_path: Path) -> None:
    for table in (name, f"{name}_to"):
        lake.sql(f"create table {table} (id bigint) using parquet")
    lake.sql(f"insert into {name} values (1), (2)")
    writer = lake.spark.readStream.table(name).writeStream.trigger(availableNow=True)
    writer.toTable(f"{name}_to", checkpointLocation=str(tmp_path)).awaitTermination()
    assert lake.spark.table(f"{name}_to").count() == 2
