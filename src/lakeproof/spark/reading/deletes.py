"""Deleted rows are left out of a scan: positions by a bitmap that each file carries, values by an anti-join.

A bitmap is a hidden partition column of its file, of which each row reads the word with its own bit; no join is needed.
Where bitmaps would grow large, rows are compared with a list of packed positions instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeproof.iceberg.reading.delete_files import deleted_positions, read_equality_deletes
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.reading.columns import kept_columns
from lakeproof.spark.reading.file_index import FileGroup, ManagedFileIndex, ScanSource
from lakeproof.spark.reading.partition_columns import ConstantColumn

ROW_INDEX = spark41.ROW_INDEX  # Spark's reader fills a data column of this name with the row's position
DELETED, FILE, GROUP = "_lakeproof_deleted", "_lakeproof_file", "_lakeproof_group"
HIDDEN = ("_lakeproof_", "_tmp_metadata_")  # how the names of columns begin that no user sees
BITMAP_LIMIT = 256 * 1024 * 1024  # bytes of all bitmaps of a table; they travel with every split
FILES_LIMIT = 1_000  # files with a bitmap: each costs a few calls to the JVM
_SHIFT = 40


class EqualityDeletes(NamedTuple):
    """Deleted values of some columns, each for the group of data files that it applies to."""

    field_ids: tuple[int, ...]
    values: pa.Table


class SnapshotDeletes(NamedTuple):
    """What a snapshot's delete files say: whether positions fit into bitmaps, and the equality deletes."""

    by_bitmap: bool
    files: dict[str, int]
    groups: dict[str, int]
    equality: tuple[EqualityDeletes, ...]
    packed: pa.Table | None

    @property
    def hidden_schema(self) -> str:
        """The hidden columns of the scan, as DDL."""
        return f"{DELETED} BINARY, {GROUP} INT" if self.by_bitmap else f"{FILE} INT, {GROUP} INT"


def find_deletes(source: ScanSource) -> SnapshotDeletes | None:
    """The deletes of a snapshot, or `None` where it has none."""
    planned = source.planned()
    if planned.delete_files.num_rows == 0:
        return None
    paths = planned.files["path"].to_pylist()
    groups, equality = _equality(source, planned, paths)
    touched = [rows for rows, deletes in zip(*_rows_and_deletes(planned), strict=True) if deletes]
    by_bitmap = len(touched) <= FILES_LIMIT and sum(touched) // 8 <= BITMAP_LIMIT
    packed = None if by_bitmap else _packed(source, planned, paths)
    return SnapshotDeletes(by_bitmap, {path: n for n, path in enumerate(paths)}, groups, equality, packed)


