"""The target of a row-level command: its columns, and what the statement means on a scan of it."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.evolution import merge_schema
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.default_values import with_write_defaults
from lakeproof.spark.jvm.spark_types import to_iceberg_schema
from lakeproof.spark.statements.analysis import Analyzer, ParsedCommand, ResolvedCommand, Target


def analyzer_of(engine: Engine) -> Analyzer:
    """The parser and analyzer of the engine's session."""
    return engine.gateway.once("analyzer", lambda: Analyzer(engine.gateway))


def meaning_on(engine: Engine, table: Table, rows: DataFrame, parsed: ParsedCommand) -> ResolvedCommand:
    """What the command means on `rows`, a scan whose first columns are the table's."""
    *namespace, name = table.name()
    target = Target(("spark_catalog", ".".join(namespace), name), rows, with_write_defaults(table.schema()))
    return analyzer_of(engine).meaning(parsed, target)


def evolve_schema(engine: Engine, name: str, parsed: ParsedCommand) -> None:
    """MERGE WITH SCHEMA EVOLUTION: the table has the columns that it writes, by a change before it, as in Iceberg."""
    columns = analyzer_of(engine).new_columns(parsed)
    if columns is not None and columns.fields:
        merge_schema(engine.load(name), to_iceberg_schema(columns))
