"""Streams from table to table as the tests run them, and a checkpoint that knows less than the table does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from lakeproof.spark.lake import Lake


def run(lake: Lake, source: str | DataFrame, sink: str, checkpoint: Path, mode: str = "append", **options: Any) -> None:
    """Everything that is there now goes through, as one run of the query."""
    rows = read(lake, source, **options) if isinstance(source, str) else source
    finish(
        rows.writeStream.outputMode(mode).trigger(availableNow=True).toTable(sink, checkpointLocation=str(checkpoint))
    )


def read(lake: Lake, source: str, **options: Any) -> DataFrame:
    """The table as a stream; options are written with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return lake.spark.readStream.format("iceberg").options(**named).load(source)


def finish(query: StreamingQuery) -> None:
    """Wait for the end, which may be an error."""
    try:
        query.awaitTermination(120)
    finally:
        query.stop()


def die_before_the_checkpoint_knew(checkpoint: Path) -> int:
    """The checkpoint as a process leaves it that dies after the commit of its last batch; the number of that batch."""
    done = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    last = max(done, key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    return int(last.name)


def numbers(lake: Lake, table: str) -> list[int]:
    return sorted(int(row[0]) for row in lake.collect(lake.sql(f"select id from {table}")))


def epochs(lake: Lake, table: str) -> list[tuple[str, str]]:
    """The batches in the table, with what their snapshots did."""
    key = "spark.sql.streaming.epochId"
    return [(each.operation, each.summary[key]) for each in lake.table(table).snapshots() if key in each.summary]
