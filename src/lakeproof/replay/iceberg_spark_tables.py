"""Runs a scenario's actors on Apache Iceberg's own Spark runtime, in a process of its own, on a table of ours.

A DELETE, UPDATE or INSERT … SELECT is held in its scan by a `gate` in its WHERE and let go when it is to commit; in
between nothing can be watched from outside. So a scenario applies if each `validate` is followed at once by its `swap`.
"""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import Future
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from lakeproof.errors import CommitConflict, CommitRejected, InvalidInput
from lakeproof.replay.scenario_runner import command_kind
from lakeproof.replay.sql_process import SqlProcess
from lakeproof.replay.whole_commits import AgainstEngine, refusal_of, require_whole_commits
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.text import Scenario, ScenarioStep, StepAnswer
from lakeproof.spark.lake import Lake

_SECONDS = 120.0


class AgainstIcebergSpark(AgainstEngine):
    """Apache Iceberg's writers on a table of ours."""

    engine = "Apache Iceberg"

    def __init__(
        self, process: SqlProcess, lake: Lake, scenario: Scenario, policy: Any, *, keep: str | None = None
    ) -> None:
        require_whole_commits(scenario, self.engine)
        super().__init__(lake, scenario, policy, keep=keep)
        self.process = process
        self.gates = tempfile.TemporaryDirectory()
        self.held: dict[str, tuple[Path | None, Future[Any] | str]] = {}
        process.sql("set spark.sql.leafNodeDefaultParallelism = 1")  # an INSERT of two rows is one file

    def _begin(self, step: ScenarioStep) -> None:
        self.held[step.actor] = self._start(step)

    def _start(self, step: ScenarioStep) -> tuple[Path | None, Future[Any] | str]:
        kind = command_kind(self.scenario, step)
        if kind == "INSERT":  # reads nothing: it may as well begin when it commits
            return None, self._named(step.text)
        if kind not in ("DELETE", "UPDATE", "INSERT SELECT"):
            raise DoesNotApply(f"{kind} cannot be held in its scan")
        file = Path(self.gates.name) / f"{step.actor}-{step.line}"
        column = self.scenario.table.shape.columns[0]
        text = self._named(step.text)
        word = "and" if re.search(r"\swhere\s", text, re.IGNORECASE) else "where"
        running = self.process.start(f"{text} {word} gate({column}, '{file}')")
        until = monotonic() + _SECONDS
        while not Path(f"{file}.reached").exists() and not running.done():
            if monotonic() > until:
                raise TimeoutError(f"{step.text} did not reach its gate")
            sleep(0.02)
        return file, running

    def _finish(self, step: ScenarioStep) -> StepAnswer:
        file, running = self.held.pop(step.actor)
        try:
            if isinstance(running, str):
                self.process.sql(running)
            else:
                assert file is not None
                file.touch()
                running.result(_SECONDS)
        except (CommitConflict, CommitRejected):
            return refusal_of(step)
        except InvalidInput as error:
            if "is not an ancestor of" not in error.message:
                raise
            return refusal_of(step)  # its scan snapshot was expired: it cannot validate, and says so in this way
        return StepAnswer("ok")

    def _named(self, text: str) -> str:
        """The statement with the table's full name where it names its target."""
        return re.sub(
            rf"\b(into|update|from)(\s+){self.name}\b",
            lambda found: f"{found[1]}{found[2]}{self.full_name}",
            text,
            flags=re.IGNORECASE,
        )

    def close(self) -> None:
        """Whoever is still held is let go, and the table is dropped."""
        for file, running in self.held.values():
            if file is not None and not isinstance(running, str):
                file.touch()
                running.exception(_SECONDS)
        super().close()
        self.gates.cleanup()
