"""The pages of the project as a static site: no script, no network, light and dark."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import markdown  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "": "Lakeproof",
    "docs/tutorial": "Tutorial",
    "docs/how-to": "How to",
    "docs/reference": "Reference",
    "docs/explanation": "Explanation",
    "src/lakeproof": "The source",
}
EXTENSIONS = ["tables", "fenced_code", "toc", "sane_lists"]
LINK = re.compile(r'(href|src)="([^"]+)"')


class Page(NamedTuple):
    """One page: its source, its place in the site, its title and its section."""

    source: Path
    target: Path
    title: str
    section: str


def build(folder: Path) -> int:
    """Write the site into a folder that is made anew; how many pages it has."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = [page_of(path) for path in sources()]
    for page in pages:
        path = folder / page.target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(page, pages, folder), encoding="utf-8")
    (folder / "style.css").write_text(STYLE, encoding="utf-8")
    return len(pages)


def sources() -> list[Path]:
    """Every page of the project, in reading order."""
    found = [ROOT / "README.md", ROOT / "docs" / "README.md", ROOT / "CHANGELOG.md"]
    for section in list(SECTIONS)[1:]:
        pattern = "**/README.md" if section.startswith("src") else "**/*.md"
        found += sorted((ROOT / section).glob(pattern))
    return [path for path in found if path.exists()]


def page_of(path: Path) -> Page:
    """Where a page goes and what it is called: its first heading."""
    relative = path.relative_to(ROOT)
    name = "index.html" if relative.name == "README.md" else f"{relative.stem}.html"
    heading = re.search(r"^#\s+(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    title = re.sub(r"[`*]", "", heading[1]) if heading else relative.stem
    section = max((part for part in SECTIONS if relative.as_posix().startswith(part)), key=len)
    return Page(path, relative.with_name(name), title, section)


def rendered(page: Page, pages: list[Page], folder: Path) -> str:
    """The whole HTML page."""
    text = page.source.read_text(encoding="utf-8")
    body = markdown.markdown(text, extensions=EXTENSIONS, output_format="html")
    body = LINK.sub(lambda link: f'{link[1]}="{linked(link[2], page, pages, folder)}"', body)
    style = relative_link(Path("style.css"), page)
    return TEMPLATE.format(title=html.escape(page.title), style=style, navigation=navigation(page, pages), body=body)


def linked(target: str, page: Page, pages: Iterable[Page], folder: Path) -> str:
    """A link as it is written in the site; a file that it names is copied along."""
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return target
    source = (page.source.parent / path).resolve()
    place = next((other.target for other in pages if source in (other.source, other.source.parent)), None)
    if place is None and source.is_file() and source.is_relative_to(ROOT):
        place = source.relative_to(ROOT)
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / place)
    return target if place is None else relative_link(place, page) + (f"#{anchor}" if anchor else "")


def navigation(page: Page, pages: list[Page]) -> str:
    """The sections with their pages; the one that is open is marked."""
    lines = []
    for section, title in SECTIONS.items():
        inside = [other for other in pages if other.section == section]
        if not inside:
            continue
        lines.append(f"<h2>{html.escape(title)}</h2><ul>")
        for other in inside:
            current = ' aria-current="page"' if other == page else ""
            place = relative_link(other.target, page)
            lines.append(f'<li><a href="{place}"{current}>{html.escape(other.title)}</a></li>')
        lines.append("</ul>")
    return "\n".join(lines)


def relative_link(place: Path, page: Page) -> str:
    """The way from one page to a file of the site."""
    return Path(os.path.relpath(place, page.target.parent)).as_posix()


TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Lakeproof</title>
<link rel="stylesheet" href="{style}">
</head>
<body>
<nav>{navigation}</nav>
<main>{body}</main>
</body>
</html>
"""

STYLE = """\
:root {
  --text: #1c2430; --soft: #5b6676; --page: #ffffff; --side: #f4f6f9; --line: #dde3ea; --link: #0b62c4; --code: #f1f4f8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #dfe5ee; --soft: #97a3b4; --page: #12161c; --side: #171c24; --line: #2b3441; --link: #6cb2ff;
    --code: #1c232d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); min-height: 100vh;
  color: var(--text); background: var(--page); font: 16px/1.6 system-ui, sans-serif;
}
nav { padding: 1.5rem 1.25rem; background: var(--side); border-right: 1px solid var(--line); font-size: .9rem; }
nav h2 {
  margin: 1.2rem 0 .3rem; color: var(--soft); font-size: .75rem; letter-spacing: .06em; text-transform: uppercase;
}
nav ul { margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: .15rem 0; }
nav a[aria-current] { color: var(--text); font-weight: 600; }
main { max-width: 60rem; width: 100%; padding: 2rem 3rem 5rem; }
h1, h2, h3 { line-height: 1.25; }
h1 { margin-top: 0; }
main h2 { margin-top: 2.5rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code { padding: .1em .3em; border-radius: 4px; background: var(--code); font: .875em ui-monospace, monospace; }
pre { padding: 1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; background: var(--code); }
pre code { padding: 0; background: none; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .9rem; }
th, td { padding: .4rem .7rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--side); }
blockquote { margin: 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft); }
img { max-width: 100%; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1.5rem 1.25rem 3rem; }
}
"""
