"""The files of a scan, as one Arrow table, pruned with array operations over decoded manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from lakeproof.iceberg.cache import ManifestCache, manifests_of, shared_cache
from lakeproof.iceberg.dependencies import infer, table_dependencies
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.matching_deletes import PATH_FIELD, Candidates, Deletes, match_delete_files
from lakeproof.iceberg.predicates import TRUE
from lakeproof.iceberg.pruning import in_partition, may_match
from lakeproof.iceberg.segments import Ints, Mask, Segment, Span

POSITION, EQUALITY = 1, 2
FILES = pa.schema(
    [
        ("path", pa.large_string()),
        ("size", pa.int64()),
        ("record_count", pa.int64()),
        ("data_sequence_number", pa.int64()),
        ("spec_id", pa.int32()),
        ("format", pa.large_string()),
        ("delete_files", pa.list_(pa.int32())),
    ]
)
DELETE_FILES = pa.schema(
    [
        ("path", pa.large_string()),
        ("size", pa.int64()),
        ("record_count", pa.int64()),
        ("data_sequence_number", pa.int64()),
        ("content", pa.string()),
        ("format", pa.large_string()),
        ("equality_ids", pa.list_(pa.int32())),
        ("referenced_file", pa.large_string()),
        ("blob_offset", pa.int64()),
        ("blob_size", pa.int64()),
    ]
)


class Picked(NamedTuple):
    """Rows of a segment that a plan keeps, and the partition spec of that segment."""

    segment: Segment
    rows: Ints
    spec_id: int


@dataclass(frozen=True)
class ScanPlan:
    """What a scan of one snapshot reads.

    `files`: path, size, record_count, data_sequence_number, spec_id, format, delete_files (numbers of rows of
    `delete_files`). `delete_files`: path, size, record_count, data_sequence_number, content (`position`,
    `deletion-vector`, `equality`), format, equality_ids, referenced_file, blob_offset, blob_size.
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
        for segment, rows, spec_id in self.picked:
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
    with spoken(place):
        wanted = And(row_filter, inferred)
        planner = _Planner(table, schema, wanted, case_sensitive, cache or shared_cache(), as_pyiceberg)
        manifests = manifests_of(table.io, snapshot)
        data, seen, read = planner.pick(manifests, ManifestContent.DATA)
        deletes, _, _ = planner.pick(manifests, ManifestContent.DELETES)
    delete_files = delete_table(deletes)
    matched = _match(data, deletes, delete_files, table.specs()) if deletes else None
    return ScanPlan(
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        row_filter=row_filter,
        inferred=inferred,
        files=_file_table(data, matched),
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
                picked.append(Picked(segment, np.flatnonzero(mask), spec_id))
        seen = sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in wanted)
        return picked, seen, len(kept)

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
        except (ValueError, KeyError):  # the spec's source column was dropped: its values say nothing any more
            return None, lambda manifest: True
        bound = bind(partition_schema, rewrite_not(projected), case_sensitive=False)
        return bound, manifest_evaluator(spec, self.schema, projected, self.case_sensitive)


def rows_of_spans(segment: Segment, spans: Sequence[Span]) -> Mask:
    """The rows of a segment that belong to these manifests."""
    if sum(span.rows for span in spans) == segment.rows:
        return np.ones(segment.rows, bool)
    mask = np.zeros(segment.rows, bool)
    for span in spans:
        mask[span.first : span.first + span.rows] = True
    return mask


def partition_tuples(segment: Segment, rows: Ints, spec: PartitionSpec) -> list[tuple[Any, ...]]:
    """Partition values as plain values, one tuple per row; a field that the file lacks is null."""
    if not spec.fields:
        return [()] * len(rows)
    taken = pa.array(rows)
    columns = []
    for field in spec.fields:
        column = segment.partition(field.field_id)
        columns.append([None] * len(rows) if column is None else column.take(taken).to_pylist())
    return list(zip(*columns, strict=True))


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
    for segment, rows, spec_id in picked:
        taken = pa.array(rows)
        parts.append(
            [
                segment.column("path").take(taken),
                segment.column("size").take(taken).cast(pa.int64()),
                segment.column("record_count").take(taken).cast(pa.int64()),
                pa.array(segment.seq[rows]),
                pa.array(np.full(len(rows), spec_id, np.int32)),
                segment.column("format").take(taken),
            ]
        )
    columns = [pa.chunked_array([part[i] for part in parts], FILES.types[i]) for i in range(len(FILES) - 1)]
    if delete_files is None:
        offsets = np.zeros(len(columns[0]) + 1, np.int32)
        delete_files = pa.ListArray.from_arrays(pa.array(offsets), pa.array([], pa.int32()))
    return pa.Table.from_arrays([*columns, delete_files.cast(FILES.types[-1])], schema=FILES)


