"""A procedure is a value: its parameters, the columns of its result, and what it does. Here its arguments are bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.statements.local_rows import local_rows
from lakeproof.spark.statements.names import qualified
from lakeproof.sql.statements import Computed, ProcedureCall

LONG, INT, TEXT = spark.LongType(), spark.IntegerType(), spark.StringType()
Row = tuple[Any, ...]
Columns = tuple[tuple[str, spark.DataType], ...]
_FLAGS = (
    *("dry_run", "allow_young", "if_exists", "stream_results", "clean_expired_metadata", "use_caching", "drop_backup"),
    *("net_changes", "compute_updates", "remove_carryovers", "check_duplicate_files", "prefix_listing"),
    *("ignore_missing_files", "create_file_list"),
)
_NUMBERS = ("snapshot_id", "retain_last", "max_concurrent_deletes", "spec_id", "parallelism")
_LISTS = ("snapshot_ids", "sort_by", "identifier_columns", "columns")
_MAPS = ("options", "properties", "partition_filter", "equal_schemes", "equal_authorities")
_TIMES = ("older_than", "timestamp")  # text, or epoch milliseconds


class Procedure(NamedTuple):
    """The names of its parameters (a `?` means optional), of its result's columns, and what it does."""

    parameters: tuple[str, ...]
    result: Columns
    run: Callable[..., Sequence[Row]]


def run_procedure(engine: Engine, called: ProcedureCall, known: Mapping[str, Procedure]) -> DataFrame:
    """The result of a procedure, as rows."""
    procedure = known.get(called.procedure)
    if procedure is None:
        hint = f"known are {', '.join(sorted(known))}"
        raise InvalidInput(f"there is no procedure `{called.procedure}`", hint=hint)
    rows = procedure.run(engine, **_bound(engine, called, procedure))
    schema = spark.StructType([spark.StructField(name, kind, True) for name, kind in procedure.result])
    return local_rows(engine.gateway.spark, rows, schema)


def _bound(engine: Engine, called: ProcedureCall, procedure: Procedure) -> dict[str, Any]:
    names = [name.rstrip("?") for name in procedure.parameters]
    given: dict[str, Any] = {}
    for position, argument in enumerate(called.arguments):
        name = argument.name or (names[position] if position < len(names) else None)
        if name not in names or name in given:
            hint = f"its parameters are {', '.join(names)}"
            raise InvalidInput(f"`{called.procedure}` has no parameter {argument.name or position + 1}", hint=hint)
        value = _computed(engine, argument.value) if isinstance(argument.value, Computed) else argument.value
        if value is not None:  # NULL: as if it were not said
            given[name] = _checked(name, value)
    missing = [name for name in procedure.parameters if not name.endswith("?") and name not in given]
    if missing:
        raise InvalidInput(f"`{called.procedure}` needs {', '.join(missing)}", hint=f"parameters: {', '.join(names)}")
    return given


def _computed(engine: Engine, expression: Computed) -> Any:
    """The value of an expression; an instant as epoch milliseconds."""
    query = f"select ({expression.text}) as value"
    with translate_spark_errors(engine.gateway, query):
        found = engine.gateway.spark.sql(query)
        if isinstance(found.schema[0].dataType, spark.TimestampType | spark.TimestampNTZType | spark.DateType):
            found = found.selectExpr("unix_millis(cast(value as timestamp)) as value")
        value = found.collect()[0][0]
    if isinstance(value, dict):
        return tuple(each for pair in value.items() for each in pair)
    return tuple(value) if isinstance(value, list) else value


def _checked(name: str, value: Any) -> Any:
    """The value, if it is of the kind that parameters of this name take; `map('name', 'value', …)` as a dict."""
    if name in _MAPS:
        return _pairs(name, value)
    if name in _LISTS:
        if not isinstance(value, tuple):
            raise InvalidInput(f"`{name}` must be a list, not {value!r}", hint="write array(…)")
        return value
    if name in _FLAGS and not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false, not {value!r}")
    if name in _NUMBERS:
        return number(value, name)
    if name not in (*_FLAGS, *_TIMES) and not isinstance(value, str):
        raise InvalidInput(f"`{name}` must be a string, not {value!r}")
    return value


def _pairs(name: str, listed: Any) -> dict[str, str]:
    if not isinstance(listed, tuple) or len(listed) % 2:
        raise InvalidInput(f"`{name}` needs a value for each name", hint="write map('name', 'value', …)")
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in listed]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def number(value: Any, name: str) -> int:
    """The value as a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"`{name}` must be a whole number, not {value!r}")
    return value


def at_least_one(value: int | None, name: str) -> None:
    """How many do the work at once is ours to choose; a wrong number is refused all the same."""
    if value is not None and value < 1:
        raise InvalidInput(f"`{name}` must be at least 1, not {value}")


def table_named(engine: Engine, name: str) -> Table:
    """The managed table of that name."""
    return engine.load(qualified(engine, name))
