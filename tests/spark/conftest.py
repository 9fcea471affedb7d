"""One Spark session for all tests: starting one costs more than most tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake house")  # the blank is on purpose: paths are URIs in places


@pytest.fixture(scope="session")
def lake(warehouse: Path) -> Iterator[Lake]:
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "Europe/Vienna",
    }
    other = SparkSession.getActiveSession()
    if other is not None:  # of another folder of tests; its settings are not ours
        other.stop()
    session = build_session(str(warehouse), master="local[2,2]", quick=True, conf=conf)  # a task may fail once
    yield connect(session, catalog=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    session.stop()


@pytest.fixture
def rows(lake: Lake) -> Rows:
    """The rows of a statement as plain tuples."""
    return lambda text: [tuple(row) for row in lake.collect(lake.sql(text))]


_numbers = count(1)


@pytest.fixture
def name() -> str:
    """A table name that no other test uses."""
    return f"t{next(_numbers)}"
