"""The result of a statement as plain values, and a way to cancel the one that is being computed."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark import InheritableThread
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.spark.lake import Lake


class Result(NamedTuple):
    """What a statement gave: columns, rows as JSON values, whether there are more, and which columns are numbers."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    cut: bool = False
    numbers: tuple[bool, ...] = ()


def run_for_result(lake: Lake, text: str, *, at_most: int | None = None) -> Result:
    """Run one statement; times and decimals come as text, in the session's time zone."""
    rows = lake.sql(text)
    if not rows.columns:
        return Result((), [])
    worded = rows.toDF(*[f"c{n}" for n in range(len(rows.columns))]).select(*map(_worded, _fields(rows)))
    limited = worded if at_most is None else worded.limit(at_most + 1)
    found = [[json_value(value) for value in row] for row in lake.collect(limited)]
    cut = at_most is not None and len(found) > at_most
    numbers = tuple(isinstance(field.dataType, spark.NumericType) for field in rows.schema.fields)
    return Result(tuple(rows.columns), found[:at_most] if cut else found, cut, numbers)


def _fields(rows: DataFrame) -> Iterable[tuple[str, spark.DataType]]:
    return [(f"c{n}", field.dataType) for n, field in enumerate(rows.schema.fields)]


def _worded(field: tuple[str, spark.DataType]) -> Any:
    name, kind = field
    as_text = isinstance(kind, spark.DateType | spark.TimestampType | spark.TimestampNTZType | spark.DecimalType)
    return F.col(name).cast("string") if as_text else F.col(name)


def json_value(value: Any) -> Any:
    """A value as JSON can say it."""
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, spark.Row) and hasattr(value, "__fields__"):
        return {key: json_value(inner) for key, inner in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal | dt.date | dt.datetime | dt.timedelta):
        return str(value)
    return value


def cancellable(lake: Lake, work: Callable[[], Result]) -> Result | None:
    """The result of the work, or `None` where Ctrl-C cancelled its jobs.

    The work has a thread of its own: an interrupt in the middle of a conversation with the JVM would leave an answer
    on the line that the next statement would take for its own.
    """
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread: threading.Thread = InheritableThread(target=run, daemon=True)
    thread.start()
    cancelled = False
    while thread.is_alive():
        try:
            thread.join(0.1)
        except KeyboardInterrupt:
            cancelled = True
            lake.spark.sparkContext.cancelAllJobs()
    if cancelled:
        return None
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    found: Result = outcome[0]
    return found
