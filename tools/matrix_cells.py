"""The conflict matrix in the site: marks with colour, and behind each wrong one the run that leads there."""

from __future__ import annotations

import html
import re

from lakeproof.commit import POLICIES
from lakeproof.commit.change import Isolation, Mode
from lakeproof.models.questions.matrix import KINDS, LAYOUTS, run_of

TABLE = re.compile(r"<h3[^>]*>(?P<policy>[\w-]+): (?P<mode>[\w-]+), (?P<isolation>\w+)</h3>\n<table>.*?</table>", re.S)
ROW = re.compile(r"<tr>\s*<td><strong>(?P<first>[A-Z a-z]+)</strong></td>(?P<cells>.*?)</tr>", re.S)
SORTS = {"✓": "both commit", "↻": "runs again", "✗": "aborts", "‼": "wrong rows", "·": "no meaning"}
NAMES = dict(zip(SORTS, ("ok", "again", "aborts", "wrong", "none"), strict=True))
ROWS = ("the same row", "another row of the same file", "another file of the same partition", "another partition")


def with_cells(body: str) -> str:
    """The page with its tables of marks coloured; a wrong mark is a link to its run."""
    return TABLE.sub(_table, body)


def _table(found: re.Match[str]) -> str:
    runs: list[str] = []

    def row(line: re.Match[str]) -> str:
        cells = re.findall(r"<td>(.*?)</td>", line["cells"])
        made = "".join(
            f'<td class="cell" data-second="{second}">{_marks(found, line["first"], second, cell.split(), runs)}</td>'
            for second, cell in zip(KINDS, cells, strict=True)
        )
        return f"<tr><td><strong>{line['first']}</strong></td>{made}</tr>"

    return ROW.sub(row, found[0]).replace("<table>", '<table class="matrix">') + "".join(runs)


def _marks(found: re.Match[str], first: str, second: str, marks: list[str], runs: list[str]) -> str:
    made = []
    for layout, rows, mark in zip(LAYOUTS, ROWS, marks, strict=True):
        said = f'class="{NAMES[mark]}" title="{rows}: {SORTS[mark]}"'
        if mark != "‼":
            made.append(f"<span {said}>{mark}</span>")
            continue
        place = "-".join((*found.group("policy", "mode", "isolation"), first, second, layout)).replace(" ", "-").lower()
        made.append(f'<a href="#{place}" {said}>{mark}</a>')
        runs.append(_run(found, first, second, layout, place))
    return " ".join(made)


def _run(found: re.Match[str], first: str, second: str, layout: str, place: str) -> str:
    run = run_of(POLICIES[found["policy"]], first, second, Mode(found["mode"]), Isolation(found["isolation"]), layout)
    assert run.cell.outcome == "anomaly", place
    steps = "".join(f"<li>{html.escape(step)}</li>" for step in run.steps)
    title = f"{first}, then {second}: {run.cell.anomaly} is violated"
    return f'<section class="run" id="{place}"><h4>{html.escape(title)}</h4><ol>{steps}</ol></section>'