class DeletingFileIndex(ManagedFileIndex):
    """A file index that gives every file its hidden values."""

    def __init__(
        self,
        gateway: Gateway,
        source: ScanSource,
        deletes: SnapshotDeletes,
        only: frozenset[str] | None = None,
        columns: Sequence[ConstantColumn] = (),
    ) -> None:
        super().__init__(gateway, source, deletes.hidden_schema, only, columns)
        self.deletes = deletes

    def groups(self, planned: ScanPlan) -> list[FileGroup]:
        """Files without deleted positions share a group per set of equality deletes; the others stand alone."""
        paths = planned.files["path"].to_pylist()
        if not self.deletes.by_bitmap:
            files, groups = self.deletes.files, self.deletes.groups
            return [FileGroup((files[paths[n]], groups.get(paths[n], 0)), [n]) for n in self.kept(planned)]
        dead = deleted_positions(self.source.table, _used(planned))
        alone, together = [], dict[int, list[int]]()
        for number in self.kept(planned):
            path, group = paths[number], self.deletes.groups.get(paths[number], 0)
            if path in dead:
                alone.append(FileGroup((bitmap(dead[path]), group), [number]))
            else:
                together.setdefault(group, []).append(number)
        return [FileGroup((None, group), files) for group, files in together.items()] + alone

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def bitmap(positions: Any) -> bytes:
    """Bit `p % 32` of the big-endian word `p // 32` is set for every deleted position `p`."""
    bits = np.zeros((int(positions[-1]) // 32 + 1, 32), np.uint8)
    bits.reshape(-1)[positions] = 1
    return np.packbits(bits[:, ::-1]).tobytes()


def is_live(spark: SparkSession) -> Column:
    """True where the row's bit is not set.

    No function of Spark's reads a word of a binary without making an object for each row; Hadoop has a static method.
    """
    jvm = spark41.java_machine(spark)
    columns = getattr(jvm, spark41.EXPRESSION_UTILS)
    given = [F.col(DELETED), F.expr(f"shiftleft(cast(shiftright({ROW_INDEX}, 5) as int), 2)")]
    invocations = getattr(getattr(jvm, spark41.STATIC_INVOKE + "$"), "MODULE$")
    word = getattr(jvm, spark41.STATIC_INVOKE)(
        jvm.java.lang.Class.forName(spark41.WRITABLE_COMPARATOR),
        getattr(jvm, spark41.DATA_TYPES).IntegerType,
        "readInt",
        jvm.PythonUtils.toSeq([columns.expression(spark41.java_column(column)) for column in given]),
        *spark41.defaults(invocations, "apply", range(5, 10)),
    )
    bit = F.call_function("shiftrightunsigned", Column(columns.column(word)), F.expr(f"cast({ROW_INDEX} & 31 as int)"))
    outside = F.expr(f"{DELETED} is null or {ROW_INDEX} >= length({DELETED}) * 8L")
    return outside | (bit.bitwiseAND(1) == 0)


def without_deleted(rows: DataFrame, deletes: SnapshotDeletes, columns: dict[int, str]) -> DataFrame:
    """The rows of a scan that no delete file removes; `columns` names the scan's columns by field id."""
    spark = rows.sparkSession
    if deletes.by_bitmap:
        rows = rows.filter(kept_columns.get(DELETED, lambda: is_live(spark)))
    elif deletes.packed is not None:
        gone = spark.createDataFrame(deletes.packed)
        packed = F.shiftleft(F.col(FILE).cast("long"), _SHIFT).bitwiseOR(F.col(ROW_INDEX))
        rows = rows.join(gone, packed == gone["packed"], "left_anti")
    for each in deletes.equality:
        names = [f"value_{number}" for number in range(len(each.field_ids))]
        values = each.values.rename_columns(["group", *names])
        gone = spark.createDataFrame(values)
        same = rows[GROUP] == gone["group"]
        for name, field_id in zip(names, each.field_ids, strict=True):
            value = rows[columns[field_id]]
            same = same & (value.cast("binary") if _is_bytes(values.schema.field(name).type) else value).eqNullSafe(
                gone[name]
            )
        rows = rows.join(gone, same, "left_anti")
    return rows


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether a column holds bytes, which a scan may read as text."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _rows_and_deletes(planned: ScanPlan) -> tuple[list[int], list[list[int]]]:
    return planned.files["record_count"].to_pylist(), planned.files["delete_files"].to_pylist()


def _used(planned: ScanPlan) -> pa.Table:
    """The delete files that belong to the planned data files."""
    used = sorted({number for numbers in planned.files["delete_files"].to_pylist() for number in numbers})
    return planned.delete_files.take(pa.array(used, pa.int64()))


def _packed(source: ScanSource, planned: ScanPlan, paths: Sequence[str]) -> pa.Table:
    dead = deleted_positions(source.table, _used(planned))
    parts = [(number << _SHIFT) | dead[path] for number, path in enumerate(paths) if path in dead]
    return pa.table({"packed": np.concatenate([*parts, np.zeros(0, np.int64)])})


def _equality(
    source: ScanSource, planned: ScanPlan, paths: Sequence[str]
) -> tuple[dict[str, int], tuple[EqualityDeletes, ...]]:
    """Data files under the same equality deletes form a group; each deleted value is listed once per group."""
    is_equality = [word == "equality" for word in planned.delete_files["content"].to_pylist()]
    if not any(is_equality):
        return {}, ()
    numbers: dict[tuple[int, ...], int] = {(): 0}
    groups: dict[str, int] = {}
    for path, deletes in zip(paths, planned.files["delete_files"].to_pylist(), strict=True):
        key = tuple(number for number in deletes if is_equality[number])
        groups[path] = numbers.setdefault(key, len(numbers))
    tables: dict[tuple[int, ...], list[pa.Table]] = {}
    for number in sorted({number for key in numbers for number in key}):
        row = {name: planned.delete_files[name][number].as_py() for name in ("path", "equality_ids")}
        ids = tuple(row["equality_ids"])
        values = read_equality_deletes(source.table, row["path"], ids)
        for key, group in numbers.items():
            if number in key:
                column = pa.array(np.full(values.num_rows, group, np.int32))
                tables.setdefault(ids, []).append(values.add_column(0, GROUP, column))
    return groups, tuple(EqualityDeletes(ids, pa.concat_tables(parts)) for ids, parts in tables.items())
