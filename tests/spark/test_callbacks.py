"""Java calls Python: its answer is there when Java looks for it, and a thread that ended leaves nothing behind."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest
from py4j import clientserver
from py4j.clientserver import ClientServerConnection

from lakeproof.spark.jvm import spark41
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


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_answer_is_not_collected_before_java_has_it(
    lake: Lake, name: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between an answer and its sending, everything that Python has dropped is deleted in the JVM."""
    answered = ClientServerConnection._call_proxy
    dropped = spark41.java_gateway(lake.spark)._gateway_client.finalizer_deque
    slow = []

    def slowly(self: ClientServerConnection, *call: Any) -> Any:
        message = answered(self, *call)
        while dropped:
            time.sleep(0.001)
        time.sleep(0.005)  # the last one is on its way
        slow.append(call)
        return message

    modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    monkeypatch.setattr(clientserver, "DEFAULT_WORKER_SLEEP_TIME", 0.001)
    monkeypatch.setattr(ClientServerConnection, "_call_proxy", slowly)
    lake.sql(
        f"create table {name} (id int, v string) using iceberg partitioned by (bucket(2, id)) tblproperties ({modes})"
    )
    lake.sql(f"insert into {name} select id, 'a' from range(8)")
    lake.sql(f"delete from {name} where id = 1")
    lake.sql(f"update {name} set v = 'b' where id > 5")
    lake.sql(
        f"merge into {name} t using (values (2), (9)) as s(id) on t.id = s.id "
        "when matched then update set v = 'm' when not matched then insert (id, v) values (s.id, 'n')"
    )
    lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    lake.spark.sql(f"insert into {name} values (10, 'o')")
    rows = lake.collect(lake.sql(f"select id, v from {name} where id <> 3 order by id"))
    assert "".join(f"{row['id']}{row['v']} " for row in rows) == "0a 2m 4a 5a 6b 7b 9n 10o "
    assert len(slow) > 20
