"""What a write leaves behind when it fails: nothing, if its commit certainly did not happen; else everything.

Spark fails a job when one of its tasks does, and tells the others to stop. Until they look they go on, and may make a
file in a folder that is already gone. So the folder of a failed write is removed when none of its tasks runs any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeproof.commit.driver import certainly_failed
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.paths import for_spark

_LONGEST_SECONDS = 30.0
"""For a task that never looks; what it still writes is an orphan file."""
_PAUSE_SECONDS = 0.05


@contextmanager
def removed_if_failed(gateway: Gateway, folder: str) -> Iterator[None]:
    """Remove the folder if the write inside fails, after its last task."""
    tag = f"lakeproof-{folder.rpartition('/')[2]}"
    gateway.context.addJobTag(tag)
    try:
        yield
    except BaseException:
        _wait_for_tasks(gateway, tag)
        remove_folder(gateway, folder)
        raise
    finally:
        gateway.context.removeJobTag(tag)


@contextmanager
def removed_if_refused(remove: Callable[[], None]) -> Iterator[None]:
    """Call `remove` when the commit inside certainly failed.

    Whatever else comes may belong to a commit that did happen: its files stay, and if it did not, `remove_orphan_files`
    finds them.
    """
    try:
        yield
    except BaseException as error:
        if certainly_failed(error):
            remove()
        raise


def remove_folder(gateway: Gateway, folder: str) -> None:
    """The folder and everything in it are gone."""
    path = gateway.jvm.org.apache.hadoop.fs.Path(for_spark(folder))
    path.getFileSystem(gateway.session.sessionState().newHadoopConf()).delete(path, True)


def _wait_for_tasks(gateway: Gateway, tag: str) -> None:
    """Wait until no task of the tagged jobs runs, but not for ever."""
    until = time.monotonic() + _LONGEST_SECONDS
    while _running_tasks(gateway, tag) and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)


def _running_tasks(gateway: Gateway, tag: str) -> int:
    tracker = gateway.session.sparkContext().statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag)]
    stages = {stage for job in jobs if job.isDefined() for stage in job.get().stageIds()}
    found = [tracker.getStageInfo(stage) for stage in stages]
    return sum(stage.get().numActiveTasks() for stage in found if stage.isDefined())
