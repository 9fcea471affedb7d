"""A manifest that dbt itself wrote becomes a jobs file, and the file is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakeproof
from lakeproof.errors import InvalidInput
from lakeproof.jobs.from_dbt import incremental_models, jobs_text
from lakeproof.jobs.reading import independent_parts, read_jobs
from lakeproof.jobs.text import taken_apart

MANIFEST = Path(__file__).parent / "data" / "dbt_manifest.json"


def test_incremental_models_become_jobs_by_their_strategy() -> None:
    models = {model.name: model for model in incremental_models(json.loads(MANIFEST.read_text()))}
    assert {name: model.strategy for name, model in models.items()} == {
        "daily_sales": "insert_overwrite",
        "events": "append",
        "orders": "merge",
    }
    assert models["orders"].keys == ("order_id",)
    assert models["orders"].partitions == ("days(ordered_on)",)


def test_the_file_is_read_and_its_models_are_apart() -> None:
    jobs = read_jobs(taken_apart(jobs_text(json.loads(MANIFEST.read_text())), name="dbt.sql"))
    assert [str(one.command) for job in jobs.jobs for one in job.statements] == [
        "INSERT OVERWRITE of partitions",
        "INSERT",
        "MERGE",
    ]
    assert [job.times for job in jobs.jobs] == [2, 2, 2]
    assert len(independent_parts(jobs)) == 3


def test_two_runs_of_dbt_at_once_are_safe_at_the_models_settings(tmp_path: Path) -> None:
    path = tmp_path / "dbt.sql"
    path.write_text(jobs_text(json.loads(MANIFEST.read_text())))
    found = lakeproof.check(str(path), policy="iceberg-spark")
    assert found.verdict == "holds"
    assert found.more["pairs"] == [
        {"jobs": ["orders", "orders"], "checks": ["no_new_delete_files"], "outcome": "abort"}
    ]


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        pytest.param({}, "not a dbt manifest", id="something else"),
        pytest.param({"nodes": {}}, "no incremental model", id="nothing incremental"),
        pytest.param(
            {
                "nodes": {
                    "m": {
                        "resource_type": "model",
                        "name": "m",
                        "config": {"materialized": "incremental", "incremental_strategy": "mine"},
                    }
                }
            },
            "strategy 'mine'",
            id="a strategy of one's own",
        ),
    ],
)
def test_what_cannot_be_used_is_said(manifest: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        jobs_text(manifest)
