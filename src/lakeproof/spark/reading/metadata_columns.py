"""The metadata columns of a table: `_file`, `_pos`, `_partition`, `_spec_id`, `_deleted`, and those of row lineage.

They are computed for a query that names one of them, and cost others nothing. What is the same for all rows of a file
(its path, its partition) is looked up by the number that each file carries as a hidden column. A further column is a
further `MetadataColumn` in the list at the end.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.format_v3.lineage import LAST_UPDATED, ROW_ID, has_lineage
from lakeproof.iceberg.metadata_tables.columns import FileColumns
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark_types import FIELD_ID, nullable, to_spark_type
from lakeproof.spark.reading.columns import history_of, scan_columns
from lakeproof.spark.reading.deletes import ROW_INDEX, DeletingFileIndex, SnapshotDeletes, is_live, without_deleted
from lakeproof.spark.reading.file_groups import portions_of
from lakeproof.spark.reading.file_index import FileGroup, ManagedFileIndex, ScanSource
from lakeproof.spark.reading.lineage import STORED_ID, STORED_NUMBER, file_constants, last_updated, row_id
from lakeproof.spark.reading.scan import Scan, Scans

NUMBER = "_lakeproof_number"


class MetadataScan:
    """A scan whose files are numbered, for those who compute a metadata column on it."""

    def __init__(self, table: Table, plan: ScanPlan, deletes: SnapshotDeletes | None, session: Any) -> None:
        self.table, self.plan, self.deletes, self.session = table, plan, deletes, session

    @property
    def position(self) -> Column:
        """The number of the row in its file."""
        return F.col(ROW_INDEX)

    def of_file(self, values: Sequence[Any], kind: spark.DataType) -> Column:
        """A value per file, in the order of the plan's files."""
        text = json.dumps(list(values), default=_as_json)
        listed = F.from_json(F.lit(text), spark.ArrayType(kind))
        # With a column of the data in it, Spark asks it of each row, and not of us which files to list.
        return F.get(listed, F.coalesce(F.col(NUMBER), F.col(ROW_INDEX).cast("int")))


class MetadataColumn(NamedTuple):
    """One metadata column: its type in a table (`None`: it has none there), what is read for it, and its value."""

    name: str
    type: Callable[[Table], spark.DataType | None]
    value: Callable[[MetadataScan], Column]
    reads: tuple[spark.StructField, ...] = ()


def _of_partition(scan: MetadataScan) -> Column:
    kind = _partition_type(scan.table)
    if not kind.fields:
        return F.lit(None).cast(kind)
    columns, spec_ids = FileColumns(scan.table), scan.plan.files["spec_id"].to_pylist()
    pairs = zip(scan.plan.partitions(), spec_ids, strict=True)
    return scan.of_file([columns.partition_row(values, spec_id) for values, spec_id in pairs], kind)


def _partition_type(table: Table) -> spark.StructType:
    columns = FileColumns(table).partition_columns
    fields = [spark.StructField(each.name, nullable(to_spark_type(each.type, each.name)), True) for each in columns]
    return spark.StructType(fields)


def _of_deleted(scan: MetadataScan) -> Column:
    if scan.deletes is None:
        return F.lit(False)
    if not scan.deletes.by_bitmap or scan.deletes.equality:
        raise InvalidInput(
            "the rows that were deleted by value, or by very many positions, cannot be shown",
            place=f"table {'.'.join(scan.table.name())}, column _deleted",
            hint="leave `_deleted` out to read the rows that are there",
        )
    return ~is_live(scan.session)


def _of_lineage(table: Table) -> spark.DataType | None:
    return spark.LongType() if has_lineage(table) else None


def _row_id(scan: MetadataScan) -> Column:
    firsts = [first for first, _ in file_constants(scan.plan)]
    return row_id(scan.of_file(firsts, spark.LongType()))


def _last_updated(scan: MetadataScan) -> Column:
    numbers = [number for _, number in file_constants(scan.plan)]
    return last_updated(scan.of_file(numbers, spark.LongType()))


