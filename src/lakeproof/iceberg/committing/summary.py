"""What a snapshot says about itself: the counters of Apache Iceberg, and the command that made it.

By what is said of the command the table can be audited, and a command finds its own snapshot again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary

from lakeproof.commit import Command, Policy, TableChange
from lakeproof.filters import worded
from lakeproof.format import StreamBatch
from lakeproof.iceberg.pyiceberg_private import CONTENT_SIZE, file_field
from lakeproof.iceberg.tables.properties import whole_number

COMMAND_ID, RETRIES = "lakeproof.command-id", "lakeproof.retries"
QUERY_ID, EPOCH_ID = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"  # Iceberg's own words
MADE_BY, CONFLICT_FILTER = "lakeproof.command", "lakeproof.conflict-filter"
REPLACE_PARTITIONS = "replace-partitions"  # Iceberg's own word for a dynamic overwrite
LONGEST_FILTER = 4_000

TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def summarize(
    table: Table,
    operation: Operation,
    *,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
    previous: Mapping[str, str] | None,
    more: Mapping[str, str],
) -> Summary:
    """The summary of a snapshot on top of one whose summary is `previous` (`None`: on an empty table)."""
    limit = whole_number(table.properties, "write.summary.partition-limit", 0)
    collector = SnapshotSummaryCollector(partition_summary_limit=limit)
    schema, specs = table.schema(), table.specs()
    added, removed = list(added), list(removed)
    for file in added:
        collector.add_file(file, schema, specs[file.spec_id])
    for file in removed:
        collector.remove_file(file, schema, specs[file.spec_id])
    counters = with_vectors(collector.build(), "added", added)
    counters = with_vectors(counters, "removed", removed)
    for total, (plus, minus) in TOTALS.items():
        before = "0" if previous is None else previous.get(total)
        if before is not None:  # another engine may keep no totals: then nobody knows them
            counters[total] = str(max(0, int(before) + int(counters.get(plus, 0)) - int(counters.get(minus, 0))))
    return Summary(operation, **{**counters, **more})


def with_vectors(counters: Mapping[str, str], did: str, files: Iterable[DataFile]) -> dict[str, str]:
    """The counters as Apache Iceberg has them: a vector is no position delete file, and as large as its blob alone."""
    vectors = [file for file in files if file.file_format == FileFormat.PUFFIN]
    if not vectors:
        return dict(counters)
    others = sum(file.file_size_in_bytes - (file_field(file, CONTENT_SIZE) or 0) for file in vectors)
    changed = {
        f"{did}-dvs": len(vectors),
        f"{did}-position-delete-files": int(counters[f"{did}-position-delete-files"]) - len(vectors),
        f"{did}-files-size": int(counters[f"{did}-files-size"]) - others,
    }
    kept = {name: value for name, value in counters.items() if name not in changed}
    return kept | {name: str(value) for name, value in changed.items() if value}


def record_of(change: TableChange, policy: Policy, reruns: int) -> dict[str, str]:
    """What the snapshot's summary says, so that the table can be audited."""
    record = {
        COMMAND_ID: change.command_id,
        MADE_BY: str(change.command),
        "lakeproof.read-snapshot-id": "" if change.scan_snapshot is None else str(change.scan_snapshot),
        "lakeproof.isolation": str(change.isolation),
        "lakeproof.policy": policy.name,
        CONFLICT_FILTER: _cut(worded(change.conflict_filter)),
        "lakeproof.reruns": str(reruns) if reruns else "",
        REPLACE_PARTITIONS: "true" if change.command is Command.OVERWRITE_PARTITIONS else "",
    }
    if change.batch is not None:
        record |= {QUERY_ID: change.batch.query_id, EPOCH_ID: str(change.batch.epoch)}
    return {key: value for key, value in record.items() if value}


def batch_in(said: Mapping[str, str]) -> StreamBatch | None:
    """The batch of a stream that a snapshot says it is; `None`: it is none."""
    query_id, epoch = said.get(QUERY_ID), said.get(EPOCH_ID, "")
    return StreamBatch(query_id, int(epoch)) if query_id and epoch.isdecimal() else None


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
