"""The fast engine: its sets of states, its growing fields, its limits, and when it is chosen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from checker_runs import assert_all_shown, words
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import cells, clock, letters, retry_loop, ring

from lakeproof.checker import check
from lakeproof.checker.limits import Cut, Watch
from lakeproof.checker.readable import Successors
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger

pytestmark = pytest.mark.slow  # numba compiles for some seconds where nothing is kept from a run before

numbers = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5000), unique=True).map(sorted)


@settings(max_examples=100)
@given(numbers, numbers)
def test_a_run_is_a_set(some: list[int], others: list[int]) -> None:
    import numpy as np

    from lakeproof.checker.fast.sorted_runs import SortedRun, add_run

    a, b = np.array(some, np.uint64), np.array(sorted({*others} - {*some}), np.uint64)
    runs: list[SortedRun] = []
    for part in (a, b):
        if len(part):
            add_run(runs, SortedRun.of(part))
    assert sorted(state for run in runs for state in run.states().tolist()) == sorted({*some, *others})
    if len(a):
        wanted = np.array(others, np.uint64)
        left = SortedRun.of(a).without(wanted, len(wanted))
        assert wanted[:left].tolist() == [number for number in others if number not in some]


def test_a_run_of_many_blocks_is_searched_through_its_index() -> None:
    import numpy as np

    from lakeproof.checker.fast.sorted_runs import BLOCK, SortedRun

    states = np.arange(0, 70 * BLOCK * 3, 3, dtype=np.uint64)
    run = SortedRun.of(states)
    assert len(run.keys) == 70
    assert len(run.buffer) == len(states)
    for stride in (1, 7, 4096, 50_021):
        wanted = np.arange(0, 70 * BLOCK * 3 + 10, stride, dtype=np.uint64)
        expected = np.setdiff1d(wanted, states)
        left = run.without(wanted, len(wanted))
        assert wanted[:left].tolist() == expected.tolist()


@pytest.mark.parametrize("symmetric", [False, True])
def test_tiny_buffers_and_two_workers_change_nothing(symmetric: bool) -> None:
    from lakeproof.checker.fast.engine import Search
    from lakeproof.checker.fast.explore import explore

    tables = Tables(cells(3, 2, 2, 1))
    successors = Successors(tables, symmetric=symmetric)
    ledger = Ledger(tables)
    search = Search(successors, workers=2, buffer=4, narrow=0)
    seen = explore(successors, ledger, Watch(Cut()), search)
    plain = check(cells(3, 2, 2, 1), engine="readable", reductions=symmetric)
    assert (seen.states, seen.transitions, seen.depth) == (plain.states, plain.transitions, plain.depth)
    assert seen.counts.taken == {name: count.taken for name, count in plain.statistics.steps.items()}
    assert len(search.workers[0].out) > 4, "a state with more successors than the buffer holds makes it grow"
    assert len({level.layout for level in search.levels}) > 1, "fields grew on the way"
    assert ledger.found.keys() == {"not_all_last", "lost"}
    path = seen.path_to(ledger.found["not_all_last"])
    assert len(path) == plain.property("not_all_last").depth + 1  # type: ignore[operator]


def test_a_large_space_is_given_to_the_fast_engine() -> None:
    model = cells(3, 2, 4, 2)
    auto, readable = check(model), check(model, engine="readable")
    assert (auto.engine, readable.engine) == ("fast", "readable")
    assert auto.states == readable.states == 291_600
    assert (auto.transitions, auto.depth) == (readable.transitions, readable.depth)
    assert words(auto) == words(readable)
    assert auto.statistics == readable.statistics
    assert auto.compile_seconds > 0
    assert_all_shown(model, auto)


def test_a_small_space_does_not_start_numba() -> None:
    code = (
        "import sys, toys; from lakeproof.checker import check; check(toys.letters(3)); print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


def test_a_state_that_does_not_fit_goes_to_the_readable_engine() -> None:
    verdict = check(ring(20, 20), engine="fast")
    assert verdict.engine == "readable"
    assert verdict.notes == ("searched by the readable engine: a state needs 81 bits",)
    assert (verdict.verdict, verdict.states, verdict.depth) == ("holds", 401, 400)
    fits = check(ring(6, 20), engine="fast")
    assert (fits.engine, fits.verdict, fits.states, fits.notes) == ("fast", "holds", 121, ())


def test_runs_that_end_are_proved_to_end_without_the_graph() -> None:
    from lakeproof.checker.fast.explore import explore

    for model, acyclic in ((letters(3), True), (ring(4, 5), True), (retry_loop(2), None), (clock(), None)):
        tables = Tables(model)
        successors = Successors(tables, symmetric=True)
        assert explore(successors, Ledger(tables), Watch(Cut())).acyclic is acyclic, model.name


def test_limits_cut_the_fast_engine_too() -> None:
    model = cells(4, 3, 4)
    few = check(model, engine="fast", max_states=100_000)
    assert (few.verdict, few.cut_by, few.exhausted) == ("unknown", "max-states", False)
    assert few.states > 100_000
    brief = check(model, engine="fast", max_seconds=0.2)
    assert (brief.verdict, brief.cut_by) == ("unknown", "max-seconds")
    first = check(cells(3, 3, 4), engine="fast", first=True)
    assert (first.verdict, first.cut_by) == ("violated", "first violation")
    assert first.property("not_all_last").depth == 15


def test_ctrl_c_stops_the_fast_engine_with_what_it_has() -> None:
    model = cells(4, 2, 2, 1)
    check(clock(), engine="fast")  # compiled
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    verdict = check(cells(5, 4, 4), engine="fast", max_seconds=60)
    timer.join()
    assert (verdict.verdict, verdict.cut_by) == ("unknown", "Ctrl-C")
    assert verdict.states > 10_000
    assert check(model, engine="fast").exhausted


def test_machine_code_finds_a_place_where_the_package_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakeproof.checker.fast.jit import cache_folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder(tmp_path) == ""
    assert cache_folder(tmp_path / "not there") == str(tmp_path / "cache" / "lakeproof")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert Path(cache_folder(tmp_path / "not there")).name == f"lakeproof-{os.getuid()}"
