"""Plain PySpark on a connected session: the few calls that never ask the session's catalog are caught by name.

`SparkSession.sql` sees statements that Spark's parser does not know, and UPDATE, DELETE and MERGE, which Spark would
not let us run; so does `mergeInto`. `saveAsTable` would make a table of Spark's own beside a managed one; two ways to
overwrite partitions never hand over a DataFrame; a reader's options never reach the catalog. On any other session these
methods do what they always did.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.whole_file_commits import PartialFiles
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.evolution import merge_schema
from lakeproof.spark.engine import AppendRows, Engine, Overwrite, OverwritePartitions, WriteMode
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.spark41 import DataFrameWriterV2, MergeIntoWriter, SQLStringFormatter
from lakeproof.spark.jvm.spark_types import to_iceberg_schema
from lakeproof.spark.reading.cached_frames import follow_tables
from lakeproof.spark.statements.dispatch import StatementRunner
from lakeproof.spark.statements.names import managed, spark_has
from lakeproof.spark.statements.new_tables import create_by_writer, save_by_writer
from lakeproof.spark.statements.options import WriteOptions, read_with, reader_options, refuse_layout, write_options
from lakeproof.spark.streams.plain_spark import install_streams
from lakeproof.spark.writing.settings import refuse_settings

_runners: list[StatementRunner] = []
_original_sql: Callable[..., DataFrame] = SparkSession.sql
_original_save: Callable[..., None] = DataFrameWriter.saveAsTable
_original_insert: Callable[..., None] = DataFrameWriter.insertInto
_original_write_format: Callable[..., Any] = DataFrameWriter.format
_original_save_path: Callable[..., None] = DataFrameWriter.save
_original_init: Callable[..., None] = DataFrameWriterV2.__init__
_original_overwrite: Callable[..., None] = DataFrameWriterV2.overwrite
_original_partitions: Callable[..., None] = DataFrameWriterV2.overwritePartitions
_original_create: Callable[..., None] = DataFrameWriterV2.create
_original_replace: Callable[..., None] = DataFrameWriterV2.replace
_original_create_or_replace: Callable[..., None] = DataFrameWriterV2.createOrReplace
_original_merge: Callable[..., None] = MergeIntoWriter.merge
_original_table: Callable[..., DataFrame] = DataFrameReader.table
_original_format: Callable[..., DataFrameReader] = DataFrameReader.format
_original_load: Callable[..., DataFrame] = DataFrameReader.load


def spark_sql(session: SparkSession) -> Callable[..., DataFrame]:
    """Spark's own `sql` of a session, whatever was hooked."""
    return functools.partial(_original_sql, session)


def hook(runner: StatementRunner) -> None:
    """The runner's session is caught from now on; a later lake on the same session takes its place."""
    session = runner.engine.gateway.session
    _runners[:] = [one for one in _runners if not one.engine.gateway.session.equals(session)] + [runner]
    if SparkSession.sql is _original_sql:
        _install()


def unhook(runner: StatementRunner) -> None:
    """The runner's session is Spark's own again."""
    _runners[:] = [one for one in _runners if one is not runner]


def runner_of(session: SparkSession) -> StatementRunner | None:
    """The lake that this session is connected to."""
    known = spark41.java_session(session)
    same = next((one for one in _runners if one.engine.gateway.session is known), None)  # asks the JVM nothing
    return same or next((one for one in _runners if one.engine.gateway.session.equals(known)), None)


def _install() -> None:
    SparkSession.sql = _sql
    DataFrameWriter.saveAsTable = _save_as_table
    DataFrameWriter.insertInto = _insert_into
    DataFrameWriter.format = _write_format
    DataFrameWriter.save = _save
    DataFrameWriterV2.__init__ = _init_writer
    DataFrameWriterV2.overwritePartitions = _overwrite_partitions
    DataFrameWriterV2.append = _with_own_errors(DataFrameWriterV2.append, merges=True)
    DataFrameWriterV2.overwrite = _overwrite
    DataFrameWriterV2.create = _create
    DataFrameWriterV2.replace = _replace
    DataFrameWriterV2.createOrReplace = _create_or_replace
    MergeIntoWriter.merge = _merge
    DataFrameReader.table = _read_table
    DataFrameReader.format = _read_format
    DataFrameReader.load = _load
    install_streams(_engine_of)


def _engine_of(session: SparkSession) -> Engine | None:
    runner = runner_of(session)
    return None if runner is None else runner.engine


