"""The folders import each other only as the picture in docs/explanation/architecture.md says."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "lakeproof"

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "format": (),
    "filters": ("format",),
    "commit": ("format", "filters"),
    "checker": (),
    "models": ("format", "filters", "commit", "checker"),
    "sql": ("format", "filters", "commit"),
    "jobs": ("format", "filters", "commit", "sql", "models", "checker"),
    "scenarios": ("format", "filters", "commit", "sql", "models", "checker"),
    "search_on_spark": ("checker",),
    "iceberg": ("format", "filters", "commit"),
    "spark": ("format", "filters", "commit", "sql", "iceberg"),
    "audit": ("format", "commit", "iceberg", "spark"),
    "replay": ("format", "filters", "commit", "scenarios", "spark", "iceberg"),
    "report": ("checker", "commit"),
}
"""Our own folders that a folder may import; `cli` and the package's face may import everything."""

EVERYWHERE = ("errors", "private_folders")
"""Modules of the package itself that everybody may import."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "sqlglot": ("sql",),
    "pyiceberg": ("iceberg", "replay"),
    "pyspark": ("spark", "search_on_spark", "replay"),
    "py4j": ("spark", "search_on_spark", "replay"),
    "pypaimon": ("replay",),
}
"""Libraries that only these folders may import."""

PURE = ("format", "filters", "commit")
IMPURE_MODULES = frozenset(
    [
        *("asyncio", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "pickle", "platform", "random"),
        *("secrets", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time"),
        *("urllib", "uuid"),
    ]
)
IMPURE_CALLS = frozenset({"open", "input", "print", "exec", "eval", "breakpoint", "__import__"})
CLOCKS = frozenset({"now", "today", "utcnow", "fromtimestamp"})


class Import(NamedTuple):
    """One imported module and where."""

    module: str
    place: str


def sources(folder: str) -> list[Path]:
    """The Python files of a folder; none if it does not exist yet."""
    return sorted((PACKAGE / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """The file as a tree."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path, root: Path = PACKAGE) -> tuple[Import, ...]:
    """Every import of a file, also those inside functions and under TYPE_CHECKING."""
    return tuple(_imports(path, root))


def _imports(path: Path, root: Path) -> Iterator[Import]:
    relative = path.relative_to(root)
    package = ["lakeproof", *relative.parts[:-1]]
    for node in ast.walk(parsed(path)):
        place = f"{relative}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, place) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "lakeproof":  # `from lakeproof import format` names a folder, not a member
                yield from (Import(f"lakeproof.{alias.name}", place) for alias in node.names)
            else:
                yield Import(module, place)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            argument = node.args[0] if node.args else None
            if name in ("import_module", "__import__") and isinstance(argument, ast.Constant):
                yield Import(str(argument.value), place)


def folder_of(module: str) -> str | None:
    """The folder of ours that a module lies in; `None`: it is not ours."""
    parts = module.split(".")
    return None if parts[0] != "lakeproof" else parts[1] if len(parts) > 1 else ""


def test_every_folder_has_its_line_in_the_table() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert there - set(MAY_IMPORT) == {"cli"} & there
    assert {path.stem for path in PACKAGE.glob("*.py")} <= {"__init__", "__main__", *EVERYWHERE}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_it_may(folder: str) -> None:
    allowed = {folder, *EVERYWHERE, *MAY_IMPORT[folder]}
    found = [each for path in sources(folder) for each in imports(path)]
    ours = [(each, folder_of(each.module)) for each in found]
    assert [each for each, other in ours if other is not None and other not in allowed] == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_stays_in_its_folder(library: str) -> None:
    outside = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ONLY_IN[library]]
    found = [each for path in outside for each in imports(path)]
    assert [each for each in found if each.module.split(".")[0] == library] == []


@pytest.mark.parametrize("name", EVERYWHERE)
def test_what_everybody_imports_imports_nothing_of_ours(name: str) -> None:
    assert [each for each in imports(PACKAGE / f"{name}.py") if folder_of(each.module) is not None] == []


@pytest.mark.parametrize("folder", PURE)
def test_the_rule_book_reads_no_clock_and_no_file(folder: str) -> None:
    wrong = []
    for path in sources(folder):
        wrong += [each for each in imports(path) if each.module.split(".")[0] in IMPURE_MODULES]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if name in IMPURE_CALLS or called in CLOCKS:
                    wrong.append(Import(name or called, f"{path.relative_to(PACKAGE)}:{node.lineno}"))
    assert wrong == []
    assert sources(folder), "the test must look at something"


