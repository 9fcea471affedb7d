"""Who can replay a scenario: ours, PyIceberg, Apache Iceberg on Spark; always on a real table in a live catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.replay.iceberg_spark_tables import AgainstIcebergSpark
from lakeproof.replay.pyiceberg_tables import AgainstPyiceberg
from lakeproof.replay.scenario_runner import AgainstTables
from lakeproof.replay.sql_process import SqlProcess
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

IMPLEMENTATIONS = ("lakeproof", "pyiceberg", "iceberg-spark")
CONF = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
Make = Callable[[Any, Any], AgainstTables]


@contextmanager
def replaying(on: str, catalog: str, warehouse: str, *, keep: str | None = None) -> Iterator[Make]:
    """What makes a runner (of a scenario and a policy); afterwards its table is dropped, or kept under a name."""
    if on == "iceberg-spark" and not catalog.startswith("sqlite:///"):
        raise InvalidInput(
            "Apache Iceberg is driven on a SQLite catalog only", place=catalog, hint="use --catalog sqlite:///…"
        )
    with ExitStack() as after:
        session = build_session(warehouse, master="local[2]", quick=True, conf=CONF)
        after.callback(session.stop)
        lake = connect(session, catalog=catalog, warehouse=warehouse)
        make = _maker(on, lake, catalog, warehouse, keep, after)

        def made(scenario: Any, policy: Any) -> AgainstTables:
            runner = make(scenario, policy)
            after.callback(runner.close)
            return runner

        yield made


def _maker(on: str, lake: Lake, catalog: str, warehouse: str, keep: str | None, after: ExitStack) -> Make:
    if on == "lakeproof":
        return lambda scenario, policy: AgainstTables(lake, scenario, policy, keep=keep)
    if on == "pyiceberg":
        return lambda scenario, policy: AgainstPyiceberg(lake, scenario, policy, keep=keep)
    process = SqlProcess("apache-iceberg", Path(catalog.removeprefix("sqlite:///")), warehouse)
    after.callback(process.close)
    return lambda scenario, policy: AgainstIcebergSpark(process, lake, scenario, policy, keep=keep)
