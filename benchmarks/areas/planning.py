"""Which files a scan reads, from metadata alone: tables of many files, none of which exists."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from benchmarks.harness import Line, Run, interleaved
from benchmarks.results import Result, Stopwatch
from benchmarks.session import ICEBERG, OURS, Sides, all_sides
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import (
    DataFile,
    DataFileContent,
    FileFormat,
    IntegerType,
    LongType,
    NestedField,
    Record,
    Schema,
    Table,
)
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.tables import PartitionBy, create_table, load_table

TITLE = (
    "The plan of a scan over tables of metadata alone, beside PyIceberg's `plan_files`. 'fresh process' finds decoded "
    "manifests on disk, 'first time' finds nothing; Apache Iceberg plans in Java. 'in Spark' is the way from SQL to "
    "tasks, the hand-over of the files included."
)
WARM, DISK, FIRST, PYICEBERG = OURS, f"{OURS}, fresh process", f"{OURS}, first time", "PyIceberg"
SIZES = {False: (10_000, 100_000), True: (10_000, 100_000, 1_000_000)}
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", IntegerType()), NestedField(3, "v", LongType()))
PARTITIONS, ROWS = 100, 1_000


class Question(NamedTuple):
    """A predicate in every dialect."""

    name: str
    ours: Any
    java: Any  # of the JVM's `Expressions`
    sql: str


def questions(files: int) -> list[Question]:
    """Everything, one partition of a hundred, and the files of a few ids."""
    low = files * ROWS // 2
    return [
        Question("all files", p.TRUE, lambda e: e.alwaysTrue(), "true"),
        Question("one partition", p.EqualTo("k", 7), lambda e: e.equal("k", 7), "k = 7"),
        Question("by statistics", p.LessThan("id", low), lambda e: e.lessThan("id", low), f"id < {low}"),
        Question("one file", p.EqualTo("id", low), lambda e: e.equal("id", low), f"id = {low}"),
    ]


def run(*, full: bool) -> Result:
    """Each question to each size of table."""
    watch = Stopwatch("planning", TITLE, full=full)
    with all_sides() as sides:
        lines, notes = [], list(sides.notes)
        for files in SIZES[full]:
            table = table_of(sides, files)
            for question in questions(files):
                repetitions = 7 if files <= 10_000 else 3
                lines += alone(sides, table, question, files, repetitions)
                lines += in_spark(sides, table, question, files, repetitions)
    return watch.result(lines, notes)


def alone(sides: Sides, table: Table, question: Question, files: int, repetitions: int) -> list[Line]:
    """The plan as a list of files; all sides must find the same number."""
    folder = sides.folder / "manifests"
    plan(table, question.ours, cache=ManifestCache(folder))
    warm = ManifestCache(None)
    found: dict[str, int] = {}

    def ours(side: str, cache: ManifestCache | None) -> Run:
        def planned() -> None:
            known = cache or ManifestCache(folder if side == DISK else None)
            found[side] = plan(table, question.ours, cache=known).files.num_rows

        return planned

    def pyiceberg() -> None:
        found[PYICEBERG] = len(list(table.scan(row_filter=question.ours).plan_files()))

    runs: dict[str, Run] = {
        WARM: ours(WARM, warm),
        DISK: ours(DISK, None),
        FIRST: ours(FIRST, None),
        PYICEBERG: pyiceberg,
    }
    if sides.peer:
        runs[ICEBERG] = in_java(sides, table, question, found)
    case = f"{files:,} files, {question.name}"
    taken = interleaved(case, runs, beside=PYICEBERG, clock=sides.clock, repetitions=repetitions)
    assert len(set(found.values())) == 1, found
    return [replace(line, more={"files kept": found[line.side]}) for line in taken.lines]


def in_java(sides: Sides, table: Table, question: Question, found: dict[str, int]) -> Run:
    """Apache Iceberg's own planning, on the same metadata file."""
    jvm = sides.spark._jvm
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(sides.spark._jsc.hadoopConfiguration())
    loaded = tables.load(table.metadata_location)
    expression = question.java(jvm.org.apache.iceberg.expressions.Expressions)
    size = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size

    def planned() -> None:
        found[ICEBERG] = int(size(loaded.newScan().filter(expression).planFiles()))

    return planned


def in_spark(sides: Sides, table: Table, question: Question, files: int, repetitions: int) -> list[Line]:
    """From the query to its tasks, without running one."""
    name = table.name()[-1]

    def ours() -> None:
        sides.lake.sql(f"select * from {name} where {question.sql}")._jdf.queryExecution().toRdd().getNumPartitions()

    def iceberg() -> None:
        rows = sides.spark.read.format("iceberg").load(table.metadata_location).where(question.sql)
        rows._jdf.queryExecution().toRdd().getNumPartitions()

    runs = sides.with_peer({OURS: ours, ICEBERG: iceberg})
    case = f"{files:,} files, {question.name}, in Spark"
    taken = interleaved(case, runs, beside=ICEBERG, clock=sides.clock, repetitions=repetitions)
    return list(taken.lines)


def table_of(sides: Sides, files: int) -> Table:
    """A table that says it has so many files, in ten commits."""
    catalog = sides.lake.engine.catalog
    name = f"files_{files}"
    table = create_table(catalog, name, SCHEMA, partition_by=[PartitionBy("k")])
    for part in range(10):
        table = append(table, list(data_files(table, part * files // 10, (part + 1) * files // 10))).table
    return load_table(catalog, name)


def data_files(table: Table, first: int, last: int) -> Iterator[DataFile]:
    """Files whose ids follow each other, dealt out to the partitions in turn."""
    for number in range(first, last):
        low, high = struct.pack("<q", number * ROWS), struct.pack("<q", number * ROWS + ROWS - 1)
        k = number % PARTITIONS
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table.location()}/data/k={k}/{number:08}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(k),
            record_count=ROWS,
            file_size_in_bytes=64 << 10,
            value_counts={1: ROWS, 2: ROWS, 3: ROWS},
            null_value_counts={1: 0, 2: 0, 3: 0},
            nan_value_counts={},
            lower_bounds={1: low, 2: struct.pack("<i", k), 3: struct.pack("<q", 0)},
            upper_bounds={1: high, 2: struct.pack("<i", k), 3: struct.pack("<q", number % 50)},
        )
        file.spec_id = table.spec().spec_id
        yield file
