"""Schedules of the simulation, run one after the other; one alone is told step by step.

python tools/simulate.py SEED [LAST]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simulation"))

from schedules import run, scheduled  # noqa: E402


def main(arguments: list[str]) -> int:
    """Run the schedules of the seeds; 1 if the judge finds a fault in any."""
    if not arguments or not all(argument.isdigit() for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    first, last = int(arguments[0]), int(arguments[-1])
    started, failed = time.perf_counter(), 0
    for seed in range(first, last + 1):
        found = run(scheduled(seed))
        failed += bool(found.faults)
        if found.faults or first == last:
            print(found.told())
    print(f"{last - first + 1} schedules, {failed} with faults, {time.perf_counter() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
