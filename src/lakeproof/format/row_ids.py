"""Row ids of format v3: what a data file says of its rows, and where a rewrite put rows that kept their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lakeproof.format.files import DataFile, RowLineage
from lakeproof.format.rows import Move, RowMapping, row_set

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class FileRowIds(NamedTuple):
    """Rows of a data file: their positions, ascending, their row ids, and the numbers of their last changes."""

    path: str
    positions: Numbers
    ids: Numbers
    last_updated: Numbers


def inherited(file: DataFile) -> tuple[RowLineage, ...]:
    """The row id and last change of every row of a file whose rows are known: as stored, else by place and age."""
    count = len(file.rows or ())
    known = file.lineage or ((None, None),) * count
    first = file.first_row_id
    return tuple(
        (
            number if number is not None else None if first is None else first + position,
            updated if updated is not None else None if first is None else file.sequence_number,
        )
        for position, (number, updated) in enumerate(known)
    )


def row_ids_of(file: DataFile) -> FileRowIds | None:
    """The row ids of a file whose rows are known; `None`: it has none yet."""
    found = [pair for pair in inherited(file) if None not in pair]
    if file.first_row_id is None or len(found) < len(file.rows or ()):
        return None
    ids, updated = (np.array([pair[i] for pair in found], dtype=np.int64) for i in (0, 1))
    return FileRowIds(file.path, np.arange(len(found), dtype=np.int64), ids, updated)


MOST_BYTES = 64 << 20
"""What a mapping may take in memory: a move of its own for every row of a large file that was sorted takes too much."""


def moves_by_row_ids(old: Sequence[FileRowIds], new: Sequence[FileRowIds]) -> RowMapping | None:
    """Where rows of removed files went: an equal id with an equal last change is the same row, moved.

    An equal id with another number was changed, and an id that comes twice among the new rows says nothing: neither
    is in the mapping, so whoever looks for such a row reads it again. `None`: the mapping would be too large.
    """
    if not sum(len(file.ids) for file in new):
        return ()
    ids, updated = (np.concatenate([file[i] for file in new]) for i in (2, 3))
    places = np.concatenate([file.positions for file in new])
    files = np.repeat(np.arange(len(new)), [len(file.ids) for file in new])
    order = np.argsort(ids, kind="stable")
    ids, updated, places, files = ids[order], updated[order], places[order], files[order]
    moves: list[Move] = []
    for file in old:
        at = np.searchsorted(ids, file.ids)
        once = np.searchsorted(ids, file.ids, side="right") - at == 1
        at = np.minimum(at, len(ids) - 1)
        same = once & (ids[at] == file.ids) & (updated[at] == file.last_updated)
        found = _runs(file.path, file.positions[same], [each.path for each in new], files[at[same]], places[at[same]])
        if found is None:
            return None
        moves += found
    return tuple(moves)


def _runs(path: str, rows: Numbers, names: Sequence[str], files: Numbers, places: Numbers) -> list[Move] | None:
    """Moves of rows that stay side by side; `None`: too many."""
    if not len(rows):
        return []
    ends = np.flatnonzero((np.diff(files) != 0) | (np.diff(places) != 1)) + 1
    if (len(ends) + 1) * int(rows[-1]) // 8 > MOST_BYTES:
        return None
    starts = [0, *ends.tolist()]
    parts = zip(starts, [*starts[1:], len(rows)], strict=True)
    return [Move(path, row_set(rows[a:b]), names[files[a]], int(places[a])) for a, b in parts]
