"""Python's values as literals of Spark's, exactly.

PySpark hands dates and times to Java's old classes, whose calendar skips ten days of 1582 and which read no year of
fewer than four digits, and takes a time without a zone for one of the session's.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def spark_literal(value: Any) -> Column:
    """The literal of the type that the value has."""
    if not isinstance(value, dt.date):
        return F.lit(value)
    if not isinstance(value, dt.datetime):
        return F.date_from_unix_date(F.lit((value - _EPOCH.date()).days))
    if value.tzinfo is None:
        return F.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    return F.timestamp_micros(F.lit((value - _EPOCH) // dt.timedelta(microseconds=1)))


def spark_literals(values: pa.Array | pa.ChunkedArray) -> list[Column]:
    """The literals of Arrow's values, also of those for which Python has no date; nulls are left out."""
    values = values.drop_null()
    if pa.types.is_date32(values.type):
        return [F.date_from_unix_date(F.lit(days)) for days in values.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        return [F.timestamp_micros(F.lit(each)) for each in micros]
    return [spark_literal(value) for value in values.to_pylist()]
