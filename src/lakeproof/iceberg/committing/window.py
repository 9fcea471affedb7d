"""The commit window of a real table, as values of `format/`: only the parts that the asked checks need are loaded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from lakeproof.commit.checks import Part
from lakeproof.commit.window import has_batch
from lakeproof.errors import PlacedError
from lakeproof.filters import ALWAYS, Expression, columns_of, matches, may_match_file
from lakeproof.format import (
    DataFile,
    DeleteContent,
    DeleteFile,
    Lineage,
    Operation,
    Row,
    Rows,
    Snapshot,
    StreamBatch,
    TableShape,
    lineage,
    row_set,
    rows_of,
)
from lakeproof.iceberg.committing.mappings import MAPPING_KEY, read_mapping
from lakeproof.iceberg.committing.summary import COMMAND_ID, batch_in
from lakeproof.iceberg.committing.values import bounds_of_columns, column_name, data_file_values, partition_values
from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.reading.avro import read_header
from lakeproof.iceberg.reading.delete_files import place_of, read_positions
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of, shared_cache
from lakeproof.iceberg.reading.matching_deletes import delete_table
from lakeproof.iceberg.reading.segments import Picked, rows_of_spans

ADDED, DELETED = 1, 2
PARENT = "parent-snapshot-id"
_headers: Recent[bytes] = Recent(256)
SMALL_ROWS = 2_000
_recent_files: Recent[pa.Table] = Recent(64)


def unseen_snapshots(table: Table, *, scan_snapshot: int | None, head_snapshot: int | None) -> Lineage:
    """The ids after the scan snapshot up to the head, oldest first.

    Where the line of parents ends, the manifest list of the last snapshot is asked what it was written on: an expiry by
    PyIceberg says of the children of expired snapshots that they have no parent.
    """
    snapshots = {each.snapshot_id: each for each in table.metadata.snapshots}
    parents = {number: each.parent_snapshot_id for number, each in snapshots.items()}
    found = lineage(parents, scan_snapshot=scan_snapshot, head_snapshot=head_snapshot)
    oldest = found.unseen[0] if found.unseen else None
    if oldest is None or parents[oldest] is not None:
        return found
    try:
        parents[oldest] = written_on(table, snapshots[oldest])
    except (FileNotFoundError, ValueError, IndexError):  # expired just now, or damaged: nobody can tell
        return found._replace(missing=oldest)
    return lineage(parents, scan_snapshot=scan_snapshot, head_snapshot=head_snapshot)


def written_on(table: Table, snapshot: IcebergSnapshot) -> int | None:
    """The snapshot that was the head when this one was made, by the words of its own manifest list."""
    if snapshot.sequence_number == 1:
        return None  # nobody was there before
    path = snapshot.manifest_list
    said = _headers.get(path, lambda: read_header(_content(table, path)).metadata.get(PARENT, b"null"))
    return None if said == b"null" else int(said)


def forget_headers() -> None:
    """The headers of manifest lists are read again."""
    _headers.clear()


def _content(table: Table, path: str) -> bytes:
    with table.io.new_input(path).open() as stream:
        return stream.read()


def branch_has_batch(table: Table, batch: StreamBatch) -> bool | None:
    """Whether the branch's history holds the batch; `None`: snapshots that could tell were expired.

    One of an earlier batch can tell: this one would stand after it.
    """
    head = table.metadata.current_snapshot_id
    found = unseen_snapshots(table, scan_snapshot=None, head_snapshot=head)
    snapshots = {each.snapshot_id: each for each in table.metadata.snapshots}
    said = (snapshots[number].summary for number in found.unseen)
    batches = [batch_in(each.additional_properties) for each in said if each is not None]
    if any(has_batch(batch, each) for each in batches):
        return True
    earlier = any(each is not None and each.query_id == batch.query_id for each in batches)
    return False if earlier or found.missing is None else None


def load_window(
    table: Table,
    unseen: Sequence[int],
    needs: Part,
    *,
    columns: Sequence[str] = (),
    cache: ManifestCache | None = None,
) -> tuple[Snapshot, ...]:
    """These snapshots, with what `needs` says and the bounds of these columns; `FileNotFoundError`: one was expired."""
    return tuple(load_snapshot(table, number, needs, columns=columns, cache=cache) for number in unseen)


def load_snapshot(
    table: Table,
    snapshot_id: int,
    needs: Part,
    *,
    columns: Sequence[str] = (),
    cache: ManifestCache | None = None,
) -> Snapshot:
    """What one commit did to the table."""
    found = table.snapshot_by_id(snapshot_id)
    assert found is not None
    said = dict(found.summary.additional_properties) if found.summary else {}
    value = Snapshot(
        snapshot_id=snapshot_id,
        sequence_number=found.sequence_number or 0,
        operation=Operation(found.summary.operation.value if found.summary else "overwrite"),
        parent_id=found.parent_snapshot_id,
        command_id=said.get(COMMAND_ID, ""),
        batch=batch_in(said),
        gives_row_ids=found.first_row_id is not None,
    )
    if not any(needs):
        return value
    loader = _Loader(table, found, cache or shared_cache(), columns)
    if needs.added_data_files or needs.removed_data_files:
        value = value._replace(
            added_data_files=loader.data_files(ADDED),
            removed_data_files=loader.data_files(DELETED),
            removed_delete_files=loader.delete_files(DELETED, read=False),
            mapping=read_mapping(table.io, said[MAPPING_KEY]) if said.get(MAPPING_KEY) else None,
        )
    if needs.added_delete_files:
        value = value._replace(added_delete_files=loader.delete_files(ADDED))
    return value


def removed_delete_files(table: Table, snapshot_id: int, *, cache: ManifestCache | None = None) -> frozenset[str]:
    """The delete files that one commit took out of the table, by path; vectors by their key."""
    found = table.snapshot_by_id(snapshot_id)
    assert found is not None
    picked = _Loader(table, found, cache or shared_cache(), ())._picked(ManifestContent.DELETES, DELETED)
    return frozenset(place_of(row).key for each in picked for row in delete_table([each]).to_pylist())


class _Loader:
    """The entries that one snapshot itself added or deleted: they are in manifests that it wrote."""

    def __init__(self, table: Table, snapshot: IcebergSnapshot, cache: ManifestCache, columns: Sequence[str]) -> None:
        self.table, self.snapshot, self.cache, self.columns = table, snapshot, cache, columns
        self.manifests: list[ManifestFile] = [
            m for m in manifests_of(table.io, snapshot) if m.added_snapshot_id == snapshot.snapshot_id
        ]

    def _picked(self, content: ManifestContent, status: int) -> list[Picked]:
        manifests = [m for m in self.manifests if m.content == content]
        picked = []
        for segment, spans in self.cache.load(self.table.io, manifests):
            mine = (segment.numpy("status") == status) & (segment.snapshot_id == self.snapshot.snapshot_id)
            rows = np.flatnonzero(mine & rows_of_spans(segment, spans))
            if len(rows):
                picked.append(Picked(segment, rows, spans[0].manifest.partition_spec_id))
        return picked

    def data_files(self, status: int) -> tuple[DataFile, ...]:
        """The data files with that status."""
        return tuple(data_file_values(self.table, self._picked(ManifestContent.DATA, status), self.columns))

    def delete_files(self, status: int, *, read: bool = True) -> tuple[DeleteFile, ...]:
        """The delete files with that status; `read` opens them for their positions."""
        return delete_file_values(self.table, self._picked(ManifestContent.DELETES, status), read=read)


def delete_file_values(
    table: Table, picked: Sequence[Picked], *, read: bool, also: Collection[str] = ()
) -> tuple[DeleteFile, ...]:
    """Delete files as values; `read` opens them for their positions, else only the data file that they name is told.

    Also read are those that name one of the data files `also`, or that may name any.
    """
    found = []
    for each in picked:
        described = delete_table([each]).to_pylist()
        ids = {number for row in described for number in row["equality_ids"] or ()}
        bounds = bounds_of_columns(table, each, sorted(ids))
        for at, (row, partition) in enumerate(zip(described, partition_values(table, each), strict=True)):
            content = _CONTENTS[row["content"]]
            found.append(
                DeleteFile(
                    path=place_of(row).key,
                    content=content,
                    partition=partition,
                    spec_id=each.spec_id,
                    sequence_number=row["data_sequence_number"],
                    positions=_rows(table, row, read=read or _concerns(row, also))
                    if content is not DeleteContent.EQUALITY
                    else None,
                    equality_columns=tuple(column_name(table.schema(), i) for i in row["equality_ids"] or ()),
                    equality_values=None if content is DeleteContent.EQUALITY else (),
                    bounds=tuple(bounds[number][at] for number in row["equality_ids"] or () if number in bounds),
                )
            )
    return tuple(found)


_CONTENTS = {
    "position": DeleteContent.POSITIONS,
    "deletion-vector": DeleteContent.VECTOR,
    "equality": DeleteContent.EQUALITY,
}


def _concerns(row: dict[str, Any], data_files: Collection[str]) -> bool:
    return bool(data_files) and (row["referenced_file"] is None or row["referenced_file"] in data_files)


def _rows(table: Table, row: dict[str, Any], *, read: bool) -> Rows | None:
    named = row["referenced_file"]
    if not read:
        return None if named is None else ((named, 1),)
    found = read_positions(table.io, place_of(row))
    return rows_of((data, row_set(positions)) for data, positions in found.items())


# ---------------------------------------------------------------- rows of small files, so that no check need guess


def with_rows(table: Table, snapshot: Snapshot, conflict_filter: Expression, shape: TableShape) -> Snapshot:
    """The snapshot, where each small file that may hold a matching row says what its rows are.

    Only the filter's columns are read; the others are null, and no check asks about them.
    """
    if conflict_filter == ALWAYS or not columns_of(conflict_filter):
        return snapshot
    files = tuple(_with_rows(table, file, conflict_filter, shape) for file in snapshot.added_data_files)
    return snapshot._replace(added_data_files=files)


def _with_rows(table: Table, file: DataFile, conflict_filter: Expression, shape: TableShape) -> DataFile:
    if file.record_count > SMALL_ROWS or not may_match_file(conflict_filter, file, shape):
        return file
    try:
        rows = _values(table, file, columns_of(conflict_filter), shape)
        for row in rows:
            matches(conflict_filter, row, shape.columns)
    except (TypeError, ValueError, OSError, PlacedError):  # the bounds must do: they say "may match"
        return file
    return file._replace(rows=rows) if len(rows) == file.record_count else file


def _values(table: Table, file: DataFile, columns: tuple[str, ...], shape: TableShape) -> tuple[Row, ...]:
    if any("." in column for column in columns):
        raise ValueError("columns inside structs are not read here")
    content = _recent_files.get(file.path, lambda: _read(table, file.path))
    by_id = {int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")): at for at, field in enumerate(content.schema)}
    known: dict[str, list[Any]] = {}
    for column in columns:
        at = by_id.get(table.schema().find_field(column, case_sensitive=False).field_id)
        if at is None:  # the file is older than the column, or has no ids
            raise ValueError(f"{column} is not in the file")
        known[column.lower()] = content.column(at).to_pylist()
    places = [known.get(column.lower()) for column in shape.columns]
    return tuple(
        tuple(None if values is None else values[number] for values in places) for number in range(content.num_rows)
    )


def _read(table: Table, path: str) -> pa.Table:
    if not path.endswith(".parquet"):
        raise ValueError("only Parquet files are read here")
    with translate_errors(f"file {path}"), reading_file(path), table.io.new_input(path).open() as stream:
        return pq.read_table(pa.BufferReader(stream.read()), partitioning=None)
