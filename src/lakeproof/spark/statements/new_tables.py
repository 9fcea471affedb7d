"""`writeTo(...).create()` and `saveAsTable` of a new managed table: seen with its rows, or not at all.

Spark would make the table first and fill it then. What its writers were told is read out of them, and the table goes
the way of CREATE TABLE ... AS SELECT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from lakeproof.iceberg.tables.tables import joined_name
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.statements.ddl import create_from_rows
from lakeproof.spark.statements.names import managed, qualified
from lakeproof.spark.statements.options import reader_options, summary_of_new_table
from lakeproof.spark.statements.replacing import replace_from_rows
from lakeproof.spark.statements.table_options import TABLE_OPTIONS, default_provider, is_managed, partition_by
from lakeproof.sql.statements import CreateTable, PartitionTransform


def create_by_writer(
    engine: Engine, name: str, rows: DataFrame, writer: Any, *, replaces: bool = False, must_exist: bool = False
) -> bool:
    """Make or replace the table that a `DataFrameWriterV2` describes; false: it does not ask for a managed one."""
    gateway = engine.gateway
    provider = _optional(gateway, writer, spark41.WRITER_PROVIDER) or default_provider(engine)
    held = gateway.java_map(gateway.hidden_field(writer, spark41.WRITER_PROPERTIES))
    properties = {str(key): str(value) for key, value in held.items()}
    options = reader_options(gateway, writer)
    there = replaces and managed(engine, name) is not None
    if not there and not is_managed(provider or "", {**options, **properties}):
        return False
    engine = _told_of_snapshot(engine, name, options)
    given = _optional(gateway, writer, spark41.WRITER_PARTITIONING)
    fields = [partition_by(transform) for transform in items_of(given)] if given is not None else []
    made = CreateTable(
        name,
        "",
        provider=provider or "",
        options=_of_table(options),
        properties=tuple(properties.items()),
        partitions=tuple(PartitionTransform(joined_name(each.column.split(".")), each.transform) for each in fields),
        clauses=("clustered",) if _optional(gateway, writer, spark41.WRITER_CLUSTERING) is not None else (),
        replace=replaces,
        must_exist=must_exist,
    )
    (replace_from_rows if replaces else create_from_rows)(engine, made, qualified(engine, name), rows)
    return True


def save_by_writer(engine: Engine, name: str, rows: DataFrame, writer: Any, provider: str | None) -> bool:
    """Make the table that a `DataFrameWriter` saves; false: it does not ask for a managed one."""
    gateway = engine.gateway
    chosen = provider or str(gateway.hidden_field(writer, spark41.WRITER_SOURCE))
    options = reader_options(gateway, writer)
    if not is_managed(chosen, options):
        return False
    engine = _told_of_snapshot(engine, name, options)
    given = _optional(gateway, writer, spark41.WRITER_PARTITION_COLUMNS)
    by = [str(column) for column in items_of(given)] if given is not None else []
    partitions = tuple(PartitionTransform(joined_name([column])) for column in by)
    made = CreateTable(name, "", provider=chosen, options=_of_table(options), partitions=partitions)
    for field, said in ((spark41.WRITER_BUCKETS, "bucketed"), (spark41.STREAM_CLUSTERING, "clustered")):
        if _optional(gateway, writer, field) is not None:
            made = made._replace(clauses=(said,))
    create_from_rows(engine, made, qualified(engine, name), rows)
    return True


def _told_of_snapshot(engine: Engine, name: str, options: Mapping[str, str]) -> Engine:
    """The engine that writes into the first snapshot what the options say of it."""
    told = summary_of_new_table(options, f"table {name}")
    return engine.watched(summary={**engine.watch.summary, **told}) if told else engine


def _of_table(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in options.items() if name in TABLE_OPTIONS)


def _optional(gateway: Gateway, writer: Any, name: str) -> Any:
    found = gateway.hidden_field(writer, name)
    return found.get() if found.isDefined() else None
