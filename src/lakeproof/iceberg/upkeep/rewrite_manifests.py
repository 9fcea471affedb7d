"""The data manifests are written anew, sorted by partition and of the target size; no file is added or removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Command, Commit, CommitWith, TableChange, check_list
from lakeproof.commit.policy import LAKEPROOF
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import Committed, TableCalls, no_hook
from lakeproof.iceberg.committing.new_manifests import DELETED, EXISTING, TARGET, restated
from lakeproof.iceberg.committing.physical import NO_FILES, Wanted
from lakeproof.iceberg.committing.produce import Producer
from lakeproof.iceberg.committing.table_access import TableAccess
from lakeproof.iceberg.committing.table_commits import go_through
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of
from lakeproof.iceberg.tables.properties import whole_number


class RewrittenManifests(NamedTuple):
    """The table after it, and how many manifests became how many."""

    table: Table
    rewritten: int
    added: int


def rewrite_manifests(
    table: Table,
    *,
    spec_id: int | None = None,
    sort_by: Sequence[str] = (),
    cache: ManifestCache | None = None,
) -> RewrittenManifests:
    """One snapshot of operation `replace` whose data manifests are clustered by partition.

    `spec_id`: of that partition spec alone (`None`: of all). `sort_by`: by these partition fields before the others.
    """
    place = f"table {'.'.join(table.name())}"
    if spec_id is not None and spec_id not in table.specs():
        known = ", ".join(map(str, sorted(table.specs())))
        raise InvalidInput(f"there is no partition spec {spec_id}", place=place, hint=f"specs: {known}")
    fields = [field.name for field in (table.spec() if spec_id is None else table.specs()[spec_id]).fields]
    if unknown := [name for name in sort_by if name not in fields]:
        hint = f"partition fields: {', '.join(fields) or 'none'}"
        raise InvalidInput(f"there is no partition field `{unknown[0]}`", place=place, hint=hint)
    head = table.current_snapshot()
    change = TableChange(Command.REWRITE, scan_snapshot=None if head is None else head.snapshot_id)
    if head is None or _is_clustered(table, head, spec_id):
        return RewrittenManifests(table, 0, 0)
    access = _Clustering(table, Wanted(change, NO_FILES, LAKEPROOF, {}), cache=cache)
    access.spec_id, access.sort_by = spec_id, tuple(sort_by)
    calls = TableCalls(access, LAKEPROOF, check_list(()), no_hook, reruns_left=False)
    done = go_through(calls, table.properties)
    assert isinstance(done, Committed)  # nothing is asked, so nothing is refused
    return RewrittenManifests(done.table, access.rewritten, access.added)


def _is_clustered(table: Table, head: Snapshot, spec_id: int | None) -> bool:
    """Whether one manifest of the target size holds it all, so that nothing is to be gained."""
    there = [m for m in manifests_of(table.io, head) if m.content == ManifestContent.DATA]
    chosen = [m for m in there if spec_id in (None, m.partition_spec_id)]
    return len(chosen) <= 1 and all(
        m.manifest_length <= whole_number(table.properties, TARGET, 8 << 20) for m in chosen
    )


class _Clustering(TableAccess):
    """A commit that moves no file: whatever the head is, its manifests are written anew."""

    rewritten = added = 0
    spec_id: int | None = None
    sort_by: tuple[str, ...] = ()

    def produced(self, answer: Commit | CommitWith, producer: Producer, others: list[str]) -> Snapshot:
        """The head's files in other manifests."""
        assert self.head is not None
        there = manifests_of(self.table.io, self.head)
        data = [m for m in there if m.content == ManifestContent.DATA]
        old = [m for m in data if self.spec_id in (None, m.partition_spec_id)]
        kept = [m for m in there if m.content != ManifestContent.DATA or (m in data and m not in old)]
        new = self._clustered(producer, old)
        self.rewritten, self.added = len(old), len(new)
        return producer.replace_manifests(self.table, self.head, [*new, *kept], replaced=len(old))

    def _clustered(self, producer: Producer, manifests: list[ManifestFile]) -> list[ManifestFile]:
        target = whole_number(self.table.properties, TARGET, 8 << 20)
        return _clustered(producer, manifests, target, {spec: self._places(spec) for spec in self.table.specs()})

    def _places(self, spec_id: int) -> list[int]:
        """The fields of a spec in the order in which its partitions are compared."""
        names = [field.name for field in self.table.specs()[spec_id].fields]
        chosen = [names.index(name) for name in self.sort_by if name in names]
        return [*chosen, *(at for at in range(len(names)) if at not in chosen)]


def _clustered(
    producer: Producer, manifests: list[ManifestFile], target: int, places: Mapping[int, list[int]]
) -> list[ManifestFile]:
    written = []
    for spec_id in sorted({m.partition_spec_id for m in manifests}):
        group = [m for m in manifests if m.partition_spec_id == spec_id]
        entries = [
            restated(entry, EXISTING, entry.snapshot_id)
            for manifest in group
            for entry in producer.maker.entries(manifest)
            if entry.status != DELETED
        ]
        entries.sort(key=partial(_partition_order, places=places[spec_id]))
        size = sum(m.manifest_length for m in group)
        count = max(1, -(-size // target))
        step = -(-len(entries) // count)
        for start in range(0, len(entries), step):
            written.append(producer.maker.write(entries[start : start + step], spec_id, ManifestContent.DATA))
    return written


def _partition_order(entry: ManifestEntry, places: list[int]) -> tuple[tuple[bool, str, object], ...]:
    values = [entry.data_file.partition[at] for at in places]
    return tuple((value is not None, type(value).__name__, value or 0) for value in values)
