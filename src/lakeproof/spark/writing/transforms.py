"""Iceberg's partition transforms as Spark columns, and partition values as folder names and back.

Times are counted in UTC whatever the session's time zone is. A folder name must tell null, the empty string and every
other value apart, which Spark's own partitioning does not.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput
from lakeproof.iceberg import pyiceberg_names as iceberg
from lakeproof.spark.jvm import spark41

NULL = "__HIVE_DEFAULT_PARTITION__"  # what Spark calls the folder of null
_ESCAPE = "~"
_DAY_MICROS, _HOUR_MICROS = 86_400_000_000, 3_600_000_000


def transform_column(column: Column, transform: str, kind: iceberg.IcebergType) -> Column:
    """The transform of a column of type `kind`: days and hours are counts since 1970-01-01 in UTC, a bucket an int."""
    name, _, argument = transform.partition("[")
    number = int(argument.rstrip("]")) if argument else 0
    if name == "identity":
        return column
    if name == "void":
        return F.lit(None).cast("int")
    if name in ("truncate", "extract"):
        return _truncated(column, number, kind)
    if name == "bucket":
        return _bucket(column, number, kind)
    if name == "hour":
        return _floor_div(_micros(column, kind), _HOUR_MICROS).cast("int")
    days = _days(column, kind)
    if name == "day":
        return days.cast("int")
    date = F.date_from_unix_date(days.cast("int"))
    if name == "year":
        return F.year(date) - 1970
    if name == "month":
        return (F.year(date) - 1970) * 12 + F.month(date) - 1
    raise InvalidInput(f"the transform `{transform}` cannot be computed", hint="write with another engine")


def _days(column: Column, kind: iceberg.IcebergType) -> Column:
    if isinstance(kind, iceberg.DateType):
        return F.unix_date(column)
    return _floor_div(_micros(column, kind), _DAY_MICROS)


def _micros(column: Column, kind: iceberg.IcebergType) -> Column:
    if isinstance(kind, iceberg.TimestampType):
        # A time without a zone is counted as if it were UTC; a cast to a timestamp would go through the session's zone.
        seconds = F.hour(column) * 3600 + F.minute(column) * 60
        fraction = (F.date_part(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
        whole = (F.unix_date(column.cast("date")).cast("bigint") * 86_400 + seconds) * 1_000_000
        return whole + fraction
    return F.unix_micros(column)


def _floor_div(column: Column, number: int) -> Column:
    return F.call_function("div", column - F.pmod(column, F.lit(number)), F.lit(number))


def _truncated(column: Column, width: int, kind: iceberg.IcebergType) -> Column:
    if isinstance(kind, iceberg.StringType | iceberg.BinaryType):
        return F.substring(column, 1, width)
    if isinstance(kind, iceberg.DecimalType):
        return _truncated_decimal(column, width, kind)
    name, least = ("bigint", -(1 << 63)) if isinstance(kind, iceberg.LongType) else ("int", -(1 << 31))
    rest = F.pmod(column, F.lit(width)).cast(name)
    message = F.concat(column.cast("string"), F.lit(f" has no multiple of {width} below it in its type"))
    beyond = F.when(column < 0, rest > column - F.lit(least)).otherwise(False)
    return F.when(beyond, F.raise_error(message).cast(name)).otherwise(column - rest).cast(name)


def _truncated_decimal(column: Column, width: int, kind: iceberg.DecimalType) -> Column:
    exact = f"decimal({kind.precision},{kind.scale})"
    if kind.precision < 38:  # Spark's difference has one digit more, and rounds where there is none
        step = F.lit(Decimal(width).scaleb(-kind.scale))
        return (column - F.pmod(column, step)).cast(exact)
    scale = kind.scale

    # A nested function travels to the workers by value.
    def truncated(value: Any) -> Any:
        import decimal

        with decimal.localcontext(prec=100):
            unscaled = None if value is None else int(value.scaleb(scale))
            return None if unscaled is None else decimal.Decimal(unscaled - unscaled % width).scaleb(-scale)

    return F.udf(truncated, exact, useArrow=False)(column)


def _bucket(column: Column, buckets: int, kind: iceberg.IcebergType) -> Column:
    if isinstance(kind, iceberg.IntegerType | iceberg.LongType):
        number = column.cast("bigint")
    elif isinstance(kind, iceberg.DateType):
        number = F.unix_date(column).cast("bigint")
    elif isinstance(kind, iceberg.TimestampType | iceberg.TimestamptzType):
        number = _micros(column, kind)
    else:
        return _hashed_in_python(column, buckets, kind)
    hashed = F.call_function(
        "java_method",
        F.lit(spark41.MURMUR3),
        F.lit("hashLong"),
        F.coalesce(number, F.lit(0)),
        F.lit(0),
    )
    bucket = F.pmod(hashed.cast("int").bitwiseAND(F.lit(0x7FFFFFFF)), F.lit(buckets))
    return F.when(column.isNotNull(), bucket)


def _hashed_in_python(column: Column, buckets: int, kind: iceberg.IcebergType) -> Column:
    """Strings, bytes and decimals: the hash that Iceberg asks for is not among Spark's functions."""
    scale = kind.scale if isinstance(kind, iceberg.DecimalType) else None

    # A nested function travels to the workers by value: they need mmh3, not this package.
    def bucket_of(value: Any) -> int | None:
        import decimal

        import mmh3

        if value is None:
            return None
        if scale is not None:
            with decimal.localcontext(prec=100):
                number = int(value.scaleb(scale))
            raw = number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
        else:
            raw = value.encode() if isinstance(value, str) else bytes(value)
        return int((mmh3.hash(raw) & 0x7FFFFFFF) % buckets)

    return F.udf(bucket_of, "int", useArrow=False)(column)


