"""Which files the snapshots of a table need: manifest lists, manifests, data and delete files, mappings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.iceberg.committing.mappings import MAPPING_KEY
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of
from lakeproof.iceberg.reading.segments import rows_of_spans


class Reachable(NamedTuple):
    """Paths by kind."""

    manifest_lists: frozenset[str]
    manifests: frozenset[str]
    content_files: frozenset[str]
    mappings: frozenset[str]

    def all(self) -> frozenset[str]:
        """Every path."""
        return self.manifest_lists | self.manifests | self.content_files | self.mappings


def manifests_by_path(table: Table, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    """The manifests of these snapshots, by path."""
    return {m.manifest_path: m for snapshot in snapshots for m in manifests_of(table.io, snapshot)}


def paths_in(
    table: Table, manifests: Iterable[ManifestFile], cache: ManifestCache, *, live_only: bool
) -> frozenset[str]:
    """The data and delete files that these manifests name."""
    found: set[str] = set()
    for segment, spans in cache.load(table.io, list(manifests)):
        mask = rows_of_spans(segment, spans)
        rows = np.flatnonzero(mask & segment.live if live_only else mask)
        found.update(segment.column("path").take(pa.array(rows)).to_pylist())
    return frozenset(found)


def delete_files_in(
    table: Table, manifests: Iterable[ManifestFile], cache: ManifestCache
) -> tuple[frozenset[str], frozenset[str]]:
    """The position delete files (vectors too) and the equality delete files that these manifests name."""
    found: tuple[set[str], set[str]] = (set(), set())
    for segment, spans in cache.load(table.io, [m for m in manifests if m.content == ManifestContent.DELETES]):
        by_value = segment.numpy("content") == DataFileContent.EQUALITY_DELETES
        mask = rows_of_spans(segment, spans)
        for paths, rows in zip(found, (mask & ~by_value, mask & by_value), strict=True):
            paths.update(segment.column("path").take(pa.array(np.flatnonzero(rows))).to_pylist())
    return frozenset(found[0]), frozenset(found[1])


def mappings_of(snapshots: Iterable[Snapshot]) -> frozenset[str]:
    """The mappings that these snapshots record."""
    said = (snapshot.summary.additional_properties for snapshot in snapshots if snapshot.summary)
    return frozenset(each[MAPPING_KEY] for each in said if each.get(MAPPING_KEY))


def reachable_files(table: Table, snapshots: Iterable[Snapshot], cache: ManifestCache) -> Reachable:
    """Everything that these snapshots name, also entries that say DELETED: an older snapshot may need the file."""
    listed = list(snapshots)
    manifests = manifests_by_path(table, listed)
    return Reachable(
        manifest_lists=frozenset(snapshot.manifest_list for snapshot in listed),
        manifests=frozenset(manifests),
        content_files=paths_in(table, manifests.values(), cache, live_only=False),
        mappings=mappings_of(listed),
    )


def own_files(table: Table, snapshot: Snapshot, cache: ManifestCache) -> frozenset[str]:
    """What one commit wrote and its snapshot names: list, manifests, content files of its own manifests, mapping."""
    manifests = manifests_by_path(table, (snapshot,))
    mine = [manifest for manifest in manifests.values() if manifest.added_snapshot_id == snapshot.snapshot_id]
    named = paths_in(table, mine, cache, live_only=False) | mappings_of((snapshot,))
    return frozenset((snapshot.manifest_list, *manifests)) | named
