"""Manifests are written, filtered and merged the way Apache Iceberg does it.

A manifest that holds a removed file is written again: the file's entry says DELETED, the others EXISTING. Small
manifests are merged by the properties `commit.manifest-merge.enabled`, `commit.manifest.min-count-to-merge` and
`commit.manifest.target-size-bytes`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence

from pyiceberg.io import OutputFile
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakeproof.iceberg.format_v3.row_ids import entries_of
from lakeproof.iceberg.format_v3.vectors import entry_key
from lakeproof.iceberg.pyiceberg_private import (
    DeleteManifestWriter,
    DeleteManifestWriterV3,
    ManifestWriterV3,
    forget_unassigned,
    write_in_blocks,
)
from lakeproof.iceberg.tables.properties import whole_number

MERGE, MIN_COUNT, TARGET = (
    "commit.manifest-merge.enabled",
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
)
_WRITERS: dict[tuple[int, ManifestContent], type[ManifestWriter]] = {
    (1, ManifestContent.DATA): ManifestWriterV1,
    (2, ManifestContent.DATA): ManifestWriterV2,
    (2, ManifestContent.DELETES): DeleteManifestWriter,
    (3, ManifestContent.DATA): ManifestWriterV3,
    (3, ManifestContent.DELETES): DeleteManifestWriterV3,
}
ADDED, EXISTING, DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED


class ManifestMaker:
    """Writes the manifests of one snapshot and remembers every path that it wrote."""

    def __init__(self, table: Table, snapshot_id: int) -> None:
        self.table, self.snapshot_id = table, snapshot_id
        self.written: list[str] = []
        self.id = uuid.uuid4()
        self._numbers = itertools.count()

    def added(
        self, files: Sequence[DataFile], content: ManifestContent, sequence_number: int | None
    ) -> list[ManifestFile]:
        """Manifests of new files, one per partition spec; `sequence_number` `None` is inherited from the snapshot."""
        manifests = []
        for spec_id in sorted({file.spec_id for file in files}):
            entries = (
                ManifestEntry.from_args(
                    status=ADDED, snapshot_id=self.snapshot_id, sequence_number=sequence_number, data_file=file
                )
                for file in files
                if file.spec_id == spec_id
            )
            for first in entries:
                manifests.append(self.write(itertools.chain((first,), entries), spec_id, content, roll=True))
        return manifests

    def without(self, manifest: ManifestFile, removed: frozenset[str]) -> tuple[ManifestFile, list[DataFile]]:
        """The manifest with those files (by `entry_key`) marked DELETED, and the files; older DELETED are left out."""
        entries, gone = [], []
        for entry in self.entries(manifest):
            if entry.status == DELETED:
                continue
            if entry_key(entry.data_file) in removed:
                gone.append(entry.data_file)
                entries.append(restated(entry, DELETED, self.snapshot_id))
            else:
                entries.append(restated(entry, EXISTING, entry.snapshot_id))
        return self.write(entries, manifest.partition_spec_id, manifest.content), gone

    def merged(self, manifests: Sequence[ManifestFile]) -> ManifestFile:
        """One manifest with the entries of all; what this snapshot itself added or removed keeps saying so."""
        entries = []
        for manifest in manifests:
            for entry in self.entries(manifest):
                mine = entry.snapshot_id == self.snapshot_id
                if entry.status == DELETED and not mine:
                    continue
                keeps = mine and entry.status in (ADDED, DELETED)
                entries.append(entry if keeps else restated(entry, EXISTING, entry.snapshot_id))
        return self.write(entries, manifests[0].partition_spec_id, manifests[0].content)

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """The entries of a manifest, with their partition spec on each file."""
        entries = entries_of(self.table.io, manifest)
        for entry in entries:
            entry.data_file.spec_id = manifest.partition_spec_id
            if manifest.sequence_number < 0:  # written by this commit: the snapshot's number is not known yet
                forget_unassigned(entry)
        return entries

    def write(
        self, entries: Iterable[ManifestEntry], spec_id: int, content: ManifestContent, *, roll: bool = False
    ) -> ManifestFile:
        """A manifest of these entries; `roll` takes of an iterator only as many as the target size holds."""
        limit = whole_number(self.table.properties, TARGET, 8 << 20) if roll else None
        path = self.table.location_provider().new_metadata_location(f"{self.id}-m{next(self._numbers)}.avro")
        self.written.append(path)
        with self._writer(self.table.io.new_output(path), spec_id, content) as writer:
            write_in_blocks(writer)
            for entry in entries:
                writer.add_entry(entry)
                if limit is not None and writer.tell() >= limit:
                    break
        return writer.to_manifest_file()

    def _writer(self, output: OutputFile, spec_id: int, content: ManifestContent) -> ManifestWriter:
        spec = self.table.specs()[spec_id]
        schema = _schema_of(self.table, spec)
        kind = _WRITERS[self.table.format_version, content]
        return kind(spec, schema, output, self.snapshot_id, "deflate")


def _schema_of(table: Table, spec: PartitionSpec) -> Schema:
    """The newest schema that has the spec's source columns: the current one may have dropped them."""
    for schema in (table.schema(), *reversed(table.schemas().values())):
        if all(schema.find_column_name(field.source_id) for field in spec.fields):
            return schema
    return table.schema()


def merge_small(
    maker: ManifestMaker, manifests: Sequence[ManifestFile], properties: Mapping[str, str]
) -> list[ManifestFile]:
    """The manifests (newest first) with full bins of small ones merged; the newest waits for enough company."""
    if properties.get(MERGE, "true").lower() != "true":
        return list(manifests)
    target = whole_number(properties, TARGET, 8 << 20)
    enough = whole_number(properties, MIN_COUNT, 100)
    kept: list[ManifestFile] = []
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        of_content = [m for m in manifests if m.content == content]
        for spec_id in sorted({m.partition_spec_id for m in of_content}, reverse=True):
            group = [m for m in of_content if m.partition_spec_id == spec_id]
            for bin_ in bins_from_the_end(group, target):
                too_few = of_content[0] in bin_ and len(bin_) < enough  # others will never have more company
                kept += bin_ if len(bin_) == 1 or too_few else [maker.merged(bin_)]
    return kept


def bins_from_the_end(group: Sequence[ManifestFile], target: int) -> list[list[ManifestFile]]:
    """Neighbours packed up to the target size, filled from the oldest, so that only the newest bin grows."""
    bins: list[list[ManifestFile]] = [[]]
    for manifest in reversed(group):
        if bins[0] and sum(m.manifest_length for m in bins[0]) + manifest.manifest_length > target:
            bins.insert(0, [])
        bins[0].insert(0, manifest)
    return [bin_ for bin_ in bins if bin_]


def has_live_files(manifest: ManifestFile) -> bool:
    """Whether a reader finds anything in it."""
    return bool(manifest.has_added_files() or manifest.has_existing_files())


def restated(entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None) -> ManifestEntry:
    """The same file with another status, its sequence numbers kept."""
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )
