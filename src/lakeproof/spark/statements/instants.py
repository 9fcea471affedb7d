"""An instant in a statement: text in the session's time zone, or epoch milliseconds."""

from __future__ import annotations

from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway


def epoch_millis(gateway: Gateway, instant: Any) -> int:
    """Milliseconds since 1970 of what the user wrote; Spark's own parser reads text."""
    if isinstance(instant, int) and not isinstance(instant, bool):
        return instant
    text = str(instant).strip()
    if text.isdigit() and len(text) > 8:
        return int(text)
    zone = session_zone(gateway)
    times = gateway.module(spark41.DATE_TIME_UTILS)
    read = times.stringToTimestamp(gateway.named(spark41.UTF8_STRING).fromString(text), times.getZoneId(zone))
    if not read.isDefined():
        hint = "write '2024-01-31 12:00:00.000' or epoch milliseconds"
        raise InvalidInput(f"`{text}` is not a time", place=f"time zone {zone}", hint=hint)
    return int(read.get()) // 1000


def session_zone(gateway: Gateway) -> str:
    """The time zone in which the session writes and reads times without one."""
    return str(gateway.spark.conf.get("spark.sql.session.timeZone"))
