"""The page of pairs of engines: each policy of `examples/engines/` beside each other one, every cell a run.

`tools/docs.py` writes what `page` returns; it takes minutes, and a test holds a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lakeproof.commit.policy import ICEBERG_SPARK, Policy
from lakeproof.commit.policy_text import policy_from_text
from lakeproof.models.questions.matrix import PairCell, pair_cells, shortest_anomaly

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ROOT / "examples" / "engines"
PAGE = "docs/reference/engine-pairs.md"

HEAD = """# Pairs of engines on one table

Made by `make docs`. Each engine is a policy in `examples/engines/`, as far as its sources and threads say what it
validates, and each line of a policy names its source; what no source says is taken from Apache Iceberg on Spark with
its fix. So a pair is a statement about these rules, not about a release. `lakeproof matrix --policy A
--policy-of-second B` prints the pairs of commands that go wrong, in either order, with a shortest run; `--json` has the
run of each cell.

Two commands read the same snapshot; the row's engine commits, the column's validates. **safe**: both commit, or the
second runs again, and the rows are right. **aborts**: the second is refused. **anomaly**: both commit, and no order of
the two leaves these rows (`consistent_read`), or none that the isolation level allows (`isolation_kept`).

## Safe, aborts, anomaly

"""
MIDDLE = """
Many anomalies at serializable are an INSERT … SELECT or a DELETE with a subquery: their engines ask nothing of the rows
that such a query only reads. Below are the pairs whose *rows* are wrong.

## Wrong rows
"""


def engines() -> dict[str, Policy]:
    """Every engine by its name."""
    found = {path.stem: policy_from_text(path.read_text(encoding="utf-8"), place=path.name) for path in paths()}
    return {ICEBERG_SPARK.name: ICEBERG_SPARK, **found}


def paths() -> list[Path]:
    """The policies of other engines."""
    return sorted(ENGINES.glob("*.toml"))


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    known = engines()
    found = {(one, other): list(pair_cells(known[one], known[other])) for one in known for other in known}
    table = [f"| commits ↓ validates → | {' | '.join(known)} |", "|---" * (len(known) + 1) + "|"]
    for one in known:
        table.append(f"| **{one}** | {' | '.join(_counts(found[one, other]) for other in known)} |")
    return PAGE, "\n".join([HEAD + "\n".join(table), MIDDLE, *_wrong(found)])


def _counts(cells: list[PairCell]) -> str:
    counted = Counter(cell.word for cell in cells)
    return " / ".join(str(counted[word]) for word in ("safe", "aborts", "anomaly"))


def _wrong(found: Mapping[tuple[str, str], list[PairCell]]) -> list[str]:
    lines = []
    for (one, other), cells in found.items():
        wrong = [pair for pair in cells if pair.cell.anomaly == "consistent_read"]
        shortest = shortest_anomaly(wrong)
        if shortest is not None:
            pairs = ", ".join(dict.fromkeys(f"{p.cell.first} then {p.cell.second}" for p in wrong))
            lines += [f"### {one}, then {other}", "", f"{pairs}. Shortest, {len(shortest.steps)} steps:", ""]
            lines += [f"{number}. {step}" for number, step in enumerate(shortest.steps, 1)] + [""]
    return lines
