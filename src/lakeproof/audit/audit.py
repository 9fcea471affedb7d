"""The audit of one table: its recorded commits before a policy, then its state."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from lakeproof.audit.commits import judge_commits
from lakeproof.audit.findings import Finding
from lakeproof.audit.recorded import PARENT, read_commits, snapshots_of
from lakeproof.audit.state import lying
from lakeproof.commit import Policy
from lakeproof.iceberg.committing.values import shape_of
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.pyiceberg_names import Table


class Audit(NamedTuple):
    """What was found; `assumed` counts commits of which only the kindest assumption could be judged."""

    table: str
    policy: str
    snapshots: int
    findings: tuple[Finding, ...]
    assumed: int

    def to_json(self) -> dict[str, Any]:
        """The audit as `lakeproof audit --json` prints it."""
        return {
            "table": self.table,
            "policy": self.policy,
            "snapshots": self.snapshots,
            "assumed": self.assumed,
            "findings": [finding.to_json() for finding in self.findings],
        }

    def to_arrow(self) -> pa.Table:
        """The findings as a table that can be joined: one row per finding."""
        names = ["kind", "snapshots", "because", "files", "check", "do", "note"]
        rows = [finding.to_json() for finding in self.findings]
        kinds = [pa.string(), pa.list_(pa.int64()), pa.string(), pa.list_(pa.string()), *[pa.string()] * 3]
        return pa.Table.from_pylist(rows, schema=pa.schema(list(zip(names, kinds, strict=True))))


def audit(table: Table, policy: Policy, *, name: str, orphans: bool = True) -> Audit:
    """Look at every recorded commit and at the table as it lies."""
    with translate_errors(f"table {name}"):
        snapshots = snapshots_of(table)
        history = read_commits(table, snapshots)
        findings = (*judge_commits(history, policy, shape_of(table)), *lying(table, snapshots, orphans=orphans))
    assumed = sum(one.note == PARENT and one.place > 0 for one in history)
    return Audit(name, policy.name, len(snapshots), findings, assumed)
