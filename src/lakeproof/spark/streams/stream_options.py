"""Options of streams: honoured, or refused in a sentence, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.history.stream_positions import (
    SKIP_DELETES,
    SKIP_OVERWRITES,
    BatchLimits,
    StreamRules,
)

_FROM, _MAX_FILES = "stream-from-timestamp", "streaming-max-files-per-micro-batch"
_MAX_ROWS = "streaming-max-rows-per-micro-batch"
_READ = (_FROM, SKIP_OVERWRITES, SKIP_DELETES, _MAX_FILES, _MAX_ROWS)
_FANOUT = "fanout-enabled"
_CHECKPOINT, _NAME = "checkpointlocation", "queryname"
_WRITE = (_CHECKPOINT, _FANOUT, "path", _NAME)


class ReadOptions(NamedTuple):
    """What a stream reads, and how much at a time."""

    rules: StreamRules = StreamRules()
    limits: BatchLimits = BatchLimits()


def read_options(options: Mapping[str, str], place: str) -> ReadOptions:
    """The options of a `DataStreamReader`."""
    _refuse_unknown(options, _READ, "read", place)
    overwrites, deletes = (_switch(options, name, place) for name in (SKIP_OVERWRITES, SKIP_DELETES))
    files, rows = (_number(options, name, 1, place) for name in (_MAX_FILES, _MAX_ROWS))
    return ReadOptions(StreamRules(_number(options, _FROM, 0, place), overwrites, deletes), BatchLimits(files, rows))


def check_write_options(options: Mapping[str, str], place: str) -> None:
    """Those of a `DataStreamWriter` ask nothing of us: several partitions are open at a time anyway."""
    _refuse_unknown(options, _WRITE, "write", place)
    _switch(options, _FANOUT, place)


def checkpoint_of(spark: SparkSession, options: Mapping[str, str], place: str) -> str:
    """Where the query keeps what it has done, as Spark finds it; without one every start would write all rows again."""
    if _CHECKPOINT in options:
        return options[_CHECKPOINT]
    folder, name = spark.conf.get("spark.sql.streaming.checkpointLocation", None), options.get(_NAME)
    if not folder or not name:
        hint = 'option("checkpointLocation", ...), or queryName(...) where the session says a folder for all queries'
        raise InvalidInput("a stream into a table needs a checkpoint", place=place, hint=hint)
    return f"{folder.rstrip('/')}/{name}"


def _refuse_unknown(options: Mapping[str, str], known: tuple[str, ...], verb: str, place: str) -> None:
    unknown = [name for name in options if name.lower() not in known]
    if unknown:
        raise InvalidInput(
            f"the {verb} option `{unknown[0]}` is not supported for a stream",
            place=place,
            hint=f"known are {', '.join(known)}",
        )


def _number(options: Mapping[str, str], name: str, least: int, place: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) < least:
        raise InvalidInput(f"the option `{name}` must be a whole number from {least} on, not {text!r}", place=place)
    return int(text)


def _switch(options: Mapping[str, str], name: str, place: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidInput(f"the option `{name}` must be true or false, not {text!r}", place=place)
    return text == "true"
