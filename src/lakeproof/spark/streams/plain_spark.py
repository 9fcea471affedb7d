"""Plain PySpark streams on a connected session: what names a managed table is caught, everything else stays Spark's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeproof.errors import InvalidInput
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.spark41 import DataStreamReader, DataStreamWriter, StreamingQuery
from lakeproof.spark.statements.names import managed

Connected = Callable[[SparkSession], Engine | None]
"""The engine that a session is connected to."""

_original_read_format: Callable[..., DataStreamReader] = DataStreamReader.format
_original_read_table: Callable[..., DataFrame] = DataStreamReader.table
_original_load: Callable[..., DataFrame] = DataStreamReader.load
_original_write_format: Callable[..., DataStreamWriter] = DataStreamWriter.format
_original_start: Callable[..., StreamingQuery] = DataStreamWriter.start
_original_to_table: Callable[..., StreamingQuery] = DataStreamWriter.toTable


def install_streams(connected: Connected) -> None:
    """Readers and writers of streams ask from now on whether their session is connected."""

    @functools.wraps(_original_read_table)
    def read_table(self: Any, tableName: str) -> DataFrame:
        _refuse(connected, self, tableName, "read")
        return _original_read_table(self, tableName)

    @functools.wraps(_original_load)
    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        if _is_iceberg(self, format):
            _refuse(connected, self, str(path), "read", always=True)
        return _original_load(self, path, format, schema, **options)

    @functools.wraps(_original_to_table)
    def to_table(self: Any, tableName: str, *rest: Any, **options: Any) -> StreamingQuery:
        _refuse(connected, self, tableName, "write")
        return _original_to_table(self, tableName, *rest, **options)

    @functools.wraps(_original_start)
    def start(self: Any, path: Any = None, format: str | None = None, *rest: Any, **options: Any) -> StreamingQuery:
        if _is_iceberg(self, format):
            _refuse(connected, self, str(path), "write", always=True)
        return _original_start(self, path, format, *rest, **options)

    DataStreamReader.format, DataStreamReader.table, DataStreamReader.load = _read_format, read_table, load
    DataStreamWriter.format, DataStreamWriter.start, DataStreamWriter.toTable = _write_format, start, to_table


@functools.wraps(_original_read_format)
def _read_format(self: Any, source: str) -> DataStreamReader:
    self._lakeproof_format = source
    return _original_read_format(self, source)


@functools.wraps(_original_write_format)
def _write_format(self: Any, source: str) -> DataStreamWriter:
    self._lakeproof_format = source
    return _original_write_format(self, source)


def _is_iceberg(self: Any, given: str | None) -> bool:
    return str(given or getattr(self, "_lakeproof_format", "")).lower() == "iceberg"


def _refuse(connected: Connected, stream: Any, name: str, verb: str, *, always: bool = False) -> None:
    """A stream on a managed table is refused in a sentence; on any other session it is Spark's business."""
    engine = connected(spark41.session_of(stream))
    if engine is None or not (always or managed(engine, name) is not None):
        return
    hint = (
        "read what changed with system.create_changelog_view"
        if verb == "read"
        else "write each batch with foreachBatch and lake.table(name).append(rows)"
    )
    raise InvalidInput(f"streams cannot {verb} a managed table yet", place=f"table {name}", hint=hint)