@functools.wraps(_original_sql)
def _sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
    runner = runner_of(self)
    if runner is None:
        return _original_sql(self, sqlQuery, args, **kwargs)
    formatter = SQLStringFormatter(self)
    try:
        text = formatter.format(sqlQuery, **kwargs) if kwargs else sqlQuery
        with own_errors(runner):
            return runner.run(text, args)
    finally:
        if kwargs:
            formatter.clear()


@functools.wraps(_original_merge)
def _merge(self: Any) -> None:
    runner = runner_of(spark41.session_of(self))
    if runner is None:
        return _original_merge(self)
    with own_errors(runner):
        if runner.merge(spark41.java_writer(self).mergeCommand()):
            return None
    return _original_merge(self)


@functools.wraps(_original_table)
def _read_table(self: Any, tableName: str) -> DataFrame:
    runner = runner_of(spark41.session_of(self))
    if runner is None:
        return _original_table(self, tableName)
    gateway, reader = runner.engine.gateway, spark41.java_reader(self)
    options = reader_options(gateway, reader)
    found = read_with(runner.engine, tableName, options) if options else None
    if found is None:
        return _original_table(self, tableName)
    if gateway.hidden_field(reader, spark41.STREAM_SCHEMA).isDefined():
        place, hint = f"table {tableName}", "leave out schema(...)"
        raise InvalidInput("a managed table has its own schema", place=place, hint=hint)
    return found


@functools.wraps(_original_format)
def _read_format(self: Any, source: str) -> DataFrameReader:
    self._lakeproof_format = source
    return _original_format(self, source)


@functools.wraps(_original_load)
def _load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
    """`format("iceberg").load("namespace.table")` is `table("namespace.table")`."""
    source = str(format or getattr(self, "_lakeproof_format", ""))
    if runner_of(spark41.session_of(self)) is None or source.lower() != "iceberg":
        return _original_load(self, path, format, schema, **options)
    if not isinstance(path, str) or "/" in path or schema is not None:
        raise InvalidInput("a managed table is loaded by its name alone", hint='load("namespace.table")')
    return self.options(**options).table(path)


def _with_own_errors(method: Callable[..., None], *, merges: bool = False) -> Callable[..., None]:
    """The method of a writer, whose errors of ours come out as themselves; `merges`: it may be told mergeSchema."""

    @functools.wraps(method)
    def called(self: Any, *arguments: Any) -> None:
        runner = runner_of(spark41.session_of(self))
        if runner is None:
            return method(self, *arguments)
        with own_errors(runner):
            table = managed(runner.engine, self._lakeproof_table) if merges else None
            if table is not None:
                _prepared(runner, self, table)
            return method(self, *arguments)

    return called


@functools.wraps(_original_overwrite)
def _overwrite(self: Any, condition: Any) -> None:
    """Files that match are replaced whole; where some match in part, the rows are, as a MERGE that matches nothing."""
    try:
        return _with_own_errors(_original_overwrite, merges=True)(self, condition)
    except PartialFiles:
        runner = runner_of(spark41.session_of(self))
        table = None if runner is None else managed(runner.engine, self._lakeproof_table)
        assert runner is not None
        assert table is not None
    with own_errors(runner):
        said = _prepared(runner, self, table)[1]
        name = self._lakeproof_table if said.branch == "main" else f"{self._lakeproof_table}.`branch_{said.branch}`"
        merge = spark41.frame_of(self).mergeInto(name, F.lit(False)).whenNotMatched().insertAll()
        others = merge.whenNotMatchedBySource(condition)
        command = spark41.java_writer(others.delete()).mergeCommand()
        StatementRunner(said.on(runner.engine, table)[0], runner.spark_sql).merge(command)
    return None


@functools.wraps(_original_create)
def _create(self: Any) -> None:
    return _made(self, _original_create)


@functools.wraps(_original_replace)
def _replace(self: Any) -> None:
    return _made(self, _original_replace, replaces=True, must_exist=True)


@functools.wraps(_original_create_or_replace)
def _create_or_replace(self: Any) -> None:
    return _made(self, _original_create_or_replace, replaces=True)


def _made(self: Any, original: Callable[..., None], **how: bool) -> None:
    """The table that a `DataFrameWriterV2` describes; one of somebody else's is Spark's business."""
    runner = runner_of(spark41.session_of(self))
    if runner is not None:
        with own_errors(runner):
            rows, writer = spark41.frame_of(self), spark41.java_writer(self)
            if create_by_writer(runner.engine, self._lakeproof_table, rows, writer, **how):
                follow_tables(runner.engine)
                return None
    return _with_own_errors(original)(self)


