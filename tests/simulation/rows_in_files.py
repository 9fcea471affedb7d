"""Rows of the simulated table as its writers see them: written as data files, found again at their places."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow

from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.iceberg.committing.footers import WrittenFile, data_files_from_footers
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.committing.values import data_file_values
from lakeproof.iceberg.format_v3.row_ids import LAST_UPDATED_FIELD, ROW_ID_FIELD
from lakeproof.iceberg.predicates import EqualTo
from lakeproof.iceberg.pyiceberg_names import DataFile, LongType, NestedField, Schema, Table
from lakeproof.iceberg.reading.delete_files import deleted_positions, read_equality_deletes
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables import tables
from lakeproof.spark.writing.leftovers import removed_if_refused

Row = tuple[int, int, int]
Lineage = tuple[int | None, int | None]
Rows = dict[int, Row]
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", LongType()), NestedField(3, "v", LongType()))
WIDE = Schema(
    *SCHEMA.fields,
    NestedField(ROW_ID_FIELD, "_row_id", LongType()),
    NestedField(LAST_UPDATED_FIELD, "_last_updated_sequence_number", LongType()),
)
BY_P = (tables.PartitionBy("p"),)


def write(table: Table, rows: Iterable[Row], lineage: Iterable[Lineage] | None = None) -> list[DataFile]:
    """Data files of the rows, one for each partition; `lineage` is what they store of rows that were there before."""
    with writing():
        return _written(table, rows, lineage)


def _written(table: Table, rows: Iterable[Row], lineage: Iterable[Lineage] | None) -> list[DataFile]:
    stores = lineage is not None and table.format_version > 2
    parts: dict[int, list[tuple[int | None, ...]]] = {}
    for row, stored in zip(rows, lineage, strict=True) if stores and lineage is not None else ((r, ()) for r in rows):
        parts.setdefault(row[1], []).append((*row, *stored))
    written = []
    schema = schema_to_pyarrow(WIDE if stores else SCHEMA)
    for partition, part in parts.items():
        path = table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet")
        columns = [pa.array(values, pa.int64()) for values in zip(*part, strict=True)]
        arrow = pa.Table.from_arrays(columns, schema=schema)
        with table.io.new_output(path).create(overwrite=True) as stream:
            pq.write_table(arrow, stream)
        written.append(WrittenFile(path, (partition,), table.spec().spec_id))
    return data_files_from_footers(table, written)


class WriterFailed(LakeproofError):
    """The storage did not answer to the writer itself, before it had anything to commit."""


@contextmanager
def writing() -> Iterator[None]:
    """The writer's own calls, which are not the product's."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise WriterFailed(str(error)) from error


class Scanned:
    """The rows of a snapshot with the places where they lie."""

    def __init__(self, table: Table, partition: int | None = None) -> None:
        planned = plan(table) if partition is None else plan(table, EqualTo("p", partition))
        self.homes = {value.path: value for value in data_file_values(table, planned.picked)}
        self.deleted = deleted_positions(table, planned.delete_files)
        self.equality = [row for row in planned.delete_files.to_pylist() if row["content"] == "equality"]
        self.rows: list[tuple[str, int, Row]] = []
        self.lineage: dict[tuple[str, int], Lineage] = {}
        listed = planned.delete_files.to_pylist()
        applied = planned.files["delete_files"].to_pylist()
        paths = planned.files["path"].to_pylist()
        first_ids = dict(zip(paths, planned.files["first_row_id"].to_pylist(), strict=True))
        numbers = dict(zip(paths, planned.files["data_sequence_number"].to_pylist(), strict=True))
        for path, deletes in zip(planned.files["path"].to_pylist(), applied, strict=True):
            gone: set[int] = set()
            for row in (listed[number] for number in deletes if listed[number]["content"] == "equality"):
                gone.update(read_equality_deletes(table, row["path"], row["equality_ids"])["id"].to_pylist())
            with table.io.new_input(path).open() as stream:
                read = pq.read_table(pa.BufferReader(stream.read()), use_threads=False)
            self._note_lineage(path, read, first_ids[path], numbers[path])
            dead = set(self.deleted.get(path, np.array([], np.int64)).tolist())
            for at, row in enumerate(zip(*(read[name].to_pylist() for name in ("id", "p", "v")), strict=True)):
                if at not in dead and row[0] not in gone:
                    self.rows.append((path, at, row))

    def _note_lineage(self, path: str, read: pa.Table, first: int | None, number: int) -> None:
        for at in range(read.num_rows if first is not None else 0):
            stored = [read[name][at].as_py() if name in read.column_names else None for name in WIDE.column_names[3:]]
            assert first is not None
            self.lineage[path, at] = (
                first + at if stored[0] is None else stored[0],
                number if stored[1] is None else stored[1],
            )

    def moved(self, places: Iterable[tuple[str, int, Row]]) -> list[Lineage]:
        """What rows that are only moved must store."""
        return [self.lineage.get((path, at), (None, None)) for path, at, _ in places]

    def changed(self, places: Iterable[tuple[str, int, Row]]) -> list[Lineage]:
        """What new versions of these rows must store: their ids alone."""
        return [(own, None) for own, _ in self.moved(places)]

    def found(self, key: int) -> list[tuple[str, int, Row]]:
        return [each for each in self.rows if each[2][0] == key]


def scanned(table: Table, partition: int | None = None) -> Scanned | None:
    """The rows, of one partition if it is named; `None`: its snapshot was expired, so the head must be read anew."""
    try:
        with writing():
            return Scanned(table, partition)
    except FileNotFoundError:
        return None
    except InvalidInput as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def removed(table: Table, files: Iterable[DataFile]) -> Any:
    """As a writer does it: what was certainly not committed leaves no file behind."""
    return removed_if_refused(lambda: remove_files(table, [file.file_path for file in files]))
