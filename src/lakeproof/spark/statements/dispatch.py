"""A statement is run: ours here, everything else by Spark itself, unchanged."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lakeproof.commit.planning import run_until_done
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS
from lakeproof.iceberg.committing.whole_file_commits import delete_where
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.catalogs import CATALOG_NAME
from lakeproof.iceberg.tables.tables import joined_name, list_namespaces, list_tables, name_parts
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.names_in_force import Names, names_in_force, names_mean
from lakeproof.spark.procedures.all_procedures import call_procedure
from lakeproof.spark.reading.asked_columns import names_metadata_column, read_natively
from lakeproof.spark.reading.cached_frames import follow_tables
from lakeproof.spark.reading.columns import quoted
from lakeproof.spark.reading.explaining import explain_query
from lakeproof.spark.reading.metadata_answers import answer_from_metadata
from lakeproof.spark.row_level.insert import run_insert
from lakeproof.spark.row_level.rerun import note_rerun, run_row_level
from lakeproof.spark.row_level.target import analyzer_of, evolve_schema, meaning_on
from lakeproof.spark.statements import ddl, describing, shows
from lakeproof.spark.statements.analysis import Analyzer, Arguments, ParsedCommand, ParsedInsert
from lakeproof.spark.statements.instants import epoch_millis
from lakeproof.spark.statements.local_rows import local_rows, row_of_longs, texts
from lakeproof.spark.statements.names import (
    is_managed_name,
    managed,
    managed_target,
    named_metadata,
    qualified,
    refuse_managed_path,
    refuse_stream,
    refuse_unsupported,
)
from lakeproof.spark.statements.options import WriteOptions, refuse_options_in
from lakeproof.spark.statements.replacing import create_or_replace
from lakeproof.spark.statements.table_options import lowered
from lakeproof.sql import parse_statement
from lakeproof.sql import statements as s
from lakeproof.sql.lexer import split
from lakeproof.sql.parser import asks_for_management, target

_AGGREGATES = re.compile(r"\b(count|min|max)\b", re.IGNORECASE)  # of which metadata may know the answer
_CALL = re.compile(r"\s*call\b", re.IGNORECASE)
_TEMPORARY = re.compile(r"\s*create\s+(or\s+replace\s+)?(global\s+)?temp(orary)?\s", re.IGNORECASE)
_WITH = re.compile(r"\s*with\b", re.IGNORECASE)
_OPTIONS = re.compile(r"\bwith\s*\(", re.IGNORECASE)
_WRITES = re.compile(r"\b(update|delete|merge|insert)\b", re.IGNORECASE)
Sql = Callable[..., DataFrame]
OnTable = s.Alter | s.Drop | s.Truncate | s.Describe | s.Show | s.Refresh


class StatementRunner:
    """Runs the statements of one lake; `spark_sql` is Spark's own."""

    def __init__(self, engine: Engine, spark_sql: Sql) -> None:
        self.engine, self.spark_sql = engine, spark_sql

    def run(self, text: str, args: Arguments | None = None) -> DataFrame:
        """The result of one statement; `args` are the parameters of `SparkSession.sql`."""
        try:
            with spark41.without_origins():
                return self._result(text, args)
        except AnalysisException as error:
            refuse_unsupported(self.engine, error)
            raise
        except Py4JJavaError as error:
            refuse_stream(error)
            raise

    def _result(self, text: str, args: Arguments | None) -> DataFrame:
        statement = self.understood(text)
        if isinstance(statement, s.QueryStatement):
            return self._query(statement.text, args)
        result = self._changed(statement, text, args)
        follow_tables(self.engine)
        return result

    def _changed(self, statement: s.Statement, text: str, args: Arguments | None) -> DataFrame:
        """The result of a statement that may change tables."""
        if isinstance(statement, s.RowLevel | s.Insert):
            return self._row_level(statement.text, args)
        return self._with_parameters(statement, text, args) if args else self._run(statement)

    def understood(self, text: str) -> s.Statement:
        """The statement; one that we cannot read and that is not about a managed table is Spark's to judge."""
        try:
            return parse_statement(text)
        except InvalidInput:
            name = target(text)
            ours = _CALL.match(text) or asks_for_management(text)
            if ours or (name is not None and managed(self.engine, name) is not None):
                raise
            return s.Other(text)

    def _sql(self, text: str, args: Arguments | None) -> DataFrame:
        return self.spark_sql(text, args) if args else self.spark_sql(text)

    def _with_parameters(self, statement: s.Statement, text: str, args: Arguments) -> DataFrame:
        name = target(text)
        if isinstance(statement, s.Other) or (name is not None and managed(self.engine, name) is None):
            return self._sql(text, args)
        raise InvalidInput("this statement takes no parameters", hint="write the values into the text")

    def _row_level(self, text: str, args: Arguments | None) -> DataFrame:
        """UPDATE, DELETE or MERGE, or an INSERT, as Spark parses it; the table of somebody else is Spark's business."""
        if _OPTIONS.search(text):
            refuse_options_in(text, lambda name: managed(self.engine, name) is not None)
        parsed = self.analyzer.command_of(self.analyzer.parsed(text, args))
        name = None if parsed is None else managed_target(self.engine, parsed.target)
        if name is None or parsed is None:
            return self._sql(text, args)
        self._run_until_done(name, parsed)
        return self.nothing()

    def _run_until_done(self, name: str, parsed: ParsedCommand | ParsedInsert) -> None:
        """Run the command from the head until its commit stands; a commit whose answer was lost has the same id."""
        if isinstance(parsed, ParsedCommand):
            evolve_schema(self.engine, name, parsed)
        once: Any = run_insert if isinstance(parsed, ParsedInsert) else run_row_level
        what = f"INSERT into {name}" if isinstance(parsed, ParsedInsert) else f"{parsed.command} on {name}"
        run = partial(once, self.engine, name, parsed, str(uuid.uuid4()))
        run_until_done(run, partial(note_rerun, self.engine, what))

    def merge(self, plan: Any) -> bool:
        """Run the MERGE that `DataFrame.mergeInto` describes; false: it is not about a managed table."""
        parsed = self.analyzer.command_of(plan)
        name = managed_target(self.engine, parsed.target) if isinstance(parsed, ParsedCommand) else None
        if name is None or not isinstance(parsed, ParsedCommand):
            return False
        self._run_until_done(name, parsed)
        follow_tables(self.engine)
        return True

    @property
    def analyzer(self) -> Analyzer:
        """Spark's own reading of statements."""
        return analyzer_of(self.engine)

    def _run(self, statement: s.Statement) -> DataFrame:
        match statement:
            case s.AsOf(instant, query):
                with names_mean(self.engine, as_of_ms=epoch_millis(self.engine.gateway, instant)):
                    return self._query(query, None)
            case s.CreateTable() if ddl.asks_for_managed(self.engine, statement):
                create_or_replace(self.engine, statement)
                return self.nothing()
            case s.CreateLike(source=source) if managed(self.engine, source) is not None:
                ddl.create_like(self.engine, statement, self.engine.load(qualified(self.engine, source)))
                return self.nothing()
            case s.CreateLike(text=text):
                return self.spark_sql(text)
            case s.CreateTable():
                return self._spark_create(statement)
            case s.InsertDirectory(path, text):
                refuse_managed_path(self.engine, path)
                return self.spark_sql(text)
            case s.ProcedureCall() if statement.is_of_another_catalog:
                return self.spark_sql(statement.text)
            case s.ProcedureCall():
                return call_procedure(self.engine, statement)
            case s.Explain(mode, inner, text):
                return self._explain(mode, inner, text)
            case s.ExecuteImmediate():
                return self._immediate(statement)
            case s.ShowExtended():
                return self._show_extended(statement)
            case s.Other(text):
                if _TEMPORARY.match(text) and asks_for_management(text):
                    hint = "create temporary view v as select … from t"
                    raise InvalidInput("a managed table is not temporary", place="using iceberg", hint=hint)
                return self.spark_sql(text)
            case s.Drop(name) if is_managed_name(self.engine, name) or name_parts(name)[0] == CATALOG_NAME:
                ddl.drop(self.engine, statement)  # even if its metadata cannot be read
                return self.nothing()
        assert isinstance(statement, OnTable)
        table = managed(self.engine, statement.table)
        if table is not None:
            return self._on_managed(statement, table)
        metadata = named_metadata(self.engine, statement.table)
        return self.spark_sql(statement.text) if metadata is None else self._on_metadata(statement)

    def _on_managed(self, statement: OnTable, table: Table) -> DataFrame:
        session = self.engine.gateway.spark
        match statement:
            case s.Alter():
                ddl.alter(self.engine, statement, table)
            case s.Truncate():
                delete_where(table, ALWAYS)
            case s.Describe(column=column) if column:
                return describing.describe_column(session, table, column)
            case s.Describe(extended=extended):
                return describing.describe_table(self.engine.gateway, table, extended=extended)
            case s.Refresh():
                pass  # every statement reads the newest metadata
            case s.Show(what="partitions"):
                return shows.show_partitions(session, table)
            case s.Show(what="create table"):
                return describing.create_statement(self.engine.gateway, table)
            case s.Show(what="tblproperties", name=wanted):
                return describing.show_properties(session, table, wanted)
            case s.Show():
                return shows.show_columns(session, table)
        return self.nothing()

    def _on_metadata(self, statement: OnTable) -> DataFrame:
        """What can be asked of a metadata table besides its rows: its columns."""
        session, name = self.engine.gateway.spark, statement.table
        if isinstance(statement, s.Describe) and not statement.column:
            return describing.describe_columns(session, session.table(name).schema)
        if isinstance(statement, s.Show) and statement.what == "columns":
            return texts(session, ("col_name",), [(each,) for each in session.table(name).columns])
        if isinstance(statement, s.Show) and statement.what == "create table":
            return self.spark_sql(statement.text)
        raise InvalidInput("a metadata table has no such statement", place=f"table {name}", hint="SELECT and DESCRIBE")

    def _show_extended(self, shown: s.ShowExtended) -> DataFrame:
        """Spark's own tables, and the managed ones, of that pattern."""
        namespace = shown.namespace or self.engine.gateway.spark.catalog.currentDatabase()
        any_case = re.compile("|".join(re.escape(each).replace(r"\*", ".*") for each in shown.pattern.split("|")), re.I)
        known = list_tables(self.engine.catalog, namespace) if namespace in list_namespaces(self.engine.catalog) else ()
        names = [joined_name([namespace, each]) for each in known if any_case.fullmatch(each)]
        ours = describing.matching_tables(self.engine.gateway.spark, [self.engine.load(name) for name in names])
        return self.spark_sql(shown.text).unionAll(ours) if names else self.spark_sql(shown.text)

    def nothing(self) -> DataFrame:
        """The result of a command: no rows of no columns."""
        return self.engine.gateway.no_columns

    def _spark_create(self, made: s.CreateTable) -> DataFrame:
        if managed(self.engine, made.table) is not None:
            hint = "drop it first, or choose another name"
            raise InvalidInput(f"there is already a managed table `{made.table}`", hint=hint)
        refuse_managed_path(self.engine, made.location or lowered(dict(made.options)).get("path", ""))
        return self.spark_sql(made.text)

    def insert_into(self, name: str, rows: DataFrame, *, overwrite: bool, options: WriteOptions) -> None:
        """Run the INSERT that `DataFrameWriter.insertInto` means: the statement, with these rows for its query."""
        verb = "overwrite" if overwrite else "into"
        written = name if options.branch == "main" else f"{name}.{quoted(f'branch_{options.branch}')}"
        plan = self.analyzer.parsed(f"insert {verb} {written} select 1")
        query = self.engine.gateway.one(spark41.execution_of(rows).analyzed())
        parsed = self.analyzer.command_of(plan.withNewChildren(query))
        assert isinstance(parsed, ParsedInsert)
        target = qualified(self.engine, written)
        engine, _ = options.on(self.engine, self.engine.load(qualified(self.engine, name)))
        StatementRunner(engine, self.spark_sql)._run_until_done(target, parsed)
        follow_tables(self.engine)

    def _immediate(self, immediate: s.ExecuteImmediate) -> DataFrame:
        """Run what the expression says, as if it stood here; Spark itself gives values to queries."""
        found = self.spark_sql(f"select {immediate.statement}").collect()[0][0]
        if not isinstance(found, str) or len(split(found)) != 1:
            return self.spark_sql(immediate.text)  # which refuses it
        if immediate.plain:
            with translate_spark_errors(self.engine.gateway, found):
                return self._result(found, None)
        name = target(found)
        ours = asks_for_management(found) or (name is not None and managed(self.engine, name) is not None)
        if not ours or isinstance(self.understood(found), s.QueryStatement | s.Insert):
            return self.spark_sql(immediate.text)
        raise InvalidInput("EXECUTE IMMEDIATE takes values for queries and INSERT only", hint="pass them by args=")

    def _explain(self, mode: str, inner: str, text: str) -> DataFrame:
        statement = self.understood(inner)
        if isinstance(statement, s.AsOf):
            with names_mean(self.engine, as_of_ms=epoch_millis(self.engine.gateway, statement.instant)):
                rows = self.spark_sql(statement.query)
        elif isinstance(statement, s.QueryStatement):
            rows = self.spark_sql(statement.text)
        else:
            found = self._looked_for(statement)
            if found is None:
                return self.spark_sql(text)
            rows = found
        said = explain_query(self.engine, rows, mode)
        return texts(self.engine.gateway.spark, ("plan",), [(said,)])

    def _looked_for(self, statement: s.Statement) -> DataFrame | None:
        """The query for the rows that an UPDATE, DELETE or MERGE of a managed table looks for; `None`: it is none."""
        if not isinstance(statement, s.RowLevel):
            return None
        parsed = self.analyzer.command_of(self.analyzer.parsed(statement.text))
        name = managed_target(self.engine, parsed.target) if isinstance(parsed, ParsedCommand) else None
        if name is None or not isinstance(parsed, ParsedCommand):
            return None
        table = self.engine.session_table(self.engine.load(name))
        with names_mean(self.engine, pinned={name: table}):
            rows = self.engine.scan(table).rows
            meant = meaning_on(self.engine, table, rows, parsed)
        if meant.source is not None:
            return rows.join(meant.source, meant.condition)
        return rows if meant.condition is None else rows.filter(meant.condition)

    def _with_metadata_columns(self, text: str, args: Arguments | None) -> DataFrame:
        """A query that may name metadata columns: what is in force stays so."""
        noted: dict[str, Any] = {}
        outer = names_in_force(self.engine.gateway) or Names(self.engine, {}, None)
        with names_mean(outer.engine, outer.pinned, outer.as_of_ms, noted):
            rows = self._sql(text, args)
        return read_natively(self.engine, rows, text, noted) if noted else rows

    def _query(self, text: str, args: Arguments | None) -> DataFrame:
        if _WITH.match(text) and _WRITES.search(text):  # a command may stand below its CTEs
            return self._row_level(text, args)
        if _OPTIONS.search(text):
            refuse_options_in(text, lambda name: managed(self.engine, name) is not None)
        if names_metadata_column(text):
            return self._with_metadata_columns(text, args)
        rows = self._sql(text, args)
        answer = answer_from_metadata(self.engine, rows) if _AGGREGATES.search(text) else None
        if answer is None:
            return rows
        if answer.only_counts:
            return row_of_longs(self.engine.gateway, answer.columns, answer.values)
        return local_rows(self.engine.gateway.spark, [answer.values], rows.schema)
