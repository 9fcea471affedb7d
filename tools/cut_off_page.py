"""The table of the cut-off: what each rule built slightly wrong gets against anybody, with more and more ids.

`python -m tools.cut_off_page PAGE…` writes the blocks between `<!-- cut-off -->` and `<!-- end -->` again, in minutes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "models" / "iceberg")]

from iceberg_runs import LAKEPROOF, READS, forget_everything, words  # noqa: E402
from test_against_anybody import CASES, NOT_THERE, TELLS_IDS_APART, against_anybody, title_of  # noqa: E402
from test_wrong_variants import Case  # noqa: E402

from lakeproof.checker.search import check  # noqa: E402
from lakeproof.models.iceberg import build  # noqa: E402

BLOCK = re.compile(r"(<!-- cut-off -->\n).*?(<!-- end -->)", re.DOTALL)
IDS = (2, 3, 4)
SECONDS = 60
"""What a search for one violation may take; a table of four ids does not always fit."""


def main(paths: list[str]) -> None:
    """Renew the pages."""
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        path.write_text(BLOCK.sub(lambda found: f"{found[1]}\n{table()}\n{found[2]}", text), encoding="utf-8")


def table() -> str:
    """A line for every variant that a canonical table can show, and the reason for each of the others."""
    lines = [f"| variant | {' | '.join(f'ids: {ids}' for ids in IDS)} |", "|---" * (len(IDS) + 1) + "|"]
    lines += [f"| {' | '.join(cells)} |" for cells in _lines()]
    lines += ["", "Not shown by a canonical table, and found by the bounded search:", ""]
    lines += [f"- `{name}`: {why}" for name, why in _reasons().items()]
    return "\n".join(lines) + "\n"


def _lines() -> Iterator[list[str]]:
    for case in CASES:
        yield [title_of(case), *(verdict(case, ids) for ids in IDS)]


def verdict(case: Case, ids: int) -> str:
    """After how many steps it is caught with so many ids, one less where a row has more values."""
    ids -= "col3_values" in case.more
    with pytest.MonkeyPatch.context() as patch:
        forget_everything()
        policy = case.wrong(patch) or LAKEPROOF
        reductions: Any = ("private",) if case.wrong.__name__ in TELLS_IDS_APART else True
        model = build(words(against_anybody(case, ids)), policy)
        found = check(model, first=True, reductions=reductions, max_seconds=SECONDS)
    forget_everything()
    wrong = [p.depth for p in found.properties if p.name in READS and p.verdict == "violated"]
    if wrong:
        return f"{min(wrong)} steps"
    return "holds" if found.exhausted else "does not fit"


def _reasons() -> dict[str, str]:
    found, last = {}, ""
    for name, why in NOT_THERE.items():
        last = last if why == "the same" else why
        found[name] = last
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
