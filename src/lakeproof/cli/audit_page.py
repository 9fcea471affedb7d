"""The findings of an audit as one page, in the clothes of the trace page: light and dark, wide and narrow."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from lakeproof.audit import Audit
from lakeproof.audit.findings import KINDS, Finding

_MORE = """
.findings { display: grid; gap: 14px; }
.findings h3 { margin: 0 0 8px; font-size: 17px; overflow-wrap: anywhere; }
.findings h3 small { display: block; color: var(--soft); font-weight: 400; font-size: 14px; }
.findings dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 16px; margin: 0; }
.findings dt { color: var(--soft); }
.findings dd { margin: 0; overflow-wrap: anywhere; }
.findings dd.do { font-weight: 600; }
.findings code { font: 13px var(--mono); display: block; }
main.findings { grid-template-columns: minmax(0, 1fr); }
@media (max-width: 900px) {
  .findings dl { grid-template-columns: minmax(0, 1fr); }
  .findings dd { margin-bottom: 6px; }
}
"""
_FILES = 5
"""Files that are named of one finding."""


def audit_page(found: Audit) -> str:
    """The whole page; it asks the network for nothing."""
    style = files("lakeproof.report").joinpath("assets/page.css").read_text(encoding="utf-8") + _MORE
    title = f"Audit of {escape(found.table)}"
    count = len(found.findings)
    said = f"{count} finding{'s' * (count != 1)} in" if count else "Nothing was found in"
    summary = f"{said} {found.snapshots} snapshots, judged by {escape(found.policy)}."
    if found.assumed:
        summary += f" {found.assumed} commits do not record what they read: of each its parent was assumed."
    cards = "".join(map(_card, found.findings))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title} · Lakeproof</title>\n'
        f'<style>\n{style}</style>\n</head>\n<body>\n<header class="top">\n<p class="brand">Lakeproof · audit</p>\n'
        f'<h1 class="{"bad" if count else "good"}">{title}</h1>\n<p class="summary">{summary}</p>\n</header>\n'
        f'<main class="findings">\n{cards}</main>\n</body>\n</html>\n'
    )


def _card(one: Finding) -> str:
    rows = [("what to do", "do", escape(one.do)), ("because", "", escape(one.because))]
    if one.check:
        rows.append(("check", "", f"<code>{escape(one.check)}</code>"))
    rows.append(("snapshots", "", escape(", ".join(map(str, one.snapshots)))))
    rest = len(one.files) - _FILES
    named = "".join(f"<code>{escape(file)}</code>" for file in one.files[:_FILES])
    rows.append(("files", "", named + (f"and {rest} more" if rest > 0 else "")))
    rows.append(("note", "", escape(one.note)))
    listed = "".join(
        f"<dt>{name}</dt><dd{f' class={sort}' if sort else ''}>{text}</dd>" for name, sort, text in rows if text
    )
    kind = escape(one.kind.replace("_", " "))
    return f"<section>\n<h3>{kind}<small>{escape(KINDS[one.kind])}</small></h3>\n<dl>{listed}</dl>\n</section>\n"
