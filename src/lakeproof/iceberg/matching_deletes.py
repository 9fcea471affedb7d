"""Which delete files apply to which data files, by the rules of the specification.

Position deletes and deletion vectors: same partition, not older than the data file, and if they name one data file
(field 143, or equal bounds of the path column) that one. Equality deletes: same partition (or a spec without fields:
every partition), and newer than the data file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

PATH_FIELD = 2147483546


class Candidates(NamedTuple):
    """Live files of one content: parallel arrays; `partition` numbers (spec, partition values) alike for both sides."""

    path: list[str]
    seq: np.ndarray[Any, np.dtype[np.int64]]
    partition: np.ndarray[Any, np.dtype[np.int64]]


class Deletes(NamedTuple):
    """Live delete files: as `Candidates`, with whom they name (`None`: any), and whether they are global."""

    seq: list[int]
    partition: list[int]
    referenced: list[str | None]
    is_equality: list[bool]
    is_global: list[bool]


def match_delete_files(data: Candidates, deletes: Deletes) -> pa.Array:
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
