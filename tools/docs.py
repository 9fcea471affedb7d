"""Make the generated pages of `docs/` and build the site.

python tools/docs.py            write the generated pages, then site/
python tools/docs.py --check    only say which generated pages are out of date (exit 1)
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import website

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"

GENERATORS = [
    "checks_page:page",
    "cli_page:page",
    "sql_page:page",
    "models_page:page",
    "errors_page:page",
    "benchmarks.page:page",
]
"""`module:function` names; each function returns the path of a page, from the project's root, and its text. A module
that is not there yet is passed over."""

SLOW_GENERATORS = ["iceberg_verdicts:presets_table", "cases_page:page", "engines_page:page"]
"""The same for pages that take a minute of search: `--check` leaves them out, a test of the model holds them."""

RENEWED = {
    "tools.paimon_pages": "<!-- paimon:",
    "tools.computed_pages": "<!-- matrix:|<!-- necessity:|<!-- proofs:",
    "tools.cut_off_page": "<!-- cut-off -->",
}
"""Modules that compute marked blocks inside pages again (`python -m MODULE PAGE…`). They take minutes, so `--check`
leaves them out; the tests of the models hold the figures."""


def main(arguments: list[str]) -> int:
    """Generate, or check what was generated; 1 if something is out of date."""
    if arguments not in ([], ["--check"]):
        print("use tools/docs.py or tools/docs.py --check", file=sys.stderr)
        return 2
    if arguments:
        return check()
    for path, text in generated([*GENERATORS, *SLOW_GENERATORS]):
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"generated  {path}")
    for module, mark in RENEWED.items():
        renew(module, mark)
    print(f"built      {website.build(SITE)} pages in {SITE.name}/")
    return 0


def renew(module: str, mark: str) -> None:
    """Let the module compute its blocks again in every page that has one."""
    pages = [str(page) for page in website.sources() if re.search(mark, page.read_text(encoding="utf-8"))]
    if pages and exists(module):
        subprocess.run([sys.executable, "-m", module, *pages], cwd=ROOT, check=True)
        print(f"renewed    {', '.join(str(Path(page).relative_to(ROOT)) for page in pages)}")


def check() -> int:
    """Say which pages differ from what would be generated."""
    stale = [path for path, text in generated() if not same(ROOT / path, text)]
    for path in stale:
        print(f"{path} is out of date\n  hint  make docs", file=sys.stderr)
    return 1 if stale else 0


def same(path: Path, text: str) -> bool:
    """Whether the file holds exactly this."""
    return path.exists() and path.read_text(encoding="utf-8") == text


def generated(names: Sequence[str] = tuple(GENERATORS)) -> Iterator[tuple[str, str]]:
    """Each generated page."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
    for name in names:
        module, _, function = name.partition(":")
        if exists(module):
            path, text = getattr(import_module(module), function)()
            yield str(path), text if text.endswith("\n") else text + "\n"


def exists(module: str) -> bool:
    """Whether the module can be imported; its package may be missing too."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
