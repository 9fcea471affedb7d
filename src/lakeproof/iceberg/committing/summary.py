"""What a snapshot says about itself: the counters of Apache Iceberg, for every operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary

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
    limit = int(table.properties.get("write.summary.partition-limit", 0))
    collector = SnapshotSummaryCollector(partition_summary_limit=limit)
    schema, specs = table.schema(), table.specs()
    for file in added:
        collector.add_file(file, schema, specs[file.spec_id])
    for file in removed:
        collector.remove_file(file, schema, specs[file.spec_id])
    counters = collector.build()
    for total, (plus, minus) in TOTALS.items():
        before = "0" if previous is None else previous.get(total)
        if before is not None:  # another engine may keep no totals: then nobody knows them
            counters[total] = str(max(0, int(before) + int(counters.get(plus, 0)) - int(counters.get(minus, 0))))
    return Summary(operation, **{**counters, **more})
