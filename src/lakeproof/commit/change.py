"""What a writer wants to commit, and what it found out about it before."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from lakeproof.filters import ALWAYS, Expression
from lakeproof.format import DataFile, DeleteFile, RowMapping, Rows, StreamBatch, Value


class Command(StrEnum):
    """What the user asked for."""

    INSERT = "INSERT"
    INSERT_SELECT = "INSERT SELECT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    METADATA_DELETE = "DELETE of whole files"
    MERGE = "MERGE"
    UPSERT = "UPSERT"
    OVERWRITE = "INSERT OVERWRITE"
    OVERWRITE_PARTITIONS = "INSERT OVERWRITE of partitions"
    REWRITE = "REWRITE"
    REWRITE_DELETES = "REWRITE of delete files"


class Mode(StrEnum):
    """How a row-level command writes."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


class Isolation(StrEnum):
    """What a command may miss."""

    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"


ONLY_REMOVES = frozenset({Command.DELETE, Command.METADATA_DELETE, Command.OVERWRITE, Command.OVERWRITE_PARTITIONS})
"""Commands that give the rows they hit no new version: somebody else's delete of such a row agrees with them."""


class TableChange(NamedTuple):
    """Files added and removed, and the questions that decide whether they may be committed.

    The row fields are what the change read: `targets` are the rows it removes or rewrites, `kept` the rows of replaced
    files that stay as they are, `reads` rows that it read and does not write. `mapping` says where `kept` rows go.
    `batch` is the batch of a stream that the change is: a branch takes it once. `before_row_ids`: no row of the table
    had an id when it was read, as before the first commit to a table that was upgraded to format v3.
    """

    command: Command
    mode: Mode = Mode.MERGE_ON_READ
    isolation: Isolation = Isolation.SNAPSHOT
    command_id: str = ""
    scan_snapshot: int | None = None
    scan_sequence_number: int = 0
    added_data_files: tuple[DataFile, ...] = ()
    removed_data_files: tuple[DataFile, ...] = ()
    added_delete_files: tuple[DeleteFile, ...] = ()
    removed_delete_files: tuple[DeleteFile, ...] = ()
    required_data_files: tuple[str, ...] = ()
    conflict_filter: Expression = ALWAYS
    row_filter: Expression | None = None
    replaced_partitions: tuple[tuple[int, tuple[Value, ...]], ...] | None = None
    targets: Rows = ()
    kept: Rows = ()
    reads: Rows = ()
    mapping: RowMapping | None = None
    batch: StreamBatch | None = None
    before_row_ids: bool = False

    @property
    def rewrites(self) -> bool:
        """Whether data files are replaced by others that keep some of their rows."""
        return self.command is Command.REWRITE or self.mode is Mode.COPY_ON_WRITE
