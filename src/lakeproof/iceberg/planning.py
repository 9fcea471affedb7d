"""The files of a scan, as one Arrow table, pruned with array operations over decoded manifests."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from lakeproof.iceberg.predicates import TRUE


@dataclass(frozen=True)
class ScanPlan:
    """What a scan of one snapshot reads.

    `files`: path, size, record_count, data_sequence_number, spec_id, file_format, delete_files (list of indexes into `delete_files`).
    `delete_files`: path, size, content ("position" | "deletion-vector" | "equality"), record_count, equality_ids, offset, length.
    """

    snapshot_id: int | None
    row_filter: BooleanExpression
    inferred: tuple[str, ...]
    files: pa.Table
    delete_files: pa.Table
    files_seen: int
    manifests_seen: int
    manifests_read: int

    @property
    def bytes_kept(self) -> int:
        """Bytes of the data files that are read."""
        raise NotImplementedError


def plan(
    table: Table, row_filter: BooleanExpression = TRUE, *, snapshot_id: int | None = None, case_sensitive: bool = False
) -> ScanPlan:
    """The files that may hold a row matching `row_filter` at a snapshot (`None`: the current one)."""
    raise NotImplementedError
