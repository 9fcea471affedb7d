"""A lake for scenarios: real tables in a folder that is removed afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from lakeproof.commit import Policy
from lakeproof.replay.scenario_runner import AgainstTables
from lakeproof.scenarios.run import MakeRunner
from lakeproof.scenarios.text import Scenario
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import connect

CONF = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


@contextmanager
def on_real_tables() -> Iterator[MakeRunner]:
    """What makes a runner; each scenario has a table of its own, dropped when the next one begins."""
    open_runners: list[AgainstTables] = []

    def close() -> None:
        while open_runners:
            open_runners.pop().close()

    with tempfile.TemporaryDirectory(prefix="lakeproof-") as folder:
        session = build_session(folder, master="local[2]", quick=True, conf=CONF)
        lake = connect(session, catalog=f"sqlite:///{folder}/catalog.db", warehouse=folder)

        def make(scenario: Scenario, policy: Policy) -> AgainstTables:
            close()
            runner = AgainstTables(lake, scenario, policy)
            open_runners.append(runner)
            return runner

        try:
            yield make
        finally:
            close()
            session.stop()
