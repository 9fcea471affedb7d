"""What is in one file, against what its manifest entry says: footers, and with `pages` every page.

It takes and gives plain values, so that it runs here or in a worker of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from lakeproof.iceberg.inspecting.columns import TableColumns, Told, wrong_columns, wrong_ids, wrong_partition
from lakeproof.iceberg.inspecting.puffin import judge_vector
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone, damage_said, read_bytes
from lakeproof.iceberg.reading.avro import join, read_header

DATA, POSITIONS, EQUALITY = 0, 1, 2
MAGIC = {b"PAR1": "PARQUET", b"Obj\x01": "AVRO", b"PFA1": "PUFFIN", b"ORC": "ORC"}


class ToOpen(NamedTuple):
    """One file as its entry says it; `rows_of`: the rows of the data files that a delete file may name."""

    number: int
    path: str
    spec_id: int
    entry: Mapping[str, Any]
    rows_of: Mapping[str, int]

    @property
    def format(self) -> str:
        """The format that the entry says."""
        return str(self.entry.get("format") or "PARQUET").upper()

    @property
    def content(self) -> int:
        """Data, position deletes, or equality deletes."""
        return int(self.entry.get("content") or 0)


class FoundInside(NamedTuple):
    """What is wrong with a file: its number, the kind of finding, and the reason."""

    number: int
    kind: str
    because: str


def look_into(store: FileIO, words: Mapping[str, Any], asked: list[ToOpen], *, pages: bool) -> list[FoundInside]:
    """What is wrong with these files; `words` are the table's metadata."""
    columns = TableColumns(words)
    return [
        FoundInside(one.number, kind, f"{one.path}: {text}")
        for one in asked
        for kind, text in _judge(store, columns, one, pages)
    ]


def _judge(store: FileIO, columns: TableColumns, one: ToOpen, pages: bool) -> list[Told]:
    try:
        return list(_told(store, columns, one, pages))
    except Damaged as error:
        return [("unreadable_file", str(error))]
    except Gone:
        return []  # said already, without a look inside


def _told(store: FileIO, columns: TableColumns, one: ToOpen, pages: bool) -> Iterator[Told]:
    data = read_bytes(store, one.path) if pages or one.format == "PUFFIN" else None
    magic = _magic(store, one.path) if data is None else data[:4]
    real = MAGIC.get(magic[:4]) or MAGIC.get(magic[:3])
    if real is None and magic == b"PARE":
        return  # its footer is encrypted
    if real is None:
        raise Damaged("it begins like no file of a known format")
    if real != one.format:
        yield "file_format", f"it is a file of format {real}, the table says {one.format}"
    readers: dict[str, Callable[[], Iterator[Told]]] = {
        "PARQUET": lambda: _parquet(store, columns, one, data),
        "ORC": lambda: _orc(store, one, data),
        "AVRO": lambda: _avro(read_bytes(store, one.path) if data is None else data, one),
        "PUFFIN": lambda: judge_vector(data or read_bytes(store, one.path), one.entry, one.rows_of),
    }
    yield from readers[real]()


def _magic(store: FileIO, path: str) -> bytes:
    with _opened(store, path) as stream:
        return bytes(stream.read(4))


def _opened(store: FileIO, path: str) -> Any:
    try:
        return store.new_input(path).open()
    except FileNotFoundError as error:
        raise Gone(path) from error


def _parquet(store: FileIO, columns: TableColumns, one: ToOpen, data: bytes | None) -> Iterator[Told]:
    with damage_said():
        source = pa.BufferReader(data) if data is not None else _opened(store, one.path)
        file = pq.ParquetFile(source, page_checksum_verification=data is not None)
        footer, schema = file.metadata, file.schema_arrow
    said = one.entry.get("record_count")
    if said is not None and footer.num_rows != said:
        yield "record_count", f"it holds {footer.num_rows} rows, the table says {said}"
    if one.content == POSITIONS:
        yield from _positions(file, one)
        return
    own = columns.ids_of(schema)
    yield from wrong_ids(columns, own, schema)
    yield from wrong_columns(columns, own, schema, footer, one.entry)
    if one.content == DATA:
        yield from wrong_partition(columns, own, footer, one.entry, one.spec_id)
    if data is not None:
        yield from _pages(file, footer, schema)


