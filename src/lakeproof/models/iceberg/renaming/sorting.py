"""Files that nobody has seen yet, in one order: a writer that wrote the same rows in another order is the same writer.

Done only where values are renamed: the order in which rows are written follows the names of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lakeproof.commit.change import TableChange
from lakeproof.commit.writing import Origins, Place, new_file
from lakeproof.format import Move, Row, RowLineage, RowMapping, Rows, TableShape, positions, rows_of
from lakeproof.models.iceberg.renaming.row_ids import in_order_of_the_dead
from lakeproof.models.iceberg.world import Conflicted, Op, Own


class SortedChange(NamedTuple):
    """A change with its new files and their rows in order, and where each row was before."""

    change: TableChange
    orders: tuple[tuple[int, tuple[int, ...]], ...]  # per new file: which it was, and the old position of each row
    places: dict[Place, Place]  # old place → new place, in the change's own files

    def of(self, op: Op) -> Op:
        """The command whose change this is, with all that it knows of its own files."""
        ghost, window = op.ghost._replace(origins=self.origins(op.ghost.origins)), op.window
        if window.rows and window.rows.carried:
            window = window._replace(rows=window.rows._replace(carried=self.rows(window.rows.carried)))
        return op._replace(change=self.change, ghost=ghost, window=window)

    def origins(self, origins: Origins) -> Origins:
        """The same origins in the new order."""
        return tuple(tuple(origins[file][p] for p in order) for file, order in self.orders)

    def rows(self, rows: Rows) -> Rows:
        """Rows of the change's own files at their new places."""
        moved = (self.places[file, p] for file, bits in rows for p in positions(bits))
        return rows_of((file, 1 << p) for file, p in moved)


class SortedFiles:
    """The form in which a writer is renamed; changes are few and writers many, so each change is sorted once."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self.known: dict[TableChange, SortedChange] = {}

    def __call__(self, own: Own) -> Own:
        """The writer with its new files sorted; which file a compaction began with, nobody asks any more."""
        if not isinstance(own, Op | Conflicted):
            return own
        if own.group.startswith("file "):
            own = own._replace(group="file ")
        if isinstance(own, Conflicted):
            return own
        found = self.known.get(own.change)
        if found is None:
            rows = [file.rows or () for file in own.change.added_data_files]
            found = self.known[own.change] = sorted_change(own.change, rows, self.shape)
        return own if found.change == own.change else found.of(own)


def sorted_change(change: TableChange, rows: Sequence[Sequence[Row]], shape: TableShape) -> SortedChange:
    """The change with these rows in its new files, sorted."""
    ordered = []
    for file, each in enumerate(rows):
        order = tuple(sorted(range(len(each)), key=[repr(row) for row in each].__getitem__))
        ordered.append((file, order, [each[p] for p in order]))
    ordered.sort(key=lambda one: repr(one[2]))
    files = tuple(
        new_file(number, each, shape)._replace(lineage=_permuted(change.added_data_files[file].lineage, order))
        for number, (file, order, each) in enumerate(ordered)
    )
    files = in_order_of_the_dead(files)
    places = {
        (change.added_data_files[old].path, p): (new.path, i)
        for new, (old, order, _) in zip(files, ordered, strict=True)
        for i, p in enumerate(order)
    }
    mapping = change.mapping and _moved(change.mapping, places)
    changed = change._replace(added_data_files=files, mapping=mapping)
    return SortedChange(changed, tuple((file, order) for file, order, _ in ordered), places)


def _permuted(lineage: tuple[RowLineage, ...] | None, order: tuple[int, ...]) -> tuple[RowLineage, ...] | None:
    return None if lineage is None else tuple(lineage[p] for p in order)


def _moved(mapping: RowMapping, places: dict[Place, Place]) -> RowMapping:
    """A mapping of single rows into sorted files."""
    return tuple(sorted(Move(one.old_file, one.rows, *places[one.new_file, one.start]) for one in mapping))
