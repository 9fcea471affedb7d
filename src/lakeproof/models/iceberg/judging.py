"""The judge: was this commit one that its isolation level allows? It knows the truth; no rule may ask it.

SERIALIZABLE  the rows after the commit are those of the command replayed on the rows before it.
SNAPSHOT      there is a snapshot s' from the scan to the head such that the commit did what the command means at s',
              and nobody after s' wrote a row that it writes, but for two deletes of one row.
COMPACTION    the rows after are the rows before.
ANY           no row twice, no command committed twice.

Each property stands here under its own name: `isolation_kept`, `consistent_read`, `sequential_sequence_numbers`,
`no_dangling_delete_files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation
from lakeproof.commit.meaning import RowCommand, effect
from lakeproof.commit.writing import Place, placed
from lakeproof.filters import ALWAYS
from lakeproof.format import (
    DeleteContent,
    Row,
    RowLineage,
    Rows,
    Snapshot,
    TableState,
    images,
    inherited,
    positions,
)
from lakeproof.models.iceberg.world import COMPACTION, DEAD, Op, Setup

NOTHING = RowCommand(Command.REWRITE)


class After(NamedTuple):
    """The rows after a commit: by identity, the new ones, and those whose identity was gone or comes twice."""

    by_identity: dict[Place, Row]
    added: Counter[Row]
    zombies: int
    twice: bool


def after(rows: Iterable[tuple[Place, Row]], new_files: dict[str, tuple[Place | None, ...]]) -> After:
    """Name each row after a commit by what it is a version of."""
    known: dict[Place, Row] = {}
    added: Counter[Row] = Counter()
    zombies, twice = 0, False
    for (file, position), row in rows:
        origins = new_files.get(file)
        identity = (file, position) if origins is None else origins[position]
        if identity is None:
            added[row] += 1
        elif identity == DEAD:
            zombies += 1
        else:
            twice = twice or identity in known
            known[identity] = row
    return After(known, added, zombies, twice)


class Judged(NamedTuple):
    """A commit before the judge: the command, the rows and heads around it, and its snapshot."""

    setup: Setup
    op: Op
    before: dict[Place, Row]
    result: After
    head: TableState
    table: TableState
    snapshot: Snapshot

    @property
    def command(self) -> RowCommand:
        """What the command means; a compaction means to change no row."""
        return NOTHING if self.op.command == COMPACTION else self.setup.commands[self.op.command]

    def did(self, rows: Rows) -> bool:
        """Whether the commit did exactly this: the command on these rows, and its own new rows."""
        if self.command.meaning is not None:
            done = _as_written(self.op, rows, self.before)
        else:
            done = _done(self.setup, self.command, rows, self.before)
        return done == self.result.by_identity and _new_rows(self.op) == self.result.added


def isolation_kept(commit: Judged) -> bool:
    """The commit is justified at its isolation level, no row is there twice, and its command committed only once."""
    op, result = commit.op, commit.result
    if op.request.landed or result.twice or result.zombies:
        return False
    if _is_serial(commit):
        return True
    if op.command == COMPACTION or op.change.isolation is not Isolation.SNAPSHOT:
        return False
    mine = () if op.ghost.mine is None else (op.ghost.mine,)
    return any(commit.did(rows) for rows in (*mine, *op.ghost.others))


def consistent_read(commit: Judged) -> bool:
    """Where nothing justifies the commit: the rows after it are at least what the command meant at its scan.

    A lean ghost does not know that any more, and says no.
    """
    wrong = commit.op.request.landed or commit.result.twice or commit.result.zombies
    return not wrong and not commit.setup.lean and commit.did(_meant(commit.op))


def sequential_sequence_numbers(commit: Judged) -> bool:
    """The snapshot's sequence number is its parent's and one."""
    return commit.table.sequence_number == commit.head.sequence_number + 1


def no_dangling_delete_files(commit: Judged) -> bool:
    """No delete that the commit adds names a data file that is not in its snapshot (literally: no delete at all)."""
    live = {file.path for file in commit.table.data_files}
    files = commit.table.delete_files if commit.setup.literal_dangling else commit.snapshot.added_delete_files
    named = (file.positions or () for file in files if file.content is not DeleteContent.EQUALITY)
    return all(path in live for rows in named for path, _ in rows)


# ---------------------------------------------------------------- row ids (format v3)


def row_ids_are_unique(commit: Judged) -> bool:
    """No two live rows have one id."""
    ids = [number for _, number, _ in _row_ids(commit)]
    return len(ids) == len({*ids})


def row_ids_are_kept(commit: Judged) -> bool:
    """A row that lives on, moved or changed, has the id that it had."""
    had = _lineage(commit.head)
    return all(origin not in had or number == had[origin][0] for origin, number, _ in _row_ids(commit))


def row_ids_are_never_reused(commit: Judged) -> bool:
    """A new row has an id that nobody had before; all ids are below what the table hands out next, which only grows."""
    first, after = commit.head.next_row_id or 0, commit.table.next_row_id or 0
    found = _row_ids(commit)
    fresh = all(number >= first for origin, number, _ in found if origin is None)
    return fresh and first <= after and all(number < after for _, number, _ in found)


def last_changes_are_told(commit: Judged) -> bool:
    """A row whose values changed says that it was changed now; a compaction's rows say what they said before."""
    had, rows = _lineage(commit.head), commit.result.by_identity
    for origin, _, updated in _row_ids(commit):
        if origin is not None and origin in had:
            same = had[origin][1] == updated
            if same and rows[origin] != commit.before.get(origin):
                return False
            if not same and commit.op.change.command is Command.REWRITE:
                return False
    return True