METADATA_COLUMNS = (
    MetadataColumn(
        "_file",
        lambda table: spark.StringType(),
        lambda scan: scan.of_file(scan.plan.files["path"].to_pylist(), spark.StringType()),
    ),
    MetadataColumn("_pos", lambda table: spark.LongType(), lambda scan: scan.position),
    MetadataColumn("_partition", _partition_type, _of_partition),
    MetadataColumn(
        "_spec_id",
        lambda table: spark.IntegerType(),
        lambda scan: scan.of_file(scan.plan.files["spec_id"].to_pylist(), spark.IntegerType()),
    ),
    MetadataColumn("_deleted", lambda table: spark.BooleanType(), _of_deleted),
    MetadataColumn(ROW_ID, _of_lineage, _row_id, (STORED_ID,)),
    MetadataColumn(LAST_UPDATED, _of_lineage, _last_updated, (STORED_NUMBER,)),
)


def metadata_columns_of(table: Table) -> list[tuple[MetadataColumn, spark.DataType]]:
    """The metadata columns that this table has, with their types; a column of its own under such a name goes first."""
    taken = {field.name.lower() for field in table.schema().fields}
    found = [(each, each.type(table)) for each in METADATA_COLUMNS if each.name not in taken]
    return [(each, kind) for each, kind in found if kind is not None]


def scan_with_metadata(scans: Scans, scan: Scan, asked: Sequence[str]) -> DataFrame:
    """The rows of a scan, and behind its columns the metadata columns that are asked for.

    Where `_deleted` is one of them, rows that a delete file removes are rows too.
    """
    source = scan.source
    if any(portion.by_name for portion in portions_of(source)):
        raise InvalidInput(
            "files that are read by name have no metadata columns",
            place=f"table {source.label}",
            hint="write them anew first: INSERT OVERWRITE the table with SELECT * from it",
        )
    chosen = [each for each in METADATA_COLUMNS if each.name in asked]
    columns = scan_columns(scan.schema, history_of(source.table))
    read = [column.read for column in columns]
    known = {field.name for field in read}
    more = [field for each in chosen for field in each.reads if field.name not in known]
    row_index = spark.StructField(ROW_INDEX, spark.LongType(), True)
    index = NumberedFileIndex(scans.gateway, source, scan.deletes)
    rows = scans.relation(source.table, index, spark.StructType([*read, *more, row_index]))
    if scan.deletes is not None and "_deleted" not in asked:
        rows = without_deleted(rows, scan.deletes, {field.metadata[FIELD_ID]: field.name for field in read})
    on = MetadataScan(source.table, source.planned(), scan.deletes, rows.sparkSession)
    shown = [each.value(on).alias(each.name) for each in chosen]
    return rows.select(*[column.shown() for column in columns], *shown)


class NumberedFileIndex(ManagedFileIndex):
    """A file index that gives every file its number in the snapshot, besides what deletes need."""

    def __init__(self, gateway: Gateway, source: ScanSource, deletes: SnapshotDeletes | None) -> None:
        before = "" if deletes is None else f"{deletes.hidden_schema}, "
        super().__init__(gateway, source, f"{before}{NUMBER} INT")
        self.below = None if deletes is None else DeletingFileIndex(gateway, source, deletes)
        self.numbers = {path: number for number, path in enumerate(source.planned().files["path"].to_pylist())}

    def groups(self, planned: ScanPlan) -> list[FileGroup]:
        """Every file is a group."""
        paths = planned.files["path"].to_pylist()
        groups = super().groups(planned) if self.below is None else self.below.groups(planned)
        return [
            FileGroup((*group.hidden, self.numbers[paths[number]]), [number])
            for group in groups
            for number in group.files
        ]

    def toString(self) -> str:
        """Another relation than the plain one."""
        return f"{super().toString()} numbered"

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"no JSON of {type(value).__name__}")
