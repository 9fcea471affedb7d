"""Planning keeps the files that PyIceberg keeps; its own sharper rules never spare a file with a matching row."""

import os
import random
from typing import Any

import pytest
from lakehouse import Lakehouse
from pyiceberg.table import ManifestGroupPlanner
from random_files import Known, predicate, random_table

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import plan


def as_pyiceberg_plans(table: Table, row_filter: Any) -> set[str]:
    """The files of PyIceberg's plan; not through `plan_files`, which raises on some predicates over null partitions."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    planner = ManifestGroupPlanner(table.metadata, table.io, row_filter, case_sensitive=False)
    entries = planner.plan_manifest_entries(snapshot.manifests(table.io))
    return {entry.data_file.file_path for group in entries for entry in group}


def compare(table: Table, known: list[Known], seed: int, predicates: int) -> int:
    """How many of the random predicates kept some files and spared others."""
    r = random.Random(seed)
    partial = 0
    for number in range(predicates):
        row_filter, holds = predicate(r, r.randrange(0, 4))
        said = f"seed {seed}, predicate {number}: {row_filter}"
        same = set(plan(table, row_filter, as_pyiceberg=True).files["path"].to_pylist())
        assert same == as_pyiceberg_plans(table, row_filter), said
        kept = set(plan(table, row_filter).files["path"].to_pylist())
        needed = {file.path for file in known if any(holds(row) for row in file.rows)}
        assert needed <= kept, f"{said} spares {sorted(needed - kept)}"
        partial += 0 < len(kept) < len(known)
    return partial


def test_a_hundred_random_predicates(lake: Lakehouse) -> None:
    table, known = random_table(lake, seed=1, files=96)
    assert plan(table).files.num_rows == len(known) == 96
    assert compare(table, known, seed=1, predicates=100) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_thousands_of_random_predicates(lake: Lakehouse, seed: int) -> None:
    predicates = 900 if os.environ.get("LAKEPROOF_WHOLE") else 400  # the whole in `make check-all`
    table, known = random_table(lake, seed=seed, files=120)
    assert compare(table, known, seed=seed, predicates=predicates) > predicates // 2
