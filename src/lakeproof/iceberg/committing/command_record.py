"""What a snapshot's summary says of the command that made it, and how a command finds its own snapshot again."""

from __future__ import annotations

from collections.abc import Collection

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Policy, TableChange
from lakeproof.filters import worded

COMMAND_ID, RETRIES = "lakeproof.command-id", "lakeproof.retries"
LONGEST_FILTER = 4_000


def record_of(change: TableChange, policy: Policy, reruns: int) -> dict[str, str]:
    """What the snapshot's summary says, so that the table can be audited."""
    record = {
        COMMAND_ID: change.command_id,
        "lakeproof.command": str(change.command),
        "lakeproof.read-snapshot-id": "" if change.scan_snapshot is None else str(change.scan_snapshot),
        "lakeproof.isolation": str(change.isolation),
        "lakeproof.policy": policy.name,
        "lakeproof.conflict-filter": _cut(worded(change.conflict_filter)),
        "lakeproof.reruns": str(reruns) if reruns else "",
    }
    return {key: value for key, value in record.items() if value}


def _cut(text: str) -> str:
    """A MERGE may list thousands of keys: the record keeps the beginning."""
    return text if len(text) <= LONGEST_FILTER else f"{text[:LONGEST_FILTER]}…"


def own_snapshot(table: Table, command_id: str, snapshot_ids: Collection[int]) -> Snapshot | None:
    """The snapshot that this command made: any of the table's, because a rollback may have hidden it."""
    for snapshot in reversed(table.metadata.snapshots):
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        if snapshot.snapshot_id in snapshot_ids or (command_id and said.get(COMMAND_ID) == command_id):
            return snapshot
    return None
