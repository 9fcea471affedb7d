"""A list of files that Spark was given is given again for the same question, and never for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.spark.lake import Lake
from lakeproof.spark.reading.file_index import HandedOver

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]


def test_what_somebody_else_commits_is_seen_by_the_next_query(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    lake.sql(f"insert into {name} values (1)")
    asked = f"select sum(id) from {name} where id > 0"
    assert rows(asked) == rows(asked) == [(1,)]
    engine = lake.engine
    other = open_catalog(str(engine.catalog.properties["uri"]), str(engine.catalog.properties["warehouse"]))
    other.load_table(("default", name)).append(pa.table({"id": pa.array([10], pa.int64())}))
    assert rows(asked) == rows(asked) == [(11,)]
    first = lake.table(name).snapshots()[0].snapshot_id
    assert rows(f"select sum(id) from {name} version as of {first} where id > 0") == [(1,)]


def test_questions_that_print_alike_are_not_confused(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    for first in (0, 20):
        lake.sql(f"insert into {name} values {', '.join(f'({n})' for n in range(first, first + 20))}")
    for first in (0, 20):  # more than ten values are a set, which Spark's own description of the filter leaves out
        listed = ", ".join(map(str, range(first, first + 12)))
        found = lake.sql(f"select id from {name} where id in ({listed})")
        assert sorted(row.id for row in found.collect()) == list(range(first, first + 12))
        assert lake.scans(found)[0].plan.files.num_rows == 1


def test_no_more_is_kept_than_fits(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id bigint) using iceberg")
    plans = []
    for number in range(3):
        lake.sql(f"insert into {name} values ({number})")
        plans.append(lake.table(name).plan().scan)
    kept = HandedOver(lake.engine.gateway)
    kept.most_files = 3
    made: list[int] = []
    for number in (0, 1, 0, 2, 1, 1):  # of one, two and three files
        kept.get("index", plans[number], lambda number=number: made.append(number))  # type: ignore[misc]
    assert made == [0, 1, 2, 1]
