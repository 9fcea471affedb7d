"""A validated change becomes files: which leave the head, which delete files are written, how old the new files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Commit, CommitWith, Policy, TableChange
from lakeproof.commit.snapshots import new_snapshot
from lakeproof.errors import InvalidInput
from lakeproof.filters import columns_of
from lakeproof.format import DeleteContent, DeleteFile, TableShape, TableState
from lakeproof.format import Snapshot as WindowSnapshot
from lakeproof.format.rows import position_array
from lakeproof.iceberg.committing.mappings import MAPPING_KEY, mapping_path, write_mapping
from lakeproof.iceberg.committing.produce import FileChange
from lakeproof.iceberg.committing.values import data_file_values, stored
from lakeproof.iceberg.committing.window import delete_file_values
from lakeproof.iceberg.format_v3.metadata import NEWEST
from lakeproof.iceberg.format_v3.vectors import NewVector, write_vectors
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.reading.manifest_cache import ManifestCache, manifests_of
from lakeproof.iceberg.reading.segments import Picked, rows_of_spans


class NewFiles(NamedTuple):
    """The files that a writer has written: data files, and delete files in the form in which it found its rows."""

    data_files: tuple[IcebergFile, ...] = ()
    delete_files: tuple[IcebergFile, ...] = ()


NO_FILES = NewFiles()


class BaseSnapshot(NamedTuple):
    """What a change is put on: the newest table and the head of the branch (`None`: it is empty)."""

    table: Table
    head: Snapshot | None
    cache: ManifestCache


class Wanted(NamedTuple):
    """What a writer wants to commit: the change, its files, by which policy, and what the snapshot is to say."""

    change: TableChange
    files: NewFiles
    policy: Policy
    summary: Mapping[str, str]


def described_deletes(change: TableChange, files: NewFiles) -> tuple[DeleteFile, ...]:
    """The delete files of a change as values, also those that their writer did not describe."""
    known = {value.path for value in change.added_delete_files}
    others = [file for file in files.delete_files if file.file_path not in known]
    equality = DataFileContent.EQUALITY_DELETES
    kinds = [DeleteContent.EQUALITY if file.content == equality else DeleteContent.POSITIONS for file in others]
    values = (DeleteFile(f.file_path, kind, spec_id=f.spec_id) for f, kind in zip(others, kinds, strict=True))
    return (*change.added_delete_files, *values)


def physical_change(
    base: BaseSnapshot,
    wanted: Wanted,
    answer: Commit | CommitWith,
    shape: TableShape,
    snapshot_id: int,
    written: list[str],
) -> FileChange:
    """The change as it must be committed on this head; files that have to be written for it are noted in `written`."""
    rows = (*answer.positions, *answer.carried) if isinstance(answer, CommitWith) else ()
    by_vector = base.table.format_version >= NEWEST
    rows = (*rows, *(each for file in wanted.change.added_delete_files if by_vector for each in file.positions or ()))
    state = head_state(base, wanted.change, also=tuple(path for path, _ in rows))
    _, made = new_snapshot(state, wanted.change, answer, wanted.policy, shape, snapshot_id)
    mapping = {MAPPING_KEY: mapping_path(base.table, snapshot_id)}
    moved = made.mapping if made.removed_data_files else None
    if moved is not None:
        written += mapping.values()
        write_mapping(base.table, moved, snapshot_id)
    return FileChange(
        operation=str(made.operation),
        added_data_files=wanted.files.data_files,
        removed_data_files=tuple(file.path for file in made.removed_data_files),
        added_delete_files=_delete_files(base.table, wanted, made, written),
        removed_delete_files=tuple(sorted(file.path for file in made.removed_delete_files)),
        data_sequence_number=_age(made, base.table.format_version),
        summary={**wanted.summary, **(mapping if moved is not None else {})},
    )


def _age(made: WindowSnapshot, format_version: int) -> int | None:
    """The sequence number that the new data files carry; `None`: they inherit that of their snapshot."""
    stamps = {file.sequence_number for file in made.added_data_files}
    assert len(stamps) <= 1, "the files of one change are of one age"
    inherited = stamps <= {made.sequence_number} or format_version == 1
    return None if inherited else stamps.pop()


def head_state(
    base: BaseSnapshot, change: TableChange, *, also: tuple[str, ...] = (), columns: Sequence[str] = ()
) -> TableState:
    """The live files of the head that this change can concern: all of them if delete files may age out with it.

    They have the bounds of the row filter's columns, and of these. In format version 3 the delete files of the data
    files `also` say their positions: a new vector takes them in.
    """
    table, head, cache = base
    if head is None:
        return TableState()
    manifests = manifests_of(table.io, head)
    by_rule = change.row_filter is not None or bool(change.replaced_partitions)
    named = [*(file.path for file in change.removed_data_files), *also]
    deletes: list[Picked] = []
    merged = also if table.format_version >= NEWEST else ()
    if by_rule or merged or change.removed_data_files or change.removed_delete_files:
        deletes = _live(table, [m for m in manifests if m.content == ManifestContent.DELETES], cache)
    data: list[Picked] = []
    if deletes or by_rule or named:
        data = _live(table, [m for m in manifests if m.content == ManifestContent.DATA], cache)
        if not deletes and not by_rule:
            data = _only(data, named)
    columns = (*columns, *(columns_of(change.row_filter) if change.row_filter is not None else ()))
    return TableState(
        snapshot_id=head.snapshot_id,
        sequence_number=table.metadata.next_sequence_number() - 1,
        data_files=tuple(data_file_values(table, data, columns)),
        delete_files=delete_file_values(table, deletes, read=False, also=frozenset(merged)),
    )


def with_ranges(base: BaseSnapshot, change: TableChange, window: Sequence[WindowSnapshot]) -> TableChange:
    """The change, whose removed files say the ranges of those columns that equality deletes of others name."""
    named = (column for each in window for file in each.added_delete_files for column in file.equality_columns)
    columns = tuple(dict.fromkeys(column for column in named if not column.startswith("#")))
    if not columns or not change.removed_data_files:
        return change
    there = {file.path: file for file in head_state(base, change, columns=columns).data_files}
    removed = tuple(there.get(file.path, file) for file in change.removed_data_files)
    return change._replace(removed_data_files=removed)


def _live(table: Table, manifests: list[ManifestFile], cache: ManifestCache) -> list[Picked]:
    picked = []
    for segment, spans in cache.load(table.io, manifests):
        rows = np.flatnonzero(segment.live & rows_of_spans(segment, spans))
        if len(rows):
            picked.append(Picked(segment, rows, spans[0].manifest.partition_spec_id))
    return picked


def _only(picked: list[Picked], paths: list[str]) -> list[Picked]:
    wanted = pa.array(paths, pa.large_string())
    kept = []
    for each in picked:
        hit = pc.is_in(each.segment.column("path").take(pa.array(each.rows)), wanted)
        rows = each.rows[hit.to_numpy(zero_copy_only=False)]
        if len(rows):
            kept.append(each._replace(rows=rows))
    return kept


def _new_vectors(table: Table, wanted: Wanted, made: WindowSnapshot, written: list[str]) -> tuple[IcebergFile, ...]:
    """The deletes of a table of version 3: a vector for each data file, all in one Puffin file of this attempt."""
    equality = {file.file_path: file for file in wanted.files.delete_files}
    vectors, others = [], []
    for value in made.added_delete_files:
        if value.content is DeleteContent.VECTOR:
            ((path, rows),) = value.positions or ()
            vectors.append(NewVector(path, rows, tuple(stored(each) for each in value.partition), value.spec_id))
        elif value.content is DeleteContent.EQUALITY:
            others.append(equality[value.path])
        else:
            raise InvalidInput("rows of a table of format version 3 are deleted by vectors", place=f"file {value.path}")
    return (*others, *write_vectors(table, vectors, written))


def _delete_files(table: Table, wanted: Wanted, made: WindowSnapshot, written: list[str]) -> tuple[IcebergFile, ...]:
    """As the writer wrote them where its rows stayed in place, written anew where they moved."""
    if table.format_version >= NEWEST:
        return _new_vectors(table, wanted, made, written)
    by_path = {file.file_path: file for file in wanted.files.delete_files}
    values = [value for value in wanted.change.added_delete_files if value.path in by_path]
    as_written = {(value.path, value.positions): by_path[value.path] for value in values}
    as_written |= {("", value.positions): by_path[value.path] for value in values if value.positions}
    found = []
    for value in made.added_delete_files:
        ready = as_written.get((value.path, value.positions)) or as_written.get(("", value.positions))
        if ready is None:
            ready = _written(table, value)
            written.append(ready.file_path)
        found.append(ready)
    if found and table.format_version == 1:
        raise InvalidInput("a table of format version 1 has no delete files", hint="use copy-on-write, or upgrade it")
    return tuple(found)


def _written(table: Table, value: DeleteFile) -> IcebergFile:
    ((path, rows),) = value.positions or ()
    raw = tuple(stored(each) for each in value.partition)
    return write_position_deletes(table, path, position_array(rows), partition=raw, spec_id=value.spec_id)
