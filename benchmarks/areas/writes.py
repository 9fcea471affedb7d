"""Writing: many rows at once, and one row at a time."""

from __future__ import annotations

from itertools import count as counted

from benchmarks.harness import Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, PLAIN, Sides, all_sides
from benchmarks.store import CODEC, create, rows

SIZES = {False: (1_000_000, 3, 12), True: (10_000_000, 3, 50)}  # rows, repetitions, single-row commits
TITLE = (
    "An INSERT of {rows:,} rows into six partitions, beside `partitionBy` of plain Spark Parquet, and INSERTs of one "
    "row, each a commit. Apache Iceberg writes with `write.distribution-mode=none`, so that nobody shuffles; everybody "
    "compresses with zstd. Our catalog is a SQLite file, Apache Iceberg's its Hadoop catalog on the same disk; plain "
    "Parquet commits nothing but its files."
)


def run(*, full: bool) -> Result:
    """Both, into fresh tables."""
    many, repetitions, singles = SIZES[full]
    watch = Stopwatch("writes", TITLE.format(rows=many), full=full)
    with all_sides() as sides:
        lines = large(sides, many, repetitions) + single(sides, singles)
        return watch.result(lines, sides.notes)


def large(sides: Sides, many: int, repetitions: int) -> list[Line]:
    """Every run writes the rows once more."""
    create(sides, "large")
    rows(sides, many, 12).createOrReplaceTempView("rows")
    folders = counted()

    def plain() -> None:
        made = sides.sql("select * from rows")
        made.write.partitionBy("month").parquet(
            str(sides.folder / "plain" / f"large-{next(folders)}"), compression=CODEC
        )

    runs: dict[str, Run] = {
        PLAIN: plain,
        OURS: lambda: sides.lake.sql("insert into large select * from rows"),
        ICEBERG: lambda: sides.sql("insert into peer.d.large select * from rows"),
    }
    case = f"INSERT of {many:,} rows"
    clock = sides.clock
    taken = interleaved(case, sides.with_peer(runs), beside=PLAIN, clock=clock, repetitions=repetitions)
    return list(taken.lines)


def single(sides: Sides, repetitions: int) -> list[Line]:
    """One row per commit; the tables grow as they would."""
    create(sides, "single")
    row = "values (1, 2, 3, 4, 5.0, 'six', 1)"

    def plain() -> None:
        made = sides.sql(f"select * from {row} as t (id, customer, item, quantity, price, note, month)")
        folder = str(sides.folder / "plain" / "single")
        made.write.mode("append").partitionBy("month").parquet(folder, compression=CODEC)

    runs: dict[str, Run] = {
        PLAIN: plain,
        OURS: lambda: sides.lake.sql(f"insert into single {row}"),
        ICEBERG: lambda: sides.sql(f"insert into peer.d.single {row}"),
    }
    clock = sides.clock
    taken = interleaved(
        "INSERT of one row", sides.with_peer(runs), beside=PLAIN, clock=clock, repetitions=repetitions, warm_up=3
    )
    return list(taken.lines)
