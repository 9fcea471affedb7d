"""The data manifests are written anew, sorted by partition and of the target size; no file is added or removed."""

from __future__ import annotations

from typing import NamedTuple

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table

from lakeproof.errors import CommitRejected
from lakeproof.iceberg.cache import ManifestCache
from lakeproof.iceberg.commit import remove_files
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.new_manifests import DELETED, EXISTING, TARGET, has_live_files, restated
from lakeproof.iceberg.produce import Producer
from lakeproof.iceberg.swap import refreshed, stage, swap


class Rewritten(NamedTuple):
    """The table after it, and how many manifests became how many."""

    table: Table
    rewritten: int
    added: int


def rewrite_manifests(table: Table, *, cache: ManifestCache | None = None) -> Rewritten:
    """One snapshot of operation `replace` whose data manifests are clustered by partition."""
    place = f"table {'.'.join(table.name())}"
    for _ in range(20):
        with spoken(place):
            table = refreshed(table)
            head = table.current_snapshot()
            if head is None:
                return Rewritten(table, 0, 0)
            producer = Producer(table, cache)
            old = [m for m in head.manifests(table.io) if m.content == ManifestContent.DATA and has_live_files(m)]
            others = [m for m in head.manifests(table.io) if m.content != ManifestContent.DATA]
            new = _clustered(producer, old, int(table.properties.get(TARGET, 8 << 20)))
            snapshot = producer.replace_manifests(table, head, [*new, *others], replaced=len(old))
            written = producer.written
            staged = stage(table, snapshot, "main", head.snapshot_id, written)
            try:
                return Rewritten(swap(table, staged), len(old), len(new))
            except CommitRejected:
                remove_files(table, written)
    raise CommitRejected(f"{place}: the rewrite of manifests lost the swap 20 times")


def _clustered(producer: Producer, manifests: list[ManifestFile], target: int) -> list[ManifestFile]:
    written = []
    for spec_id in sorted({m.partition_spec_id for m in manifests}):
        group = [m for m in manifests if m.partition_spec_id == spec_id]
        entries = [
            restated(entry, EXISTING, entry.snapshot_id)
            for manifest in group
            for entry in producer.maker.entries(manifest)
            if entry.status != DELETED
        ]
        entries.sort(key=_partition_order)
        size = sum(m.manifest_length for m in group)
        count = max(1, -(-size // target))
        step = -(-len(entries) // count)
        for start in range(0, len(entries), step):
            written.append(producer.maker.write(entries[start : start + step], spec_id, ManifestContent.DATA))
    return written


def _partition_order(entry: ManifestEntry) -> tuple[tuple[bool, str, object], ...]:
    values = [entry.data_file.partition[at] for at in range(len(entry.data_file.partition))]
    return tuple((value is not None, type(value).__name__, value or 0) for value in values)
