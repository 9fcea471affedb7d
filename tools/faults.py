"""Real writers on a real catalog, disturbed and killed for minutes; an independent judge reads what is left.

python tools/faults.py [--minutes M] [--seed S] [--catalog sqlite|postgres|rest] [--writers N] [--no-spark]
                       [--planted NAME] [--log FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("simulation", "faults"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

import fault_runs  # noqa: E402
from planted_faults import PLANTED  # noqa: E402

FEW = 20


def main(arguments: list[str]) -> int:
    """One run; 1 if the judge finds a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000 % 1_000_000)
    parser.add_argument("--catalog", choices=("sqlite", "postgres", "rest"), default="sqlite")
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--planted", choices=tuple(PLANTED), default="", metavar="NAME")
    parser.add_argument("--log", type=Path, help="where the log of all commands is kept, a line of JSON each")
    told = parser.parse_args(arguments)
    plan = fault_runs.Plan(told.catalog, told.minutes * 60, told.seed, told.writers, spark=not told.no_spark)
    if told.planted:
        plan = fault_runs.planted_plan(told.planted, told.seed, told.minutes * 60)
    figures = fault_runs.run(plan)
    if told.log:
        told.log.write_text("".join(json.dumps(record._asdict()) + "\n" for record in figures.told.records))
    print(figures.line())
    print(f"  {figures.weather()}")
    print(f"  the last table: {figures.rows} rows, {figures.snapshots} snapshots")
    for fault in figures.faults[:FEW]:
        print(f"  {fault.kind}: {fault.told}")
    if len(figures.faults) > FEW:
        print(f"  … and {len(figures.faults) - FEW} more")
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
