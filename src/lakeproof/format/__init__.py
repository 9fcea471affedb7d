"""What a table is: files, rows inside files, snapshots and their lineage. Values only."""

from lakeproof.format.files import Bounds, DataFile, DeleteContent, DeleteFile, Row, Value
from lakeproof.format.metadata import (
    PartitionField,
    PartitionSpec,
    TableShape,
    TableState,
    deleted_rows,
    equality_hits,
    live_rows,
    visible,
)
from lakeproof.format.rows import Move, RowMapping, Rows, RowSet, all_rows, images, moved, positions, row_set, rows_of
from lakeproof.format.snapshots import Lineage, Operation, Snapshot, lineage

__all__ = [
    "Bounds",
    "DataFile",
    "DeleteContent",
    "DeleteFile",
    "Lineage",
    "Move",
    "Operation",
    "PartitionField",
    "PartitionSpec",
    "Row",
    "RowMapping",
    "RowSet",
    "Rows",
    "Snapshot",
    "TableShape",
    "TableState",
    "Value",
    "all_rows",
    "deleted_rows",
    "equality_hits",
    "images",
    "lineage",
    "live_rows",
    "moved",
    "positions",
    "row_set",
    "rows_of",
    "visible",
]
