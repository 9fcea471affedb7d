"""Everybody but the watched writer, as one process: it does to the head whatever one commit can, again and again.

It asks no check at all, so it stands for any number of writers of any engine, with any policy, for ever. A commit is
judged by the rows before it, its scan and what others did between, so watching one writer watches each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from lakeproof.checker.model import Outcome
from lakeproof.commit.change import Command, Mode, TableChange
from lakeproof.commit.policy import ICEBERG_SPARK, LAKEPROOF, Policy
from lakeproof.commit.snapshots import new_snapshot
from lakeproof.commit.validation import CommitWith
from lakeproof.commit.writing import Place, Written, placed, rewritten, with_new_rows
from lakeproof.format import DataFile, DeleteContent, DeleteFile, Row, TableState
from lakeproof.models.iceberg.committing import fits, landed, logged_by
from lakeproof.models.iceberg.world import Event, Logged, Own, Setup, Shared

OTHERS = "others"
MERGE_ON_READ, COPY_ON_WRITE, COMPACTION = "merge-on-read", "copy-on-write", "compaction"
UNMAPPED_COPY, UNMAPPED_COMPACTION = "unmapped-copy-on-write", "unmapped-compaction"
OVERWRITE, UNREADABLE, EXPIRY = "overwrite", "unreadable-deletes", "expiry"
EQUALITY = "equality-deletes"
USUAL = (MERGE_ON_READ, COPY_ON_WRITE, UNMAPPED_COPY, COMPACTION, UNMAPPED_COMPACTION)
WAYS = (*USUAL, OVERWRITE, UNREADABLE, EQUALITY, EXPIRY)
"""How somebody else commits. Unmapped: nobody records where the rows went that were kept."""


class Foreign(NamedTuple):
    """A commit of somebody else: how, what it does in words, the change, and the ids that it brings."""

    way: str
    says: str
    written: Written
    brings: frozenset[object] = frozenset()


class ForeignOutcome(NamedTuple):
    """What a commit leads to: the new head, what others observe, how it is told, and the ids that it brings."""

    table: TableState
    event: Event
    label: str
    way: str
    brings: frozenset[object]
    logged: Logged | None  # only in a run that is told


class Others:
    """Anybody else commits, whatever the table is."""

    def __init__(self, setup: Setup) -> None:
        assert setup.anybody is not None
        self.setup, self.rows, self.ways = setup, setup.anybody.rows, setup.anybody.ways
        self.known: dict[TableState, list[ForeignOutcome]] = {}

    def __call__(self, shared: Shared, own: Own) -> Iterator[Outcome]:
        """Anybody else commits."""
        if shared.violated:
            return
        for found in self.of(shared.table):
            if not found.brings.intersection(shared.pending):
                after = shared._replace(table=found.table)
                if found.logged is not None:
                    after = after._replace(log=(*shared.log, found.logged))
                yield Outcome(after, own, found.event, found.label, (f"somebody else: {found.way}",))
        if EXPIRY in self.ways and shared.table.data_files:
            yield Outcome(shared, own, Event(None), "expire snapshots", (f"somebody else: {EXPIRY}",))

    def of(self, table: TableState) -> list[ForeignOutcome]:
        """Every commit on this head, each result once: computed once a table, whoever is under way."""
        if table not in self.known:
            results: dict[object, ForeignOutcome] = {}
            for foreign in self.commits(table):
                found = self.landed(table, foreign)
                if not fits(self.setup, found.table):
                    continue
                results.setdefault(found.label if self.setup.told else (found.table, found.event), found)
            self.known[table] = list(results.values())
        return self.known[table]

    def landed(self, head: TableState, foreign: Foreign) -> ForeignOutcome:
        """The head after a commit that nobody validated."""
        change, origins = foreign.written
        positions = () if change.rewrites else change.targets
        answer = CommitWith(positions, (), tuple(file.path for file in change.removed_data_files))
        number = 1 if self.setup.canonical else head.sequence_number + 1
        table, snapshot = new_snapshot(head, change, answer, _policy(foreign.way), self.setup.shape, number)
        if foreign.way == UNREADABLE:
            hidden = tuple(file._replace(positions=None) for file in snapshot.added_delete_files)
            snapshot = snapshot._replace(added_delete_files=hidden)
        new = landed(self.setup, head, table, snapshot, origins)
        label = f"{foreign.says} ({foreign.way})"
        log = logged_by(OTHERS, label, self.setup, snapshot, new) if self.setup.told else None
        return ForeignOutcome(new.table, new.event, label, foreign.way, foreign.brings, log)

    def commits(self, table: TableState) -> Iterator[Foreign]:
        """What one commit can do to these rows, in each way."""
        live = placed(table, self.setup.shape.columns)
        for new, added in self.row_changes(live):
            yield from self.written(table, live, new, added)
        for files in _subsets(table.data_files):
            names = [file.path for file in files]
            if any(place[0] in names for place, _ in live):
                says = "compact " + " and ".join(_content(file, live) for file in files)
                for way in (COMPACTION, UNMAPPED_COMPACTION):
                    if way in self.ways:
                        yield Foreign(way, says, rewritten(table, names, self.setup.shape, ""))
            if OVERWRITE in self.ways:
                yield from self.overwrites(table, live, files)

    def row_changes(self, live: list[tuple[Place, Row]]) -> Iterator[tuple[dict[Place, Row | None], tuple[Row, ...]]]:
        """For each row: keep it, delete it or give it any other value of its id; and at most one new row."""
        there = {row[0] for _, row in live}
        inserts: list[tuple[Row, ...]] = [(), *((row,) for row in self.rows if row[0] not in there)]
        fates = [(row, None, *(other for other in self.rows if other[0] == row[0] and other != row)) for _, row in live]
        for chosen in product(*fates):
            new = {place: fate for (place, row), fate in zip(live, chosen, strict=True) if fate != row}
            yield from ((new, added) for added in inserts if new or added)

    def written(
        self, table: TableState, live: list[tuple[Place, Row]], new: dict[Place, Row | None], added: tuple[Row, ...]
    ) -> Iterator[Foreign]:
        """The same rows changed in every way."""
        says = _changes(dict(live), new, added)
        brings = frozenset(row[0] for row in added)
        for way in self.ways:
            mode = Mode.MERGE_ON_READ if way in (MERGE_ON_READ, UNREADABLE) else Mode.COPY_ON_WRITE
            if way in (MERGE_ON_READ, UNREADABLE, COPY_ON_WRITE, UNMAPPED_COPY) and (new or way == MERGE_ON_READ):
                base = TableChange(_command(new), mode)
                yield Foreign(way, says, with_new_rows(base, table, new, added, self.setup.shape), brings)
        if EQUALITY in self.ways and new:
            base = TableChange(_command(new), Mode.MERGE_ON_READ)
            yield Foreign(EQUALITY, says, self.by_value(base, table, dict(live), new, added), brings)

    def by_value(
        self,
        base: TableChange,
        table: TableState,
        old: dict[Place, Row],
        new: dict[Place, Row | None],
        added: tuple[Row, ...],
    ) -> Written:
        """The rows changed as a streaming engine does it: their ids are deleted by value, new versions are added."""
        change, origins = with_new_rows(base, table, new, added, self.setup.shape)
        ids = tuple(dict.fromkeys((old[place][0],) for place in new))
        key = self.setup.shape.columns[0]
        delete = DeleteFile("+e", DeleteContent.EQUALITY, equality_columns=(key,), equality_values=ids)
        return Written(change._replace(added_delete_files=(delete,), required_data_files=(), targets=()), origins)

    def overwrites(
        self, table: TableState, live: list[tuple[Place, Row]], files: tuple[DataFile, ...]
    ) -> Iterator[Foreign]:
        """Whole files go, and at most one new row comes; its id may be that of a row that goes."""
        names = {file.path for file in files}
        stays = {row[0] for place, row in live if place[0] not in names}
        new: dict[Place, Row | None] = {place: None for place, _ in live if place[0] in names}
        base = TableChange(Command.OVERWRITE, Mode.COPY_ON_WRITE)
        for added in ((), *((row,) for row in self.rows if row[0] not in stays)):
            says = "overwrite: " + _changes(dict(live), new, added)
            written = with_new_rows(base, table, new, added, self.setup.shape)
            if new:
                yield Foreign(OVERWRITE, says, written, frozenset(row[0] for row in added))


def _policy(way: str) -> Policy:
    """Whoever records where rows went, and whoever does not."""
    return ICEBERG_SPARK if way in (UNMAPPED_COPY, UNMAPPED_COMPACTION) else LAKEPROOF


def _command(new: dict[Place, Row | None]) -> Command:
    if not new:
        return Command.INSERT
    return Command.DELETE if all(row is None for row in new.values()) else Command.UPDATE


def _subsets(files: tuple[DataFile, ...]) -> Iterator[tuple[DataFile, ...]]:
    for size in range(1, len(files) + 1):
        yield from combinations(files, size)


def _changes(old: dict[Place, Row], new: dict[Place, Row | None], added: tuple[Row, ...]) -> str:
    told = sorted(
        f"delete {_worded(old[place])}" if row is None else f"update {_worded(old[place])} to {_worded(row)}"
        for place, row in new.items()
    )
    return ", ".join((*told, *(f"insert {_worded(row)}" for row in added)))


def _content(file: DataFile, live: list[tuple[Place, Row]]) -> str:
    return "[" + "; ".join(sorted(_worded(row) for place, row in live if place[0] == file.path)) + "]"


def _worded(row: Row) -> str:
    return " ".join(map(str, row))
