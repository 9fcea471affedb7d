"""Plain PySpark streams on a connected session: what names a managed table is ours, everything else stays Spark's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeproof.errors import InvalidInput
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.spark41 import DataStreamReader, DataStreamWriter, StreamingQuery
from lakeproof.spark.statements.names import under_its_name
from lakeproof.spark.statements.options import reader_options
from lakeproof.spark.streams.sink import TableSink, last_logged
from lakeproof.spark.streams.source import stream_of
from lakeproof.spark.streams.stream_options import check_write_options, checkpoint_of, read_options
from lakeproof.spark.streams.stream_table import StreamTable, named_table, stream_table
from lakeproof.spark.writing.settings import refuse_settings
from lakeproof.spark.writing.spark_write import tagged

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
        engine = connected(spark41.session_of(self))
        table = None if engine is None else _table(engine, tableName, always=_is_iceberg(self, None))
        return _original_read_table(self, tableName) if table is None else _read(table, self)

    @functools.wraps(_original_load)
    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        engine = connected(spark41.session_of(self))
        if engine is None or not _is_iceberg(self, format):
            return _original_load(self, path, format, schema, **options)
        self.options(**options)
        if schema is not None:
            self.schema(schema)
        given = reader_options(engine.gateway, spark41.java_reader(self)).get("path")
        return _read(named_table(engine, path or given), self)

    @functools.wraps(_original_to_table)
    def to_table(self: Any, tableName: str, format: str | None = None, *rest: Any, **options: Any) -> StreamingQuery:
        engine = connected(spark41.session_of(self))
        table = None if engine is None else _table(engine, tableName, always=_is_iceberg(self, format))
        if table is None:
            return _original_to_table(self, tableName, format, *rest, **options)
        return _start(table, self, *rest, **options)

    @functools.wraps(_original_start)
    def start(self: Any, path: Any = None, format: str | None = None, *rest: Any, **options: Any) -> StreamingQuery:
        engine = connected(spark41.session_of(self))
        if engine is None or not _is_iceberg(self, format):
            return _original_start(self, path, format, *rest, **options)
        given = {**reader_options(engine.gateway, spark41.java_writer(self)), **options}.get("path")
        return _start(named_table(engine, path or given), self, *rest, **options)

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


def _table(engine: Engine, name: str, *, always: bool) -> StreamTable | None:
    """The managed table of that name; `always`: what is none is a mistake."""
    return named_table(engine, name) if always else stream_table(engine, name)


def _read(table: StreamTable, reader: Any) -> DataFrame:
    """The table as a stream, as its reader's options say."""
    gateway, java = table.engine.gateway, spark41.java_reader(reader)
    if gateway.hidden_field(java, spark41.STREAM_SCHEMA).isDefined():
        raise InvalidInput("a managed table has its own schema", place=table.place, hint="leave out schema(...)")
    given = reader_options(gateway, java)
    given.pop("path", None)
    return under_its_name(table.engine, table.now(), stream_of(table, read_options(given, table.place)))


def _start(
    table: StreamTable,
    writer: Any,
    output_mode: str | None = None,
    partition_by: Any = None,
    query_name: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """A query that writes its batches into the table; what is wrong with it is said before it starts."""
    writer.options(**{name: value for name, value in options.items() if name not in _OWN_WORDS})
    words = {"outputMode": output_mode, "partitionBy": partition_by, "queryName": query_name}
    for name, value in {**words, **{name: options[name] for name in _OWN_WORDS if name in options}}.items():
        if value is not None:
            getattr(writer, name)(value)
    gateway, java = table.engine.gateway, spark41.java_writer(writer)
    given = reader_options(gateway, java)
    check_write_options(given, table.place)
    _refuse_partitions(table, java)
    refuse_settings(gateway)
    mode = str(gateway.hidden_field(java, spark41.OUTPUT_MODE).toString())
    if mode not in ("Append", "Complete"):
        hint = "use append or complete, or merge each batch with foreachBatch"
        raise InvalidInput(f"the output mode {mode.lower()} is not supported", place=table.place, hint=hint)
    tagged(spark41.frame_of(writer), table.now())  # columns that do not fit are told now
    logged = last_logged(gateway, checkpoint_of(gateway.spark, given, table.place))
    return _original_start(writer.foreachBatch(TableSink(table, complete=mode == "Complete", logged=logged).write))


_OWN_WORDS = ("outputMode", "partitionBy", "queryName")


def _refuse_partitions(table: StreamTable, writer: Any) -> None:
    gateway = table.engine.gateway
    for name, said in ((spark41.WRITER_PARTITION_COLUMNS, "partitionBy"), (spark41.STREAM_CLUSTERING, "clusterBy")):
        found = gateway.hidden_field(writer, name)
        if found.isDefined() and not found.get().isEmpty():
            raise InvalidInput(
                f"the table is there, and {said} cannot change its partitions",
                place=table.place,
                hint=f"leave out {said}; ALTER TABLE ... ADD PARTITION FIELD changes them",
            )
