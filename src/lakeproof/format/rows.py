"""Sets of rows inside one file: an `int` whose bit p says that the row at position p belongs to the set.

An int is exact, hashable and fast at every size: a model's file of three rows and a real file of ten million use the
same code. `a & b` intersects, `a | b` unites, `a & ~b` takes away, `a.bit_count()` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

RowSet = int
"""Bit p is set when the row at position p belongs to the set."""

Rows = tuple[tuple[str, RowSet], ...]
"""Rows of several files: (file, row set) pairs, sorted by file, none of them empty."""

_WORD = 64


def row_set(positions: Iterable[int]) -> RowSet:
    """The set of these positions.

    >>> row_set([0, 2])
    5
    """
    listed = positions if isinstance(positions, np.ndarray) else list(positions)
    if len(listed) < _WORD:
        rows = 0
        for position in listed:
            rows |= 1 << int(position)
        return rows
    wide = np.asarray(listed, dtype=np.int64)
    bits = np.zeros(int(wide.max()) + 1, dtype=np.uint8)
    bits[wide] = 1
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def all_rows(count: int) -> RowSet:
    """The set of the first `count` positions."""
    return (1 << count) - 1


def positions(rows: RowSet) -> Iterator[int]:
    """The positions of a set, ascending.

    >>> list(positions(5))
    [0, 2]
    """
    if rows.bit_length() > _WORD:
        yield from position_array(rows).tolist()
        return
    while rows:
        low = rows & -rows
        yield low.bit_length() - 1
        rows ^= low


def position_array(rows: RowSet) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The positions of a set as an ascending array."""
    raw = np.frombuffer(rows.to_bytes((rows.bit_length() + 7) // 8 or 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def rows_of(pairs: Iterable[tuple[str, RowSet]]) -> Rows:
    """Pairs in canonical form: one entry per file, sorted, empty ones left out."""
    merged: dict[str, RowSet] = {}
    for file, rows in pairs:
        if rows:
            merged[file] = merged.get(file, 0) | rows
    return tuple(sorted(merged.items()))


class Move(NamedTuple):
    """The i-th row of `rows` in the old file is the row at `start + i` of the new file."""

    old_file: str
    rows: RowSet
    new_file: str
    start: int


RowMapping = tuple[Move, ...]
"""Where a rewrite put the rows that it kept. A row of a replaced file that no move names was not kept."""


def moved(mapping: RowMapping, file: str, rows: RowSet) -> tuple[list[tuple[str, RowSet]], RowSet]:
    """The new places of these rows, and those among them that were not kept."""
    places = []
    for move in mapping:
        if move.old_file == file:
            kept = rows & move.rows
            if kept:
                places.append((move.new_file, extract(kept, move.rows) << move.start))
                rows ^= kept
    return places, rows


def images(mapping: RowMapping, new_file: str) -> RowSet:
    """The rows of a new file that a rewrite kept from an old one."""
    rows = 0
    for move in mapping:
        if move.new_file == new_file:
            rows |= all_rows(move.rows.bit_count()) << move.start
    return rows


def extract(rows: RowSet, mask: RowSet) -> RowSet:
    """The bits of `rows` at the set bits of `mask`, packed together.

    >>> extract(0b1000, 0b1010)
    2
    """
    if mask & (mask + 1) == 0:  # the mask has no holes: every position stays as it is
        return rows & mask
    if mask.bit_length() > _WORD:
        size = (mask.bit_length() + 7) // 8
        picked = _bits(rows & mask, size)[_bits(mask, size)]
        return int.from_bytes(np.packbits(picked, bitorder="little").tobytes(), "little")
    packed = index = 0
    while mask:
        low = mask & -mask
        if rows & low:
            packed |= 1 << index
        index += 1
        mask ^= low
    return packed


def _bits(rows: RowSet, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    raw = np.frombuffer(rows.to_bytes(size, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little").astype(np.bool_)
