"""A statement is run: ours here, everything else by Spark itself, unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.answers import column_range, count_rows
from lakeproof.iceberg.operations import delete_where
from lakeproof.iceberg.types import Table
from lakeproof.spark import ddl, shows
from lakeproof.spark.catalog import lowered
from lakeproof.spark.engine import Engine
from lakeproof.spark.explaining import explained
from lakeproof.spark.instants import epoch_millis
from lakeproof.spark.local_rows import local_rows, texts
from lakeproof.spark.names import is_known, managed, qualified, refuse_managed_path
from lakeproof.spark.procedures import call
from lakeproof.spark.row_level.insert import run_insert
from lakeproof.spark.row_level.run import run_row_level
from lakeproof.sql import parse
from lakeproof.sql import statements as s
from lakeproof.sql.aggregates import Question, question
from lakeproof.sql.parser import asks_for_management, target

_AGGREGATES = re.compile(r"\b(count|min|max)\b", re.IGNORECASE)  # of which metadata may know the answer
_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
Sql = Callable[..., DataFrame]
OnTable = s.Update | s.Delete | s.Merge | s.Alter | s.Drop | s.Truncate | s.Describe | s.Show


class Runner:
    """Runs the statements of one lake; `spark_sql` is Spark's own."""

    def __init__(self, engine: Engine, spark_sql: Sql) -> None:
        self.engine, self.spark_sql = engine, spark_sql

    def run(self, text: str, *arguments: Any, **named: Any) -> DataFrame:
        """The result of one statement; `arguments` are those of `SparkSession.sql`."""
        statement = self.understood(text)
        if arguments or named:
            return self._with_parameters(statement, text, *arguments, **named)
        return self._run(statement)

    def understood(self, text: str) -> s.Statement:
        """The statement; one that we cannot read and that is not about a managed table is Spark's to judge."""
        try:
            return parse(text)
        except InvalidInput:
            name = target(text)
            if asks_for_management(text) or (name is not None and managed(self.engine, name) is not None):
                raise
            return s.Other(text)

    def _with_parameters(self, statement: s.Statement, text: str, *arguments: Any, **named: Any) -> DataFrame:
        if isinstance(statement, s.Query | s.Other):
            return self.spark_sql(statement.text, *arguments, **named)
        if isinstance(statement, s.Insert) and not self._is_dynamic(statement):
            return self.spark_sql(statement.text, *arguments, **named)
        name = target(text)
        if name is not None and managed(self.engine, name) is None:
            return self.spark_sql(text, *arguments, **named)
        raise InvalidInput("this statement takes no parameters", hint="write the values into the text")

    def _run(self, statement: s.Statement) -> DataFrame:
        match statement:
            case s.Query(text):
                return self._query(text)
            case s.AsOf(instant, query):
                with self.engine.within(as_of_ms=epoch_millis(self.engine.gateway, instant)):
                    return self._query(query)
            case s.CreateTable() if ddl.asks_for_managed(statement):
                ddl.create(self.engine, statement)
                return self.nothing()
            case s.CreateTable():
                return self._spark_create(statement)
            case s.InsertDirectory(path, text):
                refuse_managed_path(self.engine, path)
                return self.spark_sql(text)
            case s.Insert():
                return self._insert(statement)
            case s.Call():
                return call(self.engine, statement)
            case s.Explain(mode, inner, text):
                return self._explain(mode, inner, text)
            case s.Other(text):
                return self.spark_sql(text)
            case s.Drop(name) if is_known(self.engine, name):
                ddl.drop(self.engine, statement)  # even if its metadata cannot be read
                return self.nothing()
        table = managed(self.engine, statement.table)
        return self.spark_sql(statement.text) if table is None else self._on_managed(statement, table)

    def _on_managed(self, statement: OnTable, table: Table) -> DataFrame:
        session = self.engine.gateway.spark
        match statement:
            case s.Alter():
                ddl.alter(self.engine, statement, table)
            case s.Truncate():
                delete_where(table, ALWAYS)
            case s.Describe(extended=extended):
                return shows.described(session, table, extended=extended)
            case s.Show(what="partitions"):
                return shows.partitions(session, table)
            case s.Show(what="create table"):
                return shows.create_statement(session, table)
            case s.Show(what="tblproperties"):
                return shows.properties(session, table)
            case s.Show():
                return shows.columns(session, table)
            case s.Update() | s.Delete() | s.Merge():
                run_row_level(self.engine, qualified(self.engine, statement.table), statement)
        return self.nothing()

    def nothing(self) -> DataFrame:
        """The result of a command: no rows of no columns."""
        return self.engine.gateway.spark.range(0).select()

    def _spark_create(self, made: s.CreateTable) -> DataFrame:
        if managed(self.engine, made.table) is not None:
            hint = "drop it first, or choose another name"
            raise InvalidInput(f"there is already a managed table `{made.table}`", hint=hint)
        refuse_managed_path(self.engine, made.location or lowered(dict(made.options)).get("path", ""))
        return self.spark_sql(made.text)

    def overwrites_dynamically(self) -> bool:
        """Whether the session's INSERT OVERWRITE replaces only the partitions that it writes."""
        return str(self.engine.gateway.spark.conf.get(_DYNAMIC)).lower() == "dynamic"

    def _is_dynamic(self, statement: s.Insert) -> bool:
        if not statement.overwrite or not self.overwrites_dynamically():
            return False
        return managed(self.engine, statement.table) is not None

    def _insert(self, statement: s.Insert) -> DataFrame:
        """Spark resolves and casts; a dynamic overwrite is an INSERT INTO that replaces the partitions it writes."""
        if managed(self.engine, statement.table) is None:
            return self.spark_sql(statement.text)
        name = qualified(self.engine, statement.table)
        if not self._is_dynamic(statement):
            return run_insert(self.engine, name, lambda: self.spark_sql(statement.text))
        with self.engine.within(dynamic=True):
            return run_insert(self.engine, name, lambda: self.spark_sql(statement.as_append))

    def _explain(self, mode: str, inner: str, text: str) -> DataFrame:
        statement = self.understood(inner)
        if isinstance(statement, s.AsOf):
            with self.engine.within(as_of_ms=epoch_millis(self.engine.gateway, statement.instant)):
                rows = self.spark_sql(statement.query)
        elif isinstance(statement, s.Query):
            rows = self.spark_sql(statement.text)
        else:
            return self.spark_sql(text)
        said = explained(self.engine, rows, mode)
        return texts(self.engine.gateway.spark, ("plan",), [(said,)])

    def _query(self, text: str) -> DataFrame:
        rows = self.spark_sql(text)
        asked = question(text) if _AGGREGATES.search(text) else None
        table = None if asked is None else managed(self.engine, asked.table)
        if asked is None or table is None or self._is_temporary(asked.table):
            return rows
        values = answers(self.engine, table, asked)
        return rows if values is None else local_rows(self.engine.gateway.spark, [values], rows.schema)

    def _is_temporary(self, name: str) -> bool:
        """Whether a temporary view hides the table."""
        return "." not in name and bool(
            self.engine.gateway.session.sessionState().catalog().getTempView(name).isDefined()
        )


def answers(engine: Engine, table: Table, asked: Question) -> tuple[Any, ...] | None:
    """The values of a question from metadata alone, or `None` where the rows must be read."""
    snapshot_id = engine.scan(table).source.snapshot_id
    if snapshot_id is None:
        return None
    values: list[Any] = []
    for function, column in asked.aggregates:
        if column is None:
            try:
                values.append(count_rows(table, asked.where, snapshot_id=snapshot_id))
            except InvalidInput:  # the filter compares in a way that only Spark understands
                return None
            if values[-1] is None:
                return None
            continue
        found = column_range(table, column, snapshot_id=snapshot_id)
        if found is None:
            return None
        values.append(found.smallest if function == "min" else found.largest)
    return tuple(values)
