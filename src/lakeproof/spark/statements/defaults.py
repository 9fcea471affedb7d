"""What DEFAULT says of a column: Spark computes the value once, and metadata keep it."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import (
    DateType,
    FixedType,
    IcebergType,
    PrimitiveType,
    Table,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.jvm.gateway import items_of
from lakeproof.spark.jvm.spark_types import to_spark_type

VERSION = 3
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # the years 1 to 9999 in UTC
_OF_NOW = ("CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentTime", "CurrentTimeZone", "CurrentUser")


def require_defaults(version: int, place: str) -> None:
    """Older metadata have no place for a default."""
    if version < VERSION:
        raise InvalidInput(
            f"columns of a table of format version {version} have no defaults",
            place=place,
            hint=f"use a table with 'format-version'='{VERSION}'",
        )


def require_defaults_of(table: Table) -> None:
    """The same of a table that is there."""
    require_defaults(table.format_version, f"table {'.'.join(table.name())}")


def default_value(engine: Engine, text: str, kind: IcebergType, column: str) -> Any:
    """The value of a constant expression as Iceberg keeps it for a column of this type; `None`: it is null."""
    place = f"column {column}"
    with translate_spark_errors(engine.gateway, text):
        row = engine.gateway.spark.range(1).select()
        said = row.select(F.expr(text).alias("it"))
        _refuse_changing(said, place)
        value = _stored(engine, said, kind, place)
    return None if value is None else _as_kept(value, kind, place)


def _refuse_changing(said: Any, place: str) -> None:
    """Iceberg keeps a value, not an expression: `current_date()` would be the day on which the default was set."""
    expression = items_of(spark41.execution_of(said).analyzed().expressions())
    nodes = list(expression)
    while nodes:
        node = nodes.pop()
        kind = str(node.getClass().getSimpleName())
        if not node.deterministic() or kind in _OF_NOW or "Subquery" in kind:
            raise InvalidInput("a default must be the same whenever it is computed", place=place, hint="write a value")
        nodes += items_of(node.children())


def _stored(engine: Engine, said: Any, kind: IcebergType, place: str) -> Any:
    """The value as Spark would store it into such a column; null has every type."""
    from_type = spark41.execution_of(said).analyzed().schema().apply(0).dataType()
    if said.schema.fields[0].dataType.typeName() == "void":
        return None
    if not isinstance(kind, PrimitiveType):
        raise InvalidInput(f"a column of type {kind} can have no default but null", place=place)
    target = to_spark_type(kind, place)
    wanted = engine.gateway.java_schema(spark.StructType([spark.StructField("it", target)])).apply(0).dataType()
    told = said.schema.fields[0].dataType.simpleString()
    if not engine.gateway.module(spark41.CAST).canANSIStoreAssign(from_type, wanted):
        raise InvalidInput(f"a default of type {told} cannot be stored as {target.simpleString()}", place=place)
    found = F.col("it").try_cast(target)
    value, fits, is_null = said.select(_written(found, kind), found.isNotNull(), F.col("it").isNull()).collect()[0]
    if is_null or value is not None:
        return value
    if fits:
        raise InvalidInput("a default must lie in the years 1 to 9999, which metadata can write", place=place)
    raise InvalidInput(f"this default does not fit into {target.simpleString()}", place=place)


def _written(found: Column, kind: IcebergType) -> Column:
    """The value as Python takes it; null where metadata, in which an instant is text in UTC, cannot say it."""
    if isinstance(kind, TimestamptzType):
        return F.when(F.unix_micros(found).between(*_MICROS), F.unix_micros(found))
    if isinstance(kind, DateType | TimestampType):
        return F.when(F.year(found).between(1, 9999), found)
    return found


def _as_kept(value: Any, kind: IcebergType, place: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"a default cannot be {value}: the metadata, which is JSON, cannot say it", place=place)
    if isinstance(value, bytes | bytearray):
        value, wanted = bytes(value), 16 if isinstance(kind, UUIDType) else len(value)
        if isinstance(kind, FixedType):
            wanted = len(kind)
        if len(value) != wanted:
            raise InvalidInput(f"a default of {len(value)} bytes cannot be stored as {kind}", place=place)
        return UUID(bytes=value) if isinstance(kind, UUIDType) else value
    return value
