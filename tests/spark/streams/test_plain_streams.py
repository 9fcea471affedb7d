"""Streams of plain PySpark on a managed table end in one sentence; those on other things are Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark


def test_streams_are_refused_in_one_sentence(lake: Lake, name: str, tmp_path: Path) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    spark, rate = lake.spark, lake.spark.readStream.format("rate").load()
    for read in (
        lambda: spark.readStream.table(f"default.{name}"),
        lambda: spark.readStream.format("iceberg").load(f"default.{name}"),
        lambda: spark.readStream.load(f"default.{name}", format="iceberg"),
    ):
        with pytest.raises(InvalidInput, match="streams cannot read a managed table yet"):
            read()
    writer = rate.select("value").writeStream.option("checkpointLocation", str(tmp_path))
    with pytest.raises(InvalidInput, match="streams cannot write a managed table yet"):
        writer.toTable(f"default.{name}")
    with pytest.raises(InvalidInput, match="streams cannot write a managed table yet"):
        writer.format("iceberg").start(f"default.{name}")


def test_other_streams_stay_sparks_own(lake: Lake, name: str, tmp_path: Path) -> None:
    lake.spark.range(3).write.parquet(str(tmp_path / "in"))
    rows = lake.spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    assert lake.spark.table(name).count() == 3
