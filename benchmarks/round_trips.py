"""`python -m benchmarks.round_trips`: how often each small statement calls the JVM, and what it costs of processors.

A call takes a tenth of a millisecond, and a small statement is hardly more than its calls. Their number is the same on
a loaded machine, where times say nothing. `dropped` are the messages by which Python lets go of Java's objects.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from py4j.java_gateway import GatewayClient

from benchmarks.harness import Clock
from benchmarks.store import COLUMNS, MERGE_ON_READ
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

PARTITIONS, WARM = 60, 3
STATEMENTS = {
    "count(*)": "select count(*) from {table}",
    "partition filter": "select sum(price) from {table} where month = {n}",
    "INSERT one row": "insert into {table} values ({n}, 0, 0, 0, 0.0, 'new', {n})",
    "UPDATE one row": "update {table} set quantity = quantity + 1 where id = {n}",
    "DELETE one row": "delete from {table} where id = {n} + 1000",
    "MERGE one row": "merge into {table} t using (select {n} id, 9 q) s on t.id = s.id "
    "when matched then update set quantity = s.q",
    "DELETE a partition": "delete from {table} where month = {n}",
}
_DROPS = "m\nd\n"


class Cost(NamedTuple):
    """Of one statement: calls, objects that were let go, seconds of processor time of Python and the JVM."""

    calls: int
    dropped: int
    cpu: float | None


@contextmanager
def counting(found: Counter[str]) -> Iterator[None]:
    """Every message from Python to the JVM is counted."""
    send = GatewayClient.send_command

    def counted(self: Any, command: str, *rest: Any, **more: Any) -> Any:
        found["dropped" if command.startswith(_DROPS) else "calls"] += 1
        return send(self, command, *rest, **more)

    GatewayClient.send_command = counted
    try:
        yield
    finally:
        GatewayClient.send_command = send


def cost_of(lake: Lake, clock: Clock, text: str) -> Cost:
    """One statement and its rows."""
    found: Counter[str] = Counter()

    def run() -> None:
        made = lake.sql(text)
        if made.columns:
            made.collect()

    with counting(found):
        taken = clock.time(run)
    return Cost(found["calls"], found["dropped"], taken.cpu)


def costs(lake: Lake, clock: Clock) -> Iterator[tuple[str, Cost]]:
    """Each statement when it is warm, and a compaction of six partitions."""
    layout = f"using iceberg partitioned by (month) tblproperties ({MERGE_ON_READ})"
    for table, partitions in (("small", PARTITIONS), ("many", 6)):
        lake.sql(f"create table {table} ({COLUMNS}) {layout}")
        rows = f"select id, 0, 0, 0, 0.0D, 'x', cast(id % {partitions} as int) from range(0, 3000, 1, 1)"
        for _ in range(1 if table == "small" else 4):
            lake.sql(f"insert into {table} {rows}")
    for case, text in STATEMENTS.items():
        every = [cost_of(lake, clock, text.format(table="small", n=n)) for n in range(WARM + 1)]
        yield case, every[-1]
    yield "compaction", cost_of(lake, clock, "call system.rewrite_data_files(table => 'many')")


def main() -> int:
    """Count and print."""
    with tempfile.TemporaryDirectory(prefix="lakeproof-bench-") as folder:
        session = build_session(folder, master="local[2]", conf={"spark.sql.shuffle.partitions": "4"})
        jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())
        lake = connect(session, catalog=f"sqlite:///{folder}/catalog.db", warehouse=folder)
        print(f"{'statement':20} calls  dropped  CPU s   (load {os.getloadavg()[0]:.1f})")
        for case, cost in costs(lake, Clock([jvm])):
            print(f"{case:20} {cost.calls:5}  {cost.dropped:7}  {cost.cpu or 0:5.2f}", flush=True)
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
