"""The questions that Apache Iceberg asks of whole files, one function each.

A check looks at a change and one unseen snapshot and answers `Conflict` or `None`; `window.follow` puts it before every
snapshot of the commit window, oldest first. A check reads nothing else: no table handle, no file, no clock. When it
cannot tell, the conflict stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lakeproof.commit.change import TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.filters import ALWAYS, Expression, may_match_file, may_match_partition, must_match_file
from lakeproof.format import DataFile, DeleteContent, DeleteFile, Operation, Snapshot, TableShape

_ADDS = (Operation.APPEND, Operation.OVERWRITE)
_DELETES = (Operation.OVERWRITE, Operation.DELETE)
_REWRITES = (Operation.OVERWRITE, Operation.REPLACE)


def added_data_files(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have added a data file that the conflict filter may match."""
    if snapshot.operation not in _ADDS:
        return None
    found = (file for file in snapshot.added_data_files if _may_concern(change, file, shape))
    return _conflict("added_data_files", snapshot, found)


def data_files_exist(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have removed a data file that my delete files point into."""
    return _missing_required("data_files_exist", change, snapshot, shape, (*_REWRITES, Operation.DELETE))


def data_files_exist_skipping_deletes(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have replaced a data file that my delete files point into; dropping it whole is fine."""
    return _missing_required("data_files_exist_skipping_deletes", change, snapshot, shape, _REWRITES)


def no_new_delete_files(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have added a delete file in a partition that the conflict filter may match."""
    if snapshot.operation not in _DELETES:
        return None
    found = (file for file in snapshot.added_delete_files if _may_concern_partition(change, file, shape))
    return _conflict("no_new_delete_files", snapshot, found)


def no_new_deletes_for_data_files(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have deleted rows of a data file that I replace."""
    found = _new_deletes(change, snapshot, shape, equality=True)
    return _conflict("no_new_deletes_for_data_files", snapshot, found)


def no_new_position_deletes_for_data_files(
    change: TableChange, snapshot: Snapshot, shape: TableShape
) -> Conflict | None:
    """Nobody else may have deleted positions of a data file that I replace; equality deletes still apply."""
    found = _new_deletes(change, snapshot, shape, equality=False)
    name = "no_new_position_deletes_for_data_files"
    return _conflict(name, snapshot, found)


def deleted_data_files(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have removed a data file that the conflict filter may match."""
    if snapshot.operation is Operation.APPEND:
        return None
    found = (file for file in snapshot.removed_data_files if _may_concern(change, file, shape))
    return _conflict("deleted_data_files", snapshot, found)


def added_vectors(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have added a deletion vector for a data file that I add one for (format v3)."""
    if snapshot.operation is Operation.APPEND:
        return None
    mine = {
        path
        for file in change.added_delete_files
        if file.content is DeleteContent.VECTOR
        for path, _ in file.positions or ()
    }
    found = (
        file
        for file in snapshot.added_delete_files
        if file.content is DeleteContent.VECTOR
        and any(file.references(path) for path in mine)
        and _may_concern_partition(change, file, shape)
    )
    return _conflict("added_vectors", snapshot, found)


def row_ids_given(change: TableChange, snapshot: Snapshot, shape: TableShape) -> Conflict | None:
    """Nobody else may have given ids to rows that I wrote again without one (format v3, after an upgrade)."""
    if not (change.before_row_ids and snapshot.gives_row_ids and change.added_data_files):
        return None
    return Conflict("row_ids_given", snapshot.snapshot_id)


# ---------------------------------------------------------------- of the change itself, before any window


def no_deletes_in_removed_files(change: TableChange, shape: TableShape) -> Conflict | None:
    """A change may not delete rows of a data file that it removes."""
    removed = {file.path for file in change.removed_data_files}
    found = sorted(removed & {path for file in change.added_delete_files for path, _ in file.positions or ()})
    return Conflict("no_deletes_in_removed_files", None, tuple(found)) if found else None


def delete_files_fit_format_version(change: TableChange, shape: TableShape) -> Conflict | None:
    """Format v2 has no deletion vectors; from v3 on, new position deletes must be vectors."""
    wrong = DeleteContent.VECTOR if shape.format_version < 3 else DeleteContent.POSITIONS
    found = [file.path for file in change.added_delete_files if file.content is wrong]
    return Conflict("delete_files_fit_format_version", None, tuple(found)) if found else None


def added_files_match_overwrite_filter(change: TableChange, shape: TableShape) -> Conflict | None:
    """What an overwrite by filter adds must lie inside the filter."""
    if change.row_filter is None:
        return None
    found = [file.path for file in change.added_data_files if not must_match_file(change.row_filter, file, shape)]
    return Conflict("added_files_match_overwrite_filter", None, tuple(found)) if found else None


# ---------------------------------------------------------------- of the window and of the head


def history_known(missing: int | None) -> Conflict | None:
    """Every snapshot between the scan and the head must still be there; else nobody knows what the others did."""
    return None if missing is None else Conflict("history_known", missing)


def missing_delete_paths(change: TableChange, gone: tuple[str, ...]) -> Conflict | None:
    """Every file that I remove must still be in the head."""
    return Conflict("missing_delete_paths", None, gone) if gone else None


def whole_files_match(change: TableChange, live: Iterable[DataFile], shape: TableShape) -> Conflict | None:
    """A delete by filter drops whole files only: no live file may match in part."""
    if change.row_filter is None:
        return None
    found = [
        file.path
        for file in live
        if may_match_file(change.row_filter, file, shape) and not must_match_file(change.row_filter, file, shape)
    ]
    return Conflict("whole_files_match", None, tuple(found)) if found else None


# ---------------------------------------------------------------- names


SnapshotCheck = Callable[[TableChange, Snapshot, TableShape], Conflict | None]
ChangeCheck = Callable[[TableChange, TableShape], Conflict | None]


class Part(NamedTuple):
    """Which parts of an unseen snapshot a check looks at, so that nothing else need be loaded."""

    added_data_files: bool = False
    removed_data_files: bool = False
    added_delete_files: bool = False


SNAPSHOT_CHECKS: dict[str, tuple[SnapshotCheck, Part]] = {
    "added_data_files": (added_data_files, Part(added_data_files=True)),
    "data_files_exist": (data_files_exist, Part(removed_data_files=True)),
    "data_files_exist_skipping_deletes": (data_files_exist_skipping_deletes, Part(removed_data_files=True)),
    "no_new_delete_files": (no_new_delete_files, Part(added_delete_files=True)),
    "no_new_deletes_for_data_files": (no_new_deletes_for_data_files, Part(added_delete_files=True)),
    "no_new_position_deletes_for_data_files": (no_new_position_deletes_for_data_files, Part(added_delete_files=True)),
    "deleted_data_files": (deleted_data_files, Part(removed_data_files=True)),
    "added_vectors": (added_vectors, Part(added_delete_files=True)),
    "row_ids_given": (row_ids_given, Part()),
}
"""Asked of every unseen snapshot; a conflict stays one however the window grows."""

NEWEST_ONLY: dict[str, tuple[SnapshotCheck, Part]] = {
    "no_new_deletes_for_data_files_at_head": (no_new_deletes_for_data_files, Part(added_delete_files=True)),
}
"""Asked of the newest unseen snapshot alone: how PyIceberg 0.12 asks, and why it loses a delete."""

CHANGE_CHECKS: dict[str, ChangeCheck] = {
    "no_deletes_in_removed_files": no_deletes_in_removed_files,
    "delete_files_fit_format_version": delete_files_fit_format_version,
    "added_files_match_overwrite_filter": added_files_match_overwrite_filter,
}
HEAD_CHECKS: dict[str, Callable[..., Conflict | None]] = {
    "missing_delete_paths": missing_delete_paths,
    "whole_files_match": whole_files_match,
}
WINDOW_CHECKS: dict[str, Callable[[int | None], Conflict | None]] = {"history_known": history_known}
"""Asked of the lineage: which snapshot of the window is missing, if one is."""

OF_READS = "rows_read"
"""The one check that asks of rows which a command only reads."""

ROW_CHECKS: dict[str, str] = {
    "target_rows": "Nobody else may have given a row that I write another version; two deletes of one row agree.",
    "replaced_files": "A data file that I replace must still be there, if I keep rows of it.",
    "new_rows_match": "Nobody else may have added a row that I would have read, and that is still there.",
    OF_READS: "Nobody else may have changed a row that I read and do not write.",
}
"""Asked of rows, not of files (`commit/rows.py`)."""


def describe_check(name: str) -> str:
    """The question that a check asks, in one sentence."""
    if name in ROW_CHECKS:
        return ROW_CHECKS[name]
    if name in NEWEST_ONLY:
        return "As no_new_deletes_for_data_files, but only the newest unseen snapshot is looked at."
    functions: dict[str, Callable[..., object]] = {n: f for n, (f, _) in SNAPSHOT_CHECKS.items()}
    return ({**functions, **CHANGE_CHECKS, **HEAD_CHECKS, **WINDOW_CHECKS}[name].__doc__ or "").strip().splitlines()[0]


OF_OTHERS = (*SNAPSHOT_CHECKS, *NEWEST_ONLY, missing_delete_paths.__name__, *ROW_CHECKS, *WINDOW_CHECKS)
"""The checks that look at what others committed: each of them needs the whole window."""

ALL_CHECKS = (*SNAPSHOT_CHECKS, *NEWEST_ONLY, *CHANGE_CHECKS, *HEAD_CHECKS, *ROW_CHECKS, *WINDOW_CHECKS)

WITHOUT_BOUNDS = frozenset(
    [
        *ROW_CHECKS,
        *WINDOW_CHECKS,
        delete_files_fit_format_version.__name__,
        missing_delete_paths.__name__,
        row_ids_given.__name__,
    ]
)
"""Checks that compare rows and names of files, and never a value with a bound."""


# ---------------------------------------------------------------- how a filter narrows files


def _filter(change: TableChange) -> Expression:
    """The conflict filter; an overwrite by filter that gives none is judged by its own row filter."""
    if change.conflict_filter == ALWAYS and change.row_filter is not None and not change.removed_data_files:
        return change.row_filter
    return change.conflict_filter


def _may_concern(change: TableChange, file: DataFile, shape: TableShape) -> bool:
    if change.replaced_partitions is not None:
        return (file.spec_id, file.partition) in change.replaced_partitions
    return may_match_file(_filter(change), file, shape)


def _may_concern_partition(change: TableChange, file: DeleteFile, shape: TableShape) -> bool:
    if change.replaced_partitions is not None:
        return (file.spec_id, file.partition) in change.replaced_partitions
    return may_match_partition(_filter(change), file, shape)


def _missing_required(
    name: str, change: TableChange, snapshot: Snapshot, shape: TableShape, operations: tuple[Operation, ...]
) -> Conflict | None:
    if snapshot.operation not in operations:
        return None
    found = (
        file
        for file in snapshot.removed_data_files
        if file.path in change.required_data_files and may_match_file(change.conflict_filter, file, shape)
    )
    return _conflict(name, snapshot, found)


def _new_deletes(change: TableChange, snapshot: Snapshot, shape: TableShape, *, equality: bool) -> Iterable[DeleteFile]:
    if snapshot.operation not in _DELETES:
        return
    for file in snapshot.added_delete_files:
        if _may_concern_partition(change, file, shape) and any(
            _applies(file, data, equality=equality) for data in change.removed_data_files
        ):
            yield file


def _applies(delete: DeleteFile, data: DataFile, *, equality: bool) -> bool:
    if delete.content is DeleteContent.EQUALITY:
        there = not delete.partition or (delete.spec_id, delete.partition) == (data.spec_id, data.partition)
        return equality and there and _may_hit(delete, data)
    return delete.references(data.path)


def _may_hit(delete: DeleteFile, data: DataFile) -> bool:
    """Whether the data file may hold what an equality delete names, by ranges and nulls, as Apache Iceberg asks."""
    there = {bounds.column: bounds for bounds in data.bounds}
    for mine in delete.bounds:
        other = there.get(mine.column)
        if other is None or (mine.has_nulls and other.has_nulls):
            continue
        if (not mine.has_values and not other.has_nulls) or (not other.has_values and not mine.has_nulls):
            return False
        ends: list[Any] = [mine.lower, mine.upper, other.lower, other.upper]
        comparable = len({type(end) for end in ends}) == 1 and ends[0] is not None
        nans = isinstance(ends[0], float) and mine.has_nans and other.has_nans
        if comparable and not nans and (ends[1] < ends[2] or ends[3] < ends[0]):
            return False
    return True


def _conflict(name: str, snapshot: Snapshot, found: Iterable[DataFile | DeleteFile]) -> Conflict | None:
    paths = tuple(file.path for file in found)
    return Conflict(name, snapshot.snapshot_id, paths) if paths else None
