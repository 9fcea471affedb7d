"""The findings of an audit as one HTML page that opens offline, styled like the trace page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from lakeproof.audit import Audit
from lakeproof.audit.audit import CommitSeen
from lakeproof.audit.findings import Finding
from lakeproof.audit.kinds import KINDS, SEVERITIES
from lakeproof.report.words import counted

_MORE = """
.findings { display: grid; gap: 14px; }
.findings h2 { font-size: 13px; margin: 12px 0 0; overflow-wrap: anywhere; text-transform: none; letter-spacing: 0; }
.findings h3 { margin: 0 0 8px; font-size: 17px; overflow-wrap: anywhere; }
.findings h3 small { display: block; color: var(--soft); font-weight: 400; font-size: 14px; }
.findings dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 16px; margin: 0; }
.findings dt { color: var(--soft); }
.findings dd { margin: 0; overflow-wrap: anywhere; }
.findings dd.do { font-weight: 600; }
.findings code { font: 13px var(--mono); display: block; }
.findings .scroll { overflow-x: auto; }
.findings table { border-collapse: collapse; width: 100%; font-size: 14px; }
.findings th { text-align: left; color: var(--soft); font-weight: 600; font-size: 12.5px; }
.findings th, .findings td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.findings td.n { font: 13px/1.6 var(--mono); }
.findings .good { color: var(--good); }
.findings .badge { display: inline-block; border-radius: 10px; }
main.findings { grid-template-columns: minmax(0, 1fr); }
@media (max-width: 900px) {
  .findings dl { grid-template-columns: minmax(0, 1fr); }
  .findings dd { margin-bottom: 6px; }
  .findings thead { display: none; }
  .findings tr { display: block; border-bottom: 1px solid var(--line); padding: 4px 0; }
  .findings td { display: block; border: 0; padding: 0; overflow-wrap: anywhere; }
  .findings td:not(:empty)::before { content: attr(data-column) " "; color: var(--soft); font: 12px var(--sans); }
}
"""
_FILES = 5
"""Files that are named of one finding."""
_SNAPSHOTS = 8
"""Snapshots that are named of one finding."""
_COMMITS = 200
"""Commits that the table shows: those with findings, and the newest."""
_COLUMNS = ("snapshot", "parent", "at", "command", "by", "verdict")
_NUMBERS = ("snapshot", "parent")
_BADGES = {"rows_wrong": "bad", "may_become_wrong": "refused", "nothing_lost": ""}


def audit_page(audits: Audit | Sequence[Audit]) -> str:
    """The whole page of one audit or several; it asks the network for nothing."""
    found = [audits] if isinstance(audits, Audit) else list(audits)
    style = files("lakeproof.report").joinpath("assets/page.css").read_text(encoding="utf-8") + _MORE
    title = f"Audit of {escape(found[0].table)}" if len(found) == 1 else f"Audit of {len(found)} tables"
    count = sum(len(each.findings) for each in found)
    summary = _summary(found[0]) if len(found) == 1 else f"{counted(count, 'finding') if count else 'No findings'}."
    found = [each._replace(findings=tuple(one.told() for one in each.findings)) for each in found]
    body = "".join(_table_part(each, named=len(found) > 1) for each in found)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title} · Lakeproof</title>\n'
        f'<style>\n{style}</style>\n</head>\n<body>\n<header class="top">\n<p class="brand">Lakeproof · audit</p>\n'
        f'<h1 class="{"bad" if count else "good"}">{title}</h1>\n<p class="summary">{summary}</p>\n</header>\n'
        f'<main class="findings">\n{body}</main>\n</body>\n</html>\n'
    )


def _summary(found: Audit) -> str:
    said = f"{counted(len(found.findings), 'finding')} in" if found.findings else "Nothing was found in"
    summary = f"{said} {counted(found.snapshots, 'snapshot')}, judged by the policy {escape(found.policy)}."
    if found.assumed:
        many = found.assumed != 1
        summary += f" {counted(found.assumed, 'commit')} {'do' if many else 'does'} not record what was read; "
        summary += f"{'each' if many else 'it'} is taken to have read its parent."
    return summary + "".join(f" {escape(note[:1].upper() + note[1:])}." for note in found.notes)


def _table_part(found: Audit, *, named: bool) -> str:
    head = f"<h2>{escape(found.table)}: {_summary(found)}</h2>\n" if named else ""
    return head + "".join(map(_card, found.findings)) + _commits(found.commits)


def _card(one: Finding) -> str:
    severity = f'<span class="badge {_BADGES[one.severity]}">{escape(SEVERITIES[one.severity])}</span>'
    rows = [("what to do", "do", escape(one.advice)), ("how bad", "", severity), ("because", "", escape(one.because))]
    if one.check:
        rows.append(("check", "", f"<code>{escape(one.check)}</code>"))
    rows.append(("snapshots", "", escape(_some(list(map(str, one.snapshots)), _SNAPSHOTS))))
    rest = len(one.files) - _FILES
    listed = "".join(f"<code>{escape(file)}</code>" for file in one.files[:_FILES])
    rows.append(("files", "", listed + (f"and {rest} more" if rest > 0 else "")))
    rows.append(("note", "", escape(one.note)))
    told = "".join(
        f"<dt>{name}</dt><dd{f' class={sort}' if sort else ''}>{text}</dd>" for name, sort, text in rows if text
    )
    kind = escape(one.kind.replace("_", " "))
    return f"<section>\n<h3>{kind}<small>{escape(KINDS[one.kind].words)}</small></h3>\n<dl>{told}</dl>\n</section>\n"


def _some(words: list[str], most: int) -> str:
    """The newest of these, and how many more there are."""
    more = len(words) - most
    return ", ".join(words[-most:]) + (f" and {more} older" if more > 0 else "")


def _commits(commits: Sequence[CommitSeen]) -> str:
    """The table of commits judged, the newest first."""
    if not commits:
        return ""
    newest = list(reversed(commits))
    shown = [each for number, each in enumerate(newest) if each.kinds or number < _COMMITS][: 2 * _COMMITS]
    rows = "".join(map(_commit, shown))
    rest = len(commits) - len(shown)
    more = f"<p>{rest} more commits, of which nothing was found, are not shown.</p>" if rest else ""
    head = "".join(f"<th>{word}</th>" for word in _COLUMNS)
    return (
        f'<section>\n<h3>Commits judged</h3>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>{more}\n</section>\n"
    )


def _commit(one: CommitSeen) -> str:
    good = '<span class="good">nothing found</span>'
    judged = " ".join(f'<span class="badge bad">{escape(kind.replace("_", " "))}</span>' for kind in one.kinds) or good
    at = datetime.fromtimestamp(one.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if _shown(one) else ""
    parent = "" if one.parent is None else one.parent
    cells = (one.snapshot, parent, at, escape(one.command or one.operation), escape(one.by), judged)
    row = "".join(
        f'<td data-column="{name}"{" class=n" if name in _NUMBERS else ""}>{cell}</td>'
        for name, cell in zip(_COLUMNS, cells, strict=True)
    )
    return f"<tr>{row}</tr>\n"


def _shown(one: CommitSeen) -> bool:
    """Whether the clock of the commit is one that a calendar has."""
    return 0 <= one.timestamp_ms < 253_402_300_800_000
