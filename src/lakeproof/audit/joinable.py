"""The findings of an audit as rows of a Spark session, to be joined with the table's own views."""

from __future__ import annotations

from typing import Any

from lakeproof.audit.audit import audit
from lakeproof.audit.deep import Depth, Mapper
from lakeproof.commit.policy_text import named_policy
from lakeproof.spark.arguments import refused, require_text
from lakeproof.spark.lake import Lake
from lakeproof.spark.statements.names import qualified


def findings(lake: Lake, name: str, policy: str = "lakeproof", *, deep: bool = False, checksums: bool = False) -> Any:
    """The findings on a managed table as a DataFrame, one row each; files are looked into by Spark's workers."""
    if not isinstance(lake, Lake):
        raise refused("lake", "what `lakeproof.connect` gives", lake)
    require_text("a table's name", name, "findings(lake, 'people')")
    require_text("policy", policy, "policy='iceberg-spark'")
    table = lake.engine.load(qualified(lake.engine, name))
    depth = Depth(deep, checksums)
    found = audit(table, named_policy(policy), name=name, depth=depth, run=on_workers(lake))
    return lake.spark.createDataFrame(found.to_arrow())


def on_workers(lake: Lake) -> Mapper:
    """Chunks of files go to the workers of a session, a task each."""
    context = lake.spark.sparkContext
    return lambda look, chunks: context.parallelize(chunks, max(1, len(chunks))).map(look).collect() if chunks else []
