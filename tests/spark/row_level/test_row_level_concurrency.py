"""Several writers at once on one real table: the recorded history has a serial order, and nobody is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from workload import KINDS, Writers, check_history, create

from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECONDS = 15.0


@pytest.mark.parametrize(("update", "delete"), [("merge-on-read", "merge-on-read"), ("copy-on-write", "merge-on-read")])
def test_what_five_writers_did_has_a_serial_order(
    lake: Lake, name: str, warehouse: Path, update: str, delete: str
) -> None:
    create(lake, name, update=update, delete=delete)
    writers = Writers(lake, name)
    writers.run([1, 2, 3, 4, 5], SECONDS)
    assert writers.errors == []
    catalog = load_catalog("lakeproof", type="sql", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    table = catalog.load_table(f"default.{name}")

    def read(snapshot_id: int) -> list[tuple[int, int]]:
        rows = table.scan(snapshot_id=snapshot_id).to_arrow()
        return list(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))

    counts = check_history(table, read)
    assert 5 <= sum(counts.values()) <= writers.commands  # some find nothing to do
    assert set(counts) <= set(KINDS)
    assert "insert" in counts
    found = remove_orphan_files(table, older_than_ms=2**62, dry_run=True, allow_young=True)
    assert found.files == ()
