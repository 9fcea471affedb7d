"""How a validated change becomes a snapshot: which files are added and removed, and with which sequence numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakeproof.commit.change import Command, TableChange
from lakeproof.commit.policy import Policy, Stamp
from lakeproof.commit.validation import Commit, CommitWith
from lakeproof.filters import must_match_file
from lakeproof.format import (
    DataFile,
    DeleteContent,
    DeleteFile,
    Operation,
    RowSet,
    Snapshot,
    TableShape,
    TableState,
    rows_of,
)


def new_snapshot(
    head: TableState,
    change: TableChange,
    answer: Commit | CommitWith,
    policy: Policy,
    shape: TableShape,
    snapshot_id: int,
) -> tuple[TableState, Snapshot]:
    """The head with the change applied, and the snapshot that says so."""
    sequence_number = head.sequence_number + 1
    removed = removed_data_files(head, change, answer, shape)
    stamp = data_sequence_number(change, policy, sequence_number)
    gone = {file.path for file in removed}
    stay = tuple(file for file in head.data_files if file.path not in gone)
    new = tuple(file._replace(sequence_number=stamp) for file in change.added_data_files)
    stay, added, next_row_id = with_row_ids(head.next_row_id, stay, new)
    data_files = (*stay, *added)
    deletes, replaced = added_delete_files(head, change, answer, shape, sequence_number, data_files)
    dropped = replaced | dropped_delete_files(head, change, removed, added, policy, shape)
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        operation=operation_of(change, bool(added), bool(removed or deletes)),
        parent_id=head.snapshot_id,
        added_data_files=added,
        removed_data_files=removed,
        added_delete_files=deletes,
        removed_delete_files=tuple(file for file in head.delete_files if file.path in dropped),
        mapping=change.mapping if records_mapping(change, policy) else None,
        command_id=change.command_id,
        gives_row_ids=next_row_id is not None,
    )
    kept = (file for file in head.delete_files if file.path not in dropped)
    return TableState(snapshot_id, sequence_number, data_files, (*kept, *deletes), next_row_id), snapshot


def with_row_ids(
    next_row_id: int | None, stay: tuple[DataFile, ...], added: tuple[DataFile, ...]
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...], int | None]:
    """The files that stay and those that come, each group in a manifest, with the ids that the head has next.

    Files that stay have their ids, except at the first commit after an upgrade. A table without ids gives none.
    """
    if next_row_id is None:
        return stay, added, None
    unnumbered = tuple(file for file in stay if file.first_row_id is None)
    groups = [[len(f.rows) if f.rows is not None else f.record_count for f in files] for files in (unnumbered, added)]
    manifests, after = assigned_row_ids(next_row_id, [(None, sum(counts)) for counts in groups])
    firsts = [
        assigned_row_ids(manifest, [(None, count) for count in counts])[0]
        for manifest, counts in zip(manifests, groups, strict=True)
    ]
    older = iter(firsts[0])
    stay = tuple(file if file.first_row_id is not None else file._replace(first_row_id=next(older)) for file in stay)
    added = tuple(file._replace(first_row_id=each) for file, each in zip(added, firsts[1], strict=True))
    return stay, added, after


def assigned_row_ids(next_row_id: int, items: Iterable[tuple[int | None, int]]) -> tuple[tuple[int, ...], int]:
    """The first row id of every item, in order, and the next id after them (format v3).

    An item is (the first row id that it has, how many rows it counts): a data manifest of a manifest list with its
    existing and added rows, from the head's `next-row-id`; or a live entry of a manifest, from the manifest's own first
    row id. What has an id keeps it and takes none; what has none begins at the next. It must be asked again on every
    attempt, with the `next-row-id` of the head that was validated: whoever committed meanwhile has used ids.
    """
    found = []
    for first, count in items:
        found.append(next_row_id if first is None else first)
        next_row_id += count if first is None else 0
    return tuple(found), next_row_id


def operation_of(change: TableChange, adds: bool, removes: bool) -> Operation:
    """The snapshot's operation."""
    if change.command in (Command.REWRITE, Command.REWRITE_DELETES):
        return Operation.REPLACE
    if change.command is Command.OVERWRITE_PARTITIONS:
        return Operation.OVERWRITE
    if change.command is Command.METADATA_DELETE:
        return Operation.DELETE
    return Operation.OVERWRITE if adds and removes else Operation.DELETE if removes else Operation.APPEND


def records_mapping(change: TableChange, policy: Policy) -> bool:
    """Whether the snapshot says where the rows went that it kept (an empty mapping says: nowhere)."""
    if change.command is Command.REWRITE:
        return policy.maps_rewrites
    return policy.maps_copy_on_write and bool(change.removed_data_files)


def data_sequence_number(change: TableChange, policy: Policy, new: int) -> int:
    """The age of the files that a change adds: a compaction's rows are as old as the snapshot they were read from.

    With the new number an equality delete committed meanwhile would no longer reach them; with the smallest of the
    inputs an older one would reach rows that it never meant.
    """
    if change.command is not Command.REWRITE or policy.compaction_stamp is Stamp.NEW:
        return new
    ages = [file.sequence_number for file in change.removed_data_files] or [change.scan_sequence_number]
    if policy.compaction_stamp is Stamp.MINIMUM:
        return min(ages)
    return max(ages) if policy.compaction_stamp is Stamp.MAXIMUM else change.scan_sequence_number