def test_no_import_hides_in_a_function_to_dodge_a_cycle() -> None:
    """Only the edges may import late, and only what is slow to start; never one of our pure folders."""
    hidden = []
    for folder in (*PURE, "checker", "sql", "report"):
        for path in sources(folder):
            for function in ast.walk(parsed(path)):
                if isinstance(function, ast.FunctionDef):
                    hidden += [
                        Import(node.module or "", f"{path.relative_to(PACKAGE)}:{node.lineno}")
                        for node in ast.walk(function)
                        if isinstance(node, ast.ImportFrom) and folder_of(node.module or "") in MAY_IMPORT
                    ]
    assert [each for each in hidden if folder_of(each.module) != each.place.split("/")[0]] == []


MOST_NEEDED = 25


def closure(module: str) -> set[str]:
    """The modules of ours that one needs to be read with it, itself included."""
    known = {".".join(("lakeproof", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in sources(".")}
    known = {name.removesuffix(".__init__"): path for name, path in known.items()}
    found, left = {module}, [module]
    while left:
        here = left.pop()
        names = {each.module for each in imports(known[here])}
        names |= {f"{each.module}.{name}" for each, name in _members(known[here])}
        new = {name for name in names if name in known and name != "lakeproof"} - found
        found |= new
        left += new
    return found


def _members(path: Path) -> Iterator[tuple[Import, str]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((Import(node.module, ""), alias.name) for alias in node.names)


def test_the_module_that_commits_can_be_read_with_few_others() -> None:
    found = closure("lakeproof.iceberg.committing.commit")
    assert len(found) <= MOST_NEEDED, sorted(found)
    assert {"lakeproof.commit.attempt", "lakeproof.commit.rows", "lakeproof.format.rows"} <= found
    assert len(closure("lakeproof.iceberg.committing.table_commits")) > MOST_NEEDED, "the test must be able to fail"


# ---------------------------------------------------------------- the test itself must be able to fail


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("import os.path", ["os.path"]),
        ("from lakeproof import spark", ["lakeproof.spark"]),
        ("from lakeproof.spark.jvm.session import start", ["lakeproof.spark.jvm.session"]),
        ("from . import files", ["lakeproof.format"]),
        ("from ..commit import checks", ["lakeproof.commit"]),
        ("def f():\n    from time import sleep", ["time"]),
        ("import importlib\nimportlib.import_module('pyspark.sql')", ["importlib", "pyspark.sql"]),
    ],
)
def test_imports_are_found_however_they_are_written(text: str, modules: list[str], tmp_path: Path) -> None:
    (tmp_path / "format").mkdir()
    source = tmp_path / "format" / "sample.py"
    source.write_text(text)
    assert [each.module for each in imports(source, tmp_path)] == modules


def test_the_names_of_the_table_are_real() -> None:
    assert set(builtins.__dict__) >= IMPURE_CALLS
    assert {name for names in MAY_IMPORT.values() for name in names} <= set(MAY_IMPORT)
    assert {name for names in ONLY_IN.values() for name in names} <= set(MAY_IMPORT)


def test_the_runtime_takes_nothing_from_sqlglot() -> None:
    """Not even through a module of ours that imports it."""
    code = "import lakeproof.spark.lake, lakeproof.cli.commands.sql, sys; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------- rooms and words

OF_EVERY_MODEL = {"Shared", "Event", "Setup"}
"""What each model has, under the same name in each: the shared value, what others observe, what does not change."""


def test_no_room_is_too_full() -> None:
    rooms = {path.parent for path in PACKAGE.rglob("*.py")}
    full = {str(room.relative_to(PACKAGE)): len(list(room.glob("*.py"))) - 1 for room in rooms}
    assert {room: modules for room, modules in full.items() if modules > 15} == {}


def test_a_public_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert set(twice) == OF_EVERY_MODEL
    assert all(place.startswith("models/") for places in twice.values() for place in places)


def _rooms() -> list[Path]:
    """The folders inside the package's folders, as paths in the package."""
    return [path.parent for path in sorted(PACKAGE.rglob("__init__.py")) if len(path.relative_to(PACKAGE).parts) > 2]


@pytest.mark.parametrize("room", _rooms(), ids=lambda room: str(room.relative_to(PACKAGE)))
def test_a_room_is_on_the_architecture_page_in_its_own_words(room: Path) -> None:
    page = (PACKAGE.parent.parent / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert said is not None
    words = said.split("\n\n")[0].replace("\n", " ").rstrip(".")
    assert f"| `{room.relative_to(PACKAGE).as_posix()}` | {words} |".lower() in page.lower()


@pytest.mark.parametrize("folder", ["iceberg", "spark"])
def test_the_page_of_a_large_folder_names_its_files(folder: str) -> None:
    page = (PACKAGE / folder / "README.md").read_text(encoding="utf-8")
    files = [path for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py"]
    names = [path.relative_to(PACKAGE / folder).as_posix() for path in sorted(files)]
    assert [name for name in names if f"`{name}`" not in page] == []
    named = re.findall(r"`([\w/]+\.py)`", page)
    assert [path for path in named if path not in names and not (PACKAGE / path).exists()] == []
