"""Spark jobs with one task per partition, watched while they run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeproof.errors import InvalidInput, LakeproofError

T = TypeVar("T")

LOOK_EVERY_SECONDS = 0.1
NO_WORKER_SECONDS = 60.0  # a cluster that starts no task for so long has no room for us


class CutShort(LakeproofError):
    """A limit cut the search in the middle of a job."""


class JobFailed(LakeproofError):
    """Spark gave the job up: workers were lost, or something broke again and again. What holds is not known."""

    exit_code = 3


class TaskRunner(Protocol):
    """Something that runs tasks side by side."""

    master: str

    @property
    def slots(self) -> int:
        """How many tasks run at once."""

    def run(self, function: Callable[[int], T], tasks: int, look: Callable[[], str] = ...) -> list[T]:
        """The function of each number below `tasks`; `look` says what cuts it short, if anything does."""


class SparkTasks:
    """Runs functions on the session's cluster."""

    def __init__(self, spark: SparkSession) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise InvalidInput("A Spark Connect session cannot run the search", hint="pass a classic session")
        self.context = spark.sparkContext
        self.master = str(self.context.master)

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return max(1, int(self.context.defaultParallelism))

    def run(self, function: Callable[[int], T], tasks: int, look: Callable[[], str] = lambda: "") -> list[T]:
        """The function of each number below `tasks`, each a task; `look` says what cuts it short, if anything does."""
        group = f"lakeproof-{uuid.uuid4().hex}"

        def collect() -> Any:
            self.context.setJobGroup(group, "search", interruptOnCancel=True)
            return self.context.parallelize(range(tasks), tasks).map(function).collect()

        began, started = time.perf_counter(), self.master.startswith("local")
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(collect)
            try:
                while not wait([job], LOOK_EVERY_SECONDS).done:
                    cut = look()
                    if cut:
                        raise CutShort(cut)
                    started = started or self._has_started(group)
                    if not started and time.perf_counter() - began > NO_WORKER_SECONDS:
                        hint = "see on the master's page whether workers are alive and have cores and memory left"
                        raise InvalidInput("The cluster gives no worker to the search", place=self.master, hint=hint)
            finally:
                if not job.done():
                    self.context.cancelJobGroup(group)
            return self._result(job.exception(), job.result if job.exception() is None else None)

    @staticmethod
    def _result(error: BaseException | None, result: Callable[[], list[T]] | None) -> list[T]:
        if result is None:
            raise JobFailed(f"The Spark job failed: {last_words(str(error))}") from error
        return result()

    def _has_started(self, group: str) -> bool:
        tracker = self.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return any(stage.numActiveTasks or stage.numCompletedTasks for stage in stages if stage)


def cluster_of(session: Callable[[], SparkSession]) -> SparkTasks:
    """The cluster of a session; one that cannot be started is bad input."""
    try:
        return SparkTasks(session())
    except (PySparkException, Py4JError) as error:
        hint = "`lakeproof doctor` says what this machine has"
        raise InvalidInput(f"No Spark session can be started: {last_words(str(error))}", hint=hint) from error


def last_words(told: str) -> str:
    """The line of Spark's report that says what was wrong."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("at ", "File ", "...", "Driver stacktrace", "Traceback"))]
    named = [line for line in lines if "Error" in line.split(":")[0] and not line.startswith(("py4j", "org.apache"))]
    reason = [line for line in lines if line.startswith(("org.apache", "java"))] or lines or ["no reason was given"]
    return (named or reason)[-1 if named else 0][:300]
