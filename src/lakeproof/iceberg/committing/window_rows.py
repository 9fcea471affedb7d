"""The rows of small files that somebody added meanwhile, read so that a check need not guess from their bounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from lakeproof.errors import PlacedError
from lakeproof.filters import ALWAYS, Expression, columns_of, matches, may_match_file
from lakeproof.format import DataFile, Row, Snapshot, TableShape
from lakeproof.iceberg.failures import spoken
from lakeproof.iceberg.reading.lru import Recent

SMALL_ROWS = 2_000
_recent: Recent[pa.Table] = Recent(64)


def with_rows(table: Table, snapshot: Snapshot, conflict_filter: Expression, shape: TableShape) -> Snapshot:
    """The snapshot, where each small file that may hold a matching row says what its rows are.

    Only the filter's columns are read; the others are null, and no check asks about them.
    """
    if conflict_filter == ALWAYS or not columns_of(conflict_filter):
        return snapshot
    files = tuple(_with_rows(table, file, conflict_filter, shape) for file in snapshot.added_data_files)
    return snapshot._replace(added_data_files=files)


def _with_rows(table: Table, file: DataFile, conflict_filter: Expression, shape: TableShape) -> DataFile:
    if file.record_count > SMALL_ROWS or not may_match_file(conflict_filter, file, shape):
        return file
    try:
        rows = _rows(table, file, columns_of(conflict_filter), shape)
        for row in rows:
            matches(conflict_filter, row, shape.columns)
    except (TypeError, ValueError, OSError, PlacedError):  # the bounds must do: they say "may match"
        return file
    return file._replace(rows=rows) if len(rows) == file.record_count else file


def _rows(table: Table, file: DataFile, columns: tuple[str, ...], shape: TableShape) -> tuple[Row, ...]:
    if any("." in column for column in columns):
        raise ValueError("columns inside structs are not read here")
    content = _recent.get(file.path, lambda: _read(table, file.path))
    by_id = {int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")): at for at, field in enumerate(content.schema)}
    known: dict[str, list[Any]] = {}
    for column in columns:
        at = by_id.get(table.schema().find_field(column, case_sensitive=False).field_id)
        if at is None:  # the file is older than the column, or has no ids
            raise ValueError(f"{column} is not in the file")
        known[column.lower()] = content.column(at).to_pylist()
    places = [known.get(column.lower()) for column in shape.columns]
    return tuple(
        tuple(None if values is None else values[number] for values in places) for number in range(content.num_rows)
    )


def _read(table: Table, path: str) -> pa.Table:
    if not path.endswith(".parquet"):
        raise ValueError("only Parquet files are read here")
    with spoken(f"file {path}"), table.io.new_input(path).open() as stream:
        return pq.read_table(pa.BufferReader(stream.read()), partitioning=None)
