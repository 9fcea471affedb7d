"""The commits that need no rows of the table: append, overwrite by partition or predicate, delete of whole files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.table import Table

from lakeproof.commit import Command, Isolation, Mode, RunAgain, TableChange
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Compare, Expression, IsNull, all_of, any_of, bound, columns_of, must_match_file
from lakeproof.format import DataFile, StreamBatch
from lakeproof.iceberg.committing.commit import Committed, Hook, no_hook
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import data_file_value, data_file_values, shape_of
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.branches import at_branch


class PartialFiles(InvalidInput):
    """A predicate takes only some rows of a file where it may only take files whole."""


class CommitOptions(NamedTuple):
    """What every commit may be told: its command id, branch, summary entries, who watches its phases, and the batch of
    a stream that it is (then no snapshot is made where the branch has it already)."""

    command_id: str = ""
    branch: str = "main"
    summary: Mapping[str, str] | None = None
    on_phase: Hook = no_hook
    batch: StreamBatch | None = None


DEFAULTS = CommitOptions()


def append(table: Table, files: Sequence[IcebergFile], options: CommitOptions = DEFAULTS) -> Committed:
    """One snapshot that adds the files; it never conflicts."""
    return _commit(table, TableChange(Command.INSERT), files, options)


def overwrite_partitions(table: Table, files: Sequence[IcebergFile], options: CommitOptions = DEFAULTS) -> Committed:
    """One snapshot in which the files' partitions hold these files alone (dynamic overwrite).

    Whatever is in those partitions at the moment of the commit is replaced, also what others added meanwhile: the
    command has no other effect than it would have had after them.
    """
    values = [data_file_value(table, file) for file in files]
    replaced = tuple(dict.fromkeys((value.spec_id, value.partition) for value in values))
    change = TableChange(
        Command.OVERWRITE_PARTITIONS,
        conflict_filter=any_of(partition_filter(table, value) for value in values) if values else ALWAYS,
        replaced_partitions=replaced,
    )
    return _commit(table, change, files, options)


def overwrite_where(
    table: Table,
    row_filter: Expression,
    files: Sequence[IcebergFile],
    options: CommitOptions = DEFAULTS,
    *,
    may_add_others: bool = False,
) -> Committed:
    """One snapshot in which the rows that match are replaced by the files; `ALWAYS` replaces the whole table.

    The predicate must select whole files (partition columns do); the new files must lie inside it, unless they
    `may_add_others`.
    """
    row_filter = _bound(table, row_filter)
    if not may_add_others:
        _require_inside(table, row_filter, files)
    _require_whole_files(table, row_filter, options.branch)
    change = TableChange(Command.OVERWRITE, conflict_filter=row_filter, row_filter=row_filter)
    return _commit(table, change, files, options)


def delete_where(table: Table, row_filter: Expression, options: CommitOptions = DEFAULTS) -> Committed:
    """One snapshot without the rows that match, if they are whole files (see `whole_files`)."""
    row_filter = _bound(table, row_filter)
    _require_whole_files(table, row_filter, options.branch)
    change = TableChange(Command.METADATA_DELETE, conflict_filter=row_filter, row_filter=row_filter)
    return _commit(table, change, (), options)


class WholeFiles(NamedTuple):
    """Files in which every row matches, and files in which some may."""

    whole: tuple[DataFile, ...]
    partial: tuple[DataFile, ...]


def whole_files(table: Table, row_filter: Expression, *, snapshot_id: int | None = None) -> WholeFiles:
    """The files that a predicate takes whole, and those that it may take in part."""
    row_filter = _bound(table, row_filter)
    found = plan(table, from_filter(row_filter, table.schema()), snapshot_id=snapshot_id)
    values = data_file_values(table, found.picked, columns_of(row_filter))
    shape = shape_of(table)
    whole = tuple(value for value in values if must_match_file(row_filter, value, shape))
    kept = {value.path for value in whole}
    return WholeFiles(whole, tuple(value for value in values if value.path not in kept))


def isolation_of(table: Table, command: str) -> Isolation:
    """`write.{delete,update,merge}.isolation-level`, by default serializable as in Apache Iceberg."""
    return Isolation(table.properties.get(f"write.{command.lower()}.isolation-level", "serializable"))


def mode_of(table: Table, command: str) -> Mode:
    """`write.{delete,update,merge}.mode`, by default copy-on-write as in Apache Iceberg."""
    return Mode(table.properties.get(f"write.{command.lower()}.mode", "copy-on-write"))


def _commit(table: Table, change: TableChange, files: Sequence[IcebergFile], options: CommitOptions) -> Committed:
    table = at_branch(table, options.branch)
    change = change._replace(
        command_id=options.command_id or str(uuid.uuid4()),
        scan_snapshot=table.metadata.current_snapshot_id,
        scan_sequence_number=table.metadata.next_sequence_number() - 1,
        batch=options.batch,
    )
    answer = commit_change(
        table,
        change,
        NewFiles(tuple(files)),
        summary=options.summary,
        on_phase=options.on_phase,
    )
    assert not isinstance(answer, RunAgain)  # given back only where re-runs are left
    return answer


def _require_whole_files(table: Table, row_filter: Expression, branch: str) -> None:
    partial = whole_files(at_branch(table, branch), row_filter).partial
    if partial:
        raise PartialFiles(
            f"the predicate takes only some rows of {len(partial)} files",
            place=partial[0].path,
            hint="use a predicate on partition columns, or a row-level command",
        )


def _require_inside(table: Table, row_filter: Expression, files: Sequence[IcebergFile]) -> None:
    shape = shape_of(table)
    outside = [
        file.file_path
        for file in files
        if not must_match_file(row_filter, data_file_value(table, file, columns_of(row_filter)), shape)
    ]
    if outside:
        raise InvalidInput(f"{len(outside)} new files may hold rows outside the overwritten part", place=min(outside))


def _bound(table: Table, row_filter: Expression) -> Expression:
    return bound(row_filter, tuple(table.schema().column_names), case_sensitive=False)


def partition_filter(table: Table, value: DataFile) -> Expression:
    """What the rows of a partition have in common, as far as identity fields say it."""
    fields = shape_of(table).specs[value.spec_id]
    return all_of(
        IsNull(field.column) if there is None else Compare(field.column, "=", there)
        for field, there in zip(fields, value.partition, strict=True)
        if field.transform == "identity"
    )
