"""Catalogs open from a URI, and PyIceberg alone opens the same tables."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from lakehouse import Lakehouse, insert, people, rows_of

from in_part import in_part
from lakeproof.errors import InvalidInput, Unavailable
from lakeproof.iceberg.tables.catalogs import open_catalog, warehouse_location
from lakeproof.iceberg.tables.tables import list_namespaces, list_tables


def test_pyiceberg_alone_opens_the_same_tables(lake: Lakehouse) -> None:
    insert(lake.create("people"), people(1, 2))
    table = lake.as_pyiceberg_opens_it("people")
    assert rows_of(table) == [(1, "x"), (2, "x")]
    assert table.location() == f"file://{lake.warehouse}/default/people"


def test_the_default_namespace_is_there(lake: Lakehouse) -> None:
    assert list_namespaces(lake.catalog) == ("default",)
    assert list_tables(lake.catalog) == ()


def test_the_sqlite_file_lets_readers_and_a_writer_work_at_once(lake: Lakehouse) -> None:
    lake.create()
    mode = sqlite3.connect(lake.folder / "catalog.db").execute("pragma journal_mode").fetchone()
    assert mode == ("wal",)


def test_a_catalog_in_memory(tmp_path: Path) -> None:
    catalog = open_catalog("memory:", str(tmp_path / "w"))
    assert list_namespaces(catalog) == ("default",)


@pytest.mark.parametrize(
    ("uri", "family", "part"),
    [
        pytest.param("mysql://x", InvalidInput, "not the URI of a catalog", id="another kind of database"),
        pytest.param("nonsense", InvalidInput, "not the URI of a catalog", id="no URI at all"),
        pytest.param("http://127.0.0.1:9/", Unavailable, "does not answer", id="a REST server that is not there"),
        pytest.param(
            "postgresql://u:secret@127.0.0.1:9/d", Unavailable, "does not answer", id="a PostgreSQL that is not there"
        ),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_one_sentence(
    tmp_path: Path, uri: str, family: type[Exception], part: str
) -> None:
    with pytest.raises(family) as caught:
        open_catalog(uri, str(tmp_path / "w"))
    assert part in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_warehouse_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput) as caught:
        warehouse_location(str(tmp_path / "file" / "w"))
    assert caught.value.place == f"warehouse {tmp_path}/file/w"


def test_a_damaged_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(InvalidInput) as caught:
        open_catalog(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "w"))
    assert "not a database" in str(caught.value)


@pytest.mark.parametrize("processes", in_part([2, 4], every=2))
def test_processes_that_open_a_new_catalog_at_once_all_succeed(tmp_path: Path, processes: int) -> None:
    call = f"open_catalog('sqlite:///{tmp_path}/c.db', '{tmp_path}/w')"
    code = f"from lakeproof.iceberg.tables.catalogs import open_catalog; {call}"
    started = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(processes)]
    ended = [(process.wait(60), process.stderr.read() if process.stderr else b"") for process in started]
    assert ended == [(0, b"")] * processes
