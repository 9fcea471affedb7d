"""Two processes, each with a Spark of its own, append to one table at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRITER = """
import sys
from pathlib import Path
from lakeproof.spark.lake import connect
from lakeproof.spark.jvm.session import build_session
warehouse, name, writer, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
session = build_session(warehouse, master="local[1]", quick=True)
lake = connect(session, catalog=f"sqlite:///{warehouse}/catalog.db", warehouse=warehouse)
for number in range(times):
    lake.sql(f"insert into {name} values ({writer}, {number})")
session.stop()
"""


@pytest.mark.parametrize("appends", [10, pytest.param(100, marks=pytest.mark.peer)])
def test_no_append_is_lost_or_doubled(lake: Lake, name: str, warehouse: Path, appends: int) -> None:
    """Ten are enough to make the two lose swaps to each other; a hundred each are the long run."""
    lake.sql(f"create table {name} (writer int, number int) using iceberg")
    words = [sys.executable, "-c", WRITER, str(warehouse), name]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    other = subprocess.Popen([*words, "1", str(appends)], env=environment, stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    for number in range(appends):
        lake.sql(f"insert into {name} values (2, {number})")
    print(f"\n{appends} appends beside another process: {time.monotonic() - began:.1f} s")
    _, said = other.communicate(timeout=appends * 20 + 120)
    assert (other.returncode, said) == (0, "")
    assert len(lake.table(name).snapshots()) == 2 * appends
    found = Counter((row.writer, row.number) for row in lake.table(name).scan().collect())
    assert found == Counter((writer, number) for writer in (1, 2) for number in range(appends))
    parents = [each.parent_id for each in lake.table(name).snapshots()]
    assert parents == [None, *(each.snapshot_id for each in lake.table(name).snapshots()[:-1])]
