"""A JVM thread that called Python and ended leaves no socket and no thread behind."""

from __future__ import annotations

import os
import threading

import pytest

from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
ROWS = 30


def sockets() -> int:
    """The sockets that this process has open."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket")
        except FileNotFoundError:  # the folder's own handle
            continue
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts sockets in /proc, which this system has not")
def test_commands_leave_no_socket_and_no_thread_behind(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg")
    lake.sql(f"insert into {name} select id from range({ROWS})")
    lake.sql(f"delete from {name} where id = 0")
    before = sockets(), threading.active_count()
    for row in range(1, ROWS - 1):
        lake.sql(f"delete from {name} where id = {row}")
    after = sockets(), threading.active_count()
    assert [row["id"] for row in lake.collect(lake.sql(f"select id from {name}"))] == [ROWS - 1]
    assert after[0] - before[0] < ROWS // 3, "each DELETE calls Python from a JVM thread of its own"
    assert after[1] - before[1] < ROWS // 3