def delete_table(picked: Sequence[Picked]) -> pa.Table:
    """The delete files of decoded manifests; one that names a single data file, in whatever way, says which."""
    tables = []
    for segment, rows, _ in picked:
        taken = pa.array(rows)
        columns: dict[str, Any] = {"data_sequence_number": pa.array(segment.seq[rows])}
        for name in DELETE_FILES.names:
            kind = DELETE_FILES.field(name).type
            if name == "content":
                columns[name] = _content_words(segment, rows)
            elif name != "data_sequence_number":
                known = name in segment.names
                columns[name] = segment.column(name).take(taken).cast(kind) if known else pa.nulls(len(rows), kind)
        tables.append(pa.table(columns).select(DELETE_FILES.names).cast(DELETE_FILES))
    if not tables:
        return DELETE_FILES.empty_table()
    found = pa.concat_tables(tables)
    at = DELETE_FILES.get_field_index("referenced_file")
    return found.set_column(at, DELETE_FILES.field(at), pa.array(_referenced(picked, found), pa.large_string()))


def _content_words(segment: Segment, rows: Ints) -> pa.Array:
    content, formats = segment.numpy("content")[rows], segment.numpy("format")[rows]
    words = np.where(content == EQUALITY, "equality", np.where(formats == "PUFFIN", "deletion-vector", "position"))
    return pa.array(words, pa.string())


def _match(
    data: Sequence[Picked], deletes: Sequence[Picked], delete_files: pa.Table, specs: dict[int, PartitionSpec]
) -> pa.Array:
    numbers: dict[tuple[Any, ...], int] = {}
    data_partition, paths, seqs = [], [], []
    for each in data:
        data_partition.append(_partition_numbers(each, specs, numbers))
        paths += each.segment.column("path").take(pa.array(each.rows)).to_pylist()
        seqs.append(each.segment.seq[each.rows])
    delete_partition = [_partition_numbers(each, specs, numbers) for each in deletes]
    no_fields = [not specs[each.spec_id].fields for each in deletes for _ in each.rows]
    return match_delete_files(
        Candidates(paths, np.concatenate([*seqs, []]).astype(np.int64), np.concatenate([*data_partition, []])),
        Deletes(
            seq=delete_files["data_sequence_number"].to_pylist(),
            partition=[int(number) for part in delete_partition for number in part],
            referenced=delete_files["referenced_file"].to_pylist(),
            is_equality=[word == "equality" for word in delete_files["content"].to_pylist()],
            is_global=no_fields,
        ),
    )


def _partition_numbers(picked: Picked, specs: dict[int, PartitionSpec], numbers: dict[tuple[Any, ...], int]) -> Any:
    """Equal numbers for equal (spec, partition values); `numbers` is shared by data and delete files."""
    spec = specs[picked.spec_id]
    codes = np.zeros(len(picked.rows), np.int64)
    for field in spec.fields:
        column = picked.segment.partition(field.field_id)
        if column is not None:
            encoded = pc.dictionary_encode(column.take(pa.array(picked.rows)))
            width = len(encoded.dictionary) + 1
            codes = codes * width + pc.fill_null(encoded.indices, width - 1).to_numpy(zero_copy_only=False)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    tuples = partition_tuples(picked.segment, picked.rows[first], spec)
    return np.array([numbers.setdefault((picked.spec_id, *key), len(numbers)) for key in tuples])[inverse]


def _referenced(deletes: Sequence[Picked], delete_files: pa.Table) -> list[str | None]:
    """The one data file that each delete file names: by its own field, or by equal bounds of the path column."""
    named: list[str | None] = delete_files["referenced_file"].to_pylist()
    at = 0
    for segment, rows, _ in deletes:
        bounds = [
            segment.column(f"{kind}{PATH_FIELD}").take(pa.array(rows)).to_pylist()
            if f"{kind}{PATH_FIELD}" in segment.names
            else [None] * len(rows)
            for kind in ("lo", "hi")
        ]
        for low, high in zip(*bounds, strict=True):
            if named[at] is None and low is not None and low == high:
                named[at] = low.decode()
            at += 1
    return named
