"""What a table is: files, rows inside files, snapshots and their lineage. Values only."""

from lakeproof.format.files import Bounds, DataFile, DeleteContent, DeleteFile, Row, RowLineage, Value
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
from lakeproof.format.row_ids import FileRowIds, inherited, moves_by_row_ids, row_ids_of
from lakeproof.format.rows import Move, RowMapping, Rows, RowSet, all_rows, images, moved, positions, row_set, rows_of
from lakeproof.format.snapshots import Lineage, Operation, Snapshot, StreamBatch, lineage

__all__ = [
    "Bounds",
    "DataFile",
    "DeleteContent",
    "DeleteFile",
    "FileRowIds",
    "Lineage",
    "Move",
    "Operation",
    "PartitionField",
    "PartitionSpec",
    "Row",
    "RowLineage",
    "RowMapping",
    "RowSet",
    "Rows",
    "Snapshot",
    "StreamBatch",
    "TableShape",
    "TableState",
    "Value",
    "all_rows",
    "deleted_rows",
    "equality_hits",
    "images",
    "inherited",
    "lineage",
    "live_rows",
    "moved",
    "moves_by_row_ids",
    "positions",
    "row_ids_of",
    "row_set",
    "rows_of",
    "visible",
]
