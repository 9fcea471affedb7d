"""Reading: the same rows in the same number of files, beside plain Spark Parquet and Apache Iceberg."""

from __future__ import annotations

from benchmarks.harness import Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, PLAIN, Sides, all_sides
from benchmarks.store import fill, named, plain_path

SIZES = {False: (3_000_000, 30, 1_000), True: (20_000_000, 30, 10_000)}  # rows, files, small files
TITLE = (
    "Queries on {rows:,} rows in {files} files of six partitions, and on {small:,} small files, beside plain Spark "
    "Parquet whose listing is cached. Each query is written as SQL and run to its end. All files are of zstd; "
    "our catalog is a SQLite file, Apache Iceberg's is its Hadoop catalog on the same disk."
)


def queries(count: int) -> dict[str, str]:
    """The queries by name; the first is run into a sink that keeps nothing."""
    low = count // 2
    return {
        "full scan": "select * from {}",
        "two-column aggregate": "select sum(quantity), avg(price) from {}",
        "partition filter": "select sum(price) from {} where month = 3",
        "statistics filter": f"select sum(price) from {{}} where id between {low} and {low + 10_000}",
        "count(*)": "select count(*) from {}",
    }


def run(*, full: bool) -> Result:
    """Every query on every side."""
    count, files, small = SIZES[full]
    watch = Stopwatch("scans", TITLE.format(rows=count, files=files, small=small), full=full)
    with all_sides() as sides:
        fill(sides, "sales", count, files, plain=True)
        fill(sides, "small", small * 100, small, plain=True)
        for name in ("sales", "small"):
            sides.spark.read.parquet(plain_path(sides, name)).createOrReplaceTempView(f"plain_{name}")
        lines: list[Line] = []
        for case, query in queries(count).items():
            lines += measured(sides, case, query, "sales", 7)
        lines += measured(sides, f"sum over {small:,} files", "select sum(quantity) from {}", "small", 3)
        return watch.result(lines, sides.notes)


def measured(sides: Sides, case: str, query: str, table: str, repetitions: int) -> list[Line]:
    """One query on every side; aggregates must agree."""
    answers: dict[str, object] = {}

    def asked(side: str) -> Run:
        text = query.format(named(side, table))

        def ask() -> None:
            rows = sides.lake.sql(text) if side == OURS else sides.sql(text)
            if case == "full scan":
                rows.write.format("noop").mode("overwrite").save()
            else:
                answers[side] = [round(value, 3) for value in rows.collect()[0]]

        return ask

    runs = sides.with_peer({side: asked(side) for side in (PLAIN, OURS, ICEBERG)})
    taken = interleaved(case, runs, beside=PLAIN, clock=sides.clock, repetitions=repetitions, warm_up=4)
    assert len({str(answer) for answer in answers.values()}) <= 1, answers
    return list(taken.lines)
