"""`writeTo(...).create()` and `saveAsTable` of a new managed table: seen with its rows, or not at all.

Spark would make the table first and fill it then. What its writers were told is read out of them, and the table goes
the way of CREATE TABLE ... AS SELECT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from lakeproof.iceberg.tables.tables import joined_name
from lakeproof.spark.catalog import is_managed, partition_by
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.statements.ddl import create_from_rows
from lakeproof.spark.statements.names import qualified
from lakeproof.spark.statements.options import reader_options
from lakeproof.sql.statements import CreateTable, PartitionField


def create_by_writer(engine: Engine, name: str, rows: DataFrame, writer: Any) -> bool:
    """Make the table that a `DataFrameWriterV2` describes; false: it does not ask for a managed one."""
    gateway = engine.gateway
    provider = _optional(gateway, writer, "provider")
    properties = {
        str(key): str(value) for key, value in gateway.java_map(_field(gateway, writer, "properties")).items()
    }
    options = reader_options(gateway, writer)
    if not is_managed(provider or "", {**options, **properties}):
        return False
    given = _optional(gateway, writer, "partitioning")
    fields = [partition_by(transform) for transform in items_of(given)] if given is not None else []
    made = CreateTable(
        name,
        "",
        provider=provider or "",
        options=tuple(options.items()),
        properties=tuple(properties.items()),
        partitions=tuple(PartitionField(joined_name(each.column.split(".")), each.transform) for each in fields),
    )
    create_from_rows(engine, made, qualified(engine, name), rows)
    return True


def save_by_writer(
    engine: Engine, name: str, rows: DataFrame, writer: Any, provider: str | None, columns: Sequence[str]
) -> bool:
    """Make the table that a `DataFrameWriter` saves; false: it does not ask for a managed one."""
    gateway = engine.gateway
    chosen = provider or str(_field(gateway, writer, "source"))
    options = reader_options(gateway, writer)
    if not is_managed(chosen, options):
        return False
    given = _optional(gateway, writer, "partitioningColumns")
    by = [*columns] or ([str(column) for column in items_of(given)] if given is not None else [])
    partitions = tuple(PartitionField(joined_name([column])) for column in by)
    made = CreateTable(name, "", provider=chosen, options=tuple(options.items()), partitions=partitions)
    create_from_rows(engine, made, qualified(engine, name), rows)
    return True


def _field(gateway: Gateway, writer: Any, name: str) -> Any:
    return gateway.hidden_field(writer, name)


def _optional(gateway: Gateway, writer: Any, name: str) -> Any:
    found = _field(gateway, writer, name)
    return found.get() if found.isDefined() else None
