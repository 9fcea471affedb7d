"""An effect becomes files and a change: delete files for merge-on-read, rewritten data files for copy-on-write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lakeproof.commit import Command, Mode, Policy, TableChange
from lakeproof.commit.planning import replaces_by_filter
from lakeproof.errors import InvalidInput
from lakeproof.format import DeleteContent, DeleteFile, Rows, RowSet, rows_of
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.format_v3.lineage import as_stored
from lakeproof.iceberg.pyiceberg_names import DataFile as IcebergFile
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.spark.compaction.plan import options_of, with_crumbs
from lakeproof.spark.compaction.rewrite_files import RewrittenFiles, rewrite
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.effect import RowEffect
from lakeproof.spark.row_level.new_rows import write_new
from lakeproof.spark.row_level.row_positions import Found, as_rows
from lakeproof.spark.row_level.scanned_files import Home, dead_rows, homes_of, kept_rows
from lakeproof.spark.writing.leftovers import remove_folder
from lakeproof.spark.writing.spark_write import WrittenFiles

NOTHING = WrittenFiles((), "")
VECTORS_SINCE = 3


class PreparedChange(NamedTuple):
    """A change whose files are written; the folders hold nothing else."""

    change: TableChange
    files: NewFiles
    folders: tuple[str, ...] = ()


def prepare_change(
    engine: Engine, table: Table, base: TableChange, effect: RowEffect, policy: Policy
) -> PreparedChange:
    """The effect as a change on this table, its files written."""
    head = table.current_snapshot()
    base = base._replace(
        scan_snapshot=None if head is None else head.snapshot_id,
        scan_sequence_number=0 if head is None else head.sequence_number or 0,
        conflict_filter=effect.conflict_filter,
        reads=as_rows(effect.reads),
    )
    if effect.whole:
        return PreparedChange(whole_files_removed(base, effect, policy), NewFiles())
    new = NOTHING if effect.new_rows is None else write_new(engine, as_stored(table), effect.new_rows)
    homes = homes_of(engine, table, effect.targets)
    try:
        if base.mode is Mode.COPY_ON_WRITE and effect.targets:
            return copied_on_write(engine, table, base, effect.targets, homes, new)
        return merged_on_read(table, base, effect.targets, homes, new)
    except BaseException:
        if new.folder:
            remove_folder(engine.gateway, new.folder)
        raise


def whole_files_removed(base: TableChange, effect: RowEffect, policy: Policy) -> TableChange:
    """Files that go without being opened: by filter where the policy drops what matches at the head, else by name."""
    if replaces_by_filter(Command.METADATA_DELETE, policy):
        return base._replace(command=Command.METADATA_DELETE, row_filter=effect.conflict_filter)
    return base._replace(
        mode=Mode.COPY_ON_WRITE,
        removed_data_files=effect.whole,
        targets=rows_of((file.path, file.all_rows) for file in effect.whole),
        mapping=(),
    )


def merged_on_read(
    table: Table, base: TableChange, targets: Found, homes: dict[str, Home], new: WrittenFiles
) -> PreparedChange:
    """One delete file for each data file that loses rows, and the new rows.

    Vectors are no files yet: each holds all deletes of its data file, and is written when the head is known.
    """
    if targets and table.format_version < 2:
        raise InvalidInput(
            "a table of format version 1 has no delete files",
            place=f"table {'.'.join(table.name())}",
            hint="use copy-on-write, or set 'format-version'='2'",
        )
    rows = as_rows(targets)
    values, files = [], []
    for path, bits in rows:
        home = homes[path]
        if table.format_version >= VECTORS_SINCE:
            values.append(vector_value(home, bits))
            continue
        file = write_position_deletes(table, path, targets[path], partition=home.partition, spec_id=home.file.spec_id)
        files.append(file)
        values.append(delete_value(file, home, ((path, bits),)))
    change = base._replace(
        added_delete_files=tuple(values),
        required_data_files=tuple(path for path, _ in rows),
        targets=rows,
    )
    return PreparedChange(change, NewFiles(new.files, tuple(files)), folders_of(new))


def copied_on_write(
    engine: Engine, table: Table, base: TableChange, targets: Found, homes: dict[str, Home], new: WrittenFiles
) -> PreparedChange:
    """Each data file that loses rows is written again without them; the new rows stand in files of their own.

    Where a partition has several crumbs among them, these are written into one of the others.
    """
    lost = unite_positions(dead_rows(engine, table, homes.values()), targets)
    kept = rows_of((home.path, kept_rows(home, lost)) for home in homes.values())
    pieces = with_crumbs([homes[path] for path, _ in kept], options_of(table, {}).target_bytes)
    done = rewrite(engine, table, pieces, lost) if kept else RewrittenFiles()
    change = base._replace(
        removed_data_files=tuple(home.file for home in homes.values()),
        targets=as_rows(targets),
        kept=kept,
        mapping=done.mapping,
    )
    folders = (done.folder,) if done.folder else ()
    return PreparedChange(change, NewFiles((*done.files, *new.files)), (*folders, *folders_of(new)))


def unite_positions(found: Found, others: Found) -> Found:
    """The positions of both."""
    return {
        path: np.union1d(found[path], others[path]) if path in found and path in others else {**found, **others}[path]
        for path in {**found, **others}
    }


def folders_of(new: WrittenFiles) -> tuple[str, ...]:
    """The folder of the new rows, if there are any."""
    return (new.folder,) if new.folder else ()


def vector_value(home: Home, rows: RowSet) -> DeleteFile:
    """The rows of one data file that its vector must delete, as a value; what its name says is not written."""
    name = f"vector of {home.path}"
    partition, spec_id = home.file.partition, home.file.spec_id
    return DeleteFile(name, DeleteContent.VECTOR, partition, spec_id, positions=((home.path, rows),))


def delete_value(file: IcebergFile, home: Home, rows: Rows) -> DeleteFile:
    """A written delete file as a value."""
    return DeleteFile(file.file_path, partition=home.file.partition, spec_id=home.file.spec_id, positions=rows)
