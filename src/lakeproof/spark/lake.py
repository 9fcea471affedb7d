"""The Python face: `connect`, `Lake.sql`, `Lake.table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from os import PathLike, fspath
from typing import Any, NamedTuple

import pyspark
from pyspark.sql import DataFrame, SparkSession

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS
from lakeproof.iceberg import pyiceberg_private
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.iceberg.reading.planning import plan as planned
from lakeproof.iceberg.tables.catalogs import DEFAULT_URI, DEFAULT_WAREHOUSE, open_catalog
from lakeproof.iceberg.tables.metadata_views import view
from lakeproof.spark.arguments import (
    require_connection,
    require_known,
    require_parameters,
    require_point,
    require_rows,
    require_text,
)
from lakeproof.spark.catalog import install_catalog
from lakeproof.spark.engine import AppendRows, CommitWatch, Engine, Overwrite, OverwritePartitions, WriteMode
from lakeproof.spark.hooks import hook, runner_of, spark_sql, unhook
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.preparing import know_provider, quiet_local_files
from lakeproof.spark.jvm.session import build_session, made_ready
from lakeproof.spark.jvm.versions import find_unknown, was_tried
from lakeproof.spark.names_in_force import names_mean
from lakeproof.spark.reading.asked_columns import NamedMetadataColumn, TableWithMetadataColumns
from lakeproof.spark.reading.catalyst import Translation
from lakeproof.spark.reading.explaining import ManagedScan, scans_of
from lakeproof.spark.reading.file_index import ManagedFileIndex
from lakeproof.spark.reading.functions import register_functions
from lakeproof.spark.row_level.scan_filters import filter_from_text
from lakeproof.spark.statements.analysis import Arguments
from lakeproof.spark.statements.dispatch import StatementRunner
from lakeproof.spark.statements.names import qualified
from lakeproof.spark.streams.source import TableSource
from lakeproof.spark.writing.writable import Insertable, WritableTable, Write, WriteBuilder
from lakeproof.sql import split

ANSWERING = {
    spark41.FILE_INDEX: ManagedFileIndex,
    spark41.SUPPORTS_READ: WritableTable,
    spark41.SUPPORTS_METADATA_COLUMNS: TableWithMetadataColumns,
    spark41.METADATA_COLUMN: NamedMetadataColumn,
    spark41.SUPPORTS_WRITE: WritableTable,
    spark41.SUPPORTS_OVERWRITE_V2: WriteBuilder,
    spark41.SUPPORTS_DYNAMIC_OVERWRITE: WriteBuilder,
    spark41.V1_WRITE: Write,
    spark41.INSERTABLE_RELATION: Insertable,
    spark41.STREAM_SOURCE: TableSource,
    spark41.SUPPORTS_TRIGGER_AVAILABLE_NOW: TableSource,
}
"""Which classes answer for which interfaces of Spark's (the catalog hands on whatever it does not know)."""


def connect(
    spark: SparkSession | None = None,
    catalog: str = DEFAULT_URI,
    warehouse: str = DEFAULT_WAREHOUSE,
    **properties: str,
) -> Lake:
    """The tables of a catalog on a Spark session: the given one, the active one, or a new local one.

    `properties` are PyIceberg's own, for its catalogs and file systems.
    """
    warehouse = fspath(warehouse) if isinstance(warehouse, PathLike) else warehouse
    require_connection(catalog, warehouse, properties)
    opened = open_catalog(catalog, warehouse, **properties)
    session = spark or SparkSession.getActiveSession() or build_session(warehouse)
    gateway = Gateway(made_ready(session))
    refuse_missing([*_missing_of_spark(gateway), *pyiceberg_private.find_missing()])
    know_provider(gateway)
    register_functions(gateway)
    quiet_local_files(gateway)
    told = {
        "spark.app.id": session.sparkContext.applicationId,
        "engine-name": "spark",
        "engine-version": session.version,
    }
    lake = Lake(StatementRunner(Engine(gateway, opened, CommitWatch(summary=told)), spark_sql(session)))
    lake.reconnect()
    return lake


