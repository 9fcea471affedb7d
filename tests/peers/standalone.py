"""A standalone cluster of Spark's own classes: a master, workers, and jobs that are handed to it by spark-submit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from lakeproof.spark.jvm.java import use_java

SPARK = Path(pyspark.__file__).parent / "bin"
HOST = "127.0.0.1"


class Cluster(NamedTuple):
    """A running cluster; each worker is a process group of its own, its executors included."""

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def submitted(
        self, job: Path, *arguments: str, conf: Mapping[str, str] | None = None, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """What a job ended with."""
        settings = {
            "spark.driver.host": HOST,
            "spark.ui.enabled": "false",
            "spark.executor.memory": "700m",
            "spark.pyspark.python": sys.executable,
            "spark.pyspark.driver.python": sys.executable,
            **(conf or {}),
        }
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [str(SPARK / "spark-submit"), "--master", self.master, *words, *options, str(job), *arguments]
        environment = {**os.environ, "SPARK_LOCAL_IP": HOST}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)


@contextmanager
def cluster_of(folder: Path, *, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """A master and workers with a core each; all of them are gone at the end."""
    use_java()
    port, deploy = free_port(), "org.apache.spark.deploy"
    where = ["--host", HOST, "--webui-port", "0"]
    running = [started(str(SPARK / "spark-class"), f"{deploy}.master.Master", *where, "--port", str(port))]
    try:
        wait_for(lambda: answers(port), running[0])
        for number in range(workers):
            room = ["--work-dir", str(folder / f"worker-{number}"), "--cores", "1", "--memory", memory]
            running.append(
                started(str(SPARK / "spark-class"), f"{deploy}.worker.Worker", *where, *room, f"spark://{HOST}:{port}")
            )
        yield Cluster(f"spark://{HOST}:{port}", tuple(running[1:]))
    finally:
        for process in running:
            end(process)


def started(*command: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A process in a group of its own, so that all of it can be ended."""
    return subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with everything that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Wait until it is so; the process must live until then."""
    until = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Does somebody listen there?"""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
