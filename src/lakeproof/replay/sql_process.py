"""A Spark session in a process of its own that runs the SQL it is told, several statements at once.

A Python process has one JVM, and two engines in it would share its classes: another engine runs beside ours, not in it.
The process reads requests and writes answers, one JSON document a line. Both know a function `gate(column, file)`: true
for every row, once the file is there; a statement with it in its WHERE stands still in its scan until then.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput, LakeproofError
from lakeproof.replay.apache_iceberg import open_session
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import connect
from lakeproof.spark.statements.results import json_value

ENGINES = ("lakeproof", "apache-iceberg")
FAMILIES: dict[str, type[LakeproofError]] = {
    "CommitConflict": CommitConflict,
    "ValidationException": CommitConflict,
    "CommitRejected": CommitRejected,
    "CommitFailedException": CommitRejected,
    "CommitUnknown": CommitUnknown,
    "CommitStateUnknownException": CommitUnknown,
}
"""What the caller does next, by the class of what an engine raised."""
AT_ONCE = 8
GATE_SECONDS = 120
Rows = list[list[Any]]


class EngineMissing(InvalidInput):
    """The engine's library is not on this machine and cannot be fetched."""


class SqlProcess:
    """An engine that runs statements on the tables of a SQLite catalog."""

    def __init__(self, engine: str, catalog: Path, warehouse: str) -> None:
        self.engine = engine
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        command = [sys.executable, "-m", __name__, engine, str(catalog), warehouse]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, "TZ": "UTC", "LAKEPROOF_DRIVER_MEMORY": "1g"},
        )
        self._waiting: dict[int, Future[Rows]] = {}
        self._number, self._lock = 0, threading.Lock()
        if not self._line():
            error = self._why_not_started()
            self.close()
            raise error
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> SqlProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, text: str) -> Future[Rows]:
        """The statement begins to run; its rows come as JSON values."""
        answer: Future[Rows] = Future()
        with self._lock:
            self._number += 1
            self._waiting[self._number] = answer
            assert self._process.stdin is not None
            print(json.dumps({"number": self._number, "sql": text}), file=self._process.stdin, flush=True)
        return answer

    def sql(self, text: str, *, seconds: float = 180) -> list[tuple[Any, ...]]:
        """The rows of the statement; what the engine refuses is raised in our families of errors."""
        return [tuple(row) for row in self.start(text).result(seconds)]

    def close(self) -> None:
        """The process ends, and its JVM with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _listen(self) -> None:
        while line := self._line():
            told = json.loads(line)
            answer = self._waiting.pop(told["number"])
            if "error" in told:
                family = FAMILIES.get(told["error"], InvalidInput)
                answer.set_exception(family(f"{told['error']}: {told['message']}"))
            else:
                answer.set_result(told["rows"])
        for answer in self._waiting.values():
            answer.set_exception(InvalidInput(f"the process of {self.engine} ended"))

    def _why_not_started(self) -> InvalidInput:
        self._process.wait()
        self._said.seek(0)
        lines = [line.strip() for line in self._said if line.strip()]
        missing = dict.fromkeys(
            name for line in lines for name in re.findall(r"unresolved dependency: ([^:\]]+)", line)
        )
        if missing:
            hint = "connect to the network once: Spark keeps what it has fetched"
            return EngineMissing(f"{self.engine} cannot be fetched: {', '.join(missing)}", hint=hint)
        reason = [line for line in lines if "Error:" in line or "Exception:" in line] or lines or ["it said nothing"]
        return InvalidInput(f"{self.engine} could not be started: {reason[-1]}", hint="look at `lakeproof doctor`")


def gate(_: object, file: str) -> bool:
    """Says that it was reached, and waits for the file."""
    Path(f"{file}.reached").touch()
    until = time.monotonic() + GATE_SECONDS
    while not Path(file).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"nobody opened {file}")
        time.sleep(0.02)
    return True


def open_engine(engine: str, catalog: Path, warehouse: str) -> tuple[SparkSession, Callable[[str], DataFrame]]:
    """The session of an engine, and what runs a statement on it."""
    if engine == "apache-iceberg":
        theirs = open_session(catalog, warehouse)
        return theirs, theirs.sql
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    ours = build_session(warehouse, master="local[2]", quick=True, conf=conf)
    return ours, connect(ours, catalog=f"sqlite:///{catalog.absolute()}", warehouse=warehouse).sql


def answer_request(sql: Callable[[str], DataFrame], request: dict[str, Any]) -> dict[str, Any]:
    """The rows of a statement, or the class and the words of what went wrong."""
    try:
        rows = sql(request["sql"])
        found = [[json_value(value) for value in row] for row in rows.collect()] if rows.columns else []
        return {"number": request["number"], "rows": found}
    except Exception as error:
        kind, message = cause_of(error)
        return {"number": request["number"], "error": kind, "message": message}


def cause_of(error: Exception) -> tuple[str, str]:
    """What an engine raised, beneath what Spark wrapped around it."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while thrown is not None:
        kind = thrown.getClass().getSimpleName()
        if kind in FAMILIES:
            return kind, str(thrown.getMessage())
        thrown = thrown.getCause()
    return type(error).__name__, str(error)


def main() -> None:
    """Obey the requests of stdin until it ends."""
    engine, catalog, warehouse = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the JVM prints is not an answer
    spark, sql = open_engine(engine, Path(catalog), warehouse)
    spark.udf.register("gate", gate, "boolean")
    lock = threading.Lock()

    def say(told: dict[str, Any]) -> None:
        with lock:
            print(json.dumps(told), file=answers, flush=True)

    say({"ready": engine})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in sys.stdin:
            pool.submit(lambda request: say(answer_request(sql, request)), json.loads(line))
    spark.stop()


if __name__ == "__main__":
    main()
