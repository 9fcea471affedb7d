"""The pages tell the truth: their Python runs, their SQL parses, their links lead somewhere, their tables are current.

Python blocks of one page run one after the other in one empty folder, as a reader would type them. A line
`<!-- no-run: reason -->` before a block makes the test compile it only. A page whose blocks start Spark says so itself,
by naming `connect` or `SparkSession`, and is marked accordingly.
"""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from lakeproof.commit.policy_text import policy_from_text

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "lakeproof"
FENCE = re.compile(r"^(?P<before><!--[^\n]*-->\n+)?```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```\s*$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"```.*?^```|`[^`\n]*`", re.M | re.S)


def pages() -> list[Path]:
    """Every page of the project that is there."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    for folder, pattern in (("docs", "*.md"), ("src", "README.md"), ("tests", "README.md"), ("benchmarks", "*.md")):
        found += sorted((ROOT / folder).rglob(pattern))
    return [page for page in found if page.exists()]


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    text: str
    only_compiled: bool

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path, text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found = []
    for match in FENCE.finditer(text):
        line = text[: match.start("text")].count("\n") + 1
        only_compiled = "no-run:" in (match["before"] or "")
        found.append(Block(page, line, match["kind"], match["text"], only_compiled))
    return found


PAGES = pages()
BLOCKS = [block for page in PAGES for block in blocks_of(page, page.read_text(encoding="utf-8"))]


def of_kind(*kinds: str) -> list[Block]:
    """The blocks written in one of these languages."""
    return [block for block in BLOCKS if block.kind in kinds]


def runnable() -> list[pytest.param]:  # type: ignore[valid-type]
    """One case per page with Python that is to be run."""
    cases = []
    for page in PAGES:
        source = "\n".join(b.text for b in of_kind("python") if b.page == page and not b.only_compiled)
        if source:
            starts_spark = re.search(r"\bconnect\(|SparkSession", source)
            marks = [pytest.mark.spark, pytest.mark.slow] if starts_spark else []
            cases.append(pytest.param(source, id=str(page.relative_to(ROOT)), marks=marks))
    return cases


@pytest.mark.parametrize("source", runnable())
def test_the_python_of_a_page_runs(source: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("block", of_kind("python"), ids=lambda block: block.place)
def test_python_compiles(block: Block) -> None:
    compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", of_kind("sql"), ids=lambda block: block.place)
def test_sql_parses(block: Block) -> None:
    from lakeproof.sql import parse_all

    if re.search(r"^-- job:", block.text, re.M):
        from lakeproof.jobs.text import taken_apart

        assert taken_apart(block.text, name=block.place).jobs
    else:
        assert parse_all(block.text)


@pytest.mark.parametrize("block", of_kind("toml"), ids=lambda block: block.place)
def test_toml_is_toml_and_a_policy_is_a_policy(block: Block) -> None:
    if "base" in tomllib.loads(block.text):
        assert policy_from_text(block.text, place=block.place).lines


def command_lines() -> list[tuple[str, str]]:
    """Every line in a fence that is a command of ours or of make, with its place; comments are cut off."""
    found = []
    for page in PAGES:
        fenced = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            fenced ^= line.startswith("```")
            if fenced and re.match(r"(\$ )?(\.venv/bin/)?lakeproof [a-z]|(\$ )?make [a-z]", line):
                found.append((f"{page.relative_to(ROOT)}:{number}", re.sub(r"^\$ |\s+#.*", "", line)))
    return found


@pytest.mark.parametrize(("place", "line"), command_lines(), ids=lambda value: value)
def test_commands_exist(place: str, line: str) -> None:
    from lakeproof.cli.main import parser_for

    program, *arguments = shlex.split(line)
    if program == "make":
        assert arguments[0] in set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)), place
    else:
        parser_for(arguments).parse_args(arguments)  # an argument that is not there ends the program


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    dead = []
    for link in LINK.finditer(text):
        path, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", link["target"]):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link["target"])
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have."""
    headings = re.findall(r"^#+\s+(.+?)\s*$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ROOT / "tests" not in page.parents], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_page_begins_with_its_one_title(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^# (.+)$", text, re.M)
    assert len(titles) == 1, titles


@pytest.mark.parametrize(
    "path", [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()], ids=lambda path: path.stem
)
def test_the_examples_of_docstrings_are_true(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0


def test_generated_pages_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_changed_page_is_out_of_date(tmp_path: Path) -> None:
    """The check can fail: with another root the pages are not there."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import docs; from pathlib import Path;"
        "docs.ROOT = Path(sys.argv[2]); sys.exit(docs.check())"
    )
    command = [sys.executable, "-c", script, str(ROOT / "tools"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "docs/reference/checks-and-policies.md is out of date\n  hint  make docs\n" in done.stderr


def test_the_site_has_every_page_and_its_links_stay_inside(tmp_path: Path) -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import website; from pathlib import Path;"
    command = [sys.executable, "-c", f"{script} print(website.build(Path(sys.argv[2])))", str(ROOT / "tools")]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=300, check=True)
    made = sorted(tmp_path.rglob("*.html"))
    assert len(made) == int(done.stdout) > 5
    for page in made:
        content = page.read_text(encoding="utf-8")
        assert re.findall(r"<script[^>]*>", content) == [
            f'<script src="{"../" * (len(page.relative_to(tmp_path).parts) - 1)}{name}.js">'
            for name in ("search", "site")
        ]
        for link in re.findall(r'(?:href|src)="([^"#]+)', content):
            if re.match(r"[a-z]+:", link):
                continue
            there = (page.parent / link).resolve().exists()
            written = (ROOT / page.relative_to(tmp_path).parent / link).exists()
            dead = link.endswith(".md") and not written  # in the page itself: another test says so
            assert there or dead, f"{page.relative_to(tmp_path)}: {link}"
        loaded = re.findall(r'<(?:link|img|iframe)[^>]*(?:href|src)="([a-z]+:[^"]*)', content)
        assert loaded == [], "the site asks the network for nothing"


def test_every_folder_of_the_source_has_its_paragraph() -> None:
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^## `(\w+)/`$", text, re.M))
    there = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert named == there


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for group in project["optional-dependencies"].values() for name in group),
    ]
    text = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8")
    names = [re.split(r"[\[<>=!~; ]", each)[0] for each in wanted]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_import_table_of_the_architecture_page_is_the_one_that_is_tested() -> None:
    from test_imports import MAY_IMPORT

    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|\n]*\| ([^|\n]*) \|$", text, re.M)
    assert {name: tuple(re.findall(r"`(\w+)`", cell)) for name, cell in rows} == MAY_IMPORT


def test_the_glossary_has_every_word_once_and_in_order() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([a-z -]+) \| (?!means)", text, re.M)
    assert words == sorted(set(words))
    told = {"policy", "property", "swap", "commit window", "first table", "head", "check", "re-run", "verdict"}
    assert told <= set(words)


def test_blocks_are_found_with_their_kind_and_place() -> None:
    text = "a\n\n```python\nx = 1\n```\n\n<!-- no-run: needs a cluster -->\n```python\ny\n```\n```\nplain\n```\n"
    page = ROOT / "README.md"
    assert blocks_of(page, text) == [
        Block(page, 4, "python", "x = 1\n", only_compiled=False),
        Block(page, 9, "python", "y\n", only_compiled=True),
    ]
