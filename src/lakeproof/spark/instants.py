"""An instant in a statement: text in the session's time zone, or epoch milliseconds."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeproof.errors import InvalidInput


def epoch_millis(session: SparkSession, instant: Any) -> int:
    """Milliseconds since 1970 of what the user wrote; Spark's own parser reads text."""
    if isinstance(instant, int) and not isinstance(instant, bool):
        return instant
    text = str(instant).strip()
    if text.isdigit() and len(text) > 8:
        return int(text)
    zone = session.conf.get("spark.sql.session.timeZone")
    micros = session.range(1).select(F.unix_micros(F.try_to_timestamp(F.lit(text))).alias("micros")).first()
    if micros is None or micros["micros"] is None:
        hint = "write '2024-01-31 12:00:00.000' or epoch milliseconds"
        raise InvalidInput(f"`{text}` is not a time", place=f"time zone {zone}", hint=hint)
    return int(micros["micros"]) // 1000
