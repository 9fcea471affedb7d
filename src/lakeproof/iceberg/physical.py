"""A validated change becomes files: which leave the head, which delete files are written, how old the new files are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.commit import Commit, CommitWith, Policy, TableChange
from lakeproof.commit.checks import whole_files_match
from lakeproof.commit.explain import explained
from lakeproof.commit.new_snapshot import (
    data_sequence_number,
    dropped_delete_files,
    operation_of,
    records_mapping,
    removed_data_files,
)
from lakeproof.errors import CommitConflict, InvalidInput
from lakeproof.filters import columns_of
from lakeproof.format import DataFile, Rows, TableShape, TableState, rows_of
from lakeproof.format.rows import position_array
from lakeproof.iceberg.cache import ManifestCache, manifests_of
from lakeproof.iceberg.delete_files import write_position_deletes
from lakeproof.iceberg.mappings import MAPPING_KEY, mapping_path, write_mapping
from lakeproof.iceberg.produce import FileChange
from lakeproof.iceberg.segments import Picked, rows_of_spans
from lakeproof.iceberg.values import data_file_values, stored
from lakeproof.iceberg.window import delete_file_values


class NewFiles(NamedTuple):
    """The files that a writer has written: data files, and delete files in the form in which it found its rows."""

    data_files: tuple[IcebergFile, ...] = ()
    delete_files: tuple[IcebergFile, ...] = ()


NO_FILES = NewFiles()


def physical_change(
    table: Table,
    head: Snapshot | None,
    change: TableChange,
    answer: Commit | CommitWith,
    files: NewFiles,
    *,
    policy: Policy,
    shape: TableShape,
    snapshot_id: int,
    summary: Mapping[str, str],
    cache: ManifestCache,
    written: list[str],
) -> FileChange:
    """The change as it must be committed on this head; files that have to be written for it are noted in `written`."""
    rows = rows_of((*answer.positions, *answer.carried)) if isinstance(answer, CommitWith) else ()
    state = head_state(table, head, change, cache, also=tuple(path for path, _ in rows))
    if change.row_filter is not None:
        _require_whole_files(table, head, change, state, shape)
    removed = removed_data_files(state, change, answer, shape)
    new_number = table.metadata.next_sequence_number()
    stamp = data_sequence_number(change, policy, new_number)
    added = tuple(file._replace(sequence_number=stamp) for file in change.added_data_files)
    delete_files = _delete_files(table, change, answer, rows, files, state, written)
    said = dict(summary)
    if records_mapping(change, policy) and change.mapping is not None and removed:
        said[MAPPING_KEY] = mapping_path(table, snapshot_id)
        written.append(said[MAPPING_KEY])
        write_mapping(table, change.mapping, snapshot_id)
    return FileChange(
        operation=str(operation_of(change, bool(added), bool(removed or delete_files))),
        added_data_files=files.data_files,
        removed_data_files=tuple(file.path for file in removed),
        added_delete_files=tuple(delete_files),
        removed_delete_files=tuple(sorted(dropped_delete_files(state, change, removed, added, policy, shape))),
        data_sequence_number=None if stamp == new_number or table.format_version == 1 else stamp,
        summary=said,
    )


def _require_whole_files(
    table: Table, head: Snapshot | None, change: TableChange, state: TableState, shape: TableShape
) -> None:
    """Somebody may have added a file meanwhile of which the filter takes a part: it cannot be dropped whole."""
    conflict = whole_files_match(change, state.data_files, shape)
    if conflict is not None:
        now = None if head is None else head.snapshot_id
        words = explained(conflict, change, table=".".join(table.name()), head=now, scanned=change.scan_snapshot)
        raise CommitConflict(words, conflict)


def head_state(
    table: Table, head: Snapshot | None, change: TableChange, cache: ManifestCache, *, also: tuple[str, ...] = ()
) -> TableState:
    """The live files of the head that this change can concern: all of them if delete files may age out with it."""
    if head is None:
        return TableState()
    manifests = manifests_of(table.io, head)
    by_rule = change.row_filter is not None or bool(change.replaced_partitions)
    named = [*(file.path for file in change.removed_data_files), *also]
    deletes: list[Picked] = []
    if by_rule or change.removed_data_files or change.removed_delete_files:
        deletes = _live(table, [m for m in manifests if m.content == ManifestContent.DELETES], cache)
    data: list[Picked] = []
    if deletes or by_rule or named:
        data = _live(table, [m for m in manifests if m.content == ManifestContent.DATA], cache)
        if not deletes and not by_rule:
            data = _only(data, named)
    columns = columns_of(change.row_filter) if change.row_filter is not None else ()
    return TableState(
        snapshot_id=head.snapshot_id,
        sequence_number=table.metadata.next_sequence_number() - 1,
        data_files=tuple(data_file_values(table, data, columns)),
        delete_files=delete_file_values(table, deletes, read=False),
    )


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


def _delete_files(
    table: Table,
    change: TableChange,
    answer: Commit | CommitWith,
    rows_to_delete: Rows,
    files: NewFiles,
    state: TableState,
    written: list[str],
) -> list[IcebergFile]:
    """As the writer wrote them where its rows stayed in place, written anew where they moved."""
    if isinstance(answer, Commit):
        return list(files.delete_files)
    found = [file for file in files.delete_files if file.content == DataFileContent.EQUALITY_DELETES]
    as_written = _by_rows(change, files)
    homes = {file.path: file for file in (*state.data_files, *change.added_data_files)}
    for path, rows in rows_to_delete:
        ready = as_written.get((path, rows))
        if ready is None and path in homes:
            ready = _written(table, path, rows, homes[path])
            written.append(ready.file_path)
        if ready is not None:
            found.append(ready)
    if found and table.format_version == 1:
        raise InvalidInput("a table of format version 1 has no delete files", hint="use copy-on-write, or upgrade it")
    return found


def _by_rows(change: TableChange, files: NewFiles) -> dict[tuple[str, int], IcebergFile]:
    physical = {file.file_path: file for file in files.delete_files}
    ready = {}
    for value in change.added_delete_files:
        positions: Rows = value.positions or ()
        if len(positions) == 1 and value.path in physical:
            ready[positions[0]] = physical[value.path]
    return ready


def _written(table: Table, path: str, rows: int, home: DataFile) -> IcebergFile:
    positions = position_array(rows)
    raw = tuple(stored(value) for value in home.partition)
    return write_position_deletes(table, path, positions, partition=raw, spec_id=home.spec_id)
