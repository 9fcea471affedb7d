"""A managed table as the source of a stream: Spark asks Python how far it may read, and for the rows of each batch.

Rows come from the same native scan as everything else, over exactly the files of the batch. The source holds nothing
that a restart would lose: every position is in Spark's checkpoint, and says too where the stream began.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.history.changes import RowsOfFile
from lakeproof.iceberg.history.stream_positions import (
    BatchLimits,
    StreamPosition,
    files_between,
    next_position,
    position_of,
)
from lakeproof.iceberg.pyiceberg_names import Schema
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import JavaProxy, from_java
from lakeproof.spark.streams.changed_rows import changed_rows
from lakeproof.spark.streams.stream_options import ReadOptions
from lakeproof.spark.streams.stream_table import StreamTable


class TableSource(JavaProxy):
    """What Spark reads a stream from; the columns stay those of the moment when the stream was made."""

    def __init__(self, table: StreamTable, options: ReadOptions) -> None:
        super().__init__(table.engine.gateway)
        self.table, self.options = table, options
        now = table.now()
        self.columns = now.schema()
        self.java_schema = spark41.execution_of(table.engine.shape(now).rows).analyzed().schema()
        self._until: dict[str, int | None] = {}  # by run of a query: two of them may share the source

    @from_java
    def schema(self) -> Any:
        """The columns."""
        return self.java_schema

    @from_java
    def getDefaultReadLimit(self) -> Any:
        """As much as the options allow."""
        kind, limits = self.gateway.named(spark41.READ_LIMIT), self.options.limits
        found = [] if limits.files is None else [kind.maxFiles(limits.files)]
        found += [] if limits.rows is None else [kind.maxRows(limits.rows)]
        if len(found) == 2:
            return kind.compositeLimit(self.gateway.array(spark41.READ_LIMIT, found))
        return found[0] if found else kind.allAvailable()

    @from_java
    def prepareForTriggerAvailableNow(self) -> None:
        """This run ends with the snapshot that is the newest now."""
        self._until[self._run()] = self.table.now().metadata.current_snapshot_id

    @from_java
    def latestOffset(self, start: Any, limit: Any) -> Any:
        """Where the next batch ends; nothing, if there is nothing new."""
        table, run = self.table.now(), self._run()
        if run in self._until and self._until[run] is None:  # the table was empty when this run began
            return None
        before = None if start is None else self._position(start)
        found = next_position(table, before, self.options.rules, _limits(limit), until=self._until.get(run))
        return None if found is None else self._offset(found)

    @from_java
    def reportLatestOffset(self) -> Any:
        """Not measured."""
        return None

    @from_java
    def getOffset(self) -> Any:
        """The end of everything there is."""
        found = next_position(self.table.now(), None, self.options.rules)
        return self.gateway.none if found is None else self.gateway.some(self._offset(found))

    @from_java
    def getBatch(self, start: Any, end: Any) -> Any:
        """The rows of the files between two positions."""
        before = self._position(start.get()) if start.isDefined() else None
        table = self.table.now()
        files = files_between(table, before, self._position(end), self.options.rules)
        changes = [RowsOfFile(each.path, each.size, each.file_format, True, 0) for each in files]
        self._refuse_other_types(table.schema())
        rows = changed_rows(self.table.engine, table, changes, schema=self.columns, is_streaming=True)
        return spark41.java_frame(rows)

    def _refuse_other_types(self, now: Schema) -> None:
        """Files that were written since a column got another type would not be read as the old one."""
        for field_id in self.columns.field_ids:
            before, name = self.columns.find_type(field_id), self.columns.find_column_name(field_id)
            if now.find_column_name(field_id) is not None and before.is_primitive and now.find_type(field_id) != before:
                raise InvalidInput(
                    f"column `{name}` has become {now.find_type(field_id)} since the stream was made",
                    place=self.table.place,
                    hint="make the stream anew and start it from its checkpoint",
                )

    def initialOffset(self) -> Any:
        """Asked of newer sources only."""
        return None

    @from_java
    def deserializeOffset(self, text: str) -> Any:
        """A position out of a checkpoint."""
        return self._offset(position_of(text, self.table.place))

    def commit(self, end: Any) -> None:
        """Nothing is kept for the sake of streams."""

    @from_java
    def stop(self) -> None:
        """This run has ended."""
        self._until.pop(self._run(), None)

    def toString(self) -> str:
        """How plans and progress name it; no other source is equal."""
        return f"lakeproof stream of {self.table.name} {id(self):x}"

    def _run(self) -> str:
        return str(self.gateway.context.getLocalProperty(spark41.RUN_OF_THREAD))

    def _position(self, offset: Any) -> StreamPosition:
        return position_of(str(offset.json()), self.table.place)

    def _offset(self, position: StreamPosition) -> Any:
        return self.gateway.named(spark41.SERIALIZED_OFFSET)(position.as_json())

    class Java:
        """What py4j reads."""

        implements = [spark41.STREAM_SOURCE, spark41.SUPPORTS_TRIGGER_AVAILABLE_NOW]  # noqa: RUF012


def _limits(limit: Any) -> BatchLimits:
    """What Spark asks for: the limits that it was told, or none for a query that runs once."""
    kind = str(limit.getClass().getSimpleName())
    if kind == "CompositeReadLimit":
        both = BatchLimits()
        for part in map(_limits, limit.getReadLimits()):
            both = BatchLimits(part.files or both.files, part.rows or both.rows)
        return both
    if kind == "ReadMaxFiles":
        return BatchLimits(files=int(limit.maxFiles()))
    return BatchLimits(rows=int(limit.maxRows())) if kind == "ReadMaxRows" else BatchLimits()


def stream_of(table: StreamTable, options: ReadOptions) -> DataFrame:
    """The rows of the table as a stream."""
    gateway = table.engine.gateway
    relation = gateway.module(spark41.STREAMING_EXECUTION_RELATION).apply(TableSource(table, options), gateway.session)
    return gateway.dataframe(relation)
