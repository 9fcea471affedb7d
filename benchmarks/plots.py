"""A plot per area: bars that grow to the right, one colour per side, the measure of each case at the end of its bar."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import ratios
from benchmarks.results import Result, number

COLOURS = {"Lakeproof": "#2f7ed8", "Apache Iceberg": "#e07b39", "plain Parquet": "#8c8c8c", "PyIceberg": "#5aa469"}
OTHER = ("#2f7ed8", "#e07b39", "#5aa469", "#9467bd", "#8c8c8c")  # of sides that are not engines
GREY = "#808a97"  # readable on a light page and on a dark one


def plot(result: Result, path: Path) -> None:
    """Write the plot of a result as SVG, the same bytes for the same figures."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    values = measured(result)
    cases = list(dict.fromkeys(case for case, _ in values))
    sides = list(dict.fromkeys(side for _, side in values))
    with pyplot.rc_context({"svg.hashsalt": result.name, "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(figsize=(8, 0.7 + 0.26 * len(values) + 0.2 * len(cases)))
        _bars(axes, values, cases, sides)
        _dress(axes, result, cases)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)


def measured(result: Result) -> dict[tuple[str, str], float]:
    """What is drawn of each line: its ratio (1 for the side that it is to), or a count."""
    if result.plotted != "ratio":
        known = {(line.case, line.side): line.more.get(result.plotted) for line in result.lines}
        return {key: float(value) for key, value in known.items() if isinstance(value, int | float)}
    found = ratios(result.lines)
    compared = {case for case, _ in found}
    lines = [line for line in result.lines if line.case in compared]
    return {(line.case, line.side): found.get((line.case, line.side), 1.0) for line in lines}


def _bars(axes: Any, values: Mapping[tuple[str, str], float], cases: list[str], sides: list[str]) -> None:
    at = 0.0
    ticks, named = [], set()
    for case in cases:
        began = at
        for side in sides:
            if (case, side) not in values:
                continue
            label = side if side not in named else None
            named.add(side)
            value = values[case, side]
            axes.barh(at, value, height=0.8, color=colour(side, sides), label=label)
            axes.text(value, at, f" {number(value)}", va="center", color=GREY, fontsize=8)
            at += 1
        ticks.append((began + at - 1) / 2)
        at += 0.6
    axes.set_yticks(ticks, cases)
    axes.invert_yaxis()


def colour(side: str, sides: list[str]) -> str:
    """An engine has one colour on every plot; what is another way of it ("Lakeproof, fresh process") is paler."""
    engine, _, way = side.partition(", ")
    if engine not in COLOURS:
        return OTHER[sides.index(side) % len(OTHER)]
    return COLOURS[engine] + ("99" if way else "")


def _dress(axes: Any, result: Result, cases: list[str]) -> None:
    """Axes, words and the line at 1, in a grey that both pages bear."""
    if result.plotted == "ratio":
        axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xlabel("time as a ratio; shorter is faster", color=GREY)
    else:
        axes.set_xlabel(f"{result.plotted}; longer is better", color=GREY)
    drawn = [value for value in measured(result).values() if value > 0]
    if drawn and max(drawn) > 30 * min(drawn):
        axes.set_xscale("log")
    axes.tick_params(colors=GREY)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(GREY)
    axes.legend(frameon=False, labelcolor=GREY, loc="upper left", bbox_to_anchor=(1.02, 1))
