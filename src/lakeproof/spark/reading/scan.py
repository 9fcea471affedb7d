"""A table at a snapshot as a plan of Spark's own operators: a native scan with the deleted rows left out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import PartitionSpec, Schema, Table
from lakeproof.iceberg.tables.branches import label_of
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.default_values import fills_in_defaults
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.session import session_like
from lakeproof.spark.jvm.spark_types import FIELD_ID
from lakeproof.spark.reading.columns import ScanColumn, history_of, metadata_names, scan_columns
from lakeproof.spark.reading.deletes import ROW_INDEX, DeletingFileIndex, SnapshotDeletes, find_deletes, without_deleted
from lakeproof.spark.reading.file_groups import AdoptedFileIndex, Portion, named_columns, portions_of, scan_names
from lakeproof.spark.reading.file_index import ManagedFileIndex, ScanSource
from lakeproof.spark.reading.partition_columns import partition_columns_of

# Parquet's dictionaries and Bloom filters tell 0.0 from -0.0, which are equal in SQL: a file of one of them would be
# passed over when the other is asked for. Its statistics do not.
_WITHOUT_DICTIONARIES = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_BY_COLUMNS = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")
TRAVELS = " as it was"  # ends the key of a scan that stays at its snapshot whatever is committed


class Scan(NamedTuple):
    """One table at one snapshot: its rows, the source that plans them, as which columns they are read, what is gone."""

    rows: DataFrame
    source: ScanSource
    schema: Schema
    deletes: SnapshotDeletes | None


class Scans:
    """Scans of one session; the same snapshot is the same scan, so that Spark finds cached data again."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.sources: OrderedDict[str, ScanSource] = OrderedDict()
        self._scans: OrderedDict[str, Scan] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, table: Table, *, snapshot_id: int | None = None, time_travel: bool = False) -> Scan:
        """The scan of a snapshot (`None`: the table has none yet); time travel reads with the schema of that time."""
        schema = _schema_at(table, snapshot_id) if time_travel else table.schema()
        key = _key(table, schema, snapshot_id) + (TRAVELS if time_travel else "")
        with self._lock:
            found = self._scans.get(key)
            if found is None:
                found = self._scans[key] = self._scan(table, schema, snapshot_id, key)
                while len(self._scans) > 200:
                    self._scans.popitem(last=False)
            self._scans.move_to_end(key)
            return found

    def source_of(self, table: Table, snapshot_id: int | None) -> ScanSource:
        """What plans a snapshot, read with the current schema; Spark is asked nothing."""
        with self._lock:
            return self._source(table, table.schema(), snapshot_id, _key(table, table.schema(), snapshot_id))

    def _source(self, table: Table, schema: Schema, snapshot_id: int | None, key: str) -> ScanSource:
        found = self.sources.get(key)
        if found is None:
            head = table.current_snapshot()
            at_head = snapshot_id == (None if head is None else head.snapshot_id) and schema == table.schema()
            planning = table.schema() if at_head else _schema_at(table, snapshot_id)
            known = metadata_names(scan_columns(schema, history_of(table)), planning)
            found = self.sources[key] = ScanSource(table, snapshot_id, known, key, schema=planning, at_head=at_head)
            while len(self.sources) > 200:
                self.sources.popitem(last=False)
        self.sources.move_to_end(key)
        return found

    def _scan(self, table: Table, schema: Schema, snapshot_id: int | None, key: str) -> Scan:
        columns = scan_columns(schema, history_of(table))
        source = self._source(table, schema, snapshot_id, key)
        deletes = find_deletes(source) if _may_have_deletes(table, snapshot_id) else None
        parts = [self._portion(source, schema, columns, deletes, portion) for portion in portions_of(source)]
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionAll(part)
        return Scan(rows, source, schema, deletes)

    def _portion(
        self,
        source: ScanSource,
        schema: Schema,
        columns: list[ScanColumn],
        deletes: SnapshotDeletes | None,
        portion: Portion,
    ) -> DataFrame:
        """One portion of the files, under the names and types of the table."""
        if not portion.by_name:
            rows = self._rows(source, columns, deletes, portion)
            return rows.select(*[column.shown() for column in columns])
        if deletes is not None:
            raise InvalidInput(
                f"rows of {portion.file_format} files that are read by name were deleted by position or value",
                place=f"table {source.label}",
                hint="let the engine that deleted them compact the table first",
            )
        named = named_columns(schema, source.table, portion)
        by_name = source.spelled(dict(scan_names(named)))
        read = spark.StructType([column.read for column in named if column.read is not None])
        if portion.spec_id is None:
            index = ManagedFileIndex(self.gateway, by_name, only=portion.paths)
            rows = self.relation(source.table, index, read, portion.file_format)
        else:
            adopted = AdoptedFileIndex(self.gateway, by_name, portion, named)
            data = spark.StructType([field for field in read.fields if field.name not in adopted.fields])
            rows = self.relation(source.table, adopted, data, portion.file_format)
        return rows.select(*[column.shown() for column in named])

    def _rows(
        self, source: ScanSource, columns: list[ScanColumn], deletes: SnapshotDeletes | None, portion: Portion
    ) -> DataFrame:
        of_partitions = partition_columns_of(columns, _specs_of(source), source.planned)
        constant = {column.source_id for column in of_partitions}
        read = [column.read for column in columns if column.read.metadata[FIELD_ID] not in constant]
        if deletes is None:
            index = ManagedFileIndex(self.gateway, source, only=portion.paths, columns=of_partitions)
            return self.relation(source.table, index, spark.StructType(read))
        named = {column.read.metadata[FIELD_ID]: column.read.name for column in columns}
        for each in deletes.equality:
            for field_id in each.field_ids:
                if field_id not in named:
                    raise InvalidInput(
                        "an equality delete of another engine names a column that was dropped",
                        place=f"table {source.label}",
                        hint="let that engine compact the table first",
                    )
        schema = spark.StructType([*read, spark.StructField(ROW_INDEX, spark.LongType(), True)])
        deleting = DeletingFileIndex(self.gateway, source, deletes, portion.paths, of_partitions)
        rows = self.relation(source.table, deleting, schema)
        return without_deleted(rows, deletes, named)

    def relation(
        self,
        table: Table,
        index: ManagedFileIndex,
        schema: spark.StructType,
        file_format: str = "PARQUET",
        *,
        is_streaming: bool = False,
    ) -> DataFrame:
        """The files of an index as rows of `schema`, hidden columns behind it."""
        gateway = self.gateway
        if file_format not in spark41.FILE_FORMATS:
            raise InvalidInput(f"Spark cannot read {file_format} files here", place=f"table {'.'.join(table.name())}")
        relation = gateway.named(spark41.HADOOP_FS_RELATION)(
            index,
            index.hidden_schema,
            gateway.java_schema(schema),
            gateway.none,
            gateway.named(spark41.FILE_FORMATS[file_format])(),
            gateway.scala_map(_WITHOUT_DICTIONARIES if _has_floats(schema) else {}),
            _column_reader(gateway) if fills_in_defaults(schema) else gateway.session,
        )
        if is_streaming:
            return gateway.dataframe(gateway.module(spark41.LOGICAL_RELATION).apply(relation, True))
        described = catalog_table(gateway, index.source, relation.schema())
        return gateway.dataframe(gateway.module(spark41.LOGICAL_RELATION).apply(relation, described))


