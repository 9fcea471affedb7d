"""Procedures that take files that are there: of a table of Spark's, of a folder, or of a table without a catalog.

A table of Spark's own that is adopted must be of Parquet. `migrate` puts the managed table in its place and keeps it
under another name; `snapshot` leaves it alone, and the new table removes no file that it shares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.format_v3.row_ids import entries_of
from lakeproof.iceberg.pyiceberg_names import Schema
from lakeproof.iceberg.reading.manifest_cache import manifests_of
from lakeproof.iceberg.tables.registering import register_table
from lakeproof.iceberg.tables.tables import PartitionBy, create_table, drop_table, joined_name, name_parts
from lakeproof.iceberg.upkeep.add_files import add_files
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, items_of
from lakeproof.spark.jvm.paths import from_spark
from lakeproof.spark.jvm.spark_types import to_iceberg_schema
from lakeproof.spark.procedures.calling import LONG, Procedure, Row, at_least_one, table_named
from lakeproof.spark.statements.instants import session_zone
from lakeproof.spark.statements.names import managed, qualified, spark_has

_PATH = re.compile(r"`?(parquet|orc|avro)`?\.`(.+)`", re.IGNORECASE)


class _SparkTable(NamedTuple):
    """A table of Spark's own: what its catalog holds of it, and what a managed table needs to know."""

    known: Any
    location: str
    schema: Schema
    partitions: tuple[str, ...]


def _spark_table(engine: Engine, name: str, purpose: str) -> _SparkTable:
    full = qualified(engine, name)
    if managed(engine, name) is not None or not spark_has(engine, name):
        raise InvalidInput(f"Spark has no table `{full}` to {purpose}", hint="give the name of a Parquet table")
    gateway = engine.gateway
    namespace, _, table_name = full.rpartition(".")
    identifier = gateway.named(spark41.TABLE_IDENTIFIER).apply(table_name, gateway.some(namespace))
    known = gateway.session.sessionState().catalog().getTableMetadata(identifier)
    provider = str(known.provider().get()) if known.provider().isDefined() else str(known.tableType().name())
    if provider.lower() != "parquet":
        raise InvalidInput(
            f"`{full}` is {provider}, and only Parquet tables can be taken over",
            hint="copy its rows with CREATE TABLE … AS SELECT",
        )
    if known.bucketSpec().isDefined():
        raise InvalidInput(f"`{full}` is bucketed, and that cannot be kept", hint="copy its rows instead")
    location = from_spark(known.location().toString(), "file://")
    parts = tuple(str(column) for column in items_of(known.partitionColumnNames()))
    return _SparkTable(known, location, to_iceberg_schema(gateway.spark.table(full).schema), parts)


def _filled(engine: Engine, source: _SparkTable, name: str, location: str | None, told: Mapping[str, str]) -> int:
    """A new managed table that holds the files of the source; after a failure it is gone."""
    made = create_table(
        engine.catalog,
        name,
        source.schema,
        partition_by=[PartitionBy(column) for column in source.partitions],
        location=location,
        properties=told,
    )
    try:
        done = add_files(made, [source.location], time_zone=session_zone(engine.gateway))
    except BaseException:
        drop_table(engine.catalog, name)
        raise
    return _counted(done)


def _counted(done: Committed) -> int:
    snapshot = None if done.snapshot_id is None else done.table.snapshot_by_id(done.snapshot_id)
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return int(said.get("added-data-files", 0))


def _migrate(
    engine: Engine,
    table: str,
    properties: dict[str, str] | None = None,
    drop_backup: bool = False,
    backup_table_name: str | None = None,
    parallelism: int | None = None,
    ignore_missing_files: bool = False,
) -> list[Row]:
    """Spark's table has another name afterwards, or is gone; its files are the managed table's now."""
    at_least_one(parallelism, "parallelism")
    _refuse_missing(ignore_missing_files)
    source, full = _spark_table(engine, table, "migrate"), qualified(engine, table)
    *before, last = name_parts(full)
    backup = joined_name([*before, backup_table_name or f"{last}_BACKUP_"])
    if not drop_backup and (spark_has(engine, backup) or managed(engine, backup) is not None):
        hint = "give backup_table_name, or say drop_backup => true"
        raise InvalidInput(f"there is already a table `{backup}`", place="the backup", hint=hint)
    files = _filled(engine, source, full, source.location, {**(properties or {}), "migrated": "true"})
    _forget(engine.gateway, source.known, None if drop_backup else name_parts(backup)[-1])
    return [(files,)]


def _forget(gateway: Gateway, known: Any, backup: str | None) -> None:
    """Spark drops or renames its table and leaves the files alone: as its own they would go, or move, with it."""
    external = gateway.named(spark41.CATALOG_TABLE_TYPE).EXTERNAL()
    catalog = gateway.session.sessionState().catalog()
    catalog.alterTable(spark41.copied(known, spark41.CATALOG_TABLE_FIELDS, tableType=external))
    if backup is None:
        catalog.dropTable(known.identifier(), True, False)
        return
    database = gateway.some(known.identifier().database().get())
    catalog.renameTable(known.identifier(), gateway.named(spark41.TABLE_IDENTIFIER).apply(backup, database))


