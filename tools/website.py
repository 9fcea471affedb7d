"""The pages of the project as a static site: no network, light and dark; one script, for search and copy buttons."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import markdown  # type: ignore[import-untyped]
from matrix_cells import with_cells

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "": "Lakeproof",
    "docs/tutorial": "Tutorial",
    "docs/how-to": "How to",
    "docs/reference": "Reference",
    "docs/explanation": "Explanation",
    "src/lakeproof": "The source",
}
EXTENSIONS = ["tables", "fenced_code", "toc", "sane_lists", "codehilite"]
COLOURS = {"codehilite": {"guess_lang": False, "css_class": "code"}}
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
    shutil.copyfile(ROOT / "tools" / "website.css", folder / "style.css")
    shutil.copyfile(ROOT / "tools" / "website.js", folder / "site.js")
    (folder / "search.js").write_text(f"window.PAGES = {searched(pages)};\n", encoding="utf-8")
    return len(pages)


def searched(pages: list[Page]) -> str:
    """What the search looks through: every page's title, place and words."""
    found = [
        {
            "title": page.title,
            "place": page.target.as_posix(),
            "text": " ".join(sorted(set(re.findall(r"[\w-]+", page.source.read_text(encoding="utf-8").lower())))),
        }
        for page in pages
    ]
    return json.dumps(found)


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
    reader = markdown.Markdown(extensions=EXTENSIONS, extension_configs=COLOURS, output_format="html")
    body = with_cells(reader.convert(text))
    body = LINK.sub(lambda link: f'{link[1]}="{linked(link[2], page, pages, folder)}"', body)
    style = relative_link(Path("style.css"), page)
    root = style.removesuffix("style.css")
    parts = [token for top in reader.toc_tokens for token in top["children"]]
    listed = "".join(f'<li><a href="#{token["id"]}">{token["name"]}</a></li>' for token in parts)
    contents = f"<h2>On this page</h2><ul>{listed}</ul>" if len(parts) > 1 else ""
    return TEMPLATE.format(
        title=html.escape(page.title), root=root, navigation=navigation(page, pages), body=body, contents=contents
    )


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
<link rel="stylesheet" href="{root}style.css">
</head>
<body data-root="{root}">
<div class="side"><input type="search" id="search" placeholder="Search" aria-label="Search" hidden><ul id="found"></ul>
<input type="checkbox" id="menu" class="unseen"><label for="menu">Menu</label>
<nav>{navigation}</nav></div>
<main>{body}</main>
<aside>{contents}</aside>
<script src="{root}search.js"></script>
<script src="{root}site.js"></script>
</body>
</html>
"""
