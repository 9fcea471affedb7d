"""One Spark session for all sides: plain Parquet, this project, and Apache Iceberg where its jar can be had."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Clock
from lakeproof.spark.hooks import spark_sql
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
PLAIN, OURS, ICEBERG = "plain Parquet", "Lakeproof", "Apache Iceberg"
_PEER = {
    "spark.jars.packages": JAR,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.peer.type": "hadoop",
}


@dataclass(frozen=True)
class Sides:
    """The session and what the sides run on; `peer` says whether Apache Iceberg is there."""

    folder: Path
    lake: Lake
    spark: Any
    sql: Callable[..., Any]  # Spark's own, which Apache Iceberg answers too
    clock: Clock
    peer: bool
    notes: tuple[str, ...]

    def with_peer(self, sides: dict[str, Callable[[], object]]) -> dict[str, Callable[[], object]]:
        """The sides without Apache Iceberg where it is not there."""
        return {name: run for name, run in sides.items() if self.peer or name != ICEBERG}


@contextmanager
def all_sides(*, memory: str = "4g", cores: int | None = None) -> Iterator[Sides]:
    """A session in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="lakeproof-bench-"))
    os.environ.setdefault("LAKEPROOF_DRIVER_MEMORY", memory)
    count = cores or min(2, os.cpu_count() or 2)
    try:
        spark, notes = _session(folder, f"local[{count}]")
        lake = connect(spark, catalog=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "lake"))
        jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
        yield Sides(folder, lake, spark, spark_sql(spark), Clock([jvm]), not notes, notes)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _session(folder: Path, master: str) -> tuple[Any, tuple[str, ...]]:
    """The session with Apache Iceberg, or without it and a note that says why."""
    conf = {"spark.sql.shuffle.partitions": "4", "spark.sql.files.minPartitionNum": "1"}
    peer = {**_PEER, "spark.sql.catalog.peer.warehouse": str(folder / "peer")}
    with _quiet(folder / "session.log"):
        try:
            if os.environ.get("LAKEPROOF_BENCH_PEER", "on") == "on":
                return build_session(str(folder / "lake"), master=master, conf={**conf, **peer}), ()
        except Exception:  # no network, or no such jar there: Spark's launcher ends without a session
            pass
        session = build_session(str(folder / "lake"), master=master, conf=conf)
        return session, ("Apache Iceberg's Spark runtime could not be fetched; its side is missing.",)


@contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """What the resolver of jars says goes into a file: it writes to the descriptor, not through Python."""
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
