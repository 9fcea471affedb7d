"""A `DataFile` from a Parquet footer, for files that Spark wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table


class WrittenFile(NamedTuple):
    """A file that a task has written: its path as the manifest shall spell it, and its partition.

    `partition` holds the transformed values in the order of the spec's fields (a day is days since 1970-01-01, a bucket an int,
    a decimal a `Decimal`), `()` when unpartitioned; `spec_id` `None` is the table's current spec.
    """

    path: str
    partition: tuple[Any, ...] = ()
    spec_id: int | None = None
    file_format: str = "parquet"
    record_count: int | None = None


def data_files_from_footers(table: Table, written: Sequence[WrittenFile]) -> list[DataFile]:
    """One `DataFile` per written file: counts, sizes, bounds, split offsets (ORC and Avro: counts only, `record_count` is needed)."""
    raise NotImplementedError
