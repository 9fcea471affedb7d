"""Row ids under canonical names: two worlds that differ in nothing but which numbers their rows have are one world.

After each commit the rows of a canonical table are numbered in its order, and every writer renames the ids that it has
written into files of its own. An id that no live row has any more is below zero: it still differs from all others of
that writer, and is less than what the table hands out next. A copy of a row that somebody changed since says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lakeproof.format import DataFile, RowLineage, TableState, inherited

OLDER = -1
"""The last change of a copy whose row was changed since; that of every row of a canonical table is 0."""


_FAR = 1 << 30
"""Farther below zero than any id that is there: an id of a row that has just gone, before it is numbered anew."""


class IdMoves(NamedTuple):
    """Old id → new id, and whether that row was changed; what is not handed out yet began at `first`, now at `next`."""

    live: tuple[tuple[int, int, bool], ...]
    first: int
    next: int

    @property
    def known(self) -> Mapping[int, tuple[int, bool]]:
        """The same by old id."""
        return {old: (new, changed) for old, new, changed in self.live}


def renumbered(table: TableState) -> TableState:
    """A canonical table with its rows numbered in order, if rows have ids."""
    if table.next_row_id is None:
        return table
    files, number = [], 0
    for file in table.data_files:
        files.append(file._replace(first_row_id=number, lineage=None))
        number += len(file.rows or ())
    return table._replace(data_files=tuple(files), next_row_id=number)


def id_moves(
    head: TableState, table: TableState, named: TableState, names: Mapping[str, tuple[str, tuple[int, ...]]]
) -> IdMoves | None:
    """How ids move when `table`, committed on `head`, goes on under canonical names; `None`: its rows have none."""
    if table.next_row_id is None or named.next_row_id is None:
        return None
    updated = {number: at for file in head.data_files for number, at in inherited(file)}
    after = {file.path: inherited(file) for file in named.data_files}
    live = []
    for file in table.data_files:
        new_name, places = names[file.path]
        for (number, at), place in zip(inherited(file), places, strict=True):
            if place >= 0 and number is not None:
                new = after[new_name][place][0]
                assert new is not None
                live.append((number, new, updated.get(number, at) != at))
    return IdMoves(tuple(sorted(live)), table.next_row_id, named.next_row_id)


def swapped_ids(moves: Iterable[tuple[str, str, tuple[int, ...]]]) -> IdMoves:
    """How ids move when the files of one canonical table change places."""
    listed = sorted(moves, key=lambda one: int(one[0]))
    firsts, total = {}, 0
    for _, new, places in sorted(listed, key=lambda one: int(one[1])):
        firsts[new] = total
        total += len(places)
    live, number = [], 0
    for _, new, places in listed:
        live += [(number + p, firsts[new] + place, False) for p, place in enumerate(places) if place >= 0]
        number += len(places)
    return IdMoves(tuple(live), total, total)


def with_moved_ids(files: tuple[DataFile, ...], ids: IdMoves) -> tuple[DataFile, ...]:
    """Files that nobody has seen yet, with the ids that they store under their new numbers."""
    known = ids.known

    def moved(row: RowLineage) -> RowLineage:
        number, updated = row
        if number is None:
            return row
        if number >= ids.first:
            return ids.next + number - ids.first, updated
        new, changed = known.get(number, (number if number < 0 else -_FAR - number, False))
        return new, OLDER if changed and updated is not None else updated

    return in_order_of_the_dead(_each(files, moved))


def in_order_of_the_dead(files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """The same files; ids of rows that are no more are -1, -2 … as they come."""
    dead: dict[int, int] = {}

    def numbered(row: RowLineage) -> RowLineage:
        number, updated = row
        return (dead.setdefault(number, -1 - len(dead)), updated) if number is not None and number < 0 else row

    return _each(files, numbered)


def _each(files: tuple[DataFile, ...], change: Callable[[RowLineage], RowLineage]) -> tuple[DataFile, ...]:
    return tuple(f if f.lineage is None else f._replace(lineage=tuple(map(change, f.lineage))) for f in files)
