"""One search as large as this machine allows; run by name alone: it takes an hour and most memory."""

from __future__ import annotations

import os

from benchmarks.areas.search import one_search
from benchmarks.harness import Line, Timing
from benchmarks.results import Result, Stopwatch

TITLE = "One search of the fast engine, stopped when it would take more than four fifths of the machine's memory."
PARAMETERS = os.environ.get("LAKEPROOF_BENCH_SPACE", "num-writers=5 max-write-ops=7 max-compactions=3 num-keys=2")


def run(*, full: bool) -> Result:
    """The space, or how far it gets and what stops it."""
    watch = Stopwatch("billion", TITLE, full=full, plotted="states/s")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    most = {"LAKEPROOF_BENCH_MEMORY_MB": str(memory * 0.8)}
    found = one_search("iceberg", "fast", PARAMETERS, {**most, **os.environ})
    more = {
        "states": int(found["states"]),
        "states/s": int(found["states"] / found["seconds"]),
        "bytes/state": round(found["bytes_per_state"], 1),
        "peak MB": int(found["memory_mb"]),
        "depth": int(found["depth"]),
        "verdict": str(found["verdict"]),
    }
    line = Line(f"iceberg {PARAMETERS}", "fast", "fast", (Timing(found["seconds"]),), more)
    return watch.result([line], [f"Cut short by {found['cut_by']}."] if found["cut_by"] else ["Explored to the end."])
