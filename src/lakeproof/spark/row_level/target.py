"""The target of a row-level command: which table it names, and what its statement means on a scan of it."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.default_values import with_write_defaults
from lakeproof.spark.statements.analysis import Analyzer, ParsedCommand, ResolvedCommand, Target


def analyzer_of(engine: Engine) -> Analyzer:
    """The parser and analyzer of the engine's session."""
    return engine.gateway.once("analyzer", lambda: Analyzer(engine.gateway))


def meaning_on(engine: Engine, table: Table, rows: DataFrame, parsed: ParsedCommand) -> ResolvedCommand:
    """What the command means on `rows`, a scan whose first columns are the table's."""
    *namespace, name = table.name()
    target = Target(("spark_catalog", ".".join(namespace), name), rows, with_write_defaults(table.schema()))
    return analyzer_of(engine).meaning(parsed, target)
