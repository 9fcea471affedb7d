"""Where a snapshot of any engine put the rows of the files that it replaced: told by row ids, without a mapping file.

Only the two lineage columns are read, and only of files whose ids may be among those asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot
from pyiceberg.types import LongType

from lakeproof.format import FileRowIds, RowMapping, Rows, Snapshot, moves_by_row_ids
from lakeproof.format.rows import position_array
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.row_ids import LAST_UPDATED_FIELD, NO_ID, ROW_ID_FIELD, first_row_ids
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of
from lakeproof.iceberg.reading.segments import Segment, Span, rows_of_spans

Ids = npt.NDArray[np.int64]
DELETED, EXISTING = 2, 0
_recent: Recent[FileRowIds] = Recent(16)


class NumberedFile(NamedTuple):
    """A data file whose rows have ids: those it stores lie from `low` to `high`, the others begin at `first`."""

    path: str
    rows: int
    first: int
    number: int
    low: int | None  # `None`: nobody says which ids it stores
    high: int | None

    def may_hold(self, wanted: Ids | None) -> bool:
        """Whether one of these ids (sorted; `None`: any) may be in the file."""
        if wanted is None or self.low is None or self.high is None:
            return True
        ranges = ((self.low, self.high), (self.first, self.first + self.rows - 1))
        return any(np.searchsorted(wanted, low) < np.searchsorted(wanted, high, "right") for low, high in ranges)


class ReplacedFiles(NamedTuple):
    """The data files that one snapshot removed and those that it added; `None`: a file whose rows have no ids."""

    removed: tuple[NumberedFile | None, ...]
    added: tuple[NumberedFile | None, ...]


def is_unmapped(table: Table, snapshot: Snapshot) -> bool:
    """Whether only row ids could tell where the rows went of the files that this snapshot replaced."""
    replaces = snapshot.removed_data_files and snapshot.added_data_files
    return table.format_version >= 3 and snapshot.mapping is None and bool(replaces)


def with_moves(table: Table, snapshot: Snapshot, cache: ManifestCache, wanted: Ids | None = None) -> Snapshot:
    """The snapshot with the moves of its rows, if it replaced files and recorded none; of these ids (`None`: of all).

    Where rows have no ids, or too many of them went to too many places, it stays as it is: the rows are lost.
    """
    if not is_unmapped(table, snapshot):
        return snapshot
    found = table.snapshot_by_id(snapshot.snapshot_id)
    assert found is not None
    with translate_errors(f"table {'.'.join(table.name())}"):
        return snapshot._replace(mapping=_moves(table, replaced_files(table, found, cache), wanted))


def ids_of_rows(table: Table, snapshot_id: int | None, rows: Rows, cache: ManifestCache) -> Ids | None:
    """The ids of rows as they stood at a snapshot, sorted; `None`: nobody can say."""
    found = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    if found is None:
        return None
    by_path = dict(rows)
    known = {file.path: file for file in _numbered(table, found, cache, by_path) if file is not None}
    if len(known) < len(by_path):
        return None
    ids = [_read(table.io, known[path]).ids[position_array(bits)] for path, bits in rows]
    return np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.int64)


def replaced_files(table: Table, snapshot: IcebergSnapshot, cache: ManifestCache) -> ReplacedFiles:
    """What one snapshot took out and put in, from the manifests that it wrote."""
    removed: list[NumberedFile | None] = []
    added: list[NumberedFile | None] = []
    for segment, spans in _data(table, snapshot, cache, only_its_own=True):
        mine = (segment.snapshot_id == snapshot.snapshot_id) & rows_of_spans(segment, spans)
        status = segment.numpy("status")
        removed += _files(segment, spans, np.flatnonzero(mine & (status == DELETED)))
        added += _files(segment, spans, np.flatnonzero(mine & (status != DELETED) & (status != EXISTING)))
    return ReplacedFiles(tuple(removed), tuple(added))


def _moves(table: Table, files: ReplacedFiles, wanted: Ids | None) -> RowMapping | None:
    if None in files.removed or None in files.added or not all(_is_parquet(file) for group in files for file in group):
        return None
    old, new = (
        [_among(_read(table.io, file), wanted) for file in group if file is not None and file.may_hold(wanted)]
        for group in files
    )
    return moves_by_row_ids(old, new)


def _is_parquet(file: NumberedFile | None) -> bool:
    return file is not None and file.path.endswith(".parquet")


def _among(file: FileRowIds, wanted: Ids | None) -> FileRowIds:
    if wanted is None:
        return file
    hit = np.isin(file.ids, wanted)
    return FileRowIds(file.path, file.positions[hit], file.ids[hit], file.last_updated[hit])


def _numbered(
    table: Table, snapshot: IcebergSnapshot, cache: ManifestCache, paths: dict[str, int]
) -> Iterator[NumberedFile | None]:
    for segment, spans in _data(table, snapshot, cache, only_its_own=False):
        live = np.flatnonzero(segment.live & rows_of_spans(segment, spans))
        names = segment.column("path").take(live).to_pylist()
        yield from _files(segment, spans, live[[name in paths for name in names]])


def _data(
    table: Table, snapshot: IcebergSnapshot, cache: ManifestCache, *, only_its_own: bool
) -> list[tuple[Segment, list[Span]]]:
    manifests = [
        each
        for each in manifests_of(table.io, snapshot)
        if each.content == ManifestContent.DATA and (not only_its_own or each.added_snapshot_id == snapshot.snapshot_id)
    ]
    return list(cache.load(table.io, manifests))


def _files(segment: Segment, spans: Sequence[Span], rows: Ids) -> Iterator[NumberedFile | None]:
    firsts = first_row_ids(segment, spans)
    low, high = (segment.bound(kind, ROW_ID_FIELD, LongType()) for kind in ("lo", "hi"))
    for row, path in zip(rows.tolist(), segment.column("path").take(rows).to_pylist(), strict=True):
        known = low is not None and high is not None and all(x.valid is None or x.valid[row] for x in (low, high))
        ends = (int(low.values[row]), int(high.values[row])) if known and low and high else (None, None)
        number = int(segment.seq[row])
        first = int(firsts[row])
        yield None if first == NO_ID else NumberedFile(path, int(segment.record_count[row]), first, number, *ends)


def _read(io: FileIO, file: NumberedFile) -> FileRowIds:
    # A file that was there before an upgrade gets its ids on each branch anew.
    return _recent.get(f"{file.path}#{file.first}", lambda: _read_columns(io, file))


def _read_columns(io: FileIO, file: NumberedFile) -> FileRowIds:
    """The two lineage columns of a file; what it does not store is inherited."""
    with translate_errors(f"file {file.path}"), io.new_input(file.path).open() as stream:
        content = pq.ParquetFile(stream)
        at = {int((each.metadata or {}).get(b"PARQUET:field_id", b"-1")): each.name for each in content.schema_arrow}
        stored = [at[number] for number in (ROW_ID_FIELD, LAST_UPDATED_FIELD) if number in at]
        columns = content.read(columns=stored) if stored else None
        rows = content.metadata.num_rows
    places = np.arange(rows, dtype=np.int64)
    found = []
    for number, inherited in ((ROW_ID_FIELD, file.first + places), (LAST_UPDATED_FIELD, np.full(rows, file.number))):
        if columns is not None and number in at:
            column = columns.column(at[number])
            missing = column.is_null().to_numpy(zero_copy_only=False)
            inherited = np.where(missing, inherited, column.fill_null(0).to_numpy(zero_copy_only=False))
        found.append(inherited.astype(np.int64))
    return FileRowIds(file.path, places, *found)