def refuse_missing(names: Sequence[str]) -> None:
    """A session without what Lakeproof needs of Spark's internals is refused at once, by name."""
    if names:
        raise InvalidInput(
            f"this Spark ({pyspark.__version__}) or PyIceberg has no {', '.join(names[:5])}",
            hint="Lakeproof was made for Spark 4.1 to 4.3 and PyIceberg 0.12 (`lakeproof doctor` says more)",
        )


def _missing_of_spark(gateway: Gateway) -> list[str]:
    """Classes that are not there and, on a version that nobody has tried, whatever else would go wrong later."""
    missing = spark41.find_missing(gateway)
    return missing if missing or was_tried() else find_unknown(gateway, ANSWERING, spark41.ARGUMENTS)


class Lake:
    """Managed tables, as SQL and as DataFrames."""

    def __init__(self, runner: StatementRunner) -> None:
        self._runner, self._engine = runner, runner.engine

    @property
    def spark(self) -> SparkSession:
        """The session; plain `spark.sql` on it knows the managed tables too."""
        return self._engine.gateway.spark

    @property
    def engine(self) -> Engine:
        """What statements run on."""
        return self._engine

    def sql(self, text: str, args: Arguments | None = None) -> DataFrame:
        """The result of the statement (of the last, if there are several); mistakes are errors of ours, not Spark's.

        `args` are the values of its parameters, as `SparkSession.sql` takes them: by name, or in order.
        """
        require_text("the statement", text, "lake.sql('select 1')")
        require_parameters(args)
        pieces = split(text)
        if not pieces:
            raise InvalidInput("there is no statement in this text")
        for piece in pieces[:-1]:
            self._run(piece.text, args)
        return self._run(pieces[-1].text, args)

    def _run(self, text: str, args: Arguments | None) -> DataFrame:
        with translate_spark_errors(self._engine.gateway, text):
            connected = runner_of(self.spark)
            if connected is not None and connected.engine.catalog is self._engine.catalog:
                return self._runner.run(text, args)
            with names_mean(self._engine):  # the session was connected to another lake since
                return self._runner.run(text, args)

    def watched(self, **how: Any) -> Lake:
        """The same lake, watched or judged as `CommitWatch` says: `on_phase`, `on_rerun`, `policy`."""
        require_known(how, [each.name for each in fields(CommitWatch)])
        return Lake(StatementRunner(self._engine.watched(**how), self._runner.spark_sql))

    def collect(self, rows: DataFrame) -> list[Any]:
        """The rows of a result; what goes wrong while they are computed is an error of ours too."""
        require_rows("rows", rows)
        with translate_spark_errors(self._engine.gateway):
            return list(rows.collect())

    def table(self, name: str) -> LakeTable:
        """A managed table; an unknown name is an `InvalidInput` that names the nearest."""
        require_text("a table's name", name, "lake.table('people')")
        full = qualified(self._engine, name)
        self._engine.load(full)
        return LakeTable(self._engine, full)

    def scans(self, rows: DataFrame) -> list[ManagedScan]:
        """What a query reads of managed tables: tables, snapshots, filters, files."""
        require_rows("rows", rows)
        return scans_of(self._engine, rows)

    def reconnect(self) -> None:
        """Plain `spark.sql` means this lake's tables from now on, whichever lake was connected since."""
        install_catalog(self._engine)
        hook(self._runner)

    def close(self) -> None:
        """Plain `spark.sql` is Spark's own again; the session lives on."""
        unhook(self._runner)
        self.spark.conf.unset("spark.sql.catalog.spark_catalog")


class PlannedFile(NamedTuple):
    """A data file that a scan reads."""

    path: str
    bytes: int
    rows: int


