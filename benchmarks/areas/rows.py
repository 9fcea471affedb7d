"""Row-level commands and compaction on merge-on-read tables, beside Apache Iceberg."""

from __future__ import annotations

from itertools import count as counted

from benchmarks.harness import Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from benchmarks.store import fill, named

SIZES = {False: (1_000_000, 12), True: (20_000_000, 30)}  # rows, files
TITLE = (
    "Merge-on-read commands on {rows:,} rows in {files} files, format version 2. Every run takes other rows. After "
    "all of them both tables must hold the same rows; then they are compacted."
)
COMMANDS = {
    "DELETE of 1 %": "delete from {table} where id % 100 = {run}",
    "UPDATE of 1 %": "update {table} set quantity = quantity + 1 where id % 100 = {run}",
    "MERGE of 5 %": (
        "merge into {table} t using (select * from source where id % 20 = {run}) s on t.id = s.id "
        "when matched then update set quantity = s.quantity when not matched then insert *"
    ),
}
COMPACTION = {
    OURS: "call system.rewrite_data_files(table => 'sales')",
    ICEBERG: "call peer.system.rewrite_data_files(table => 'd.sales', options => map('rewrite-all', 'true'))",
}


def run(*, full: bool) -> Result:
    """Commands first, the compaction of what they left last."""
    count, files = SIZES[full]
    watch = Stopwatch("rows", TITLE.format(rows=count, files=files), full=full)
    with all_sides() as sides:
        fill(sides, "sales", count, files)
        sides.spark.range(0, count + count // 100).selectExpr(
            "id", "1 customer", "2 item", "99 quantity", "0.5D price", "'merged' note", "5 month"
        ).createOrReplaceTempView("source")
        lines, notes = [], list(sides.notes)
        for case, text in COMMANDS.items():
            taken = measured(sides, case, text)
            lines += taken[0]
            notes += taken[1]
        compacted, more = compaction(sides)
        return watch.result(lines + compacted, [*notes, *agreement(sides, notes), *more])


def measured(sides: Sides, case: str, text: str) -> tuple[list[Line], list[str]]:
    """One command, on other rows each time."""

    def command(side: str) -> Run:
        numbers = counted(1)

        def once() -> None:
            spelled = text.format(table=named(side, "sales"), run=next(numbers))
            (sides.lake.sql if side == OURS else sides.sql)(spelled)

        return once

    runs = sides.with_peer({OURS: command(OURS), ICEBERG: command(ICEBERG)})
    taken = interleaved(case, runs, beside=ICEBERG, clock=sides.clock, repetitions=3)
    return list(taken.lines), list(taken.notes)


def compaction(sides: Sides) -> tuple[list[Line], list[str]]:
    """Once: a second one would have nothing left to do."""
    runs: dict[str, Run] = {
        OURS: lambda: sides.lake.sql(COMPACTION[OURS]),
        ICEBERG: lambda: sides.sql(COMPACTION[ICEBERG]),
    }
    taken = interleaved(
        "compaction after them", sides.with_peer(runs), beside=ICEBERG, clock=sides.clock, repetitions=1, warm_up=0
    )
    return list(taken.lines), list(taken.notes)


def agreement(sides: Sides, notes: list[str]) -> list[str]:
    """Whether both tables hold the same rows, if both ran the same commands."""
    if not sides.peer or len(notes) > len(sides.notes):
        return []
    sums = "select count(*), sum(id), sum(quantity), sum(price) from {}"
    mine = sides.lake.sql(sums.format(named(OURS, "sales"))).collect()[0]
    theirs = sides.sql(sums.format(named(ICEBERG, "sales"))).collect()[0]
    assert [round(value, 2) for value in mine] == [round(value, 2) for value in theirs], (mine, theirs)
    return ["After all commands both tables held the same rows (count and sums compared)."]