def _column_reader(gateway: Gateway) -> Any:
    """A session like the user's in which Parquet files are always read column by column.

    A relation reads as its session says, and Spark's reader of rows takes the columns that a file lacks to be the last
    ones: it leaves others without their default, and puts defaults over values that are there.
    """
    changed = dict.fromkeys(_BY_COLUMNS, "true")
    return gateway.once("by columns", lambda: spark41.java_session(session_like(gateway.spark, changed)))


def _specs_of(source: ScanSource) -> list[PartitionSpec]:
    """The partition specs that files of the snapshot have: the only one that the table has had, or those in use."""
    specs = source.table.specs()
    if len(specs) == 1:
        return list(specs.values())
    return [specs[number] for number in source.planned().files["spec_id"].unique().to_pylist()]


def _has_floats(kind: spark.DataType) -> bool:
    """Whether a FLOAT or DOUBLE is in it, or anywhere inside."""
    if isinstance(kind, spark.StructType):
        return any(_has_floats(field.dataType) for field in kind.fields)
    if isinstance(kind, spark.ArrayType):
        return _has_floats(kind.elementType)
    if isinstance(kind, spark.MapType):
        return _has_floats(kind.keyType) or _has_floats(kind.valueType)
    return isinstance(kind, spark.FloatType | spark.DoubleType)


