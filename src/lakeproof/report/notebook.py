"""Verdicts and traces in a notebook: HTML without scripts, which every front end shows as it is."""

from __future__ import annotations

from html import escape

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.report.moments import Moment
from lakeproof.report.text import change_in_words
from lakeproof.report.view import TraceView, View, trace_view, view_of

COLOURS = {"good": "#178a45", "bad": "#d03a2f", "unknown": "#b57a00", "refused": "#b57a00", "commit": "#3b7de0"}
LANES = ("#3b7de0", "#c0691a", "#158f84", "#8f5bea", "#cf3b86", "#648f1c", "#2b86b5", "#7d7772")
CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0"


def show_in_notebooks() -> None:
    """Let notebooks show verdicts and traces by themselves."""
    Verdict._repr_html_ = verdict_html  # type: ignore[attr-defined]
    Trace._repr_html_ = trace_html  # type: ignore[attr-defined]


def verdict_html(verdict: Verdict) -> str:
    """The verdict, its properties, and the trace of the first violation."""
    view = view_of(verdict)
    head = f'<p style="font-size:1.2em;font-weight:600;margin:0">{_toned(view["title"], view["tone"])}</p>'
    trace = view["traces"][0] if verdict.verdict == "violated" and verdict.trace is not None else None
    about = head + _sentences([*view["summary"], *view["bounds"]]) + _advice(view)
    return _framed(about + _properties(view) + (_steps(trace) if trace else ""))


def trace_html(trace: Trace) -> str:
    """The trace, an actor in each column."""
    view = trace_view(trace, [])
    head = f'<p style="font-size:1.1em;font-weight:600;margin:0">{escape(view["title"])}</p>'
    return _framed(head + _sentences(view["summary"]) + _steps(view))


def _framed(content: str) -> str:
    return f'<div style="font:14px/1.5 system-ui,sans-serif;max-width:1000px">{content}</div>'


def _sentences(summary: list[str]) -> str:
    return f'<p style="opacity:.75;margin:2px 0 8px">{escape(" ".join(summary))}</p>'


def _advice(view: View) -> str:
    """What to change, and whatever else the caller found out."""
    return "".join(
        f'<p style="margin:6px 0 0;font-weight:600">{escape(one["title"])}</p><ul style="margin:0">'
        + "".join(f"<li>{escape(line)}</li>" for line in one["lines"])
        + "</ul>"
        for one in view["advice"]
    )


def _toned(text: str, tone: str) -> str:
    return f'<span style="color:{COLOURS.get(tone, "inherit")}">{escape(text)}</span>'


def _properties(view: View) -> str:
    rows = "".join(
        f"<tr>{_cell(escape(found['name']))}{_cell(escape(found['kind']))}"
        f"{_cell(_toned(found['verdict'], found['tone']))}{_cell(escape(found['says']))}</tr>"
        for found in view["properties"]
    )
    return f'<table style="border-collapse:collapse;margin:0 0 8px"><tbody>{rows}</tbody></table>'


def _cell(content: str, style: str = "") -> str:
    return f'<td style="{CELL}{style}">{content}</td>'


def _steps(trace: TraceView) -> str:
    heads = "".join(
        f'<th style="{CELL};color:{LANES[lane % len(LANES)]}">{escape(actor)}</th>'
        for lane, actor in enumerate(trace["actors"])
    )
    rows = "".join(_row(trace, moment) for moment in trace["moments"][1:])
    table = (
        f'<table style="border-collapse:collapse"><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return f"<details open><summary>{len(trace['moments']) - 1} steps</summary>{table}{_loop(trace)}</details>"


def _loop(trace: TraceView) -> str:
    if trace["loop"] is None:
        return ""
    said = "Steps {} to {} repeat for ever." if trace["loop"] else "After them nobody moves any more."
    return f'<p style="color:{COLOURS["unknown"]};margin:2px 0">{said.format(*trace["loop"])}</p>'


def _row(trace: TraceView, moment: Moment) -> str:
    number = _cell(str(moment["number"]), ";opacity:.6")
    cells = "".join(
        _cell(
            _what(moment) if lane == moment["lane"] else "",
            f";border-left:2px solid {LANES[lane % len(LANES)]}55;padding-left:8px",
        )
        for lane in range(len(trace["actors"]))
    )
    return f"<tr>{number}{cells}</tr>"


def _what(moment: Moment) -> str:
    label = f'<br><code style="font-size:.9em">{escape(moment["label"])}</code>' if moment["label"] else ""
    badges = "".join(f" <small>{_toned(badge['text'], badge['tone'])}</small>" for badge in moment["badges"])
    news = "<br>".join(escape(change_in_words(item)) for item in (*moment["news"], *moment["held"]))
    changes = f'<details><summary style="opacity:.6"><small>changes</small></summary><small>{news}</small></details>'
    return f"<b>{escape(moment['title'])}</b>{badges}{label}{changes if news else ''}"
