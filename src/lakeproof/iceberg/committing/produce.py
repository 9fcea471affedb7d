"""A change on top of a head becomes a snapshot's manifests, manifest list and summary."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile, write_manifest_list
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.new_manifests import ManifestMaker, has_live_files, merge_small
from lakeproof.iceberg.committing.summary import summarize
from lakeproof.iceberg.format_v3.metadata import NEWEST, next_row_id
from lakeproof.iceberg.format_v3.row_ids import with_row_ids
from lakeproof.iceberg.format_v3.vectors import VECTOR_FORMAT, entry_key
from lakeproof.iceberg.pyiceberg_private import ManifestListWriterV3, own_copy
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of, shared_cache
from lakeproof.iceberg.reading.segments import Segment


@dataclass(frozen=True)
class FileChange:
    """The files that one commit adds and removes, as one snapshot.

    `operation`: append, overwrite, delete or replace. `removed_*`: paths, of vectors their keys. `data_sequence_number`
    is that of the added data files; `None`: the new snapshot's own.
    """

    operation: str
    added_data_files: tuple[DataFile, ...] = ()
    removed_data_files: tuple[str, ...] = ()
    added_delete_files: tuple[DataFile, ...] = ()
    removed_delete_files: tuple[str, ...] = ()
    data_sequence_number: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)


class Producer:
    """Makes snapshots for one commit: its snapshot id and the manifests of new files stay the same on every attempt."""

    def __init__(self, table: Table, cache: ManifestCache | None = None) -> None:
        self.snapshot_id = table.metadata.new_snapshot_id()
        self.maker = ManifestMaker(table, self.snapshot_id)
        self.cache = cache or shared_cache()
        self.attempt = 0
        self._added: dict[tuple[tuple[str, ...], int | None], list[ManifestFile]] = {}
        self._lists: list[str] = []

    @property
    def written(self) -> list[str]:
        """Every metadata file that was written so far, of all attempts."""
        return [*self.maker.written, *self._lists]

    def produce(self, table: Table, head: Snapshot | None, change: FileChange) -> Snapshot:
        """The snapshot of `change` on top of `head` (`None`: the branch is empty); its files are written."""
        self.attempt += 1
        self.maker.table = table
        added = [
            *self._new(change.added_data_files, ManifestContent.DATA, change.data_sequence_number),
            *self._new(change.added_delete_files, ManifestContent.DELETES, None),
        ]
        old = manifests_of(table.io, head)
        kept, removed = self._filtered(table, old, change)
        manifests = merge_small(self.maker, [*added, *kept], table.properties)
        return self._snapshot(table, head, manifests, change, removed, replaced=len(old))

    def replace_manifests(
        self, table: Table, head: Snapshot, manifests: Sequence[ManifestFile], *, replaced: int
    ) -> Snapshot:
        """The snapshot that reads the same files through these manifests."""
        self.attempt += 1
        return self._snapshot(table, head, manifests, FileChange("replace"), (), replaced=replaced)

    def _snapshot(
        self,
        table: Table,
        head: Snapshot | None,
        manifests: Sequence[ManifestFile],
        change: FileChange,
        removed: Sequence[DataFile],
        *,
        replaced: int,
    ) -> Snapshot:
        sequence_number = table.metadata.next_sequence_number()
        created = sum(m.added_snapshot_id == self.snapshot_id for m in manifests)
        summary = summarize(
            table,
            Operation(change.operation),
            added=[*change.added_data_files, *change.added_delete_files],
            removed=removed,
            previous=None if head is None else dict(head.summary.additional_properties if head.summary else {}),
            more={
                "manifests-created": str(created),
                "manifests-kept": str(len(manifests) - created),
                "manifests-replaced": str(max(0, replaced - (len(manifests) - created))),
                **change.summary,
            },
        )
        listed, ids = self._write_list(table, head, manifests, sequence_number)
        return Snapshot.model_validate(
            {
                **ids,
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": None if head is None else head.snapshot_id,
                "manifest-list": listed,
                "sequence-number": sequence_number,
                "summary": summary,
                "schema-id": table.schema().schema_id,
                "timestamp-ms": max(time.time_ns() // 1_000_000, table.metadata.last_updated_ms),
            }
        )

    def _new(
        self, files: Sequence[DataFile], content: ManifestContent, sequence_number: int | None
    ) -> list[ManifestFile]:
        """Manifests of new files are written once: a later attempt finds them as they are."""
        key = (tuple(entry_key(file) for file in files), sequence_number)
        if files and key not in self._added:
            self._added[key] = self.maker.added(files, content, sequence_number)
        return self._added.get(key, [])

    def _filtered(
        self, table: Table, manifests: Sequence[ManifestFile], change: FileChange
    ) -> tuple[list[ManifestFile], list[DataFile]]:
        """The head's manifests without the removed files; those that nobody can read anything from are left out."""
        kept: list[ManifestFile] = []
        gone: list[DataFile] = []
        for content, paths in (
            (ManifestContent.DATA, change.removed_data_files),
            (ManifestContent.DELETES, change.removed_delete_files),
        ):
            group = [m for m in manifests if m.content == content and has_live_files(m)]
            wanted = frozenset(paths)
            holding = self._holding(table, group, wanted)
            for manifest in group:
                if manifest.manifest_path in holding:
                    manifest, files = self.maker.without(manifest, wanted)
                    gone += files
                kept.append(manifest)
        missing = {*change.removed_data_files, *change.removed_delete_files} - {entry_key(file) for file in gone}
        if missing:
            raise InvalidInput(f"{len(missing)} files to remove are not in the table", place=min(missing))
        return kept, gone

    def _holding(self, table: Table, manifests: Sequence[ManifestFile], paths: frozenset[str]) -> set[str]:
        """The manifests in which one of the files (by `entry_key`) is live."""
        found: set[str] = set()
        if not paths:
            return found
        wanted = pa.array(sorted(paths), pa.large_string())
        for segment, spans in self.cache.load(table.io, manifests):
            hit = pc.is_in(keys_in(segment), wanted).to_numpy(zero_copy_only=False) & segment.live
            for span in spans:
                if np.any(hit[span.first : span.first + span.rows]):
                    found.add(span.manifest.manifest_path)
        return found

    def _write_list(
        self, table: Table, head: Snapshot | None, manifests: Sequence[ManifestFile], sequence_number: int
    ) -> tuple[str, dict[str, int]]:
        """The manifest list, and which row ids the snapshot takes: from the head's next one, again on every attempt."""
        name = f"snap-{self.snapshot_id}-{self.attempt}-{self.maker.id}.avro"
        path = table.location_provider().new_metadata_location(name)
        self._lists.append(path)
        output, parent = table.io.new_output(path), None if head is None else head.snapshot_id
        if table.format_version < NEWEST:
            version = table.format_version
            listed = [own_copy(manifest) for manifest in manifests]
            with write_manifest_list(version, output, self.snapshot_id, parent, sequence_number, "deflate") as writer:
                writer.add_manifests(listed)
            return path, {}
        first = next_row_id(table.metadata)
        listed, after = with_row_ids(manifests, first)
        with ManifestListWriterV3(output, self.snapshot_id, parent, sequence_number, first) as writer:
            writer.add_manifests(listed)
        return path, {"first-row-id": first, "added-rows": after - first}


def keys_in(segment: Segment) -> pa.Array:
    """What tells the files of a segment from each other, as `entry_key` does."""
    paths = segment.column("path")
    if "blob_offset" not in segment.names or VECTOR_FORMAT not in segment.column("format").unique().to_pylist():
        return paths
    offsets = segment.column("blob_offset").cast(pa.large_string())
    is_vector = pc.and_(pc.equal(segment.column("format"), VECTOR_FORMAT), pc.is_valid(offsets))
    return pc.if_else(is_vector, pc.binary_join_element_wise(paths, offsets, pa.scalar("#", pa.large_string())), paths)