def removed_data_files(
    head: TableState, change: TableChange, answer: Commit | CommitWith, shape: TableShape
) -> tuple[DataFile, ...]:
    """The files that leave the table: those named, and for a change by filter or partition those that match now."""
    paths = {file.path for file in change.removed_data_files}
    if isinstance(answer, CommitWith) and change.removed_data_files:
        paths = set(answer.removed)
    found = []
    for file in head.data_files:
        by_filter = change.row_filter is not None and must_match_file(change.row_filter, file, shape)
        by_partition = change.replaced_partitions and (file.spec_id, file.partition) in change.replaced_partitions
        if file.path in paths or by_filter or by_partition:
            found.append(file)
    return tuple(found)


def added_delete_files(
    head: TableState,
    change: TableChange,
    answer: Commit | CommitWith,
    shape: TableShape,
    sequence_number: int,
    data_files: tuple[DataFile, ...],
) -> tuple[tuple[DeleteFile, ...], frozenset[str]]:
    """The delete files of the new snapshot, and the paths of those that they replace (format v3 merges vectors)."""
    homes = {file.path: file for file in data_files}
    if isinstance(answer, Commit):
        new = [file._replace(sequence_number=sequence_number) for file in _one_vector_a_file(change.added_delete_files)]
        return with_older_deletes(new, head, homes)
    equality = [file for file in change.added_delete_files if file.content is DeleteContent.EQUALITY]
    rows = rows_of((*answer.positions, *answer.carried))
    vectors = shape.format_version >= 3
    written = [delete_file(path, bits, homes[path], sequence_number, vectors) for path, bits in rows if path in homes]
    kept = (file._replace(sequence_number=sequence_number) for file in equality)
    return with_older_deletes([*kept, *written], head, homes)


def with_older_deletes(
    new: Iterable[DeleteFile], head: TableState, homes: Mapping[str, DataFile]
) -> tuple[tuple[DeleteFile, ...], frozenset[str]]:
    """The delete files, whose vectors take in what the head deletes by position in their data files, and the paths of
    those that have no other row to delete.

    A reader that finds a vector looks at no other delete file by position: not at the vector before it, and not at one
    that names several data files, which stays for the others.
    """
    listed = list(new)
    named = {path for file in listed if file.content is DeleteContent.VECTOR for path, _ in file.positions or ()}
    older: list[tuple[str, RowSet]] = []
    replaced = set()
    for file in head.delete_files if named else ():
        if file.content is DeleteContent.EQUALITY:
            continue
        reached = [each for each in file.positions or () if each[0] in named and _reaches(file, homes.get(each[0]))]
        older += reached
        if reached and len(file.positions or ()) == 1:
            replaced.add(file.path)
    taken = dict(rows_of(older))
    return tuple(_with_rows(file, taken) for file in listed), frozenset(replaced)


def _reaches(file: DeleteFile, data: DataFile | None) -> bool:
    return data is not None and file.sequence_number >= data.sequence_number


def _with_rows(file: DeleteFile, rows: Mapping[str, RowSet]) -> DeleteFile:
    if file.content is not DeleteContent.VECTOR or not file.positions:
        return file
    return file._replace(positions=rows_of((path, bits | rows.get(path, 0)) for path, bits in file.positions))


def _one_vector_a_file(files: tuple[DeleteFile, ...]) -> tuple[DeleteFile, ...]:
    """The delete files with all vectors of a data file in one: a data file has at most one."""
    found: dict[str, DeleteFile] = {}
    for file in files:
        of = file.positions[0][0] if file.content is DeleteContent.VECTOR and file.positions else file.path
        known = found.get(of, file)
        both = rows_of((*(known.positions or ()), *(file.positions or ())))
        found[of] = file if known is file else known._replace(positions=both)
    return tuple(found.values())


def delete_file(path: str, rows: int, data: DataFile, sequence_number: int, vector: bool) -> DeleteFile:
    """A delete file that names rows of one data file."""
    content = DeleteContent.VECTOR if vector else DeleteContent.POSITIONS
    name = f"delete-{sequence_number}-{path}"
    return DeleteFile(name, content, data.partition, data.spec_id, sequence_number, ((path, rows),))


def dropped_delete_files(
    head: TableState,
    change: TableChange,
    removed: tuple[DataFile, ...],
    added: tuple[DataFile, ...],
    policy: Policy,
    shape: TableShape,
) -> frozenset[str]:
    """Delete files that leave the table: named, aged out, of a partition that is cleared, or pointing nowhere."""
    gone = {file.path for file in removed}
    kept = [file for file in head.data_files if file.path not in gone]
    oldest = oldest_needed(head, kept, added, policy)
    named = {file.path for file in change.removed_delete_files}
    dropped = set()
    for file in head.delete_files:
        # An equality delete points to no file: the output of a compaction may still need it.
        points = file.content is not DeleteContent.EQUALITY and file.positions
        dangling = bool(points) and all(path in gone for path, _ in file.positions or ())
        drops = (policy.drops_dangling_deletes or shape.format_version >= 3) and dangling
        if file.path in named or file.sequence_number < oldest or drops or _cleared(file, change, shape):
            dropped.add(file.path)
    return frozenset(dropped)


def _cleared(file: DeleteFile, change: TableChange, shape: TableShape) -> bool:
    """Whether every row of the delete file's partition goes, so that nothing is left for it to delete."""
    if change.replaced_partitions is not None:
        return (file.spec_id, file.partition) in change.replaced_partitions
    anywhere_there = DataFile("", file.partition, file.spec_id)
    return change.row_filter is not None and must_match_file(change.row_filter, anywhere_there, shape)


def oldest_needed(head: TableState, kept: list[DataFile], added: tuple[DataFile, ...], policy: Policy) -> int:
    """Delete files older than this reach no data file. The files added now count too: a compaction's are old."""
    counted = [*kept, *(added if policy.aging_counts_added_files else ())]
    return min([file.sequence_number for file in counted] + [head.sequence_number])
