"""One self-contained page of a view: opens from a file, offline, and asks the network for nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.report.text import text_of
from lakeproof.report.view import View, view_of


def write_page(path: str | Path, what: Verdict | Trace | View) -> Path:
    """Write the page and give its path."""
    path = Path(path)
    path.write_text(html(what if isinstance(what, dict) else view_of(what)), encoding="utf-8")
    return path


def html(view: View, *, walk: list[int] | None = None) -> str:
    """The page of a view; with `walk`, the explorer's page, which asks its own server for each walk."""
    data: dict[str, Any] = {"view": view} if walk is None else {"view": view, "walk": walk}
    return filled(
        asset("page.html"),
        {
            "connect": "'none'" if walk is None else "'self'",
            "title": escape(view["title"]),
            "model": escape(view["model"]),
            "tone": escape(view["tone"]),
            "summary": _unbroken(escape(" ".join(view["summary"]))),
            "facts": "".join(_fact(fact["text"], fact["tone"]) for fact in view["facts"]),
            "advice": _advice(view),
            "about": _about(view),
            "version": escape(metadata.version("lakeproof")),
            "text": escape(text_of(view)),
            "view": script_safe(data),
            "style": asset("page.css"),
            "script": asset("page.js"),
        },
    )


def asset(name: str) -> str:
    """A file of the page as text."""
    return (files("lakeproof.report") / "assets" / name).read_text(encoding="utf-8")


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its `{{names}}` replaced, each once and never inside a value."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def script_safe(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _unbroken(text: str) -> str:
    """Names like writer-1 stay on one line."""
    return re.sub(r"\b[a-z]+-\d+\b", r'<span class="name">\g<0></span>', text)


def _fact(text: str, tone: str) -> str:
    return f'<li class="{escape(tone)}">{escape(text)}</li>'


def _advice(view: View) -> str:
    """Above the walk: what to change comes second, right after what is wrong."""
    parts = [
        f'<section aria-label="{escape(one["title"])}"><h2>{escape(one["title"])}</h2>'
        + (f"<p>{escape(one['lead'])}</p>" if one["lead"] else "")
        + "<ul>"
        + "".join(f"<li>{escape(line)}</li>" for line in one["lines"])
        + "</ul></section>"
        for one in view["advice"]
    ]
    return f'<div class="advice">{"".join(parts)}</div>\n' if parts else ""


def _about(view: View) -> str:
    """Below the walk: every property, the parameters, how often what happened."""
    properties = [
        (_linked(p["name"], p["trace"]), p["kind"], _toned(p["verdict"], p["tone"]), escape(p["says"]))
        for p in view["properties"]
    ]
    parameters = [(escape(p["name"]), escape(p["value"])) for p in view["parameters"]]
    steps = [(escape(s["step"]), f"{s['enabled']:,}", f"{s['taken']:,}") for s in view["steps"]]
    marks = [(escape(mark["name"]), mark["value"]) for mark in view["marks"]]
    tables = [
        _table("Parameters", ("parameter", "value"), parameters),
        _table("Steps in the explored space", ("step", "open", "taken"), steps),
        _table("What happened in it", ("mark", "transitions"), marks),
        _section("Notes", "".join(f"<p>{escape(note)}</p>" for note in view["notes"])),
    ]
    about = _table("Properties", ("property", "kind", "verdict", "") if properties else (), properties)
    return about + (f'<div class="columns">{"".join(tables)}</div>\n' if any(tables) else "")


def _linked(name: str, trace: int | None) -> str:
    if trace is None:
        return escape(name)
    return f'<a href="#{f"trace-{trace + 1}-" if trace else ""}step-1">{escape(name)}</a>'


def _toned(text: str, tone: str) -> str:
    return f'<span class="{escape(tone)}">{escape(text)}</span>'


def _table(title: str, heads: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return _section(title, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _section(title: str, content: str) -> str:
    return f'<section aria-label="{escape(title)}"><h2>{escape(title)}</h2>{content}</section>\n' if content else ""
