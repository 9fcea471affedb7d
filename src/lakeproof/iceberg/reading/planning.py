"""The files of a scan, as one Arrow table, pruned with array operations over decoded manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.expressions.visitors import bind, inclusive_projection, manifest_evaluator, rewrite_not
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.metadata import NEWEST
from lakeproof.iceberg.format_v3.row_ids import NO_ID, first_row_ids
from lakeproof.iceberg.predicates import TRUE
from lakeproof.iceberg.reading.bounds_pruning import may_match
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of, shared_cache
from lakeproof.iceberg.reading.matching_deletes import delete_table, matched
from lakeproof.iceberg.reading.partition_pruning import in_partition
from lakeproof.iceberg.reading.segments import Mask, Picked, Segment, partition_tuples, rows_of_spans
from lakeproof.iceberg.tables.column_dependencies import infer, table_dependencies

FILES = pa.schema(
    [
        ("path", pa.large_string()),
        ("size", pa.int64()),
        ("record_count", pa.int64()),
        ("data_sequence_number", pa.int64()),
        ("spec_id", pa.int32()),
        ("format", pa.large_string()),
        ("first_row_id", pa.int64()),
        ("delete_files", pa.list_(pa.int32())),
    ]
)


@dataclass(frozen=True)
class ScanPlan:
    """What a scan of one snapshot reads.

    `files`: path, size, record_count, data_sequence_number, spec_id, format, first_row_id (null: its rows have no
    ids), delete_files (numbers of rows of `delete_files`). `delete_files`: path, size, record_count,
    data_sequence_number, content (`position`, `deletion-vector`, `equality`), format, equality_ids, referenced_file,
    blob_offset, blob_size.
    """

    snapshot_id: int | None
    row_filter: BooleanExpression
    inferred: BooleanExpression
    files: pa.Table
    delete_files: pa.Table
    files_seen: int
    manifests_seen: int
    manifests_read: int
    picked: tuple[Picked, ...]
    specs: dict[int, PartitionSpec]

    @property
    def bytes_kept(self) -> int:
        """Bytes of the data files that are read."""
        return int(pc.sum(self.files["size"]).as_py() or 0)

    @property
    def rows_kept(self) -> int:
        """Rows of the data files that are read, before deletes."""
        return int(pc.sum(self.files["record_count"]).as_py() or 0)

    def partitions(self) -> list[tuple[Any, ...]]:
        """The partition values of each file, in the order of `files` and of the fields of its spec."""
        values: list[tuple[Any, ...]] = []
        for segment, rows, spec_id, _ in self.picked:
            values += partition_tuples(segment, rows, self.specs[spec_id])
        return values


def plan(
    table: Table,
    row_filter: BooleanExpression = TRUE,
    *,
    snapshot_id: int | None = None,
    case_sensitive: bool = False,
    cache: ManifestCache | None = None,
    as_pyiceberg: bool = False,
) -> ScanPlan:
    """The files that may hold a row matching `row_filter` at a snapshot (`None`: the current one)."""
    place = f"table {'.'.join(table.name())}"
    snapshot = _snapshot(table, snapshot_id, place)
    schema = table.schema() if snapshot_id is None or snapshot is None else _schema_at(table, snapshot)
    inferred = infer(row_filter, table_dependencies(table), schema)
    with translate_errors(place):
        wanted = And(row_filter, inferred)
        planner = _Planner(table, schema, wanted, case_sensitive, cache or shared_cache(), as_pyiceberg)
        manifests = manifests_of(table.io, snapshot)
        data, seen, read = planner.pick(manifests, ManifestContent.DATA)
        deletes, _, _ = planner.pick(manifests, ManifestContent.DELETES)
        delete_files = delete_table(deletes)
        applied = matched(data, deletes, delete_files, table.specs(), schema) if deletes else None
    return ScanPlan(
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        row_filter=row_filter,
        inferred=inferred,
        files=_file_table(data, applied),
        delete_files=delete_files,
        files_seen=seen,
        manifests_seen=len(manifests),
        manifests_read=read,
        picked=tuple(data),
        specs=table.specs(),
    )


class _Planner:
    """One predicate bound once per schema and partition spec."""

    def __init__(
        self,
        table: Table,
        schema: Schema,
        row_filter: BooleanExpression,
        case_sensitive: bool,
        cache: ManifestCache,
        as_pyiceberg: bool,
    ) -> None:
        self.table, self.schema, self.cache = table, schema, cache
        self.row_filter, self.case_sensitive, self.as_pyiceberg = row_filter, case_sensitive, as_pyiceberg
        self.bound = bind(schema, rewrite_not(row_filter), case_sensitive)
        self._by_spec: dict[int, tuple[BooleanExpression | None, Callable[[ManifestFile], bool]]] = {}

    def pick(self, manifests: Sequence[ManifestFile], content: ManifestContent) -> tuple[list[Picked], int, int]:
        """The kept rows of the manifests of one content, the live files in all of them, and how many were read."""
        wanted = [m for m in manifests if m.content == content]
        kept = [m for m in wanted if self._partition_filter(m.partition_spec_id)[1](m)]
        picked = []
        for segment, spans in self.cache.load(self.table.io, kept):
            spec_id = spans[0].manifest.partition_spec_id
            mask = self._mask(segment, spec_id, content) & rows_of_spans(segment, spans)
            if mask.any():
                rows = np.flatnonzero(mask)
                ids = first_row_ids(segment, spans)[rows] if self._has_row_ids(content) else None
                picked.append(Picked(segment, rows, spec_id, ids))
        seen = sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in wanted)
        return picked, seen, len(kept)

    def _has_row_ids(self, content: ManifestContent) -> bool:
        return content == ManifestContent.DATA and self.table.format_version >= NEWEST

    def _mask(self, segment: Segment, spec_id: int, content: ManifestContent) -> Mask:
        mask = segment.live
        partition_filter = self._partition_filter(spec_id)[0]
        if partition_filter is not None:
            mask = mask & in_partition(segment, partition_filter)
        if content == ManifestContent.DATA and self.bound != TRUE:
            # Delete files are pruned by partition alone: their bounds are not those of the rows they delete.
            mask = mask & may_match(segment, self.bound, as_pyiceberg=self.as_pyiceberg)
        return mask

    def _partition_filter(self, spec_id: int) -> tuple[BooleanExpression | None, Callable[[ManifestFile], bool]]:
        if spec_id not in self._by_spec:
            self._by_spec[spec_id] = self._project(self.table.specs()[spec_id])
        return self._by_spec[spec_id]

    def _project(self, spec: PartitionSpec) -> tuple[BooleanExpression | None, Callable[[ManifestFile], bool]]:
        if self.bound == TRUE or not spec.fields:
            return None, lambda manifest: True
        try:
            projected = inclusive_projection(self.schema, spec, self.case_sensitive)(self.row_filter)
            partition_schema = Schema(*spec.partition_type(self.schema).fields)
        except (ValueError, KeyError, OverflowError):
            # The spec's source column was dropped, or the value beside the literal is beyond Python's calendar.
            return None, lambda manifest: True
        bound = bind(partition_schema, rewrite_not(projected), case_sensitive=False)
        return bound, manifest_evaluator(spec, self.schema, projected, self.case_sensitive)


def _snapshot(table: Table, snapshot_id: int | None, place: str) -> Snapshot | None:
    if snapshot_id is None:
        return table.current_snapshot()
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise InvalidInput(f"there is no snapshot {snapshot_id}", place=place, hint="it may have been expired")
    return snapshot


def _schema_at(table: Table, snapshot: Snapshot) -> Schema:
    schemas = table.schemas()
    return schemas.get(snapshot.schema_id, table.schema()) if snapshot.schema_id is not None else table.schema()


def _file_table(picked: Sequence[Picked], delete_files: pa.Array | None) -> pa.Table:
    parts = []
    for segment, rows, spec_id, ids in picked:
        taken = pa.array(rows)
        parts.append(
            [
                segment.column("path").take(taken),
                segment.column("size").take(taken).cast(pa.int64()),
                segment.column("record_count").take(taken).cast(pa.int64()),
                pa.array(segment.seq[rows]),
                pa.array(np.full(len(rows), spec_id, np.int32)),
                segment.column("format").take(taken),
                pa.nulls(len(rows), pa.int64()) if ids is None else pa.array(ids, mask=ids == NO_ID),
            ]
        )
    columns = [pa.chunked_array([part[i] for part in parts], FILES.types[i]) for i in range(len(FILES) - 1)]
    if delete_files is None:
        offsets = np.zeros(len(columns[0]) + 1, np.int32)
        delete_files = pa.ListArray.from_arrays(pa.array(offsets), pa.array([], pa.int32()))
    return pa.Table.from_arrays([*columns, delete_files.cast(FILES.types[-1])], schema=FILES)