def _lineage(table: TableState) -> dict[Place | None, RowLineage]:
    """The id and the last change of each row that has them: all but those of a table that was just upgraded."""
    numbered = (file for file in table.data_files if file.first_row_id is not None)
    return {(file.path, p): pair for file in numbered for p, pair in enumerate(inherited(file))}


def _row_ids(commit: Judged) -> list[tuple[Place | None, int, int | None]]:
    """Of each row after the commit: what it is a version of (`None`: a new row), its id, and its last change."""
    now = _lineage(commit.table)
    files = zip(commit.snapshot.added_data_files, commit.op.ghost.origins, strict=True)
    new = {(file.path, p): origin for file, origins in files for p, origin in enumerate(origins)}
    live = [place for place, _ in placed(commit.table, commit.setup.shape.columns)]
    return [(new.get(place, place), now[place][0] or 0, now[place][1]) for place in live]


def violations(commit: Judged) -> tuple[str, ...]:
    """The properties that this commit violates; older snapshots never change, so nothing else need be asked."""
    found = []
    if not isolation_kept(commit):
        found = ["isolation_kept"] if consistent_read(commit) else ["consistent_read", "isolation_kept"]
    structure = (sequential_sequence_numbers, no_dangling_delete_files)
    lineage = ROW_IDS if commit.head.next_row_id is not None else ()
    return (*found, *(test.__name__ for test in (*structure, *lineage) if not test(commit)))


ROW_IDS = (row_ids_are_unique, row_ids_are_kept, row_ids_are_never_reused, last_changes_are_told)
"""What is asked of a commit where rows have ids."""


def _is_serial(commit: Judged) -> bool:
    """Whether the rows after are those of the command replayed on the rows before."""
    places = list(commit.before)
    done = effect(commit.command, list(commit.before.values()), commit.setup.shape.columns)
    expected = dict(commit.before)
    for index, row in done.changed:
        if row is None:
            del expected[places[index]]
        else:
            expected[places[index]] = row
    return expected == commit.result.by_identity and Counter(done.added) == commit.result.added


def misses_a_write(setup: Setup, op: Op, before: dict[Place, Row]) -> bool:
    """Whether the command, run now, would write a row that the change does not: also one that has its value already.

    `UPDATE … SET color = 'blue'` writes a row that is blue (format v3 stamps it), though no reader can tell.
    """
    if op.change.isolation is not Isolation.SERIALIZABLE or op.change.command not in (Command.UPDATE, Command.MERGE):
        return False
    places = list(before)
    written = {(file, p) for file, bits in op.as_is for p in positions(bits)}
    now = effect(setup.commands[op.command], list(before.values()), setup.shape.columns).changed
    return any(places[index] not in written for index, _ in now)


def _meant(op: Op) -> Rows:
    """What the change meant at its scan: the rows it removes or rewrites, by where they are now."""
    if op.change.command in ONLY_REMOVES:
        return op.ghost.removes
    found: dict[str, int] = {}
    for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True):
        copied = images(op.change.mapping or (), file.path)  # rows that copy-on-write keeps as they are
        for position, origin in enumerate(origins):
            if origin is not None and origin != DEAD and not copied >> position & 1:
                found[origin[0]] = found.get(origin[0], 0) | 1 << origin[1]
    return tuple(sorted(found.items()))


def expected(setup: Setup, op: Op, before: dict[Place, Row]) -> tuple[Row, ...]:
    """The rows that a reader should see after a commit that nothing justifies: what the command meant at its scan."""
    command = NOTHING if op.command == COMPACTION else setup.commands[op.command]
    if command.meaning is not None:
        rows = _as_written(op, _meant(op), before)
    else:
        rows = _done(setup, command, _meant(op), before)
    added = _new_rows(op) if op.command != COMPACTION else Counter[Row]()
    return tuple(sorted((*rows.values(), *added.elements()), key=repr))


def _as_written(op: Op, rows: Rows, before: dict[Place, Row]) -> dict[Place, Row]:
    """The rows after exactly these got the versions that the change wrote for them, or went."""
    versions = {
        origin: row
        for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True)
        for row, origin in zip(file.rows or (), origins, strict=True)
        if origin is not None
    }
    done = dict(before)
    for file, bits in rows:
        for p in positions(bits):
            if (file, p) in versions and op.change.command not in ONLY_REMOVES:
                done[file, p] = versions[file, p]
            else:
                done.pop((file, p), None)
    return done


def _done(setup: Setup, command: RowCommand, rows: Rows, before: dict[Place, Row]) -> dict[Place, Row]:
    """The rows after the command was done to exactly these, whatever they hold by now."""
    done = dict(before)
    if command is NOTHING:
        return done
    alone = command._replace(exists=(), where=ALWAYS)
    for file, bits in rows:
        for p in positions(bits):
            old = done.get((file, p))
            if old is None:
                continue
            changed = effect(alone, [old], setup.shape.columns).changed
            new = changed[0][1] if changed else None if command.command in ONLY_REMOVES else old
            if new is None:
                del done[file, p]
            else:
                done[file, p] = new
    return done


def _new_rows(op: Op) -> Counter[Row]:
    added: Counter[Row] = Counter()
    for file, origins in zip(op.change.added_data_files, op.ghost.origins, strict=True):
        for row, origin in zip(file.rows or (), origins, strict=True):
            if origin is None:
                added[row] += 1
    return added
