"""The search on real Spark: in workers of its own, killed in the middle, on a cluster that loses a worker."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyspark
import pytest
from checker_runs import assert_all_shown
from pyspark.sql import SparkSession
from workers_here import facts, locally

from lakeproof.checker import check, load_model
from lakeproof.cli.commands.check import subject_of
from lakeproof.search_on_spark.jobs import cluster_of
from lakeproof.search_on_spark.search import check_on_spark
from lakeproof.spark.jvm.java import use_java
from lakeproof.spark.jvm.session import build_session

SMALL = {"num-writers": "3", "max-write-ops": "2", "max-compactions": "1", "num-keys": "2"}
LAKEPROOF = (sys.executable, "-m", "lakeproof.cli.main")

BELLS = '''
"""Towers ring their bells in turn; a bell that is rung three times cracks."""
import time
from typing import NamedTuple
from lakeproof.checker import Model, Outcome, Process, Step, always, eventually

class Tower(NamedTuple):
    rung: int = 0

class Town(NamedTuple):
    strokes: tuple[int, ...] = ()

def model(towers: int = 3, nap: float = 0.0) -> Model:
    def ring(town: Town, tower: Tower):
        """A tower rings its bell."""
        time.sleep(nap)
        if len(town.strokes) < 5:
            yield Outcome(Town((*town.strokes, tower.rung)), Tower(tower.rung + 1), event="heard")

    def listen(tower: Tower, event: str) -> Tower:
        return tower._replace(rung=max(tower.rung, 1))

    properties = (
        always("no_bell_cracks", lambda town: 3 not in town.strokes),
        eventually("silence", lambda town, towers: len(town.strokes) == 5, symmetric=True),
    )
    processes = tuple(Process(f"tower-{n}", Tower()) for n in range(towers))
    return Model("bells", Town(), processes, (Step("ring", ring),), properties, listen)
'''


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two workers; one that other tests have started is used and left as it is."""
    before = SparkSession.getActiveSession()
    session = before or build_session(str(tmp_path_factory.mktemp("lake")), master="local[2]", quick=True)
    yield session
    if before is None:
        session.stop()


@pytest.fixture
def bells(tmp_path: Path) -> str:
    """A user's own model."""
    path = tmp_path / "bells.py"
    path.write_text(BELLS)
    return str(path)


@pytest.mark.spark
@pytest.mark.slow
def test_a_users_own_model_is_made_again_in_every_worker(spark: SparkSession, bells: str) -> None:
    source = partial(load_model, bells, {})
    verdict = check_on_spark(lambda: cluster_of(lambda: spark), source)
    assert facts(verdict) == locally(source())
    assert verdict.property("no_bell_cracks").verdict == "violated"
    assert_all_shown(source(), verdict)


@pytest.mark.spark
@pytest.mark.slow
def test_a_limit_stops_tasks_in_the_middle(spark: SparkSession, bells: str) -> None:
    began = time.perf_counter()
    source = partial(load_model, bells, {"nap": "60"})
    verdict = check_on_spark(lambda: cluster_of(lambda: spark), source, max_seconds=1)
    assert (verdict.verdict, verdict.cut_by) == ("unknown", "max-seconds")
    assert time.perf_counter() - began < 55


@pytest.mark.spark
@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    settings = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    command = [*LAKEPROOF, "check", "iceberg", *settings, "--engine", "spark"]
    search = started([*command, "--master", "local[2]", "--checkpoint", str(folder)])
    try:
        wait_for(lambda: (folder / "level-00003").exists(), search)
    finally:
        os.killpg(search.pid, signal.SIGKILL)
        search.wait()
    finished = (path for path in folder.rglob("done.packed") if not path.parent.name.startswith("writing-"))
    done = {path: os.stat(path).st_ino for path in finished}
    assert done
    assert not (folder / "level-00009").exists()

    subject = subject_of("iceberg", SMALL, "lakeproof")
    verdict = check_on_spark(lambda: cluster_of(lambda: spark), subject.source, checkpoint=str(folder))
    assert {path: os.stat(path).st_ino for path in done} == done
    assert facts(verdict) == locally(subject.model)
    assert (verdict.states, verdict.verdict) == (56, "holds")


# ---------------------------------------------------------------- in `make check-all` only: minutes, and a cluster


@pytest.mark.peer
@pytest.mark.spark
def test_a_space_of_seventeen_million_states_on_both_engines(spark: SparkSession) -> None:
    parameters = {"num-writers": "4", "max-write-ops": "4", "max-compactions": "2", "num-keys": "2"}
    subject = subject_of("iceberg", parameters, "lakeproof")
    verdict = check_on_spark(lambda: cluster_of(lambda: spark), subject.source, reductions=False)
    assert (verdict.states, verdict.verdict) == (16_997_635, "holds")
    assert facts(verdict) == locally(subject.model, reductions=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A standalone master and two workers with a core each."""
    use_java()
    port = free_port()
    runner = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), "org.apache.spark.deploy"]
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    master = started([runner[0], f"{runner[1]}.master.Master", *where, "--port", str(port)])
    processes = [master]
    try:
        wait_for(lambda: answers(port), master)
        for number in range(2):
            folder = ["--work-dir", str(tmp_path / f"worker-{number}"), "--cores", "1", "--memory", "1g"]
            processes.append(
                started([runner[0], f"{runner[1]}.worker.Worker", *where, *folder, f"spark://127.0.0.1:{port}"])
            )
        yield f"spark://127.0.0.1:{port}", processes[1:]
    finally:
        for process in processes:
            end(process)


@pytest.mark.peer
@pytest.mark.spark
def test_a_cluster_loses_a_worker_and_the_search_ends_all_the_same(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    master, workers = cluster
    folder = tmp_path / "shared"
    parameters = {"num-writers": "4", "max-write-ops": "4", "max-compactions": "1", "num-keys": "2"}
    settings = [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    command = [*LAKEPROOF, "check", "iceberg", *settings, "--reductions", "off", "--json", "--engine", "spark"]
    with open(tmp_path / "told", "wb") as told:
        search = started([*command, "--master", master, "--checkpoint", str(folder)], told)
        try:
            wait_for(lambda: (folder / "level-00012").exists(), search)
            end(workers[0])
            assert search.poll() is None
            wait_for(lambda: search.poll() is not None, None)
        finally:
            end(search)
    verdict = json.loads((tmp_path / "told").read_text())
    assert search.returncode == 0
    local = check(subject_of("iceberg", parameters, "lakeproof").model, reductions=False)
    assert (verdict["states"], verdict["verdict"]) == (local.states, local.verdict) == (2_834_937, "holds")
    assert verdict["transitions"] == local.transitions
    assert json.loads((folder / "search.json").read_text())["parts"] == 2


# ---------------------------------------------------------------- processes


def started(command: list[str], output: object = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A process in a group of its own, so that all of it can be ended."""
    return subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True)  # type: ignore[call-overload,no-any-return]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with everything that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes] | None, seconds: float = 400) -> None:
    """Wait until it is so; the process must live until then."""
    end_at = time.monotonic() + seconds
    while not what():
        assert process is None or process.poll() is None, "it ended too early"
        assert time.monotonic() < end_at, "it took too long"
        time.sleep(0.02)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Does somebody listen there?"""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
