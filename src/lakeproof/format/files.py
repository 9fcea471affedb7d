"""Data files and delete files, as a commit sees them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from lakeproof.format.rows import Rows, RowSet, all_rows

Value = str | int | float | bool | bytes | date | datetime | Decimal | None
"""A column value. Partition values of year, month, day and hour are ordinals since 1970, as in the specification."""

Row = tuple[Value, ...]
"""One row, in the order of the table's columns."""


class Bounds(NamedTuple):
    """What a file's statistics say of one column. A bound that is `None` is not known."""

    column: str
    lower: Value = None
    upper: Value = None
    has_nulls: bool = True
    has_values: bool = True
    has_nans: bool = True  # bounds leave NaN out, and NaN is greater than every number


RowLineage = tuple[int | None, int | None]
"""What a file stores of one row (format v3): its row id, and the number of its last change; `None`: inherited."""


class DataFile(NamedTuple):
    """A file of rows. `rows` are its values where somebody knows them (a model, a small window), else `None`.

    Of format v3: a row has the id that `lineage` stores, else the `first_row_id` and its position.
    """

    path: str
    partition: tuple[Value, ...] = ()
    spec_id: int = 0
    sequence_number: int = 0
    record_count: int = 0
    bounds: tuple[Bounds, ...] = ()
    rows: tuple[Row, ...] | None = None
    first_row_id: int | None = None  # `None`: not committed yet, or of a table whose rows have no ids
    lineage: tuple[RowLineage, ...] | None = None  # `None`: it stores nothing of its rows

    @property
    def all_rows(self) -> RowSet:
        """Every position of this file."""
        return all_rows(self.record_count if self.rows is None else len(self.rows))


class DeleteContent(StrEnum):
    """What a delete file holds."""

    POSITIONS = "positions"
    VECTOR = "vector"
    EQUALITY = "equality"


class DeleteFile(NamedTuple):
    """Deleted rows: positions of data files, a deletion vector of one data file, or equality deletes.

    `positions` are the rows that it deletes, where they are known; `None`: it may delete any row. Equality deletes list
    the columns and the deleted values; whoever knows which rows they hit may give these as positions too.
    """

    path: str
    content: DeleteContent = DeleteContent.POSITIONS
    partition: tuple[Value, ...] = ()
    spec_id: int = 0
    sequence_number: int = 0
    positions: Rows | None = ()
    equality_columns: tuple[str, ...] = ()
    equality_values: tuple[Row, ...] | None = ()
    bounds: tuple[Bounds, ...] = ()  # of the equality columns, where statistics say them

    def references(self, path: str) -> bool:
        """Whether this file may delete positions of that data file."""
        return self.positions is None or any(file == path for file, _ in self.positions)
