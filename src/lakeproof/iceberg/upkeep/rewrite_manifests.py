"""The data manifests are written anew, sorted by partition and of the target size; no file is added or removed."""

from __future__ import annotations

from typing import NamedTuple

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Command, Commit, CommitWith, TableChange, check_list
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.iceberg.committing.commit import Committed, TableCalls, no_hook
from lakeproof.iceberg.committing.new_manifests import DELETED, EXISTING, TARGET, has_live_files, restated
from lakeproof.iceberg.committing.physical import NO_FILES, Wanted
from lakeproof.iceberg.committing.produce import Producer
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.committing.table_commits import go_through
from lakeproof.iceberg.reading.manifest_cache import ManifestCache


class RewrittenManifests(NamedTuple):
    """The table after it, and how many manifests became how many."""

    table: Table
    rewritten: int
    added: int


def rewrite_manifests(table: Table, *, cache: ManifestCache | None = None) -> RewrittenManifests:
    """One snapshot of operation `replace` whose data manifests are clustered by partition."""
    head = table.current_snapshot()
    change = TableChange(Command.REWRITE, scan_snapshot=None if head is None else head.snapshot_id)
    if head is None:
        return RewrittenManifests(table, 0, 0)
    access = _Clustering(table, Wanted(change, NO_FILES, LAKEPROOF, {}), cache=cache)
    calls = TableCalls(access, LAKEPROOF, check_list(()), no_hook, reruns_left=False)
    done = go_through(calls, table.properties)
    assert isinstance(done, Committed)  # nothing is asked, so nothing is refused
    return RewrittenManifests(done.table, access.rewritten, access.added)


class _Clustering(TableAccess):
    """A commit that moves no file: whatever the head is, its manifests are written anew."""

    rewritten = added = 0

    def produced(self, answer: Commit | CommitWith, producer: Producer, others: list[str]) -> Snapshot:
        """The head's files in other manifests."""
        assert self.head is not None
        there = self.head.manifests(self.table.io)
        old = [m for m in there if m.content == ManifestContent.DATA and has_live_files(m)]
        deletes = [m for m in there if m.content != ManifestContent.DATA]
        new = _clustered(producer, old, int(self.table.properties.get(TARGET, 8 << 20)))
        self.rewritten, self.added = len(old), len(new)
        return producer.replace_manifests(self.table, self.head, [*new, *deletes], replaced=len(old))


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
