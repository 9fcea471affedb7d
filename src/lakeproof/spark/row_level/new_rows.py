"""New rows and the places of the old ones leave a query together: it runs once, whatever it computes.

Where little is read the rows come to the driver with their places, and are written there. Else Spark keeps them until
the places are fetched and the files are written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeproof.iceberg.types import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.types import to_spark_schema
from lakeproof.spark.worker_write import driver_files
from lakeproof.spark.write import Written, described, new_folder, partition_columns, remove_folder, tagged, write_rows

NEW = "_lakeproof_new"
"""True where a row is to be written; else only its place counts: it is gone, or was read."""
SMALL_BYTES = 16 * 1024 * 1024


class NewRows(NamedTuple):
    """Rows to be written: at hand, with their partition as text behind them, or kept by Spark."""

    local: pa.Table | None = None
    kept: DataFrame | None = None

    def release(self) -> None:
        """Spark forgets them."""
        if self.kept is not None:
            self.kept.unpersist()


class Taken(NamedTuple):
    """The extra columns of a query's rows, and those of them that are to be written."""

    told: pa.Table
    new: NewRows | None


def take(table: Table, rows: DataFrame, *, bytes_read: int) -> Taken:
    """Run a query whose rows are the table's columns and others, among them `PLACE` and `NEW`."""
    own = [field.name for field in to_spark_schema(table.schema()).fields]
    extra = [name for name in rows.columns if name not in own]
    if bytes_read <= SMALL_BYTES:
        found = with_partitions(rows, table, extra).toArrow()
        told, new = found.select(extra), found.filter(found[NEW]).drop_columns(extra)
        return Taken(told, NewRows(local=new) if new.num_rows else None)
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        told = kept.select(*extra).toArrow()
    except BaseException:
        kept.unpersist()
        raise
    if pc.any(told[NEW]).as_py():
        return Taken(told, NewRows(kept=kept))
    kept.unpersist()
    return Taken(told, None)


def with_partitions(rows: DataFrame, table: Table, extra: list[str]) -> DataFrame:
    """The rows as they will be in the files, then the extra columns, then their partition."""
    return tagged(rows, table, more=extra).select("*", *partition_columns(table.spec(), table.schema()))


def write_new(engine: Engine, table: Table, new: NewRows) -> Written:
    """The rows as data files."""
    if new.kept is not None:
        own = [F.col(f"`{field.name}`") for field in to_spark_schema(table.schema()).fields]
        return write_rows(engine.gateway, table, new.kept.filter(F.col(NEW)).select(*own))
    assert new.local is not None
    folder = new_folder(table)
    names = new.local.column_names[len(table.schema().fields) :]
    try:
        return Written(described(table, driver_files(new.local, names, folder, table)), folder)
    except BaseException:
        remove_folder(engine.gateway, folder)
        raise


def required(table: Table, name: str, value: Column, when: Any = None) -> Column:
    """The value of a column that may not be null, where it may not."""
    field = table.schema().find_field(name)
    if not field.required:
        return value
    missing = value.isNull() if when is None else when & value.isNull()
    return F.when(missing, F.raise_error(F.lit(f"column {name} may not be null"))).otherwise(value)
