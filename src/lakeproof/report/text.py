"""A view as plain lines: the steps with their differences, for the terminal and for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.report.moments import Moment
from lakeproof.report.tree import News
from lakeproof.report.view import TraceView, View


def text_of(view: View) -> str:
    """Every trace as plain text."""
    return "\n\n".join("\n".join(lines_of(trace)) for trace in view["traces"])


def lines_of(trace: TraceView) -> Iterator[str]:
    """A trace, a line for each step and one for each thing it changed."""
    yield f"{trace['title']}. {' '.join(trace['summary'])}"
    for moment in trace["moments"][1:]:
        if trace["loop"] and moment["number"] == trace["loop"][0]:
            yield "     from here on it repeats for ever:"
        yield heading(moment)
        yield from (f"       {change_in_words(item)}" for item in (*moment["news"], *moment["held"]))
    if trace["loop"]:
        yield f"     back to step {trace['loop'][0]}"


def heading(moment: Moment) -> str:
    """Who did what, and what it meant."""
    said = f"{moment['number']:>4} {moment['actor']}  {moment['title']}"
    label = f"  {moment['label']}" if moment["label"] else ""
    badges = ", ".join(badge["text"] for badge in moment["badges"])
    return f"{said}{label}{f'  [{badges}]' if badges else ''}"


def change_in_words(news: News) -> str:
    """One change on a line.

    >>> change_in_words({"what": "phase", "before": "idle", "after": "started", "tone": ""})
    'phase: idle → started'
    """
    if news["before"] and news["after"]:
        return f"{news['what']}: {news['before']} → {news['after']}"
    return f"{news['what']}: {news['after']}" if news["after"] else f"{news['what']}: − {news['before']}"
