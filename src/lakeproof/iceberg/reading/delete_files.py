"""Position deletes are written and read; deletion vectors and equality deletes are read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.format_v3.vectors import VECTOR_FORMAT, VectorPlace, key_of, read_vector
from lakeproof.iceberg.reading.lru import Recent

PATH_FIELD, POSITION_FIELD = 2147483546, 2147483545
SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.dictionary(pa.int32(), pa.string()), False, {"PARQUET:field_id": str(PATH_FIELD)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POSITION_FIELD)}),
    ]
)
Positions = npt.NDArray[np.int64]
# Neighbouring positions differ by little, and the path is one. Other readers need not hear of our dictionary.
_AS_WRITTEN: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["file_path"],
    "column_encoding": {"pos": "DELTA_BINARY_PACKED"},
    "store_schema": False,
}
_recent_positions: Recent[dict[str, Positions]] = Recent(256)


def write_position_deletes(
    table: Table, path: str, positions: Positions, *, partition: tuple[Any, ...] = (), spec_id: int = 0
) -> DataFile:
    """A delete file that names rows of one data file: sorted, with exact bounds, in the data file's partition."""
    rows = np.unique(np.asarray(positions, np.int64))
    target = table.location_provider().new_data_location(f"{uuid.uuid4()}-deletes.parquet")
    names = pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), pa.array([path]))
    content = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([names, pa.array(rows)], schema=SCHEMA), content, **_AS_WRITTEN)
    data = content.getvalue()
    with translate_errors(f"file {target}"), table.io.new_output(target).create() as stream:
        stream.write(data)
    _recent_positions.get(target, lambda: {path: rows})
    ends = [to_bytes(LongType(), int(row)) for row in (rows[0], rows[-1])]
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=target,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=len(rows),
        file_size_in_bytes=data.size,
        column_sizes={},
        value_counts={PATH_FIELD: len(rows), POSITION_FIELD: len(rows)},
        null_value_counts={PATH_FIELD: 0, POSITION_FIELD: 0},
        nan_value_counts={},
        # Equal path bounds, in full, tell every engine that this file belongs to one data file.
        lower_bounds={PATH_FIELD: path.encode(), POSITION_FIELD: ends[0]},
        upper_bounds={PATH_FIELD: path.encode(), POSITION_FIELD: ends[1]},
    )
    file.spec_id = spec_id
    return file


def deleted_positions(table: Table, delete_files: pa.Table) -> dict[str, Positions]:
    """The deleted positions by data file, ascending, of the position deletes and vectors of a plan's `delete_files`."""
    found: dict[str, list[Positions]] = {}
    for row in delete_files.to_pylist():
        if row["content"] != "equality":
            for path, positions in read_positions(table.io, place_of(row)).items():
                found.setdefault(path, []).append(positions)
    return {path: parts[0] if len(parts) == 1 else _united(parts) for path, parts in found.items()}


def _united(parts: Sequence[Positions]) -> Positions:
    """The positions of all parts; each part ascends, and merging what ascends is much faster than sorting."""
    whole = np.concatenate(parts)
    whole.sort(kind="stable")
    return whole[np.concatenate([[True], whole[1:] != whole[:-1]])] if len(whole) else whole


class DeletesAt(NamedTuple):
    """A delete file by position as its manifest entry describes it; `data_file`: the only one that it names, if it is
    known to be one. A vector also has its place in the file, and how many positions it should have."""

    path: str
    format: str
    data_file: str | None = None
    vector: VectorPlace | None = None

    @property
    def key(self) -> str:
        """What tells it from every other."""
        return key_of(self.path, None if self.vector is None else self.vector.offset)


def place_of(row: dict[str, Any]) -> DeletesAt:
    """The delete file of one row of a plan's `delete_files`."""
    path, kind = row["path"], row["format"].upper()
    is_vector = kind == VECTOR_FORMAT
    vector = VectorPlace(path, row["blob_offset"], row["blob_size"], row["record_count"]) if is_vector else None
    return DeletesAt(path, kind, row["referenced_file"], vector)


def read_positions(io: FileIO, at: DeletesAt) -> dict[str, Positions]:
    """The positions that one delete file (or one vector of a Puffin file) names, by data file."""
    with translate_errors(f"file {at.path}"), reading_file(at.path):
        # Every validation of a commit window asks for the same few.
        found = _recent_positions.get(at.key, lambda: _positions_at(io, at))
    return {path: rows for path, rows in found.items() if at.data_file in (None, path)}


def forget_positions() -> None:
    """Every delete file is read again."""
    _recent_positions.clear()


def _positions_at(io: FileIO, at: DeletesAt) -> dict[str, Positions]:
    path, file_format = at.path, at.format
    if at.vector is not None:
        if at.data_file is None:
            raise ValueError("a deletion vector names no data file")
        return {at.data_file: read_vector(io, at.vector)}
    with io.new_input(path).open() as stream:
        if file_format == "ORC":
            table = orc.ORCFile(pa.BufferReader(stream.read())).read(columns=["file_path", "pos"])
        elif file_format == "PARQUET":
            read = {"columns": ["file_path", "pos"], "partitioning": None, "read_dictionary": ["file_path"]}
            table = pq.read_table(pa.BufferReader(stream.read()), **read)
        else:
            raise ValueError(f"delete files of format {file_format} cannot be read")
    return grouped(table["file_path"], table["pos"])


def grouped(paths: pa.ChunkedArray, positions: pa.ChunkedArray) -> dict[str, Positions]:
    """Positions by path, ascending."""
    whole = paths.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else pc.dictionary_encode(whole)
    codes, rows = np.asarray(encoded.indices), positions.to_numpy()
    if len(encoded.dictionary) == 1 and bool(np.all(rows[1:] > rows[:-1])):  # of one data file, sorted: the usual case
        return {encoded.dictionary[0].as_py(): rows}
    order = np.lexsort((rows, codes))
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    names = encoded.dictionary.to_pylist()
    return {names[codes[part[0]]]: rows[part] for part in np.split(order, cuts) if len(part)}


def read_equality_deletes(table: Table, path: str, equality_ids: Iterable[int]) -> pa.Table:
    """The deleted values of an equality delete file: a column per equality field, named as the schema names it now."""
    with translate_errors(f"file {path}"), reading_file(path), table.io.new_input(path).open() as stream:
        found = pq.read_table(pa.BufferReader(stream.read()), partitioning=None)
    wanted = list(equality_ids)
    by_id = {_id_of(field): field.name for field in found.schema}
    names = [table.schema().find_column_name(number) or by_id[number] for number in wanted]
    values = [values_of_field(found, number) for number in wanted]
    return pa.table([found[name] if v is None else v for name, v in zip(names, values, strict=True)], names=names)


def values_of_field(content: pa.Table, field_id: int) -> pa.ChunkedArray | None:
    """The values of the column, or of the field inside structs, with that id; `None`: the file has none."""
    for at, field in enumerate(content.schema):
        path = _path_to(field, field_id)
        if path is not None:
            return reduce(pc.struct_field, path, content.column(at))
    return None


def _path_to(field: pa.Field, field_id: int) -> tuple[str, ...] | None:
    if _id_of(field) == field_id:
        return ()
    for inner in field.type if pa.types.is_struct(field.type) else ():
        below = _path_to(inner, field_id)
        if below is not None:
            return (inner.name, *below)
    return None


def _id_of(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
