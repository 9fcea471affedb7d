"""A table's metadata tables as DataFrames, at the head or at another snapshot."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeproof.iceberg.metadata_tables.metadata_tables import metadata_table
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.refs import snapshot_as_of, snapshot_of_version
from lakeproof.spark.engine import Engine


def metadata_rows(
    engine: Engine, table: Table, name: str, *, version: str | None = None, timestamp_ms: int | None = None
) -> DataFrame:
    """The rows of the metadata table `name`."""
    snapshot = None
    if version is not None:
        snapshot = snapshot_of_version(table, version)
    elif timestamp_ms is not None:
        snapshot = snapshot_as_of(table, timestamp_ms)
    found = metadata_table(table, name, snapshot, travels=snapshot is not None)
    return engine.gateway.spark.createDataFrame(found)
