"""The findings of an audit as rows of a Spark session, to be joined with the table's own views."""

from __future__ import annotations

from typing import Any

from lakeproof.audit.audit import audit
from lakeproof.commit.policy_text import named_policy
from lakeproof.spark.lake import Lake
from lakeproof.spark.statements.names import qualified


def findings(lake: Lake, name: str, policy: str = "lakeproof") -> Any:
    """The findings on a managed table as a DataFrame: kind, snapshots, because, files, check, do, note."""
    found = audit(lake.engine.load(qualified(lake.engine, name)), named_policy(policy), name=name)
    return lake.spark.createDataFrame(found.to_arrow())
