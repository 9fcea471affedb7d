"""Ctrl-C at any moment of an audit or a repair: exit 130, one word, and a table as before or as it should be."""

from __future__ import annotations

import errno
import inspect
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from lakehouse import Lakehouse, files_below, path_of, rows_of
from plantings import PLANTINGS
from pyiceberg.io.pyarrow import PyArrowFileIO
from test_audit import a_delete_file_that_points_nowhere, good

import lakeproof
from lakeproof.audit import Depth
from lakeproof.audit.repairing.plan import apply_plan, make_plan
from lakeproof.cli.main import main
from lakeproof.commit import POLICIES
from lakeproof.errors import Unavailable
from lakeproof.iceberg.inspecting.opening import open_by_name

HERE = str(Path(lakeproof.__file__).parent)
MOMENTS = int(os.environ.get("LAKEPROOF_STOPS", "5"))
"""Of each command; `make soak` takes more."""


class Ctrl_C:
    """Raises what Ctrl-C raises, at one of the calls of our own functions."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.calls = at, 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        lives_on = frame.f_code.co_flags & inspect.CO_GENERATOR  # and may be closed where nobody hears of an exception
        if event == "call" and not lives_on and frame.f_code.co_filename.startswith(HERE):
            self.calls += 1
            if self.calls == self.at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    @contextmanager
    def pressed(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def counted_wrongly(lake: Lakehouse) -> list[Any]:
    table = good(lake)
    rows = rows_of(table)
    next(one for one in PLANTINGS if one.name == "a list that counts other files").plant(table)
    return rows


def moved_file(lake: Lakehouse) -> list[Any]:
    table = good(lake)
    rows = rows_of(table)
    lost = path_of(next(iter(table.scan().plan_files())).file.file_path)
    (lost.parent / "aside").mkdir()
    shutil.move(lost, lost.parent / "aside" / lost.name)
    return rows


def dangling_delete(lake: Lakehouse) -> list[Any]:
    table = good(lake)
    rows = rows_of(table)
    a_delete_file_that_points_nowhere(table)
    return rows


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path / "lake")


def spread(calls: int) -> range:
    """Moments from the first call to one shortly before the last: not every run has as many."""
    return range(2, calls * 49 // 50, calls // MOMENTS)


def kinds(lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> set[str]:
    capsys.readouterr()
    main(["audit", "t", "--json", "--catalog", lake.uri, "--warehouse", lake.warehouse])
    return {one["kind"] for one in json.loads(capsys.readouterr().out)["findings"]} - {"unreferenced_file"}


@pytest.mark.parametrize("damage", [counted_wrongly, moved_file, dangling_delete])
def test_a_repair_that_is_stopped_is_done_or_not(
    tmp_path: Path, lake: Lakehouse, damage: Callable[[Lakehouse], list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = damage(lake)
    before, words = (
        kinds(lake, capsys),
        ["repair", "t", "--apply", "--catalog", lake.uri, "--warehouse", lake.warehouse],
    )
    kept = Path(shutil.copytree(lake.folder, tmp_path / "kept"))

    def again() -> None:
        shutil.rmtree(lake.folder)
        shutil.copytree(kept, lake.folder)
        capsys.readouterr()

    assert main(words) == 0  # the first time more is done than later
    again()
    whole = Ctrl_C()
    with whole.pressed():
        assert main(words) == 0
    ends = []
    for at in spread(whole.calls):
        again()
        with Ctrl_C(at).pressed():
            code = main(words)
        assert (code, capsys.readouterr().err) == (130, "stopped\n"), at
        found = kinds(lake, capsys)
        assert found in (before, set()), (at, found)
        ends.append(found == set())
        assert main(words) == 0
        assert kinds(lake, capsys) == set()
        assert rows_of(lake.as_pyiceberg_opens_it()) == rows
    assert False in ends
    assert ends == sorted(ends)  # the later, the more is done


def test_an_audit_that_is_stopped_changes_nothing(lake: Lakehouse, capsys: pytest.CaptureFixture[str]) -> None:
    counted_wrongly(lake)
    words = ["audit", "t", "--deep", "--checksums", "--json", "--catalog", lake.uri, "--warehouse", lake.warehouse]
    assert main(words) == 1
    whole = Ctrl_C()
    with whole.pressed():
        assert main(words) == 1
    before = files_below(lake.warehouse)
    for at in spread(whole.calls):
        capsys.readouterr()
        with Ctrl_C(at).pressed():
            assert main(words) == 130, at
        told = capsys.readouterr()
        assert told.err == "stopped\n"
        assert told.out == "" or json.loads(told.out)
    assert files_below(lake.warehouse) == before


class StopsHalfway(PyArrowFileIO):
    """Ctrl-C comes, or the disk is full, when half of a file is written."""

    error: BaseException = KeyboardInterrupt()

    def new_output(self, location: str) -> Any:
        whole, error = super().new_output(location), self.error

        class Half:
            def create(self, *, overwrite: bool = False) -> Half:
                self.stream = whole.create(overwrite)
                return self

            def __enter__(self) -> Half:
                return self

            def write(self, data: bytes) -> None:
                self.stream.write(data[: len(data) // 2])
                raise error

            def __exit__(self, *_: object) -> None:
                self.stream.close()

        return Half()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_file_that_is_copied_back_is_never_there_by_half(lake: Lakehouse, error: BaseException) -> None:
    moved_file(lake)
    raw = open_by_name(lake.catalog, "t")
    before = files_below(lake.warehouse)
    StopsHalfway.error = error
    raw = raw._replace(io=StopsHalfway(raw.io.properties))
    plan = make_plan(raw, POLICIES["lakeproof"], depth=Depth())
    assert [step.kind for step in plan.steps] == ["missing_file"]
    with pytest.raises((KeyboardInterrupt, Unavailable)):
        apply_plan(raw, plan)
    assert files_below(lake.warehouse) == before
