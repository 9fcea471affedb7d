"""What format version 3 costs beside version 2, both of ours: commands, scans that do not ask for lineage, vectors."""

from __future__ import annotations

from itertools import count as counted
from random import Random

import numpy as np

from benchmarks.goals import THREE, TWO
from benchmarks.harness import Clock, Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import Sides, all_sides
from benchmarks.store import CODEC, COLUMNS, rows
from lakeproof.format import row_set
from lakeproof.iceberg.format_v3.puffin import positions_in, puffin_of

VERSIONS = {TWO: 2, THREE: 3}
SIZES = {False: (1_000_000, 12, 5), True: (5_000_000, 24, 9)}  # rows, files, how often each command is measured
WARM = 20_000
SCANS = 9
DELETED = 1_000_000
TITLE = (
    "Our commands on tables of both format versions, {rows:,} rows in {files} files, in turns; every run takes other "
    "rows. A scan that asks for no lineage is measured before and after them. 'merge' takes a vector of {deleted:,} "
    "positions from its bytes, adds ten to it and writes it as a Puffin file again, in the driver's memory."
)
COMMANDS = {
    "DELETE of 1 %": "delete from {table} where id % 100 = {run}",
    "UPDATE of 1 %": "update {table} set quantity = quantity + 1 where id % 100 = {run} + 50",
    "MERGE of 10 %": (
        "merge into {table} t using (select * from source where id % 10 = {run}) s on t.id = s.id "
        "when matched then update set quantity = s.quantity when not matched then insert *"
    ),
}
SCAN = "select count(price), sum(quantity), max(note) from {table}"
SUMS = "select count(*), sum(id), sum(quantity) from {table}"


def run(*, full: bool) -> Result:
    """Both modes, then vectors."""
    count, files, times = SIZES[full]
    watch = Stopwatch("versions", TITLE.format(rows=count, files=files, deleted=DELETED), full=full)
    with all_sides(memory="6g") as sides:
        sides.spark.conf.unset("spark.sql.files.minPartitionNum")  # small tables are read on all cores
        for mode in ("merge-on-read", "copy-on-write"):
            _measured(sides, f"warm_{mode[:4]}", mode, (WARM, 6), 1)
        lines = [
            line
            for mode in ("merge-on-read", "copy-on-write")
            for line in _measured(sides, f"sales_{mode[:4]}", mode, (count, files), times)
        ]
    return watch.result([*lines, *_merged(Clock())])


def _measured(sides: Sides, name: str, mode: str, size: tuple[int, int], times: int) -> list[Line]:
    """The commands of one mode on a table of each version, which must hold the same rows afterwards."""
    count, files = size
    tables = {side: f"{name}_v{version}" for side, version in VERSIONS.items()}
    modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
    for side, table in tables.items():
        told = f"{modes}, 'format-version'='{VERSIONS[side]}', 'write.parquet.compression-codec'='{CODEC}'"
        sides.lake.sql(f"create table {table} ({COLUMNS}) using iceberg partitioned by (month) tblproperties ({told})")
        sides.lake.table(table).append(rows(sides, count, files))
    sides.spark.range(0, count + count // 100).selectExpr(
        "id", "1 customer", "2 item", "99 quantity", "0.5D price", "'merged' note", "5 month"
    ).createOrReplaceTempView("source")

    def asked(text: str) -> dict[str, Run]:
        return {side: _runs(sides, table, text) for side, table in tables.items()}

    def taken(case: str, text: str, repetitions: int, warm_up: int) -> tuple[Line, ...]:
        found = interleaved(case, asked(text), beside=TWO, clock=sides.clock, repetitions=repetitions, warm_up=warm_up)
        assert not found.notes, found.notes
        return found.lines

    lines = [*taken(f"scan before them, {mode}", SCAN, SCANS, 2)]
    for case, text in COMMANDS.items():
        lines += taken(f"{case}, {mode}", text, times, 0)
    lines += taken(f"scan after them, {mode}", SCAN, SCANS, 2)
    held = {side: sides.lake.sql(SUMS.format(table=table)).collect() for side, table in tables.items()}
    assert held[TWO] == held[THREE], held
    return lines


def _runs(sides: Sides, table: str, text: str) -> Run:
    numbers = counted(1)
    return lambda: sides.lake.sql(text.format(table=table, run=next(numbers))).collect()


def _merged(clock: Clock) -> list[Line]:
    """A vector of many positions, as they come: scattered, and in a row."""
    taken: list[Line] = []
    scattered = np.sort(np.array(Random(7).sample(range(10 * DELETED), DELETED)))
    for case, positions in (("scattered", scattered), ("one after another", np.arange(DELETED))):
        data, blobs = puffin_of({"file": row_set(positions)})
        place = blobs["file"]
        blob = data[place.offset : place.offset + place.size]
        more = row_set(range(5, 50, 5))

        def merge(blob: bytes = blob, more: int = more) -> None:
            puffin_of({"file": row_set(positions_in(blob)) | more})

        name = f"merge of a vector of {DELETED:,} positions, {case}"
        taken += interleaved(name, {THREE: merge}, beside=THREE, clock=clock, repetitions=SCANS, warm_up=2).lines
    return taken