class TablePlan(NamedTuple):
    """What a scan reads, and of how much."""

    files: tuple[PlannedFile, ...]
    files_seen: int
    scan: ScanPlan


class SnapshotInfo(NamedTuple):
    """One snapshot; `parent_id` of the first is `None`."""

    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    operation: str
    summary: dict[str, str]


class LakeTable:
    """One managed table; every call reads its newest metadata."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    def _table(self) -> Table:
        return self._engine.load(self.name)

    def scan(self, *, version: str | int | None = None, timestamp_ms: int | None = None) -> DataFrame:
        """The rows at the head, at a snapshot, branch or tag, or at an instant."""
        require_point(version, timestamp_ms)
        chosen = None if version is None else str(version)
        return self._engine.scan(self._table(), version=chosen, timestamp_ms=timestamp_ms).rows

    def plan(self, sql_predicate: str | None = None) -> TablePlan:
        """The files that a scan with this predicate reads, from metadata alone."""
        if sql_predicate is not None:
            require_text("sql_predicate", sql_predicate, "plan('id > 7')")
        table = self._table()
        chosen = ALWAYS if sql_predicate is None else self._chosen(table, sql_predicate).filter
        found = planned(table, from_filter(chosen, table.schema()))
        columns = [found.files[name].to_pylist() for name in ("path", "size", "record_count")]
        files = tuple(PlannedFile(*row) for row in zip(*columns, strict=True))
        return TablePlan(files, found.files_seen, found)

    def snapshots(self) -> list[SnapshotInfo]:
        """The snapshots, oldest first."""
        return list(_snapshots(self._table()))

    def history(self) -> list[dict[str, Any]]:
        """Which snapshot was current from when on, oldest first."""
        return list(view(self._table(), "history").to_pylist())

    def append(self, rows: DataFrame, *, branch: str = "main") -> int | None:
        """Add the rows of a DataFrame, by name: one snapshot, whose id is returned."""
        return self._write(rows, AppendRows(), branch)

    def overwrite(self, rows: DataFrame, sql_predicate: str | None = None, *, branch: str = "main") -> int | None:
        """Replace all rows, or those of a predicate that selects whole files."""
        if sql_predicate is None:
            return self._write(rows, Overwrite(), branch)
        require_text("sql_predicate", sql_predicate, "\"day = date'2026-01-01'\"")
        chosen = self._chosen(self._table(), sql_predicate)
        if not chosen.exact:
            raise InvalidInput(
                "this predicate does not choose whole files",
                place=f"predicate `{sql_predicate}`",
                hint="compare partition columns with literals",
            )
        return self._write(rows, Overwrite(chosen.filter), branch)

    def _chosen(self, table: Table, sql_predicate: str) -> Translation:
        with translate_spark_errors(self._engine.gateway, sql_predicate):
            return filter_from_text(self._engine, table, sql_predicate)

    def overwrite_partitions(self, rows: DataFrame, *, branch: str = "main") -> int | None:
        """Replace the partitions that the rows lie in."""
        return self._write(rows, OverwritePartitions(), branch)

    def _write(self, rows: DataFrame, mode: WriteMode, branch: str) -> int | None:
        require_rows("rows", rows)
        require_text("branch", branch, "branch='main'")
        with translate_spark_errors(self._engine.gateway):
            return self._engine.write(self._table(), rows, mode, branch=branch).snapshot_id

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return [field.name for field in self._table().schema().fields]


def _snapshots(table: Table) -> Iterator[SnapshotInfo]:
    order = sorted(table.metadata.snapshots, key=lambda one: (one.sequence_number or 0, one.timestamp_ms))
    for each in order:
        said = dict(each.summary.additional_properties) if each.summary else {}
        operation = each.summary.operation.value if each.summary else ""
        yield SnapshotInfo(each.snapshot_id, each.parent_snapshot_id, each.timestamp_ms, operation, said)
