"""The engines side by side: the readable one is the measure, the fast one takes over where a space grows, Spark where
it outgrows the machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median
from typing import Any, NamedTuple

from benchmarks.harness import Line, Timing, turned
from benchmarks.results import Result, Stopwatch
from lakeproof.errors import LakeproofError

TITLE = (
    "Spaces explored to the end, each in a process of its own. Time is the search alone; 'from the shell' has the "
    "start of Python, of Spark, and the loading of compiled kernels too; bytes are what the search added. 'spark' is "
    "the search on local[2], its processor time that of the JVM and of all Python workers. 'counters' is a toy whose "
    "processes count on their own: the search without a model's Python."
)


class Space(NamedTuple):
    """A model with its parameters, and which engines search it."""

    model: str
    parameters: str
    engines: tuple[str, ...] = ("readable", "fast")


CUT = (
    Space("iceberg", "num-writers=3 max-write-ops=4 max-compactions=2 num-keys=2"),
    Space("iceberg", "num-writers=3 max-write-ops=5 max-compactions=2 num-keys=2", ("readable", "fast", "spark")),
    Space("paimon", "preset=one-writer-per-bucket"),
    Space("counters", "processes=4 to=25"),
)
FULL = (
    *CUT,
    Space("iceberg", "num-writers=4 max-write-ops=6 max-compactions=2 num-keys=2", ("fast", "spark")),
    Space("paimon", "preset=one-writer-per-bucket max-write-ops=4", ("fast",)),
    Space("counters", "processes=4 to=60", ("fast",)),
)
REPETITIONS = {False: 1, True: 3}


def run(*, full: bool) -> Result:
    """Every space by each of its engines, in turn."""
    watch = Stopwatch("search", TITLE, full=full, plotted="states/s")
    lines: list[Line] = []
    notes: list[str] = []
    for space in FULL if full else CUT:
        found, reasons = measured(space, REPETITIONS[full])
        lines += found
        notes += reasons
    return watch.result(lines, notes)


def measured(space: Space, repetitions: int) -> tuple[list[Line], list[str]]:
    """One space: a line per engine with the same count of states (or an error), and why something stayed unknown."""
    runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in space.engines}
    for number in range(repetitions):
        for engine in turned(list(space.engines), number):
            runs[engine].append(one_search(space.model, engine, space.parameters))
    counts = {found["states"] for each in runs.values() for found in each}
    if len(counts) != 1:
        raise LakeproofError(f"the engines do not agree on {space.model} {space.parameters}: {sorted(counts)} states")
    unknown = [f"{engine}, unknown: {why}." for engine, found in runs.items() for why in found[0]["reasons"]]
    return [_line(space, engine, found) for engine, found in runs.items()], unknown


def _line(space: Space, engine: str, runs: list[dict[str, Any]]) -> Line:
    timings = tuple(Timing(found["seconds"], found["cpu_seconds"]) for found in runs)
    more = {
        "states": int(runs[0]["states"]),
        "states/s": int(runs[0]["states"] / median(found["seconds"] for found in runs)),
        **_bytes_per_state(runs),
        "peak MB": int(median(found["memory_mb"] for found in runs)),
        "from the shell, s": round(median(found["shell_seconds"] for found in runs), 2),
        "verdict": str(runs[0]["verdict"]),
    }
    return Line(f"{space.model} {space.parameters}", engine, space.engines[0], timings, more)


def _bytes_per_state(runs: list[dict[str, Any]]) -> dict[str, int]:
    """Of workers on Spark nobody knows what they held before the search."""
    known = [found["bytes_per_state"] for found in runs if found["bytes_per_state"] is not None]
    return {"bytes/state": int(median(known))} if known else {}


def one_search(model: str, engine: str, parameters: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The figures of one search in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.one_search", model, engine, *parameters.split()]
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return {**json.loads(done.stdout), "shell_seconds": time.perf_counter() - began}
