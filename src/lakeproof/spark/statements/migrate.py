"""A Parquet table of Spark's own becomes a managed table: its files are adopted as the first snapshot."""

from __future__ import annotations

from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.tables.tables import PartitionBy, create_table, drop_table
from lakeproof.iceberg.upkeep.add_files import add_files
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.jvm.paths import from_spark
from lakeproof.spark.jvm.spark_types import to_iceberg_schema
from lakeproof.spark.statements.instants import session_zone
from lakeproof.spark.statements.names import managed, qualified, spark_has


def migrate(engine: Engine, name: str) -> int:
    """The number of files adopted; Spark's own table of that name is gone, its files are the managed table's now."""
    full = qualified(engine, name)
    if managed(engine, name) is not None or not spark_has(engine, name):
        raise InvalidInput(f"Spark has no table `{full}` to migrate", hint="give the name of a Parquet table")
    gateway = engine.gateway
    namespace, _, table_name = full.rpartition(".")
    identifier = gateway.named(spark41.TABLE_IDENTIFIER).apply(table_name, gateway.some(namespace))
    known = gateway.session.sessionState().catalog().getTableMetadata(identifier)
    provider = str(known.provider().get())
    if provider.lower() != "parquet":
        raise InvalidInput(f"`{full}` is {provider}, and only Parquet tables can be migrated")
    location = from_spark(known.location().toString(), "file://")
    parts = [PartitionBy(column) for column in items_of(known.partitionColumnNames())]
    schema = to_iceberg_schema(gateway.spark.table(full).schema)
    made = create_table(engine.catalog, full, schema, partition_by=parts, location=location)
    try:
        done = add_files(made, [made.location()], time_zone=session_zone(gateway))
    except BaseException:
        drop_table(engine.catalog, full)
        raise
    _forget(gateway, known)
    snapshot = done.table.current_snapshot()
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return int(said.get("added-data-files", 0))


def _forget(gateway: Gateway, known: Any) -> None:
    """Spark drops its table and keeps the files: they would be deleted with a table that Spark holds for its own."""
    external = gateway.named(spark41.CATALOG_TABLE_TYPE).EXTERNAL()
    catalog = gateway.session.sessionState().catalog()
    catalog.alterTable(spark41.copied(known, spark41.CATALOG_TABLE_FIELDS, tableType=external))
    catalog.dropTable(known.identifier(), True, False)
