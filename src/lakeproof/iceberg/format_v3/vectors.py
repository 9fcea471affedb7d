"""Deletion vectors of real tables: written several to a Puffin file, read alone from their place in it.

What tells one vector from another is its place: two of one Puffin file share its path. `entry_key` is it as text.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from lakeproof.errors import InvalidInput
from lakeproof.format import RowSet
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.metadata import NEWEST
from lakeproof.iceberg.format_v3.puffin import positions_in, puffin_of
from lakeproof.iceberg.pyiceberg_private import CONTENT_OFFSET, file_field

VECTOR_FORMAT = "PUFFIN"


class VectorPlace(NamedTuple):
    """A vector as its manifest entry describes it."""

    path: str
    offset: int | None
    size: int | None
    cardinality: int | None = None


class NewVector(NamedTuple):
    """The deleted rows of one data file, and where that file lies: its partition as Iceberg stores it."""

    data_file: str
    rows: RowSet
    partition: tuple[Any, ...] = ()
    spec_id: int = 0


def key_of(path: str, offset: int | None) -> str:
    """What tells a delete file from every other: its path, of a vector its place in that file."""
    return path if offset is None else f"{path}#{offset}"


def entry_key(file: DataFile) -> str:
    """The same, of a file of a manifest."""
    is_vector = file.file_format == FileFormat.PUFFIN
    return key_of(file.file_path, file_field(file, CONTENT_OFFSET) if is_vector else None)


def read_vector(io: FileIO, place: VectorPlace) -> npt.NDArray[np.int64]:
    """The positions of a vector, of which nothing else in its file is read; a damaged one is named."""
    if place.offset is None or place.size is None:
        raise _damaged(place, "no manifest says where it lies")
    with translate_errors(f"file {place.path}"), io.new_input(place.path).open() as stream:
        stream.seek(place.offset)
        blob = bytes(stream.read(place.size))
    try:
        found = positions_in(blob)
    except ValueError as error:
        raise _damaged(place, str(error)) from error
    if place.cardinality not in (None, len(found)):
        raise _damaged(place, f"it has {len(found)} positions where its manifest says {place.cardinality}")
    return found


def _damaged(place: VectorPlace, what: str) -> InvalidInput:
    where = "" if place.offset is None else f" at byte {place.offset}"
    return InvalidInput(
        f"the deletion vector{where} cannot be believed: {what}",
        place=f"file {place.path}",
        hint="restore the file, or roll back to a snapshot before it",
    )


def write_vectors(table: Table, vectors: Sequence[NewVector], written: list[str]) -> tuple[DataFile, ...]:
    """One Puffin file with all of them, its path noted in `written`, and a delete file entry for each."""
    if not vectors:
        return ()
    target = table.location_provider().new_data_location(f"{uuid.uuid4()}-deletes.puffin")
    data, blobs = puffin_of({each.data_file: each.rows for each in vectors})
    written.append(target)
    with translate_errors(f"file {target}"), table.io.new_output(target).create() as stream:
        stream.write(data)
    found = []
    for each in vectors:
        blob = blobs[each.data_file]
        file = DataFile.from_args(
            _table_format_version=NEWEST,
            content=DataFileContent.POSITION_DELETES,
            file_path=target,
            file_format=FileFormat.PUFFIN,
            partition=Record(*each.partition),
            record_count=blob.cardinality,
            file_size_in_bytes=len(data),
            referenced_data_file=each.data_file,
            content_offset=blob.offset,
            content_size_in_bytes=blob.size,
        )
        file.spec_id = each.spec_id
        found.append(file)
    return tuple(found)
