"""Schedules of the simulation, run one after the other; one alone is told step by step.

python tools/simulate.py SEED [LAST] [--v3 | --moves]

--v3       on tables of format version 3; in half of them nobody records where rewrites put their rows
--moves    the same, with many rewrites beside commands on the rows that they move, none of them recorded
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simulation"))

from schedules import in_version_three, moving, run, scheduled  # noqa: E402

KINDS = {"--v3": lambda seed: in_version_three(scheduled(seed)), "--moves": moving}


def main(arguments: list[str]) -> int:
    """Run the schedules of the seeds; 1 if the judge finds a fault in any."""
    made = next((KINDS[argument] for argument in arguments if argument in KINDS), scheduled)
    seeds = [argument for argument in arguments if argument not in KINDS]
    if not seeds or not all(argument.isdigit() for argument in seeds):
        print(__doc__, file=sys.stderr)
        return 2
    first, last = int(seeds[0]), int(seeds[-1])
    started, failed = time.perf_counter(), 0
    for seed in range(first, last + 1):
        found = run(made(seed))
        failed += bool(found.faults)
        if found.faults or first == last:
            print(found.told())
    print(f"{last - first + 1} schedules, {failed} with faults, {time.perf_counter() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
