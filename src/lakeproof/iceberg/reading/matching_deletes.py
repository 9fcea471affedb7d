"""Which delete files apply to which data files, by the rules of the specification.

Position deletes and deletion vectors: same partition, not older than the data file, and if they name one data file
(field 143, or equal bounds of the path column) that one. Equality deletes: same partition (or a spec without fields:
every partition), newer than the data file, and only where column ranges let the file hold a value that they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from lakeproof.iceberg.reading.equality_ranges import may_hold
from lakeproof.iceberg.reading.segments import Ints, Mask, Picked, Segment, partition_tuples

PATH_FIELD = 2147483546
EQUALITY = 2
DELETE_FILES = pa.schema(
    [
        ("path", pa.large_string()),
        ("size", pa.int64()),
        ("record_count", pa.int64()),
        ("data_sequence_number", pa.int64()),
        ("content", pa.string()),
        ("format", pa.large_string()),
        ("equality_ids", pa.list_(pa.int32())),
        ("referenced_file", pa.large_string()),
        ("blob_offset", pa.int64()),
        ("blob_size", pa.int64()),
    ]
)


class Candidates(NamedTuple):
    """Live files of one content: parallel arrays; `partition` numbers (spec, partition values) alike for both sides."""

    path: list[str]
    seq: np.ndarray[Any, np.dtype[np.int64]]
    partition: np.ndarray[Any, np.dtype[np.int64]]


class LiveDeletes(NamedTuple):
    """Live delete files: as `Candidates`, with whom they name (`None`: any), and whether they are global.

    `may_hold` masks the data files that can hold a value of an equality delete; `None`: of a position delete.
    """

    seq: list[int]
    partition: list[int]
    referenced: list[str | None]
    is_equality: list[bool]
    is_global: list[bool]
    may_hold: list[Mask | None]


def match_delete_files(data: Candidates, deletes: LiveDeletes) -> pa.Array:
    """For each data file the numbers of the delete files that apply to it, ascending, as a list array."""
    where = {path: row for row, path in enumerate(data.path)} if any(deletes.referenced) else {}
    by_partition: dict[int, Any] = {}
    rows: list[Any] = []
    numbers: list[Any] = []
    for number, named in enumerate(deletes.referenced):
        if named is not None:
            found = np.array([where[named]] if named in where else [], np.int64)
        elif deletes.is_equality[number] and deletes.is_global[number]:
            found = np.arange(len(data.path))
        else:
            key = deletes.partition[number]
            if key not in by_partition:
                by_partition[key] = np.flatnonzero(data.partition == key)
            found = by_partition[key]
        older = deletes.is_equality[number]
        seq = data.seq[found]
        found = found[seq < deletes.seq[number]] if older else found[seq <= deletes.seq[number]]
        can_hold = deletes.may_hold[number]
        if can_hold is not None:
            found = found[can_hold[found]]
        rows.append(found)
        numbers.append(np.full(len(found), number, np.int32))
    return _lists(rows, numbers, len(data.path))


def _lists(rows: list[Any], numbers: list[Any], count: int) -> pa.Array:
    if not rows:
        return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.int32()))
    row, number = np.concatenate(rows), np.concatenate(numbers)
    order = np.argsort(row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(number[order]))


def matched(
    data: Sequence[Picked],
    deletes: Sequence[Picked],
    delete_files: pa.Table,
    specs: dict[int, PartitionSpec],
    schema: Schema,
) -> pa.Array:
    """For each planned data file the numbers of the planned delete files that apply to it."""
    numbers: dict[tuple[Any, ...], int] = {}
    data_partition, paths, seqs = [], [], []
    for each in data:
        data_partition.append(_partition_numbers(each, specs, numbers))
        paths += each.segment.column("path").take(pa.array(each.rows)).to_pylist()
        seqs.append(each.segment.seq[each.rows])
    delete_partition = [_partition_numbers(each, specs, numbers) for each in deletes]
    no_fields = [not specs[each.spec_id].fields for each in deletes for _ in each.rows]
    return match_delete_files(
        Candidates(paths, np.concatenate([*seqs, []]).astype(np.int64), np.concatenate([*data_partition, []])),
        LiveDeletes(
            seq=delete_files["data_sequence_number"].to_pylist(),
            partition=[int(number) for part in delete_partition for number in part],
            referenced=delete_files["referenced_file"].to_pylist(),
            is_equality=[word == "equality" for word in delete_files["content"].to_pylist()],
            is_global=no_fields,
            may_hold=_may_hold(data, deletes, delete_files["equality_ids"].to_pylist(), schema),
        ),
    )


def _may_hold(
    data: Sequence[Picked], deletes: Sequence[Picked], ids: list[list[int] | None], schema: Schema
) -> list[Mask | None]:
    """For each delete file the data files that can hold a value which it names; `None`: it names none."""
    places = [(each, int(row)) for each in deletes for row in each.rows]
    return [
        may_hold(data, each, row, named, schema) if named else None
        for (each, row), named in zip(places, ids, strict=True)
    ]


def _partition_numbers(picked: Picked, specs: dict[int, PartitionSpec], numbers: dict[tuple[Any, ...], int]) -> Any:
    """Equal numbers for equal (spec, partition values); `numbers` is shared by data and delete files."""
    spec = specs[picked.spec_id]
    codes = np.zeros(len(picked.rows), np.int64)
    for field in spec.fields:
        column = picked.segment.partition(field.field_id)
        if column is not None:
            encoded = pc.dictionary_encode(column.take(pa.array(picked.rows)))
            width = len(encoded.dictionary) + 1
            codes = codes * width + pc.fill_null(encoded.indices, width - 1).to_numpy(zero_copy_only=False)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    tuples = partition_tuples(picked.segment, picked.rows[first], spec)
    return np.array([numbers.setdefault((picked.spec_id, *key), len(numbers)) for key in tuples])[inverse]


def _referenced(deletes: Sequence[Picked], delete_files: pa.Table) -> list[str | None]:
    """The one data file that each delete file names: by its own field, or by equal bounds of the path column."""
    named: list[str | None] = delete_files["referenced_file"].to_pylist()
    at = 0
    for segment, rows, *_ in deletes:
        bounds = [
            segment.column(f"{kind}{PATH_FIELD}").take(pa.array(rows)).to_pylist()
            if f"{kind}{PATH_FIELD}" in segment.names
            else [None] * len(rows)
            for kind in ("lo", "hi")
        ]
        for low, high in zip(*bounds, strict=True):
            if named[at] is None and low is not None and low == high:
                named[at] = low.decode()
            at += 1
    return named


def delete_table(picked: Sequence[Picked]) -> pa.Table:
    """The delete files of decoded manifests; one that names a single data file, in whatever way, says which."""
    tables = []
    for segment, rows, *_ in picked:
        taken = pa.array(rows)
        columns: dict[str, Any] = {"data_sequence_number": pa.array(segment.seq[rows])}
        for name in DELETE_FILES.names:
            kind = DELETE_FILES.field(name).type
            if name == "content":
                columns[name] = _content_words(segment, rows)
            elif name != "data_sequence_number":
                known = name in segment.names
                columns[name] = segment.column(name).take(taken).cast(kind) if known else pa.nulls(len(rows), kind)
        tables.append(pa.table(columns).select(DELETE_FILES.names).cast(DELETE_FILES))
    if not tables:
        return DELETE_FILES.empty_table()
    found = pa.concat_tables(tables)
    at = DELETE_FILES.get_field_index("referenced_file")
    return found.set_column(at, DELETE_FILES.field(at), pa.array(_referenced(picked, found), pa.large_string()))


def _content_words(segment: Segment, rows: Ints) -> pa.Array:
    content, formats = segment.numpy("content")[rows], segment.numpy("format")[rows]
    words = np.where(content == EQUALITY, "equality", np.where(formats == "PUFFIN", "deletion-vector", "position"))
    return pa.array(words, pa.string())
