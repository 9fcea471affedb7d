"""The walks of architecture.md are what really happens: each is compared with a trace of the statement that it tells.

A walk lists files in the order in which they are entered. The files of the last stretch stand on the stack at the
moment of the swap, from the statement down to the pointer: at most twelve, and none of them twice.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import lakeproof
from lakeproof.iceberg.committing.commit import FILES_WRITTEN
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
SOURCE = Path(lakeproof.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"
MOST_FILES = 12


Step = tuple[str, str]


def told(walk: str) -> list[Step]:
    """The files of a walk and the functions that they are entered by, as the page lists them."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.split(f"### {walk}\n")[1].split("\n##")[0]
    return re.findall(r"^\d+\. `([a-z_/0-9]+\.py)` `(\w+)`", part, re.MULTILINE)


def file_of(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    return Path(path).relative_to(SOURCE).as_posix() if path.startswith(str(SOURCE)) else None


def owners_of(step: Step) -> list[tuple[Any, Any, Any]]:
    """Whoever has the function (its class, modules that know it by name, tables of functions), under which key."""
    module = importlib.import_module("lakeproof." + step[0].removesuffix(".py").replace("/", "."))
    here = getattr(module, step[1], None)
    if here is None:
        classes = [each for each in vars(module).values() if isinstance(each, type)]
        own = [each for each in classes if each.__module__ == module.__name__ and step[1] in vars(each)]
        return [(each, step[1], vars(each)[step[1]]) for each in own]
    ours = [each for name, each in list(sys.modules.items()) if name.startswith("lakeproof")]
    tables = [table for each in ours for table in vars(each).values() if isinstance(table, dict)]
    found = [(each, step[1], here) for each in ours if vars(each).get(step[1]) is here]
    return found + [(table, key, here) for table in tables for key, value in table.items() if value is here]


class Trace:
    """Which functions of a walk were called, by their first calls, Spark's callbacks included; the stack at swaps."""

    def __init__(self, walk: str) -> None:
        self.walk, self.seen, self.stacks = told(walk), dict[Step, None](), list[list[str]]()

    def run(self, statement: Callable[[], object], patches: pytest.MonkeyPatch) -> None:
        with patches.context() as inside:
            for step in self.walk:
                owners = owners_of(step)
                assert owners, step
                for owner, key, real in owners:
                    put = inside.setitem if isinstance(owner, dict) else inside.setattr
                    put(owner, key, self._noting(real, step))
            statement()

    def _noting(self, real: Any, step: Step) -> Any:
        @functools.wraps(real)
        def called(*given: Any, **named: Any) -> Any:
            self.seen.setdefault(step)
            if step[1] == "swap":
                self.stacks.append([*stack_here(), step[0]])
            return real(*given, **named)

        return called

    def check(self) -> None:
        """The page tells what happened, and the way is straight."""
        assert list(self.seen) == self.walk
        assert len(self.walk) <= MOST_FILES
        for stack in self.stacks[-1:]:
            assert len(set(stack)) == len(stack), "a file is entered twice"
            assert stack == [file for file, _ in self.walk if file in stack]


def stack_here() -> list[str]:
    """The files on the stack, outermost first; neighbours of one file are one."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = file_of(frame)
        if name is not None and (not found or found[-1] != name):
            found.append(name)
        frame = frame.f_back
    return found[::-1]


def test_the_walk_of_an_insert(lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    trace = Trace("One INSERT")
    trace.run(lambda: lake.sql(f"insert into {name} values (2)"), monkeypatch)
    trace.check()
    assert len(trace.stacks) == 1


def test_the_walk_of_a_delete_that_runs_again(lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told_how = "'write.delete.mode' = 'merge-on-read', 'commit.retry.min-wait-ms' = '1'"
    lake.sql(f"create table {name} (id bigint, v bigint) using iceberg tblproperties ({told_how})")
    lake.sql(f"insert into {name} select /*+ coalesce(1) */ id, 0 from range(10)")
    others = [lake.engine.load(f"default.{name}")]

    def hook(phase: str) -> None:
        if phase == FILES_WRITTEN and others:  # somebody adds a row that the DELETE would have hit
            others.pop().append(pa.table({"id": [3], "v": [7]}))

    again: list[str] = []
    watched = lake.watched(on_phase=hook, on_rerun=lambda conflict: again.append(conflict.check))
    trace = Trace("One DELETE that runs again")
    trace.run(lambda: watched.sql(f"delete from {name} where id = 3 and v >= 0"), monkeypatch)
    trace.check()
    assert again == ["new_rows_match"]
    assert len(trace.stacks) == 1, "the first run was told to run again before it asked for a swap"
    assert lake.table(name).scan().where("id = 3").count() == 0


def test_the_walk_of_a_select(lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    lake.sql(f"insert into {name} select id from range(10)")
    trace = Trace("One SELECT")
    trace.run(lambda: lake.collect(lake.sql(f"select id from {name} where id > 3")), monkeypatch)
    trace.check()


def test_the_walk_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check", "iceberg", "--set", "preset=undelete", "--policy", "iceberg-spark"]
    command = importlib.import_module("lakeproof.cli.main")
    trace = Trace("One check")
    trace.run(lambda: command.main([*words, "--report", str(tmp_path / "page.html")]), monkeypatch)
    trace.check()