def _positions(file: pq.ParquetFile, one: ToOpen) -> Iterator[Told]:
    try:
        with damage_said():
            table = file.read(columns=["file_path", "pos"])
    except Damaged as error:
        yield "damaged_page", str(error)
        return
    yield from beyond(table, one)


def beyond(table: pa.Table, one: ToOpen) -> Iterator[Told]:
    """Positions that the data files do not have, and paths outside the bounds that the entry says."""
    if not table.num_rows:
        return
    table = table.set_column(0, "file_path", table.column("file_path").cast(pa.string()))
    grouped = table.group_by("file_path").aggregate([("pos", "max"), ("pos", "min")]).to_pylist()
    low, high = one.entry.get("lo2147483546"), one.entry.get("hi2147483546")
    for row in grouped:
        path, rows = row["file_path"], one.rows_of.get(row["file_path"])
        if rows is not None and (row["pos_max"] >= rows or row["pos_min"] < 0):
            yield "position_beyond_file", f"it names position {row['pos_max']} of {path}, which has {rows} rows"
        name = path.encode()
        if (low is not None and name < low) or (high is not None and name[: len(high)] > high):
            yield "bounds", f"it names rows of {path}, which lies outside the paths that the table says"


def _pages(file: pq.ParquetFile, footer: pq.FileMetaData, schema: pa.Schema) -> Iterator[Told]:
    """Every page is read; what they hold is what the footer says of them."""
    try:
        with damage_said():
            table = file.read()
            table.validate(full=True)
    except Damaged as error:
        yield "damaged_page", str(error)
        return
    if table.num_rows != footer.num_rows:
        yield "damaged_page", f"its pages hold {table.num_rows} rows, its footer says {footer.num_rows}"
    for at, field in enumerate(schema):
        if not pa.types.is_nested(field.type):
            yield from _column_pages(table.column(at), field.name, footer)


def _column_pages(column: pa.ChunkedArray, name: str, footer: pq.FileMetaData) -> Iterator[Told]:
    chunks = [_chunk(footer, group, name) for group in range(footer.num_row_groups)]
    stats = [chunk.statistics for chunk in chunks if chunk is not None and chunk.is_stats_set]
    if len(stats) != footer.num_row_groups or not stats:
        return
    if all(each.has_null_count for each in stats) and sum(each.null_count for each in stats) != column.null_count:
        yield "damaged_page", f"`{name}` holds {column.null_count} nulls, the footer says otherwise"
    if not all(each.has_min_max for each in stats) or not _is_ordered(column.type) or column.null_count == len(column):
        return
    ends = pc.min_max(column)
    low, high = min(each.min for each in stats), max(each.max for each in stats)
    try:
        outside = bool(ends["min"].as_py() < low or ends["max"].as_py() > high)
    except TypeError:
        return
    if outside:
        yield "damaged_page", f"`{name}` goes from {ends['min']} to {ends['max']}, the footer says {low} to {high}"


def _chunk(footer: pq.FileMetaData, group: int, name: str) -> pq.ColumnChunkMetaData | None:
    row_group = footer.row_group(group)
    for at in range(footer.num_columns):
        if row_group.column(at).path_in_schema == name:
            return row_group.column(at)
    return None


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_string(kind))


def _orc(store: FileIO, one: ToOpen, data: bytes | None) -> Iterator[Told]:
    with damage_said():
        file = orc.ORCFile(pa.BufferReader(data if data is not None else read_bytes(store, one.path)))
        rows = file.nrows
    said = one.entry.get("record_count")
    if said is not None and rows != said:
        yield "record_count", f"it holds {rows} rows, the table says {said}"
    try:
        with damage_said():
            if one.content == POSITIONS:
                positions = file.read(columns=["file_path", "pos"])
            elif data is not None:
                file.read()
    except Damaged as error:
        yield "damaged_page", str(error)
        return
    if one.content == POSITIONS:
        yield from beyond(positions, one)


def _avro(data: bytes, one: ToOpen) -> Iterator[Told]:
    with damage_said():
        read_header(data)
        _, rows = join([data])
    said = one.entry.get("record_count")
    if said is not None and sum(rows) != said:
        yield "record_count", f"it holds {sum(rows)} rows, the table says {said}"