def _key(table: Table, schema: Schema, snapshot_id: int | None) -> str:
    """The columns' spelling depends on the schema that is read and on all that the table has had.

    An upgrade of the table makes no snapshot, but its rows can have ids from then on.
    """
    schemas = f"{schema.schema_id} of {table.metadata.current_schema_id} in version {table.format_version}"
    of = f"{'.'.join(table.name())} {table.metadata.table_uuid}"
    return f"{of}@{snapshot_id} {label_of(table)} schema {schemas}"


def catalog_table(gateway: Gateway, source: ScanSource, schema: Any) -> Any:
    """What Spark's optimizer is told about the table: its name, its size and its number of rows."""
    namespace, name = source.table.name()[-2:]
    identifier = gateway.static(spark41.TABLE_IDENTIFIER, "apply")(
        name, gateway.some(namespace), gateway.some("spark_catalog")
    )
    return described_table(gateway, identifier, schema, _statistics(gateway, source))


def described_table(gateway: Gateway, identifier: Any, schema: Any, statistics: Any) -> Any:
    """A `CatalogTable`; its provider names no data source, so that Spark can never write it by itself."""
    return spark41.case_class(
        gateway,
        spark41.CATALOG_TABLE,
        spark41.CATALOG_TABLE_FIELDS,
        identifier=identifier,
        tableType=gateway.once("external", lambda: gateway.named(spark41.CATALOG_TABLE_TYPE).EXTERNAL()),
        storage=gateway.once("no storage", lambda: gateway.named(spark41.CATALOG_STORAGE_FORMAT).empty()),
        schema=schema,
        provider=gateway.once("provider", lambda: gateway.some("lakeproof")),
        stats=statistics,
    )


def _statistics(gateway: Gateway, source: ScanSource) -> Any:
    summary = _summary(source.table, source.snapshot_id)
    if "total-files-size" in summary and "total-records" in summary:
        size, rows = int(summary["total-files-size"]), int(summary["total-records"])
    else:
        size, rows = source.planned().bytes_kept, source.planned().rows_kept
    # By JSON: py4j would turn Scala's BigInt into a plain number on its way.
    text = f'{{"sizeInBytes":{size},"rowCount":{rows},"colStats":{{}}}}'
    return gateway.some(gateway.built(text, gateway.class_of(spark41.CATALOG_STATISTICS)))


def _summary(table: Table, snapshot_id: int | None) -> dict[str, str]:
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    return {} if snapshot is None or snapshot.summary is None else dict(snapshot.summary.additional_properties)


def _may_have_deletes(table: Table, snapshot_id: int | None) -> bool:
    return snapshot_id is not None and _summary(table, snapshot_id).get("total-delete-files", "unknown") != "0"


def _schema_at(table: Table, snapshot_id: int | None) -> Schema:
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.schema_id is None:
        return table.schema()
    return table.schemas().get(snapshot.schema_id, table.schema())
