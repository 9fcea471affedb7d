"""Small statements: what a statement costs before any data does, beside Apache Iceberg and an older version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

from benchmarks.goals import BEFORE
from benchmarks.harness import Clock, Line, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from benchmarks.statement_process import StatementProcess
from benchmarks.store import create, named

TITLE = (
    "Statements on a table of sixty small partitions, {repetitions} of each; every one a commit but for the counts. "
    "Where LAKEPROOF_BENCH_BEFORE names the `src` folder of an older version, that version runs beside this one, each "
    "in a process of its own, and the ratio is to it; else it is to Apache Iceberg."
)
REPETITIONS = {False: 9, True: 25}
PARTITIONS = 60
STATEMENTS = {
    "count(*)": "select count(*) from {table}",
    "count(*) of a partition": "select count(*) from {table} where month = {n}",
    "INSERT one row": "insert into {table} values ({n}, 0, 0, 0, 0.0, 'new', {n})",
    "UPDATE one row": "update {table} set quantity = quantity + 1 where id = {n}",
    "DELETE one row": "delete from {table} where id = {n} + 1000",
    "MERGE one row": "merge into {table} t using (select {n} id, 9 q) s on t.id = s.id "
    "when matched then update set quantity = s.q",
    "DELETE a partition": "delete from {table} where month = {n}",
}


def run(*, full: bool) -> Result:
    """Each statement on every side in turn."""
    repetitions = REPETITIONS[full]
    watch = Stopwatch("statements", TITLE.format(repetitions=repetitions), full=full)
    before = os.environ.get("LAKEPROOF_BENCH_BEFORE")
    with all_sides() as sides, ExitStack() as stack:
        processes = {}
        if before:
            here = os.path.join(os.path.dirname(__file__), "..", "..", "src")
            for side, source in ((OURS, os.path.abspath(here)), (BEFORE, before)):
                processes[side] = stack.enter_context(StatementProcess(source, str(sides.folder / side)))
        runners = {side: process.run for side, process in processes.items()} or {OURS: _collected(sides)}
        if sides.peer:
            runners[ICEBERG] = _peer(sides)
        _fill(sides, runners)
        beside = BEFORE if before else ICEBERG if sides.peer else OURS
        lines = [line for case in STATEMENTS for line in measured(case, runners, beside, repetitions, sides.clock)]
        return watch.result(lines, sides.notes)


def _collected(sides: Sides) -> Callable[[str], None]:
    def run_here(text: str) -> None:
        made = sides.lake.sql(text)
        if made.columns:
            made.collect()

    return run_here


def _peer(sides: Sides) -> Callable[[str], None]:
    def run_there(text: str) -> None:
        made = sides.sql(text)
        if made.columns:
            made.collect()

    return run_there


def _fill(sides: Sides, runners: dict[str, Callable[[str], None]]) -> None:
    """Every partition holds a few rows, in a file of its own."""
    create(sides, "small")
    rows = f"select id, 0, 0, 0, 0.0D, 'x', cast(id % {PARTITIONS} as int) from range(0, 3000, 1, 1)"
    for side, runner in runners.items():
        if side == BEFORE or (side == OURS and BEFORE in runners):
            for text in StatementProcess.schema("small"):
                runner(text)
        runner(f"insert into {named(side if side == ICEBERG else OURS, 'small')} {rows}")


def measured(
    case: str, runners: dict[str, Callable[[str], None]], beside: str, repetitions: int, clock: Clock
) -> Iterator[Line]:
    """One statement, with another number each time."""
    numbers = {side: count() for side in runners}

    def once(side: str) -> Callable[[], None]:
        table = named(side if side == ICEBERG else OURS, "small")
        return lambda: runners[side](STATEMENTS[case].format(table=table, n=next(numbers[side])))

    runs = {side: once(side) for side in runners}
    yield from interleaved(case, runs, beside=beside, clock=clock, repetitions=repetitions, warm_up=3).lines