def result_type(transform: str, kind: iceberg.IcebergType) -> iceberg.IcebergType:
    """The type of a transformed value."""
    name = transform.partition("[")[0]
    if name in ("identity", "truncate"):
        return kind
    return iceberg.DateType() if name == "day" else iceberg.IntegerType()


def encoded(column: Column, transform: str, kind: iceberg.IcebergType) -> Column:
    """A transformed value as the text of a folder name; null stays null."""
    if transform.startswith(("identity", "truncate")):
        if isinstance(kind, iceberg.StringType):
            special = column.startswith(_ESCAPE) | (column == "") | (column == NULL)
            return F.when(special, F.concat(F.lit(_ESCAPE), column)).otherwise(column)
        if isinstance(kind, iceberg.BinaryType | iceberg.FixedType | iceberg.UUIDType):
            return F.concat(F.lit("x"), F.hex(column))
        if isinstance(kind, iceberg.TimestampType | iceberg.TimestamptzType):
            return _micros(column, kind).cast("string")
    return column.cast("string")


def decoded(text: str, transform: str, kind: iceberg.IcebergType) -> Any:
    """The partition value behind a folder name, as Iceberg stores it (a date is days, a timestamp microseconds)."""
    raw = unquote(text)
    if raw == NULL:
        return None
    if not transform.startswith(("identity", "truncate")):
        return int(raw)
    if isinstance(kind, iceberg.StringType):
        return raw.removeprefix(_ESCAPE)
    if isinstance(kind, iceberg.BinaryType | iceberg.FixedType | iceberg.UUIDType):
        return bytes.fromhex(raw.removeprefix("x"))
    if isinstance(kind, iceberg.DateType):
        return _days_since_1970(raw)
    if isinstance(kind, iceberg.BooleanType):
        return raw == "true"
    if isinstance(kind, iceberg.DecimalType):
        return Decimal(raw)
    if isinstance(kind, iceberg.FloatType | iceberg.DoubleType):
        return float(raw.replace("Infinity", "inf"))
    return int(raw)


def _days_since_1970(text: str) -> int:
    """The number of a day that Spark printed, also where Python's calendar ends: 400 years have 146,097 days."""
    year, month, day = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)", text).groups()  # type: ignore[union-attr]
    cycles, rest = divmod(int(year) - 2000, 400)
    return cycles * 146_097 + (dt.date(2000 + rest, int(month), int(day)) - dt.date(1970, 1, 1)).days
