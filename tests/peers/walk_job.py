"""The walk-through as a job: `spark-submit walk_job.py FOLDER WAREHOUSE OUT [PROPERTY=VALUE…]` ends well if every
snapshot and every count is as the text says."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import lakeproof
from lakeproof.spark.store_sales import write_store_sales

sys.path.append(str(Path(__file__).resolve().parent.parent / "spark"))
from test_spark_walkthrough import walk


def main(folder: str, warehouse: str, out: str, *properties: str) -> None:
    """The statements, and what the driver saw of the cluster."""
    spark = SparkSession.builder.appName("walk-through").getOrCreate()
    given = dict(word.split("=", 1) for word in properties)
    lake = lakeproof.connect(spark, catalog=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **given)
    walk(lake, write_store_sales(Path(folder) / "source"), out, "job")
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print(f"walked on {executors} executors of {spark.sparkContext.master}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
