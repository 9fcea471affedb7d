"""Names in a world are canonical: two tables that differ only in names, dead rows or file order are one table.

After each commit live rows are packed and sorted inside their file, files are sorted by content and numbered, and all
deleted rows of a file become one, with one delete of it. Every memory is renamed the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakeproof.commit.rows import NOWHERE, RowMemory
from lakeproof.commit.window import CommitWindow
from lakeproof.commit.writing import Place
from lakeproof.format import (
    DataFile,
    DeleteContent,
    DeleteFile,
    Move,
    RowMapping,
    Rows,
    RowSet,
    TableState,
    live_rows,
    positions,
)
from lakeproof.models.iceberg.renaming.row_ids import IdMoves, renumbered, with_moved_ids
from lakeproof.models.iceberg.world import DEAD, Ghost, Op, Setup

Names = Mapping[str, tuple[str, tuple[int, ...]]]
"""Old file → new file and the new position of each old one (-1: the row is dead)."""


FORGOTTEN = "a file without a live row"
"""Where an endless run keeps what is left of data files without a live row: not in the table, and nobody removes it."""

GHOST_ROW = "a deleted row"
"""The values of the one row that stands for all deleted rows of a file: if its delete is dropped, readers see it."""


def canonical(table: TableState, setup: Setup) -> tuple[TableState, Names]:
    """The table under canonical names, and how the old names became the new ones."""
    packed = []
    names: dict[str, tuple[str, tuple[int, ...]]] = {}
    dirty = _with_deletes(table)
    for file, bits in live_rows(table, setup.shape.columns):
        if not bits and setup.endless:
            names[file.path] = (FORGOTTEN, (-1,) * len(file.rows or ()))
            continue
        rows = file.rows or ()
        order = sorted(positions(bits), key=[repr(row) for row in rows].__getitem__)
        bounds = file.bounds if setup.keeps_bounds else ()
        key = (tuple(rows[p] for p in order), file.path in dirty, file.partition, bounds)
        packed.append((repr(key), key, file, order))
    packed.sort(key=lambda one: one[0])
    files, deletes = [], []
    for number, (_, (rows, has_deletes, partition, bounds), file, order) in enumerate(packed):
        name = str(number)
        place = [-1] * len(file.rows or ())
        for new, old in enumerate(order):
            place[old] = new
        names[file.path] = (name, tuple(place))
        if has_deletes:
            of = ((name, 1 << len(rows)),)
            content = DeleteContent.VECTOR if setup.shape.format_version >= 3 else DeleteContent.POSITIONS
            deletes.append(DeleteFile(f"d{name}", content, partition, file.spec_id, positions=of))
            rows = (*rows, (GHOST_ROW,) * len(setup.shape.columns))
        files.append(DataFile(name, partition, file.spec_id, 0, 0, bounds, rows))
    found = TableState(0, 0, tuple(files), tuple(deletes), table.next_row_id)
    return (found if table.lacks_row_ids else renumbered(found)), names


def _with_deletes(table: TableState) -> set[str]:
    """The data files that some delete file names positions of."""
    files = (file for file in table.delete_files if file.content is not DeleteContent.EQUALITY)
    return {path for file in files for path, _ in file.positions or ()}


def by_age(kind: str, number: int, index: int) -> str:
    """The name of a file by the commit that brought it: data-2, data-2a, data-2b … No two files share one.

    >>> by_age("data", 2, 1)
    'data-2a'
    """
    return f"{kind}-{number}" + ("" if index == 0 else chr(ord("a") + index - 1))


def named_by_age(table: TableState, number: int) -> tuple[TableState, Names]:
    """The table with names for its new files, so that a trace can be told: data-1, data-2, delete-2 …"""
    fresh = {
        file.path: by_age("data", number, i)
        for i, file in enumerate(f for f in table.data_files if f.path.startswith("+"))
    }
    files = tuple(file._replace(path=fresh.get(file.path, file.path)) for file in table.data_files)
    deletes: list[DeleteFile] = []
    new = 0
    for delete in table.delete_files:
        path = delete.path
        if path.startswith(("+", f"delete-{number}-")):
            path = by_age("delete", number, new)
            new += 1
        pairs = delete.positions and tuple((fresh.get(name, name), bits) for name, bits in delete.positions)
        deletes.append(delete._replace(path=path, positions=pairs))
    names = {
        file.path: (fresh.get(file.path, file.path), tuple(range(len(file.rows or ())))) for file in table.data_files
    }
    return table._replace(data_files=files, delete_files=tuple(deletes)), names


def renamed_bits(bits: RowSet, place: tuple[int, ...]) -> RowSet:
    """A row set after the rows of its file moved."""
    out = 0
    while bits:
        low = bits & -bits
        bits ^= low
        new = place[low.bit_length() - 1]
        if new >= 0:
            out |= 1 << new
    return out


def renamed_rows(rows: Rows, names: Names) -> Rows:
    """Rows under new names; those of files that are gone are dropped."""
    if not rows:
        return rows
    out = []
    for file, bits in rows:
        if file == NOWHERE:
            out.append((file, bits))
            continue
        new = names.get(file)
        if new is not None:
            moved = renamed_bits(bits, new[1])
            if moved:
                out.append((new[0], moved))
    out.sort()
    return tuple(out)


def renamed_memory(memory: RowMemory, names: Names) -> RowMemory:
    """What a writer remembers of rows, under new names."""
    return RowMemory(
        renamed_rows(memory.targets, names),
        memory.carried,  # places in files of its own
        renamed_rows(memory.reads, names),
        memory.reads_changed,
        memory.restarted,
        renamed_rows(memory.unseen, names),
        None if memory.missed is None else frozenset(renamed_rows(rows, names) for rows in memory.missed),
    )


REPLACED = "a file that was replaced"
"""Where a delete points whose data file somebody replaced: the rows live on in another file."""


def renamed_op(
    op: Op, window: CommitWindow, ghost: Ghost, names: Names, *, replaced: bool, ids: IdMoves | None = None
) -> Op:
    """A command under way, under new names. Inputs that are gone are forgotten: what they gave, the window knows.

    `replaced`: files that are gone now were replaced by others. A delete of a file that was only dropped is void.
    """
    change = op.change
    if ids is not None and any(file.lineage is not None for file in change.added_data_files):
        change = change._replace(added_data_files=with_moved_ids(change.added_data_files, ids))
    if change.removed_data_files or change.required_data_files or change.kept or change.added_delete_files:
        removed = {f._replace(path=names[f.path][0]) for f in change.removed_data_files if f.path in names}
        mapping = change.mapping and tuple(sorted(_renamed_moves(change.mapping, names)))
        change = change._replace(
            removed_data_files=tuple(sorted(removed)),
            required_data_files=tuple(sorted({names[path][0] for path in change.required_data_files if path in names})),
            kept=renamed_rows(change.kept, names),
            mapping=mapping,
            added_delete_files=tuple(
                file._replace(positions=file.positions and _renamed_targets(file.positions, names, replaced=replaced))
                for file in change.added_delete_files
            ),
        )
    rows = window.rows and renamed_memory(window.rows, names)
    return op._replace(
        change=change, window=window._replace(rows=rows, gone=()), ghost=ghost, as_is=renamed_rows(op.as_is, names)
    )


def _renamed_targets(rows: Rows, names: Names, *, replaced: bool) -> Rows:
    dangles = any(file == REPLACED or (replaced and file not in names) for file, _ in rows)
    return (*renamed_rows(rows, names), *(((REPLACED, 1),) if dangles else ()))


def single_rows(mapping: RowMapping) -> RowMapping:
    """The same mapping with a move for every row, so that rows can be dropped and reordered one by one."""
    return tuple(
        Move(move.old_file, 1 << p, move.new_file, move.start + i)
        for move in mapping
        for i, p in enumerate(positions(move.rows))
    )


def _renamed_moves(mapping: RowMapping, names: Names) -> Iterator[Move]:
    """The moves under new names. Of a file that is gone they still say which of my rows are copies."""
    for move in mapping:
        new = names.get(move.old_file)
        if new is None:
            yield move._replace(old_file=REPLACED, rows=1)
        elif rows := renamed_bits(move.rows, new[1]):
            yield Move(new[0], rows, move.new_file, move.start)


def followed_ghost(ghost: Ghost, truth: Mapping[Place, tuple[Place | None, bool]], *, only_removes: bool) -> Ghost:
    """The ghost after a commit of somebody else: it follows identities, whatever the rules believe."""
    origins = tuple(
        tuple(place if place is None or place == DEAD else truth[place][0] or DEAD for place in file)
        for file in ghost.origins
    )
    return Ghost(
        origins,
        None if ghost.mine is None else _still_mine(ghost.mine, truth, only_removes=only_removes),
        _still_there(ghost.hits, truth, if_written=False),
        frozenset(
            kept
            for candidate in ghost.others
            if (kept := _still_mine(candidate, truth, only_removes=only_removes)) is not None
        ),
        _still_there(ghost.removes, truth, if_written=True),
    )


def _still_mine(rows: Rows, truth: Mapping[Place, tuple[Place | None, bool]], *, only_removes: bool) -> Rows | None:
    """The same rows at their new places, or `None` when somebody else wrote one: first committer wins."""
    found: dict[str, RowSet] = {}
    for file, bits in rows:
        for p in positions(bits):
            new, wrote = truth[file, p]
            if wrote or (new is None and not only_removes):
                return None
            if new is not None:
                found[new[0]] = found.get(new[0], 0) | 1 << new[1]
    return tuple(sorted(found.items()))


def _still_there(rows: Rows, truth: Mapping[Place, tuple[Place | None, bool]], *, if_written: bool) -> Rows:
    """Those of the rows that live on, at their new places; those that somebody else wrote only `if_written`."""
    found: dict[str, RowSet] = {}
    for file, bits in rows:
        for p in positions(bits):
            new, wrote = truth[file, p]
            if new is not None and (if_written or not wrote):
                found[new[0]] = found.get(new[0], 0) | 1 << new[1]
    return tuple(sorted(found.items()))
