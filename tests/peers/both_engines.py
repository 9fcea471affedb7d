"""Lakeproof and Apache Iceberg, each in a process of its own, on one live catalog; PyIceberg reads along."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lakeproof.replay.sql_process import Rows as Answer
from lakeproof.replay.sql_process import SqlProcess
from lakeproof.spark.statements.results import json_value

Rows = list[tuple[Any, ...]]
MERGE_ON_READ = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))


def isolation(level: str) -> str:
    """Table properties: every command at one isolation level."""
    return ", ".join(f"'write.{command}.isolation-level'='{level}'" for command in ("delete", "update", "merge"))


class Engines:
    """Two engines and PyIceberg over one SQLite catalog."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.catalog = folder, folder / "catalog.db"
        self.theirs = SqlProcess("apache-iceberg", self.catalog, str(folder))  # first: it may not be had
        try:
            self.ours = SqlProcess("lakeproof", self.catalog, str(folder))
        except BaseException:
            self.theirs.close()
            raise
        self.pyiceberg = load_catalog(
            "lakeproof", type="sql", uri=f"sqlite:///{self.catalog}", warehouse=f"file://{folder}"
        )

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()

    def table(self, name: str) -> Table:
        """The table as PyIceberg alone opens it."""
        return self.pyiceberg.load_table(("default", name))

    def rows(self, name: str) -> Rows:
        """The rows of a table, after all three readers have agreed on them."""
        ours = ordered(self.ours.sql(f"select * from {name}"))
        assert ordered(self.theirs.sql(f"select * from {name}")) == ours
        assert pyiceberg_rows(self.table(name)) == ours
        return ours

    def rows_at(self, name: str, snapshot: int) -> Rows:
        """The same, at a snapshot."""
        query = f"select * from {name} version as of {snapshot}"
        ours = ordered(self.ours.sql(query))
        assert ordered(self.theirs.sql(query)) == ours
        assert pyiceberg_rows(self.table(name), snapshot) == ours
        return ours

    def audited(self, name: str, *options: str) -> dict[str, Any]:
        """What `lakeproof audit` says, as a user would ask it."""
        where = ["--catalog", f"sqlite:///{self.catalog}", "--warehouse", str(self.folder)]
        command = [sys.executable, "-m", "lakeproof.cli.main", "audit", name, *where, "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        found: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (1 if found["findings"] else 0), done.stderr
        return found

    def held(self, engine: SqlProcess, statement: str, gate: str) -> Held:
        """A statement, `{gate}` in its WHERE, that has read its snapshot and waits; without rows it does not wait."""
        file = self.folder / gate
        running = engine.start(statement.format(gate=f"gate(v, '{file}')"))
        until = time.monotonic() + 90
        while not Path(f"{file}.reached").exists() and not running.done():
            assert time.monotonic() < until, "the gate was never reached"
            time.sleep(0.02)
        return Held(file, running)


class Held:
    """A statement that waits at its gate."""

    def __init__(self, file: Path, running: Future[Answer]) -> None:
        self._file, self._running = file, running

    def go_on(self) -> None:
        """The gate opens; the statement commits, or raises what it was refused with."""
        self._file.touch()
        self._running.result(120)


def snapshots_of(table: Table) -> list[int]:
    """The ids of the snapshots, oldest first."""
    return [entry.snapshot_id for entry in table.metadata.snapshot_log]


def pyiceberg_rows(table: Table, snapshot: int | None = None) -> Rows:
    """What PyIceberg reads, in the words of the other two."""
    found = table.scan(snapshot_id=snapshot).to_arrow().to_pylist(maps_as_pydicts="strict")
    return ordered([tuple(_plain(value) for value in row.values()) for row in found])


def _plain(value: Any) -> Any:
    told = json_value(value)
    return told.removesuffix("+00:00") if isinstance(told, str) else told


def ordered(rows: Rows) -> Rows:
    """Rows in an order of their own: two tables are equal whatever order they are read in."""
    return sorted(rows, key=repr)