def _snapshot(
    engine: Engine,
    source_table: str,
    table: str,
    location: str | None = None,
    properties: dict[str, str] | None = None,
    parallelism: int | None = None,
    ignore_missing_files: bool = False,
) -> list[Row]:
    at_least_one(parallelism, "parallelism")
    _refuse_missing(ignore_missing_files)
    source, full = _spark_table(engine, source_table, "take a snapshot of"), qualified(engine, table)
    if managed(engine, table) is not None or spark_has(engine, table):
        raise InvalidInput(f"there is already a table `{full}`", hint="choose another name")
    if location is not None and source.location.rstrip("/") == from_spark(location, "file://").rstrip("/"):
        raise InvalidInput("the new table needs a folder of its own", place=f"location {location}")
    told = {**(properties or {}), "snapshot": "true", "gc.enabled": "false"}
    return [(_filled(engine, source, full, location, told),)]


def _refuse_missing(ignore: bool) -> None:
    if ignore:
        hint = "files are found by listing the folder, so that none can be missing; leave it out"
        raise InvalidInput("`ignore_missing_files` is not supported", hint=hint)


def _add_files(
    engine: Engine,
    table: str,
    source_table: str,
    partition_filter: dict[str, str] | None = None,
    check_duplicate_files: bool = True,
    parallelism: int | None = None,
) -> list[Row]:
    """`source_table` is a table of Spark's, a path, or Spark's `parquet.`path`` form.

    As in Iceberg, how many partitions changed is told of format version 1, and of a table without partitions.
    """
    at_least_one(parallelism, "parallelism")
    found = table_named(engine, table)
    done = add_files(
        found,
        [_source(engine, source_table)],
        time_zone=session_zone(engine.gateway),
        partitions=partition_filter or {},
        check_duplicates=check_duplicate_files,
    )
    told = found.format_version == 1 or not (found.spec().fields or _is_path(source_table))
    changed = len({str(p) for p in _partitions(done)}) if told else None
    return [(_counted(done), changed)]


def _partitions(done: Committed) -> list[Any]:
    snapshot = None if done.snapshot_id is None else done.table.snapshot_by_id(done.snapshot_id)
    if snapshot is None:
        return []
    manifests = [m for m in manifests_of(done.table.io, snapshot) if m.added_snapshot_id == snapshot.snapshot_id]
    entries = (entry for manifest in manifests for entry in entries_of(done.table.io, manifest))
    return [entry.data_file.partition for entry in entries if entry.snapshot_id == snapshot.snapshot_id]


def _is_path(given: str) -> bool:
    return _PATH.fullmatch(given.strip()) is not None or "/" in given


def _source(engine: Engine, given: str) -> str:
    path = _PATH.fullmatch(given.strip())
    if path is not None and path[1].lower() != "parquet":
        raise InvalidInput(
            f"files of {path[1].lower()} cannot be adopted", place=given, hint="only Parquet files can be"
        )
    if path is not None:
        return path[2]
    plain = given.strip("`")
    if "/" in plain:
        return plain.removeprefix("parquet.").strip("`")
    if managed(engine, given) is not None:
        raise InvalidInput(f"`{given}` is a managed table", hint="INSERT INTO … SELECT copies its rows")
    return _spark_table(engine, given, "add files of").location


def _register(engine: Engine, table: str, metadata_file: str) -> list[Row]:
    name = qualified(engine, table)
    if spark_has(engine, table):
        raise InvalidInput(f"Spark itself has a table `{name}`", hint="choose another name")
    head = register_table(engine.catalog, name, metadata_file).current_snapshot()
    if head is None:
        return [(None, None, None)]
    said = head.summary.additional_properties if head.summary else {}
    counts = [said.get(key) for key in ("total-records", "total-data-files")]
    return [(head.snapshot_id, *(None if count is None else int(count) for count in counts))]


ADOPTING_PROCEDURES: dict[str, Procedure] = {
    "add_files": Procedure(
        ("table", "source_table", "partition_filter?", "check_duplicate_files?", "parallelism?"),
        (("added_files_count", LONG), ("changed_partition_count", LONG)),
        _add_files,
    ),
    "migrate": Procedure(
        ("table", "properties?", "drop_backup?", "backup_table_name?", "parallelism?", "ignore_missing_files?"),
        (("migrated_files_count", LONG),),
        _migrate,
    ),
    "snapshot": Procedure(
        ("source_table", "table", "location?", "properties?", "parallelism?", "ignore_missing_files?"),
        (("imported_files_count", LONG),),
        _snapshot,
    ),
    "register_table": Procedure(
        ("table", "metadata_file"),
        (("current_snapshot_id", LONG), ("total_records_count", LONG), ("total_data_files_count", LONG)),
        _register,
    ),
}
