"""Equality deletes and column ranges on real files: what is left out cannot have mattered, and much is left out.

Random data files and equality delete files are committed as another engine would commit them. The judge reads every
file and asks of every pair whether the delete takes a row of it, with no statistics at all.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakehouse import Lakehouse, Row, insert, write
from pyiceberg.conversions import to_bytes
from pyiceberg.types import IntegerType

from lakeproof.iceberg.committing.pointer import stage, swap
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import (
    DataFile,
    DataFileContent,
    DoubleType,
    FileFormat,
    LongType,
    NestedField,
    Schema,
    StringType,
    Table,
)
from lakeproof.iceberg.reading import equality_ranges
from lakeproof.iceberg.reading.equality_ranges import Named
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.branches import MAIN

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "v", DoubleType())
)
NAMES = {1: "id", 2: "name", 3: "v"}
TABLES = 5
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def some_rows(chance: random.Random) -> list[Row]:
    """A few rows that lie near each other; a column has nulls or NaN alone, some, or none."""
    near = chance.randrange(4) * 10
    usual: dict[str, list[Any]] = {
        "id": [near, near + 1, near + 2],
        "name": [f"{'abcd'[near // 10]}{number}" for number in range(3)],
        "v": [near + 0.5, float(near)],
    }
    values = {name: chance.choice([[None], some, some, [None, *some]]) for name, some in usual.items()}
    values["v"] = [*values["v"], math.nan] if chance.random() < 0.6 else values["v"]
    return [{name: chance.choice(some) for name, some in values.items()} for _ in range(chance.randint(1, 3))]


def data_file(table: Table, rows: list[Row]) -> DataFile:
    return restated(table, rows, METRICS, content=DataFileContent.DATA)


def equality_delete(table: Table, rows: list[Row], ids: list[int], known: tuple[str, ...] = METRICS) -> DataFile:
    """Rows with these values in the columns of `ids` are gone; of its statistics the metadata has the known ones."""
    return restated(table, rows, known, content=DataFileContent.EQUALITY_DELETES, equality_ids=ids)


def restated(table: Table, rows: list[Row], known: tuple[str, ...], **more: Any) -> DataFile:
    """The written rows as an engine states them that counts NaN and leaves it out of the bounds, as Apache Iceberg."""
    (file,) = write(table, rows)
    metrics = {name: dict(getattr(file, name) or {}) for name in METRICS}
    floats = [row["v"] for row in rows if row.get("v") is not None]
    numbers = [to_bytes(DoubleType(), value) for value in sorted(v for v in floats if not math.isnan(v))]
    if "v" in rows[0]:
        metrics["nan_value_counts"] = {3: sum(math.isnan(value) for value in floats)}
        metrics["lower_bounds"] |= {3: numbers[0]} if numbers else {}
        metrics["upper_bounds"] |= {3: numbers[-1]} if numbers else {}
    made = DataFile.from_args(
        file_path=file.file_path,
        file_format=FileFormat.PARQUET,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        **{name: metrics[name] if name in known else {} for name in METRICS},  # type: ignore[arg-type]
        **more,
    )
    made.spec_id = file.spec_id
    return made


def commit_deletes(table: Table, *files: DataFile) -> Table:
    head = table.current_snapshot()
    assert head is not None
    snapshot = Producer(table).produce(table, head, FileChange("delete", added_delete_files=files))
    return swap(table, stage(table, snapshot, MAIN, []))


def some_table(lake: Lakehouse, chance: random.Random, name: str) -> Table:
    """Twelve data files, twelve equality deletes of one snapshot, and a data file that is younger than they are."""
    table = lake.create(name, SCHEMA)
    table = append(table, [data_file(table, some_rows(chance)) for _ in range(12)]).table
    deletes = []
    for _ in range(12):
        ids = sorted(chance.sample([1, 2, 3], chance.choice([1, 1, 2])))
        known = tuple(name for name in METRICS if chance.random() < 0.9)
        deletes.append(equality_delete(table, some_rows(chance), ids, known))
    return insert(commit_deletes(table, *deletes), some_rows(chance))


def rows_at(path: str) -> list[Row]:
    found: list[Row] = pq.read_table(path.removeprefix("file://"), partitioning=None).to_pylist()
    return found


def key_of(row: Row, ids: list[int]) -> tuple[Any, ...]:
    """Values as an equality delete compares them: NaN equals NaN, null equals null."""
    values = [row[NAMES[number]] for number in ids]
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in values)


def left_out(table: Table) -> list[tuple[str, str]]:
    """Pairs that the plan leaves out although the newer delete file takes a row of the data file."""
    found = plan(table)
    deletes = found.delete_files.to_pylist()
    wrong = []
    for file in found.files.to_pylist():
        for number, delete in enumerate(deletes):
            ids = delete["equality_ids"]
            gone = {key_of(row, ids) for row in rows_at(delete["path"])}
            hit = any(key_of(row, ids) in gone for row in rows_at(file["path"]))
            newer = delete["data_sequence_number"] > file["data_sequence_number"]
            if hit and newer and number not in file["delete_files"]:
                wrong.append((file["path"], delete["path"]))
    return wrong


def test_a_delete_that_is_left_out_would_have_taken_no_row(lake: Lakehouse) -> None:
    chance = random.Random(20261116)
    applied = newer = 0
    for number in range(TABLES):
        table = some_table(lake, chance, f"t{number}")
        assert left_out(table) == []
        found = plan(table)
        applied += sum(len(numbers) for numbers in found.files["delete_files"].to_pylist())
        ages = found.delete_files["data_sequence_number"].to_pylist()
        newer += sum(age > own for own in found.files["data_sequence_number"].to_pylist() for age in ages)
    assert applied < newer * 0.7, (applied, newer)


def _without_nulls(named: Named) -> Named:
    return named._replace(nulls=False)


PLANTED: dict[str, Callable[[Named], Named]] = {
    "nulls of the delete are forgotten": _without_nulls,
    "values beside nulls are forgotten": lambda named: named._replace(values=not named.nulls),
    "NaN of the delete is forgotten": lambda named: named._replace(nans=False),
    "the range has no upper end in it": lambda named: named._replace(
        upper=named.upper - 1 if isinstance(named.upper, np.integer) else named.upper
    ),
    "the ends are swapped": lambda named: named._replace(lower=named.upper, upper=named.lower),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found(lake: Lakehouse, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = equality_ranges._named
    monkeypatch.setattr(equality_ranges, "_named", lambda *given: PLANTED[error](true(*given)))
    chance = random.Random(20261116)
    assert any(left_out(some_table(lake, chance, f"t{number}")) for number in range(TABLES)), error


def test_statistics_that_are_not_there_leave_nothing_out(lake: Lakehouse) -> None:
    table = insert(lake.create("t", SCHEMA), [{"id": 1, "name": "a", "v": 0.5}])
    table = commit_deletes(table, equality_delete(table, [{"id": 9, "name": None, "v": None}], [1], ()))
    assert plan(table).files["delete_files"].to_pylist() == [[0]]


def test_a_range_apart_is_left_out_also_after_the_column_was_widened(lake: Lakehouse) -> None:
    schema = Schema(NestedField(1, "id", IntegerType()))
    table = insert(lake.create("t", schema), [{"id": 1}, {"id": 5}])
    with table.update_schema() as update:
        update.update_column("id", LongType())
    table = insert(lake.load("t"), [{"id": 2**40}])
    for wanted, meets in ((5, [[0], []]), (7, [[], []]), (2**40, [[], [0]])):
        made = commit_deletes(table, equality_delete(table, [{"id": wanted}], [1]))
        found = sorted(plan(made).files.to_pylist(), key=lambda file: file["data_sequence_number"])
        assert [file["delete_files"] for file in found] == meets, wanted
        table = lake.load("t")
        with table.manage_snapshots() as manage:
            manage.rollback_to_snapshot(table.current_snapshot().parent_snapshot_id)  # type: ignore[union-attr,arg-type]
        table = lake.load("t")


def test_the_bytes_of_text_are_in_the_order_of_text(lake: Lakehouse) -> None:
    schema = Schema(NestedField(1, "id", StringType()))
    table = insert(lake.create("t", schema), [{"id": "é"}, {"id": "z"}])
    table = commit_deletes(table, equality_delete(table, [{"id": "é"}], [1]))
    assert plan(table).files["delete_files"].to_pylist() == [[0]]
    assert pa.array(["z", "é"]).to_pylist() == sorted(["é", "z"], key=str.encode)
