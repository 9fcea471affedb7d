"""The protocol is written once: nobody outside `commit/` decides what comes next, what is asked, or what is removed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from lakeproof.checker.search import check
from lakeproof.commit import Command, TableChange, attempt, driver
from lakeproof.commit.checks import ALL_CHECKS
from lakeproof.commit.policy import POLICIES
from lakeproof.iceberg.committing.commit import ATTEMPTING, LOOKING, METADATA_WRITTEN, SWAPPED
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import LongType, NestedField, Schema
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.replacing import Replacing, replace_with_rows, replacement
from lakeproof.iceberg.tables.tables import create_table, load_table
from lakeproof.models.iceberg import build
from lakeproof.scenarios.against_checks import AgainstChecks
from lakeproof.scenarios.run import find_differences
from lakeproof.scenarios.text import parse_scenario

SOURCE = Path(__file__).parents[1] / "src" / "lakeproof"
SCENARIOS = Path(__file__).parent / "scenarios"

REMOVERS = {
    "iceberg/committing/table_access.py": "performs what commit/driver.py found removable",
    "iceberg/committing/pointer.py": "old metadata versions, by the table's own property",
    "iceberg/upkeep/expire.py": "what expired snapshots alone needed",
    "iceberg/upkeep/orphans.py": "files that nothing references",
    "iceberg/tables/tables.py": "a dropped table's files",
    "spark/writing/leftovers.py": "folders of writes that failed, or whose commit certainly failed (commit/driver.py)",
    "spark/writing/spark_write.py": "files without rows, before anybody names them",
}
"""Who deletes files of a table, and by whose leave."""


@cache
def texts() -> dict[str, str]:
    """Every module outside `commit/`."""
    named = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    return {name: path.read_text(encoding="utf-8") for name, path in named.items() if not name.startswith("commit/")}


@cache
def trees() -> dict[str, ast.Module]:
    """The same, as trees."""
    return {name: ast.parse(text) for name, text in texts().items()}


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(node: ast.Call) -> str:
    """The last word of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_no_check_is_named_outside_commit() -> None:
    named = [
        (name, node.value)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ALL_CHECKS
    ]
    assert named == []


def test_nobody_outside_commit_says_what_an_attempt_does_next() -> None:
    decided = [
        (name, node.lineno)
        for name, tree in trees().items()
        if "attempt" in texts()[name].lower()
        for node in calls(tree)
        if called(node) in ("Attempt", "_replace") and {"phase", "unanswered"} & {word.arg for word in node.keywords}
    ]
    assert decided == []
    tables = {name: text for name, text in texts().items() if "(Phase." in text and "Happened." in text}
    assert [name for name, text in tables.items() if "): Phase." in text] == []


def test_no_clean_up_is_decided_outside_commit() -> None:
    removers = {
        name
        for name, tree in trees().items()
        for node in calls(tree)
        if called(node) == "delete" and isinstance(node.func, ast.Attribute) and "io" in ast.unparse(node.func.value)
    }
    assert removers <= set(REMOVERS), "whoever deletes files of a table is listed, and by whose leave"
    by_class = [
        (name, handler.lineno)
        for name, tree in trees().items()
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler)
        and "remove" in ast.unparse(handler)
        and any(family in ast.unparse(handler) for family in ("CommitRejected", "CommitUnknown", "CommitConflict"))
    ]
    assert by_class == [], "no clean-up by the class of an exception"


# ---------------------------------------------------------------- and everybody goes through it


PROTOCOL = {driver.call, driver.leave, attempt.Attempt.after, attempt.what_became, attempt.heard, attempt.removable}


def traced(run: Callable[[], object]) -> set[str]:
    """The functions of the protocol that were entered."""
    known = {function.__code__: function.__qualname__ for function in PROTOCOL}
    seen: set[str] = set()

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in known:
            seen.add(known[frame.f_code])

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


ALL = {function.__qualname__ for function in PROTOCOL}


def test_the_model_goes_through_the_driver() -> None:
    parameters = {"commands": "insert", "num-keys": "1", "unknown-outcomes": "true", "max-write-ops": "2"}
    model = build(parameters, POLICIES["lakeproof"])
    assert traced(lambda: check(model, engine="readable")) == ALL


def test_a_scenario_goes_through_the_driver() -> None:
    text = (SCENARIOS / "rule_17_late_request_is_dead_once_the_head_moved.txt").read_text(encoding="utf-8")
    scenario = parse_scenario(text, name="late")
    found = traced(lambda: find_differences(scenario, POLICIES["lakeproof"], AgainstChecks))
    assert found == ALL - {"leave", "removable"}  # a scenario writes no files


def test_the_runtime_goes_through_the_driver(tmp_path: Path) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path}/c.db", str(tmp_path / "w"))
    schema = Schema(NestedField(1, "id", LongType()))
    table = create_table(catalog, "t", schema, properties={"commit.retry.min-wait-ms": "1"})
    phases: list[str] = []

    def watched(phase: str) -> None:
        phases.append(phase)
        if phase == METADATA_WRITTEN and phases.count(phase) == 1:
            event.listen(Session, "before_commit", cut, once=True)

    def cut(_session: Session) -> None:
        raise OperationalError("commit", {}, Exception("the connection was cut"))

    assert traced(lambda: append(table, (), CommitOptions(on_phase=watched))) == ALL
    assert phases == [ATTEMPTING, METADATA_WRITTEN, LOOKING, ATTEMPTING, METADATA_WRITTEN, SWAPPED]

    wanted = replacement(Schema(NestedField(1, "other", LongType())))
    made = Replacing(wanted, wanted.of(table), TableChange(Command.INSERT), POLICIES["lakeproof"], {})
    phases.clear()
    assert traced(lambda: replace_with_rows(table, made, (), watched, reruns=0, reruns_left=False)) == ALL
    assert phases == [ATTEMPTING, METADATA_WRITTEN, LOOKING, ATTEMPTING, METADATA_WRITTEN, SWAPPED]
    replaced = load_table(catalog, "t")
    assert replaced.schema().column_names == ["other"]
    assert replaced.metadata.table_uuid == table.metadata.table_uuid
