"""Row ids: given to manifests when a snapshot's list is written, inherited by the entries when they are read.

The rule is `commit.snapshots.assigned_row_ids`; here it is asked of real manifests and entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile

from lakeproof.commit.snapshots import assigned_row_ids
from lakeproof.iceberg.failures import reading_file
from lakeproof.iceberg.pyiceberg_private import FIRST_ROW_ID, MANIFEST_FIRST_ROW_ID, own_copy, read_entries
from lakeproof.iceberg.reading.segments import Ints, Segment, Span
from lakeproof.iceberg.reading.verifying import verify_once

NO_ID = -1
ROW_ID_FIELD, LAST_UPDATED_FIELD = 2147483540, 2147483539
"""The columns of a data file that store what a row had before it was written again."""


def with_row_ids(manifests: Sequence[ManifestFile], next_row_id: int) -> tuple[list[ManifestFile], int]:
    """Copies of a snapshot's manifests in which every data manifest has a first row id, and the next id after them."""
    copies = [own_copy(manifest) for manifest in manifests]
    data = [each for each in copies if each.content == ManifestContent.DATA]
    counts = [(each.existing_rows_count or 0) + (each.added_rows_count or 0) for each in data]
    told = zip((each[MANIFEST_FIRST_ROW_ID] for each in data), counts, strict=True)
    firsts, after = assigned_row_ids(next_row_id, told)
    for manifest, first in zip(data, firsts, strict=True):
        manifest[MANIFEST_FIRST_ROW_ID] = first
    return copies, after


def entries_of(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """The entries of a manifest with all fields of version 3, those of removed files too; row ids are inherited."""
    with reading_file(manifest.manifest_path):
        verify_once(io, manifest.manifest_path)
        entries = read_entries(io, manifest)
    first = first_row_id(manifest)
    if first is not None and manifest.content == ManifestContent.DATA:
        files = [each.data_file for each in entries if each.status != ManifestEntryStatus.DELETED]
        firsts, _ = assigned_row_ids(first, ((file[FIRST_ROW_ID], file.record_count) for file in files))
        for file, number in zip(files, firsts, strict=True):
            file[FIRST_ROW_ID] = number
    return entries


def first_row_id(manifest: ManifestFile) -> int | None:
    """The first row id of a manifest as its list says it; `None`: it has none yet."""
    found: int | None = manifest[MANIFEST_FIRST_ROW_ID] if len(manifest) > MANIFEST_FIRST_ROW_ID else None
    return found


def first_row_ids(segment: Segment, spans: Sequence[Span]) -> Ints:
    """The first row id of each entry of a segment, `NO_ID` where it has none: `assigned_row_ids` for whole columns.

    It is asked of the list at hand: an upgraded table's old manifests have ids in one list and none in another.
    """
    found = np.full(segment.rows, NO_ID, np.int64)
    stored = segment.column("first_row_id") if "first_row_id" in segment.names else None
    if stored is not None:
        found = stored.cast("int64").fill_null(NO_ID).to_numpy(zero_copy_only=False).copy()
    for span in spans:
        first, rows = first_row_id(span.manifest), slice(span.first, span.first + span.rows)
        if first is not None and span.manifest.content == ManifestContent.DATA:
            inherits = (found[rows] == NO_ID) & segment.live[rows]
            counts = np.where(inherits, segment.record_count[rows], 0)
            found[rows] = np.where(inherits, first + np.cumsum(counts) - counts, found[rows])
    return found
