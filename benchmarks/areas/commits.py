"""Many small commits at once on one table: how many land in a second, and how many are refused."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark import InheritableThread

from benchmarks.harness import Line, Timing
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from benchmarks.store import MERGE_ON_READ, create, named
from lakeproof.errors import CommitConflict, CommitRejected

TITLE = (
    "Writers in threads of one session, each with {each} commands on one table; no two of them touch the same row, so "
    "every abort is a false one. Tables are merge-on-read at snapshot isolation, with default retries."
)
WRITERS, EACH = (1, 4, 8), {False: 5, True: 20}
SNAPSHOT = ", ".join(f"'write.{command}.isolation-level'='snapshot'" for command in ("delete", "update", "merge"))
WORKLOADS = {
    "INSERT one row": "insert into {table} values ({id}, 0, 0, 0, 0.0, 'new', 1)",
    "UPDATE other rows of one partition": "update {table} set quantity = 9 where id = {id}",
}


def run(*, full: bool) -> Result:
    """Every workload with every number of writers, on each side in turn."""
    watch = Stopwatch("commits", TITLE.format(each=EACH[full]), full=full, plotted="commits/s")
    with all_sides() as sides:
        lines = []
        for number, (case, text) in enumerate(WORKLOADS.items()):
            for writers in WRITERS:
                name = f"w{number}_{writers}"
                prepare(sides, name, writers * EACH[full])
                lines += [
                    one for side in _present(sides) for one in measured(sides, side, name, case, text, writers, full)
                ]
        return watch.result(lines, sides.notes)


def _present(sides: Sides) -> list[str]:
    return [OURS, ICEBERG] if sides.peer else [OURS]


def prepare(sides: Sides, name: str, rows: int) -> None:
    """A table with a row for every command, and one more commit so that nobody's first is cold."""
    create(sides, name, properties=f"{MERGE_ON_READ}, {SNAPSHOT}")
    values = f"select cast(id as bigint), 1, 1, 1, 1.0D, 'old', 1 from range(0, {rows + 1}, 1, 1)"
    for side in _present(sides):
        for text in (
            f"insert into {named(side, name)} {values}",
            f"update {named(side, name)} set item = 2 where id = {rows}",
        ):
            (sides.lake.sql if side == OURS else sides.sql)(text)


def measured(sides: Sides, side: str, name: str, case: str, text: str, writers: int, full: bool) -> list[Line]:
    """All writers at once; what each of their commands came to."""
    table, each = named(side, name), EACH[full]
    sql: Callable[[str], object] = sides.lake.sql if side == OURS else sides.sql
    aborts: list[str] = []
    broken: list[Exception] = []

    def writer(number: int) -> None:
        for at in range(each):
            try:
                sql(text.format(table=table, id=number * each + at))
            except Exception as error:
                (aborts if is_abort(error) else broken).append(error)  # type: ignore[arg-type]

    threads = [InheritableThread(target=writer, args=(number,)) for number in range(writers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if broken:
        raise broken[0]
    done = writers * each - len(aborts)
    more = {"commands": writers * each, "aborts": len(aborts), "commits/s": round(done / seconds, 2)}
    who = f"{writers} writer{'s' if writers > 1 else ''}"
    return [Line(f"{case}, {who}", side, ICEBERG, (Timing(seconds),), more)]


def is_abort(error: Exception) -> bool:
    """A refused commit, and not a mistake of the benchmark."""
    if isinstance(error, CommitConflict | CommitRejected):
        return True
    return any(word in str(error) for word in ("ValidationException", "CommitFailedException", "Cannot commit"))
