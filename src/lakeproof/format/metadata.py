"""A table at one snapshot: its live files and how its rows are partitioned."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.format.files import DataFile, DeleteContent, DeleteFile, Row
from lakeproof.format.rows import RowSet, positions


class PartitionField(NamedTuple):
    """One partition value of a spec: a transform of a column. `type` is the column's in Iceberg's words, if known."""

    column: str
    transform: str = "identity"
    type: str = ""


PartitionSpec = tuple[PartitionField, ...]


class TableShape(NamedTuple):
    """What every check may know of a table without reading it: columns, partition specs by id, format version."""

    columns: tuple[str, ...]
    specs: tuple[PartitionSpec, ...] = ((),)
    format_version: int = 2
    case_sensitive: bool = True


class TableState(NamedTuple):
    """The live files at a snapshot. Snapshot id `None`: nothing was committed yet. `next_row_id` `None`: no row ids."""

    snapshot_id: int | None = None
    sequence_number: int = 0
    data_files: tuple[DataFile, ...] = ()
    delete_files: tuple[DeleteFile, ...] = ()
    next_row_id: int | None = None

    @property
    def lacks_row_ids(self) -> bool:
        """Whether rows get ids only with the next commit: the table was upgraded to format v3 and not written since."""
        return self.next_row_id is not None and any(file.first_row_id is None for file in self.data_files)

    def has(self, path: str) -> bool:
        """Whether that data file is live."""
        return any(file.path == path for file in self.data_files)


def deleted_rows(file: DataFile, delete_files: tuple[DeleteFile, ...], columns: tuple[str, ...]) -> RowSet:
    """The rows of a data file that the delete files take away, by the sequence numbers of the specification."""
    gone = 0
    for delete in delete_files:
        if delete.content is DeleteContent.EQUALITY:
            if delete.sequence_number > file.sequence_number and _same_partition(file, delete):
                gone |= equality_hits(file, delete, columns)
        elif delete.sequence_number >= file.sequence_number and delete.positions:
            for path, rows in delete.positions:
                if path == file.path:
                    gone |= rows
    return gone & file.all_rows


def _same_partition(file: DataFile, delete: DeleteFile) -> bool:
    """An equality delete stays inside its partition; one without a partition reaches them all."""
    return not delete.partition or (delete.spec_id, delete.partition) == (file.spec_id, file.partition)


def equality_hits(file: DataFile, delete: DeleteFile, columns: tuple[str, ...]) -> RowSet:
    """The rows of a file that an equality delete names; every row where values are not known."""
    if file.rows is None or delete.equality_values is None:
        return file.all_rows
    at = [columns.index(name) for name in delete.equality_columns]
    wanted = set(delete.equality_values)
    hits = 0
    for position, row in enumerate(file.rows):
        if tuple(row[i] for i in at) in wanted:
            hits |= 1 << position
    return hits


def live_rows(table: TableState, columns: tuple[str, ...]) -> tuple[tuple[DataFile, RowSet], ...]:
    """Each data file with the rows that a reader sees."""
    return tuple((file, file.all_rows & ~deleted_rows(file, table.delete_files, columns)) for file in table.data_files)


def visible(table: TableState, columns: tuple[str, ...]) -> tuple[Row, ...]:
    """The rows that a reader sees, sorted."""
    seen = [
        file.rows[position]
        for file, rows in live_rows(table, columns)
        if file.rows is not None
        for position in positions(rows)
    ]
    return tuple(sorted(seen, key=_order))


def _order(row: Row) -> tuple[tuple[bool, str, object], ...]:
    return tuple((value is not None, type(value).__name__, value) for value in row)
