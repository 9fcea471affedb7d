"""A version of this project in a process of its own, which runs the statements that it is told one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from benchmarks.store import COLUMNS, MERGE_ON_READ


class StatementProcess:
    """The version whose `src` folder is given, with a catalog and a warehouse below `folder`."""

    def __init__(self, source: str, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("statement_server.py")), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )

    def run(self, text: str) -> None:
        """The statement has run, and its rows were fetched."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text.replace("\n", " ") + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(answer or "the process has ended")

    @staticmethod
    def schema(name: str) -> tuple[str, ...]:
        """What makes the table."""
        layout = f"using iceberg partitioned by (month) tblproperties ({MERGE_ON_READ})"
        return (f"create table {name} ({COLUMNS}) {layout}",)

    def __enter__(self) -> StatementProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
