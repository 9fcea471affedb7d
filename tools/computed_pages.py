"""Blocks that the model computes: `python -m tools.computed_pages PAGE…` writes them again, in minutes.

`<!-- matrix: POLICY -->` is the conflict matrix of a policy, `<!-- necessity: POLICY -->` what goes wrong without each
of its checks, `<!-- proofs: all -->` what is proven without bounds. A block ends with `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

from lakeproof.commit.checks import describe_check
from lakeproof.commit.policy_text import named_policy
from lakeproof.models.questions.matrix import KINDS, LAYOUTS, Cell, cells
from lakeproof.models.questions.necessity import Necessity, necessities
from lakeproof.models.questions.proofs import ALL, Proof, prove, said_of

BLOCK = re.compile(r"(<!-- (?P<what>matrix|necessity|proofs): (?P<policy>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MARKS = {"both_commit": "✓", "rerun": "↻", "conflict": "✗", "anomaly": "‼"}
TOLD = ("start", "start compaction", "start delete rewrite", "swap", "finish")


def main(paths: list[str]) -> None:
    """Renew the pages."""
    for path in map(Path, paths):
        path.write_text(BLOCK.sub(_block, path.read_text(encoding="utf-8")), encoding="utf-8")


def _block(found: re.Match[str]) -> str:
    content = {"matrix": matrix, "necessity": necessity, "proofs": proofs}[found["what"]](found["policy"])
    return f"{found[1]}\n{content}\n{found[4]}"


def matrix(policy: str) -> str:
    """A table per mode and isolation, the anomalies one by one, and which checks refuse."""
    found = list(cells(named_policy(policy)))
    parts = []
    for mode, isolation in dict.fromkeys((cell.mode, cell.isolation) for cell in found):
        parts += [f"### {policy}: {mode}, {isolation}", "", *_table(mode, isolation, found), ""]
    counted = Counter(cell.outcome.replace("_", " ") for cell in found)
    parts += [f"Cells: {', '.join(f'{count} {outcome}' for outcome, count in counted.most_common())}.", ""]
    checks = Counter(cell.check for cell in found if cell.check)
    if checks:
        parts += [f"By which check: {', '.join(f'`{name}` {count}' for name, count in checks.most_common())}.", ""]
    wrong = [cell for cell in found if cell.outcome == "anomaly"]
    if wrong:
        parts += ["| first | second | mode | isolation | rows | violates |", "|---|---|---|---|---|---|"]
        parts += [
            f"| {c.first} | {c.second} | {c.mode} | {c.isolation} | {_layout(c.rows)} | `{c.anomaly}` |" for c in wrong
        ]
        parts.append("")
    return "\n".join(parts)


def _table(mode: str, isolation: str, found: list[Cell]) -> list[str]:
    by_key = {(c.first, c.second, c.rows): c for c in found if (c.mode, c.isolation) == (mode, isolation)}
    lines = [f"| first ↓ second → | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]
    for first in KINDS:
        marks = []
        for second in KINDS:
            four = [by_key.get((first, second, rows)) for rows in LAYOUTS]
            marks.append(" ".join("·" if cell is None else MARKS[cell.outcome] for cell in four))
        lines.append(f"| **{first}** | {' | '.join(marks)} |")
    return lines


def _layout(rows: str) -> str:
    return {"same": "the same row"}.get(rows, rows.replace("_", " "))


@cache
def _all_necessities() -> tuple[Necessity, ...]:
    return tuple(necessities())


def necessity(policy: str) -> str:
    """Each check of the policy: its question, and the shortest run that goes wrong without it."""
    parts: list[str] = []
    for one in _all_necessities():
        if one.policy == policy:
            parts += [
                f"### {one.check}, of {policy}",
                "",
                f"{describe_check(one.check)[0].upper()}{describe_check(one.check)[1:]}",
                "",
            ]
            parts += _story(one)
    return "\n".join(parts)


def _story(one: Necessity) -> list[str]:
    if one.violated is None:
        return [f"No counterexample in the {one.states:,} states that were tried: other checks cover it there.", ""]
    shown = " ".join(f"--set {name}={value}" for name, value in one.parameters.items() if name != "measure-aborts")
    lines = [f"Without it `{one.violated}` is violated after {one.depth} steps (`{shown}`):", ""]
    steps = one.trace.steps if one.trace else ()
    told = [(number, step.caption) for number, step in enumerate(steps, 1) if step.step in TOLD]
    return [*lines, *(f"- step {number}: {_shortened(text)}" for number, text in told), ""]


def proofs(which: str) -> str:
    """A table per group of proofs, each line computed."""
    parts = []
    for title, group in ALL.items():
        parts += [f"### {title}", "", "| | states | depth | CPU | verdict | command |", "|---|---|---|---|---|---|"]
        parts += [*(proof_line(proof) for proof in group), ""]
    return "\n".join(parts)


def proof_line(proof: Proof) -> str:
    """One line: what it is about, how large the space is, what was found, and what prints it."""
    before = time.process_time()
    found = prove(proof)
    spent = f"{time.process_time() - before:.0f} s"
    return f"| {proof.about} | {found.states:,} | {found.depth} | {spent} | {said_of(found)} | `{proof.command}` |"


def _shortened(caption: str) -> str:
    """What happened; what should have been seen instead is in the whole trace."""
    return re.sub(r"; it should see .*\.$", ".", caption)


if __name__ == "__main__":
    main(sys.argv[1:])
