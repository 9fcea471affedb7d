"""Rows that snapshots added or removed, as one native scan: a file index that lists a file once for each change.

Which rows of a file are meant, whether they came or went and by which snapshot are hidden columns of the listing. Spark
does not look again at filters that name nothing but these, so they are decided here.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.history.changes import ChangeWindow, RowsOfFile, changes_of, operation_of, window_between
from lakeproof.iceberg.pyiceberg_names import Schema, Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, from_java, items_of
from lakeproof.spark.jvm.paths import for_spark
from lakeproof.spark.reading.columns import history_of, kept_columns, scan_columns
from lakeproof.spark.reading.deletes import DELETED, ROW_INDEX, bitmap, is_live
from lakeproof.spark.reading.file_groups import NAME_MAPPING, has_field_ids
from lakeproof.spark.reading.file_index import FileGroup, ManagedFileIndex, ScanSource, directories

IS_INSERT, ORDINAL = "_lakeproof_insert", "_lakeproof_ordinal"
_HIDDEN = (DELETED, IS_INSERT, ORDINAL)


class ChangesFileIndex(ManagedFileIndex):
    """The files of some changes."""

    def __init__(self, gateway: Gateway, source: ScanSource, changes: Sequence[RowsOfFile]) -> None:
        super().__init__(gateway, source, f"{DELETED} BINARY, {IS_INSERT} INT, {ORDINAL} INT")
        self.changes, self._key = tuple(changes), str(uuid.uuid4())

    @from_java
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """The files whose hidden values pass; the reader looks at the rows."""
        filters = list(items_of(partition_filters))
        kept = [each for each in self.changes if self._passes(each, filters)]
        paths, sizes = [each.path for each in kept], [each.size for each in kept]
        files = pa.table({"path": pa.array(paths, pa.large_string()), "size": pa.array(sizes, pa.int64())})
        return directories(self.gateway, files, _groups(kept))

    def _passes(self, change: RowsOfFile, filters: Sequence[Any]) -> bool:
        values = dict(zip(_HIDDEN, (None, int(change.is_insert), change.ordinal), strict=True))
        return all(self._holds(each, values) for each in filters)

    def _holds(self, expression: Any, values: dict[str, Any]) -> bool:
        references = expression.references().toSeq()
        named = [values[str(attribute.name())] for attribute in items_of(references)]
        row = self.gateway.named(spark41.GENERIC_INTERNAL_ROW)(self.gateway.array("java.lang.Object", named))
        attributes = self.gateway.module(spark41.EXPRESSIONS_PACKAGE).AttributeSeq(references)
        bound = self.gateway.module(spark41.BIND_REFERENCES).bindReference(expression, attributes, False)
        return bool(self.gateway.module(spark41.PREDICATE).createInterpreted(bound).eval(row))

    @from_java
    def inputFiles(self) -> Any:
        """Every file of the changes."""
        return self.gateway.strings([for_spark(each.path) for each in self.changes])

    @from_java
    def sizeInBytes(self) -> int:
        """The size by which Spark chooses join strategies."""
        return sum(each.size for each in self.changes)

    def toString(self) -> str:
        """No other index lists the same changes."""
        return f"lakeproof changes {self._key}"

    class Java:
        """What py4j reads (it does not look at the parent class)."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def _groups(changes: Sequence[RowsOfFile]) -> list[FileGroup]:
    """Whole files share a group for each snapshot and direction; files with rows to leave out stand alone."""
    alone, together = [], dict[tuple[int, int], list[int]]()
    for number, each in enumerate(changes):
        hidden = (int(each.is_insert), each.ordinal)
        if each.but is None:
            together.setdefault(hidden, []).append(number)
        else:
            alone.append(FileGroup((bitmap(each.but), *hidden), [number]))
    return [FileGroup((None, *hidden), files) for hidden, files in together.items()] + alone


def changed_rows(
    engine: Engine,
    table: Table,
    changes: Sequence[RowsOfFile],
    *hidden: Column,
    schema: Schema | None = None,
    is_streaming: bool = False,
) -> DataFrame:
    """The rows of the changes under the names and types of a schema (`None`: the table's own), followed by these
    columns made of hidden ones."""
    _refuse_named_columns(table, changes)
    columns = scan_columns(schema or table.schema(), history_of(table))
    source = engine.scans.source_of(table, None)
    index = ChangesFileIndex(engine.gateway, source, changes)
    read = [*(column.read for column in columns), spark.StructField(ROW_INDEX, spark.LongType(), True)]
    rows = engine.scans.relation(table, index, spark.StructType(read), is_streaming=is_streaming)
    if any(each.but is not None for each in changes):
        rows = rows.filter(kept_columns.get(DELETED, lambda: is_live(engine.gateway.spark)))
    return rows.select(*(column.shown() for column in columns), *hidden)


def appended_rows(engine: Engine, table: Table, start: int, end: int | None) -> DataFrame:
    """The rows of the appends after `start` up to `end` (`None`: the head); other commits are passed over."""
    window = window_between(table, start, end)
    appends = tuple(each for each in window.snapshots if operation_of(each) == "append")
    return changed_rows(engine, table, changes_of(table, ChangeWindow(appends)))


def is_insert() -> Column:
    """Whether a changed row came."""
    return F.col(IS_INSERT) == 1


def _refuse_named_columns(table: Table, changes: Sequence[RowsOfFile]) -> None:
    """Files of other formats, or without field ids, are read by name, and not here."""
    mapped = NAME_MAPPING in table.properties
    for each in changes:
        if each.file_format.upper() != "PARQUET" or (mapped and not has_field_ids(table, each.path)):
            raise InvalidInput(
                "changes of files without field ids cannot be read",
                place=f"table {'.'.join(table.name())}, file {each.path}",
                hint="run rewrite_data_files, and begin after the snapshot that it makes",
            )
