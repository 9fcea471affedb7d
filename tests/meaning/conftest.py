"""One Spark session and one lake for this folder; its tables are compared with plain Spark's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake of meaning")


@pytest.fixture(scope="package")
def lake(warehouse: Path) -> Iterator[Lake]:
    conf = {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # as cheap on a few rows, and no thread is started for it
    }
    session = build_session(str(warehouse), master="local[2]", quick=True, conf=conf)
    made = connect(session, catalog=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    yield made
    made.close()
    session.stop()


@pytest.fixture
def rows(lake: Lake) -> Rows:
    """The rows of a statement as plain tuples."""
    return lambda text: [tuple(row) for row in lake.spark.sql(text).collect()]


@pytest.fixture
def settings(lake: Lake) -> Iterator[Callable[[str, str], None]]:
    """Settings of the session that end with the test."""
    changed: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        changed.setdefault(name, lake.spark.conf.get(name, None))
        lake.spark.conf.set(name, value)

    yield change
    for name, value in changed.items():
        lake.spark.conf.unset(name) if value is None else lake.spark.conf.set(name, value)


_numbers = count(1)


@pytest.fixture
def name() -> str:
    """A table name that no other test uses."""
    return f"m{next(_numbers)}"