@functools.wraps(_original_save)
def _save_as_table(
    self: Any, name: str, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
) -> None:
    runner = runner_of(spark41.session_of(self))
    if runner is None:
        return _original_save(self, name, format, mode, partitionBy, **options)
    self.mode(mode).options(**options)
    if partitionBy is not None:
        self.partitionBy(partitionBy)
    table = managed(runner.engine, name)
    if table is None:
        return _save_new(runner, self, name, format)
    refuse_layout(runner.engine.gateway, spark41.java_writer(self), table)
    chosen = str(spark41.java_writer(self).curmode().toString())
    if chosen == "ErrorIfExists":
        raise InvalidInput(f"there is already a table `{name}`", hint="say mode('append') or mode('overwrite')")
    if chosen != "Ignore":
        _write(runner, self, table, AppendRows() if chosen == "Append" else Overwrite())
    return None


def _write(runner: StatementRunner, writer: Any, table: Table, mode: WriteMode) -> None:
    """The writer's rows, as its options say."""
    rows = spark41.frame_of(writer)
    with own_errors(runner):
        table, said = _prepared(runner, writer, table)
        refuse_settings(runner.engine.gateway)
        engine, table = said.on(runner.engine, table)
        engine.write(table, rows, mode)
    follow_tables(runner.engine)


def _prepared(runner: StatementRunner, writer: Any, table: Table) -> tuple[Table, WriteOptions]:
    """What the writer's options say; with mergeSchema the table has the columns of the rows before."""
    said = write_options(table, reader_options(runner.engine.gateway, spark41.java_writer(writer)))
    if said.merge_schema:
        schema = to_iceberg_schema(spark41.frame_of(writer).schema)
        table = merge_schema(runner.engine.load(".".join(table.name())), schema)
    return table, said


def _save_new(runner: StatementRunner, writer: Any, name: str, kind: Any) -> None:
    """A table that is not there yet; a view or a table of Spark's own under that name is Spark's business."""
    if spark_has(runner.engine, name):
        return _original_save(writer, name, kind)
    with own_errors(runner):
        if save_by_writer(runner.engine, name, spark41.frame_of(writer), spark41.java_writer(writer), kind):
            return None
    return _original_save(writer, name, kind)


@functools.wraps(_original_write_format)
def _write_format(self: Any, source: str) -> Any:
    self._lakeproof_format = source
    return _original_write_format(self, source)


@functools.wraps(_original_save_path)
def _save(self: Any, path: Any = None, format: Any = None, mode: Any = None, *rest: Any, **options: Any) -> None:
    """`format("iceberg").save("namespace.table")` is `saveAsTable("namespace.table")`."""
    source = str(format or getattr(self, "_lakeproof_format", ""))
    if runner_of(spark41.session_of(self)) is None or source.lower() != "iceberg":
        return _original_save_path(self, path, format, mode, *rest, **options)
    if not isinstance(path, str) or "/" in path:
        raise InvalidInput("a managed table is written by its name alone", hint='save("namespace.table")')
    return _save_as_table(self, path, source, mode, *rest, **options)


@functools.wraps(_original_insert)
def _insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:
    runner = runner_of(spark41.session_of(self))
    table = None if runner is None else managed(runner.engine, tableName)
    if runner is None or table is None:
        return _original_insert(self, tableName, overwrite)
    if overwrite is not None:
        self.mode("overwrite" if overwrite else "append")
    chosen = str(spark41.java_writer(self).curmode().toString())
    refuse_layout(runner.engine.gateway, spark41.java_writer(self), table)
    with own_errors(runner):
        _, said = _prepared(runner, self, table)
        runner.insert_into(tableName, spark41.frame_of(self), overwrite=chosen == "Overwrite", options=said)
    return None


@functools.wraps(_original_init)
def _init_writer(self: Any, df: DataFrame, table: str) -> None:
    _original_init(self, df, table)
    self._lakeproof_table = table


@functools.wraps(_original_partitions)
def _overwrite_partitions(self: Any) -> None:
    runner = runner_of(spark41.session_of(self))
    table = None if runner is None else managed(runner.engine, self._lakeproof_table)
    if runner is None or table is None:
        return _original_partitions(self)
    _write(runner, self, table, OverwritePartitions())
    return None


@contextmanager
def own_errors(runner: StatementRunner) -> Iterator[None]:
    """An error of ours that went through the JVM comes out as itself; Spark's own stay Spark's."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        own = runner.engine.gateway.recovered(error)
        if own is None:
            raise
        raise own from None
