"""A Spark session that reads and writes Iceberg's files as they are: built here, or the user's own made ready."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm.java import kept_file, use_java

# Read at execution time: a session without these reads columns by name, writes timestamps other engines dislike, and
# compares a file's statistics with dates and times that went through the calendar of 1582, which skips days, and with
# decimals cut to the width that the column had when the file was written.
NEEDED = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.parquet.filterPushdown.decimal": "false",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What goes wrong in a task reaches the caller as an exception: a second copy with stack traces is only noise.
_QUIET = """
rootLogger.level = fatal
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def build_session(
    warehouse: str, *, master: str = "local[*]", quick: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A new local session (or the one this process already has), quiet and without a web page.

    `quick` is for a minute's work: no time is spent on optimizing code that will not run long enough to pay it back.
    """
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("lakeproof")
    chosen = {**_defaults(warehouse), **NEEDED, **(conf or {})}
    options = [_defaults(warehouse)[_JAVA_OPTIONS], _QUICK if quick else "", (conf or {}).get(_JAVA_OPTIONS, "")]
    chosen[_JAVA_OPTIONS] = " ".join(filter(None, options))
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def made_ready(spark: SparkSession) -> SparkSession:
    """The session with what managed tables need; a session of Spark Connect has no JVM to talk to and is refused."""
    if not hasattr(spark, "_jsparkSession"):
        said = "this is no session of Spark's, or a Spark Connect session, which cannot be used"
        raise InvalidInput(said, place="spark", hint="pass a classic session, or none")
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "false":
        raise InvalidInput(
            "PYSPARK_PIN_THREAD=false is set", hint="unset it: callbacks must know their caller's thread"
        )
    for name, value in NEEDED.items():
        spark.conf.set(name, value)
    # Both log exceptions that reach the caller anyway, with a sentence of their own.
    for name in ("py4j", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return spark


def _defaults(warehouse: str) -> dict[str, str]:
    quiet = kept_file("quiet-log4j2.properties", _QUIET)
    options = [f"-Dlog4j2.configurationFile={quiet}"]
    archive = os.environ.get("LAKEPROOF_CLASS_ARCHIVE")
    if archive:
        # The first run writes the archive at its end, later ones start in half the time.
        flag = "SharedArchiveFile" if Path(archive).exists() else "ArchiveClassesAtExit"
        options += [f"-XX:{flag}={archive}", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=off"]
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": os.environ.get("LAKEPROOF_DRIVER_MEMORY", "2g"),
        _JAVA_OPTIONS: " ".join(options),
        "spark.sql.warehouse.dir": f"{warehouse.rstrip('/')}/spark-warehouse",
        "spark.sql.parquet.compression.codec": "zstd",
    }


def session_like(main: SparkSession, changed: Mapping[str, str]) -> SparkSession:
    """A session beside another, with its settings but for these."""
    session = main.newSession()
    for name, value in main.conf.getAll.items():
        if name.startswith("spark.sql.") and not name.startswith("spark.sql.catalog."):
            with suppress(Exception):  # some are fixed when the first session starts
                session.conf.set(name, value)
    for name, value in changed.items():
        session.conf.set(name, value)
    return session
