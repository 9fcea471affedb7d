"""One search in a process of its own: `python -m benchmarks.one_search MODEL ENGINE [NAME=VALUE…]` prints its figures.

Alone, so that its memory is its own. The environment may set a limit: LAKEPROOF_BENCH_MEMORY_MB, at which the search
is stopped the way Ctrl-C stops it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from lakeproof.checker.limits import Progress, memory_mb
from lakeproof.checker.model import Model, Outcome, Process, Step, always_of_each
from lakeproof.checker.search import Engine, check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy_text import named_policy
from lakeproof.models import iceberg, paimon

# Under value symmetry the engines may keep different twins and so count differently: it is left out.
REDUCTIONS = ("processes", "private")


def model_of(name: str, parameters: dict[str, str]) -> Model:
    """The Iceberg model under `lakeproof`, the Paimon model, or counters."""
    if name == "paimon":
        return paimon.build(parameters)
    if name == "counters":
        return counters(int(parameters["processes"]), int(parameters["to"]))
    return iceberg.model_of(iceberg.configured(parameters, named_policy("lakeproof")))


def counters(processes: int, to: int) -> Model:
    """Processes that count on their own: hardly any Python to run, so the search itself is what is measured."""

    def count(shared: None, own: int) -> Iterator[Outcome]:
        if own < to:
            yield Outcome(shared, own + 1)

    each = tuple(Process(f"p{number}", 0, f"kind {number}") for number in range(processes))
    return Model("counters", None, each, (Step("count", count),), (always_of_each("small", lambda _, own: own <= to),))


def searched(model: Model, engine: Engine, most_memory_mb: float | None) -> dict[str, Any]:
    """The figures of one search."""

    def watch(progress: Progress) -> None:
        if most_memory_mb is not None and progress.memory_mb > most_memory_mb:
            os.kill(os.getpid(), signal.SIGINT)

    began = time.perf_counter()
    if engine == "fast":  # the compiler's memory is not the search's
        from lakeproof.checker.fast.explore import compile_kernels

        compile_kernels()
    compile_seconds = time.perf_counter() - began
    before, cpu = memory_mb(), time.process_time()
    verdict = check(model, engine=engine, progress=watch, reductions=REDUCTIONS)
    figures = figures_of(verdict, time.process_time() - cpu)
    added = (verdict.peak_memory_mb - before) * 1e6
    return {**figures, "compile_seconds": compile_seconds, "bytes_per_state": added / verdict.states}


def searched_on_spark(name: str, parameters: dict[str, str]) -> dict[str, Any]:
    """The figures of one search by two workers of a local Spark."""
    from lakeproof.search_on_spark.jobs import cluster_of
    from lakeproof.search_on_spark.search import check_on_spark
    from lakeproof.spark.jvm.session import build_session

    with tempfile.TemporaryDirectory(prefix="lakeproof-bench-") as folder:
        session = build_session(folder, master="local[2]")
        try:
            cpu = cpu_seconds_of_all()
            source = partial(model_of, name, parameters)
            verdict = check_on_spark(lambda: cluster_of(lambda: session), source, reductions=REDUCTIONS)
            return {**figures_of(verdict, cpu_seconds_of_all() - cpu), "bytes_per_state": None}
        finally:
            session.stop()


def cpu_seconds_of_all() -> float:
    """Processor time of this process and of everything that it started."""
    fields = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields[int(stat.parent.name)] = stat.read_text().rsplit(")", 1)[1].split()
    mine = {os.getpid()}
    for pid in sorted(fields):  # parents come before their children
        if int(fields[pid][1]) in mine:
            mine.add(pid)
    ticks = sum(int(each) for pid in mine & fields.keys() for each in fields[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def figures_of(verdict: Verdict, cpu_seconds: float) -> dict[str, Any]:
    """What every engine tells."""
    return {
        "states": verdict.states,
        "transitions": verdict.transitions,
        "depth": verdict.depth,
        "seconds": verdict.seconds,
        "cpu_seconds": cpu_seconds,
        "memory_mb": verdict.peak_memory_mb,
        "verdict": verdict.verdict,
        "cut_by": verdict.cut_by,
        "reasons": sorted({claim.reason for claim in verdict.properties if claim.reason}),
        "engine": verdict.engine,
    }


def main(arguments: list[str]) -> None:
    """Search and print."""
    name, engine, *words = arguments
    most = os.environ.get("LAKEPROOF_BENCH_MEMORY_MB")
    parameters = dict(word.split("=", 1) for word in words)
    if engine == "spark":
        found = searched_on_spark(name, parameters)
    else:
        found = searched(model_of(name, parameters), cast(Engine, engine), float(most) if most else None)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
