"""Row-level commands in both modes, scans and counts after them, and a compaction, beside Apache Iceberg."""

from __future__ import annotations

from itertools import count as counted

from benchmarks.harness import Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from benchmarks.store import create, named, rows

SIZES = {False: (1_000_000, 12), True: (20_000_000, 30)}  # rows, files
WARM = 20_000  # rows of a table on which every command runs once before, so that no side pays for a cold start
TITLE = (
    "Commands on {rows:,} rows in {files} files, format version 2, merge-on-read and copy-on-write; each with a scan "
    "(an aggregate of three columns) and a count(*) after it. Every run takes other rows. After all of them the tables "
    "must hold the same rows; then the merge-on-read ones are compacted."
)
MODES = ("merge-on-read", "copy-on-write")
TIMES = {False: (5, 5), True: (2, 1)}  # how often each command is measured in each mode
COMMANDS = {
    "DELETE of 1 %": "delete from {table} where id % 100 = {run}",
    "UPDATE of 1 %": "update {table} set quantity = quantity + 1 where id % 100 = {run} + 50",
    "MERGE of 10 %": (
        "merge into {table} t using (select * from source where id % 10 = {run}) s on t.id = s.id "
        "when matched then update set quantity = s.quantity when not matched then insert *"
    ),
}
SCAN, COUNT = "select count(price), sum(quantity), max(note) from {table}", "select count(*) from {table}"
SUMS = "select count(*), sum(id), sum(quantity), sum(price) from {table}"


class Rows:
    """The lines and notes of this area as they come."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.lines: list[Line] = []
        self.notes: list[str] = []
        self.agreed: list[str] = []

    def fill(self, name: str, mode: str, count: int, files: int) -> None:
        """A table of that mode on every side, and the source of the MERGEs."""
        modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
        create(self.sides, name, properties=modes)
        made = rows(self.sides, count, files)
        self.sides.lake.table(name).append(made)
        if self.sides.peer:
            made.writeTo(f"peer.d.{name}").append()
        self.sides.spark.range(0, count + count // 100).selectExpr(
            "id", "1 customer", "2 item", "99 quantity", "0.5D price", "'merged' note", "5 month"
        ).createOrReplaceTempView("source")

    def sql(self, side: str, text: str) -> list[tuple[object, ...]]:
        """The rows that a statement gives on one side."""
        told = (self.sides.lake.sql if side == OURS else self.sides.sql)(text)
        return [tuple(row) for row in told.collect()]

    def measure(self, case: str, texts: dict[str, str], *, times: int, warm_up: int = 1) -> None:
        """One statement on every side; `{run}` counts the runs."""

        def of(side: str) -> Run:
            numbers = counted(1)
            return lambda: self.sql(side, texts[side].format(run=next(numbers)))

        runs = self.sides.with_peer({side: of(side) for side in texts})
        clock = self.sides.clock
        taken = interleaved(case, runs, beside=ICEBERG, clock=clock, repetitions=times, warm_up=warm_up)
        self.lines += taken.lines
        self.notes += taken.notes

    def on(self, table: str, text: str) -> dict[str, str]:
        """The statement as each side spells the table."""
        return {side: text.replace("{table}", named(side, table)) for side in (OURS, ICEBERG)}

    def commands(self, table: str, mode: str, *, times: int) -> None:
        """Each command, and what reading costs after it."""
        for case, text in COMMANDS.items():
            self.measure(f"{case}, {mode}", self.on(table, text), times=times, warm_up=0)
            self.measure(f"scan after it, {mode}: {case[:6]}", self.on(table, SCAN), times=times)
            self.measure(f"count(*) after it, {mode}: {case[:6]}", self.on(table, COUNT), times=times)

    def compaction(self, table: str) -> None:
        """Once: a second one would have nothing left to do."""
        ours = f"call system.rewrite_data_files(table => '{table}')"
        theirs = (
            f"call peer.system.rewrite_data_files(table => 'd.{table}', options => map('rewrite-all', 'true', "
            "'remove-dangling-deletes', 'true'))"
        )
        self.measure("compaction after them", {OURS: ours, ICEBERG: theirs}, times=1, warm_up=0)

    def agree(self, table: str, when: str) -> None:
        """Both sides must hold the same rows, if both ran everything."""
        if self.sides.peer and not self.notes:
            mine, theirs = (self.sql(side, text)[0] for side, text in self.on(table, SUMS).items())
            assert [round(float(str(v)), 2) for v in mine] == [round(float(str(v)), 2) for v in theirs], (mine, theirs)
            self.agreed.append(f"{when} both tables held the same rows (count and sums compared).")


def run(*, full: bool) -> Result:
    """Commands first, the compaction of what they left last."""
    count, files = SIZES[full]
    watch = Stopwatch("rows", TITLE.format(rows=count, files=files), full=full)
    with all_sides(memory="6g") as sides:
        sides.spark.conf.unset("spark.sql.files.minPartitionNum")  # small tables are read on all cores, as by the peer
        area = Rows(sides)
        for mode in MODES:
            warm = f"warm_{mode[:4]}"
            area.fill(warm, mode, WARM, 6)
            area.commands(warm, mode, times=1)
        area.compaction("warm_merg")
        area.lines.clear()
        for mode, times in zip(MODES, TIMES[full], strict=True):
            table = f"sales_{mode[:4]}"
            area.fill(table, mode, count, files)
            area.commands(table, mode, times=times)
            area.agree(table, f"After all commands, {mode},")
        area.compaction("sales_merg")
        area.agree("sales_merg", "After the compaction")
        return watch.result(area.lines, [*sides.notes, *area.notes, *area.agreed])
