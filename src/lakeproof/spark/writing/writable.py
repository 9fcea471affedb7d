"""A managed table as Spark's writers see it: what they resolve and cast arrives here as a DataFrame, once."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, NEVER, Expression, IsNull, all_of, any_of
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.tables import column_path
from lakeproof.spark.engine import AppendRows, Engine, Overwrite, OverwritePartitions, WriteMode, version_label
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.default_values import with_write_defaults
from lakeproof.spark.jvm.gateway import Gateway, JavaProxy, from_java
from lakeproof.spark.jvm.tables_for_spark import TableForSpark
from lakeproof.spark.reading.catalyst import Untranslatable, comparison, membership, null_safe, parse_printed
from lakeproof.spark.reading.columns import quoted
from lakeproof.spark.row_level.insert import insert
from lakeproof.spark.row_level.scan_filters import asked_of_table
from lakeproof.spark.statements.insert_analysis import ResolvedInsert
from lakeproof.spark.statements.options import write_options

_CAPABILITIES = ("BATCH_READ", "V1_BATCH_WRITE", "BATCH_WRITE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC", "TRUNCATE")


class WritableTable(TableForSpark):
    """A table that Spark may append to or overwrite."""

    def __init__(self, engine: Engine, table: Table) -> None:
        super().__init__(engine.gateway, table, with_write_defaults(table.schema()))
        self.engine = engine

    @from_java
    def partitioning(self) -> Any:
        """The partition fields; `PARTITION (column = value)` may name the identity ones."""
        return self.gateway.array(spark41.TRANSFORM, [self._transform(f) for f in _fields(self.table)])

    def _transform(self, field: tuple[str, str]) -> Any:
        column, transform = field
        expressions = self.gateway.named(spark41.CONNECTOR_EXPRESSIONS)
        if transform == "identity":
            return expressions.identity(column)  # which Spark parses, as it does a name in SQL
        reference = self.gateway.array(spark41.CONNECTOR_EXPRESSION, [expressions.column(column)])
        return expressions.apply(transform.partition("[")[0], reference)

    @from_java
    def properties(self) -> Any:
        """The table properties."""
        kind = self.gateway.class_of("java.util.HashMap")
        return self.gateway.built(json.dumps(dict(self.table.properties)), kind)

    @from_java
    def capabilities(self) -> Any:
        """Batch writes only."""
        gateway = self.gateway
        kind = spark41.TABLE_CAPABILITY
        made = gateway.list_of(kind, "java.util.HashSet")
        return gateway.once("capabilities", lambda: gateway.built(json.dumps(_CAPABILITIES), made))

    @from_java
    def newWriteBuilder(self, info: Any) -> WriteBuilder:
        """A write begins."""
        options = info.options()
        if options.isEmpty():
            return WriteBuilder(self.engine, self.table)
        said = write_options(self.table, dict(options.asCaseSensitiveMap()))
        return WriteBuilder(*said.on(self.engine, self.table))

    @from_java
    def newScanBuilder(self, options: Any) -> Any:
        """Reads never come this way."""
        raise InvalidInput("this form reads a managed table in a way that is not supported", hint="use lake.sql")

    def toString(self) -> str:
        """The table and its metadata version."""
        return version_label(self.table)

    class Java:
        """What py4j reads."""

        implements = [spark41.SUPPORTS_READ, spark41.SUPPORTS_WRITE]  # noqa: RUF012


class WriteBuilder(JavaProxy):
    """Which rows a write replaces."""

    def __init__(self, engine: Engine, table: Table) -> None:
        super().__init__(engine.gateway)
        self.engine, self.table = engine, table
        self.mode: WriteMode = AppendRows()

    def build(self) -> Write:
        """The write as it was asked for."""
        return Write(self.engine, self.table, self.mode)

    def truncate(self) -> WriteBuilder:
        """Everything is replaced."""
        self.mode = Overwrite()
        return self

    def canOverwrite(self, predicates: Any) -> bool:
        """Decided when it is tried, with a message of our own."""
        return True

    @from_java
    def overwrite(self, predicates: Any) -> WriteBuilder:
        """The rows of a filter are replaced."""
        self.mode = Overwrite(all_of(filter_of(predicate) for predicate in predicates), may_add_others=True)
        return self

    def overwriteDynamicPartitions(self) -> WriteBuilder:
        """The written partitions are replaced."""
        self.mode = OverwritePartitions()
        return self

    class Java:
        """What py4j reads."""

        implements = [  # noqa: RUF012
            spark41.SUPPORTS_OVERWRITE_V2,
            spark41.SUPPORTS_DYNAMIC_OVERWRITE,
        ]


class Write(JavaProxy):
    """One write; the rows come as a DataFrame."""

    def __init__(self, engine: Engine, table: Table, mode: WriteMode) -> None:
        super().__init__(engine.gateway)
        self.engine, self.table, self.mode = engine, table, mode

    def toInsertableRelation(self) -> Insertable:
        """Where the rows go."""
        return Insertable(self.engine, self.table, self.mode)

    @from_java
    def toBatch(self) -> Any:
        """The one writer that Spark does not hand a DataFrame: `overwritePartitions()`."""
        raise InvalidInput(
            "overwritePartitions() cannot write a managed table",
            place=f"table {'.'.join(self.table.name())}",
            hint="use lake.table(name).overwrite_partitions(rows), or lake.sql with INSERT OVERWRITE and "
            "spark.sql.sources.partitionOverwriteMode=dynamic",
        )

    def description(self) -> str:
        """What a plan shows."""
        return f"lakeproof {'.'.join(self.table.name())}"

    @from_java
    def supportedCustomMetrics(self) -> Any:
        """None."""
        return _empty(self.gateway, spark41.CUSTOM_METRIC)

    @from_java
    def reportDriverMetrics(self) -> Any:
        """None."""
        return _empty(self.gateway, spark41.CUSTOM_TASK_METRIC)

    class Java:
        """What py4j reads."""

        implements = [spark41.V1_WRITE]  # noqa: RUF012


class Insertable(JavaProxy):
    """The end of the way: rows become files and one snapshot."""

    def __init__(self, engine: Engine, table: Table, mode: WriteMode) -> None:
        super().__init__(engine.gateway)
        self.engine, self.table, self.mode = engine, table, mode

    @from_java
    def insert(self, rows: Any, overwrite: bool) -> None:
        """Spark gives the rows; what is overwritten was said before."""
        found = DataFrame(rows, self.gateway.spark)
        insert(
            self.engine, ResolvedInsert(self.table, found, self.mode, asked_of_table(self.engine, self.table, found))
        )

    class Java:
        """What py4j reads."""

        implements = [spark41.INSERTABLE_RELATION]  # noqa: RUF012


def filter_of(predicate: Any, truth: bool = True) -> Expression:
    """Where a predicate of Spark's connector interface is true, or false; one that cannot be said is refused."""
    name, children = predicate.name(), list(predicate.children())
    if name in ("AND", "OR"):
        parts = [filter_of(child, truth) for child in children]
        return all_of(parts) if (name == "AND") == truth else any_of(parts)
    if name == "NOT":
        return filter_of(children[0], not truth)
    if name in ("ALWAYS_TRUE", "ALWAYS_FALSE"):
        return ALWAYS if (name == "ALWAYS_TRUE") == truth else NEVER
    try:
        return _leaf(name, children, truth)
    except (Untranslatable, AttributeError, Py4JError):  # what is not a column has no name to ask for
        raise InvalidInput(
            f"rows cannot be overwritten by `{predicate.toString()}`", hint="compare partition columns with literals"
        ) from None


def _leaf(name: str, children: Sequence[Any], truth: bool) -> Expression:
    column = ".".join(children[0].fieldNames())
    if name in ("IS_NULL", "IS_NOT_NULL"):
        return IsNull(column, negative=(name == "IS_NULL") != truth)
    if name == "IN":
        return membership(column, [_literal(child) for child in children[1:]], truth)
    value = _literal(children[1])
    if name == "<=>":
        return null_safe(column, value, truth)
    if name == "<>":
        name, truth = "=", not truth
    return comparison(column, name, value, truth)


def _literal(node: Any) -> Any:
    value, kind = node.value(), node.dataType().typeName()
    if value is None:
        return None
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=int(value))
    text = value if isinstance(value, str | int | float | bool) else value.toString()
    return parse_printed(kind, str(text))


def _empty(gateway: Gateway, class_name: str) -> Any:
    return gateway.once(f"no {class_name}", lambda: gateway.array(class_name, []))


def _fields(table: Table) -> list[tuple[str, str]]:
    schema = table.schema()
    return [(quoted(*column_path(schema, f.source_id)), str(f.transform)) for f in table.spec().fields]
