"""What the actors do: every command goes through the real `lakeproof.iceberg`, from its scan to its clean-up.

A command has an effect on rows (`apply`), which the judge computes, and a way of being run (`run`), which the product
decides. Rows are `(id, p, v)`; the table is partitioned by `p`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pyiceberg.catalog import Catalog
from rows_in_files import Row, Rows, Scanned, removed, scanned, write

from lakeproof.commit import Command, Isolation, Mode, RunAgain, TableChange
from lakeproof.errors import CommitConflict
from lakeproof.filters import Compare
from lakeproof.format import DeleteContent, DeleteFile, Move, RowSet, row_set, rows_of
from lakeproof.iceberg.committing import whole_file_commits as operations
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.pyiceberg_names import DataFile, Table
from lakeproof.iceberg.reading.delete_files import write_position_deletes
from lakeproof.iceberg.tables import tables
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests

OP = "simulation.op"
MOST_RERUNS = 6


@dataclass
class Command_:
    """One thing that an actor does; `number` is written into the snapshot that it makes."""

    number: int
    on = "default.t"

    def apply(self, rows: Rows) -> Rows:
        """The table's rows after the command."""
        return rows

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        """The command, run; `None`: there was nothing to do."""
        raise NotImplementedError

    @property
    def told(self) -> dict[str, str]:
        return {OP: str(self.number)}

    def options(self) -> operations.CommitOptions:
        return operations.CommitOptions(command_id=f"command-{self.number}", summary=self.told)


@dataclass
class Insert(Command_):
    """INSERT of rows."""

    rows: tuple[Row, ...]

    def apply(self, rows: Rows) -> Rows:
        return rows | {row[0]: row for row in self.rows}

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        files = write(table, self.rows)
        with removed(table, files):
            return operations.append(table, files, self.options())


@dataclass
class OverwritePartition(Command_):
    """INSERT OVERWRITE of the partition in which the rows lie."""

    rows: tuple[Row, ...]

    def apply(self, rows: Rows) -> Rows:
        here = self.rows[0][1]
        return {key: row for key, row in rows.items() if row[1] != here} | {row[0]: row for row in self.rows}

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        files = write(table, self.rows)
        with removed(table, files):
            return operations.overwrite_partitions(table, files, self.options())


@dataclass
class DeletePartition(Command_):
    """DELETE of whole files by their partition."""

    partition: int

    def apply(self, rows: Rows) -> Rows:
        return {key: row for key, row in rows.items() if row[1] != self.partition}

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        return operations.delete_where(table, Compare("p", "=", self.partition), self.options())


@dataclass
class RowLevel(Command_):
    """DELETE or UPDATE of one key, or MERGE of a key that is inserted where it is missing."""

    command: Command
    mode: Mode
    key: int
    partition: int = 0
    only_there = False  # whether the command looks into its partition alone

    def apply(self, rows: Rows) -> Rows:
        if self.command is Command.DELETE:
            return {key: row for key, row in rows.items() if key != self.key}
        if self.command is Command.UPDATE:
            return {key: (*row[:2], self.number) if key == self.key else row for key, row in rows.items()}
        return {self.key: (self.key, self.partition, self.number)} | rows

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        mode, reruns = self.mode, 0
        for _ in range(5 * MOST_RERUNS):
            table = tables.load_table(catalog, name)
            seen = scanned(table, self.partition if self.only_there else None)
            if seen is None:
                continue
            made = self.prepared(table, seen, mode)
            if made is None:
                return None
            answer = self._committed(table, *made, reruns)
            if isinstance(answer, Committed):
                return answer
            reruns, mode = reruns + 1, answer.mode or self.mode
        raise CommitConflict("the head could not be read")

    def prepared(self, table: Table, seen: Scanned, mode: Mode) -> tuple[TableChange, NewFiles] | None:
        targets = seen.found(self.key)
        if self.command is Command.MERGE and targets:
            return None
        if self.command is not Command.MERGE and not targets:
            return None
        head = table.current_snapshot()
        base = TableChange(
            self.command,
            mode,
            Isolation.SERIALIZABLE,
            command_id=f"command-{self.number}",
            scan_snapshot=None if head is None else head.snapshot_id,
            scan_sequence_number=table.metadata.next_sequence_number() - 1,
            conflict_filter=Compare("id", "=", self.key),
        )
        new = [] if self.command is Command.DELETE else [(*row[:2], self.number) for _, _, row in targets]
        stored = [] if self.command is Command.DELETE else seen.changed(targets)
        if self.command is Command.MERGE:
            new, stored = [(self.key, self.partition, self.number)], [(None, None)]
        files = write(table, new, stored)
        if mode is Mode.COPY_ON_WRITE and targets:
            return copied_change(table, base, seen, targets, files)
        return merged_change(table, base, seen, targets, files)

    def _committed(self, table: Table, change: TableChange, files: NewFiles, reruns: int) -> Committed | RunAgain:
        written = (*files.data_files, *files.delete_files)
        with removed(table, written):
            answer = commit_change(
                table, change, files, reruns=reruns, reruns_left=reruns < MOST_RERUNS, summary=self.told
            )
        if isinstance(answer, RunAgain):
            remove_files(table, [file.file_path for file in written])
        return answer


def by_file(places: Iterable[tuple[str, int, Row]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path, at, _ in places:
        found.setdefault(path, []).append(at)
    return found


def merged_change(
    table: Table, base: TableChange, seen: Scanned, targets: list[tuple[str, int, Row]], files: list[DataFile]
) -> tuple[TableChange, NewFiles]:
    places = by_file(targets)
    change = base._replace(
        targets=rows_of((path, row_set(at)) for path, at in places.items()), required_data_files=tuple(places)
    )
    if table.format_version >= 3:
        values = tuple(_vector(seen, path, rows) for path, rows in change.targets)
        return change._replace(added_delete_files=values), NewFiles(tuple(files))
    deletes = [
        write_position_deletes(
            table,
            path,
            np.array(at, np.int64),
            partition=seen.homes[path].partition,
            spec_id=seen.homes[path].spec_id,
        )
        for path, at in places.items()
    ]
    return change, NewFiles(tuple(files), tuple(deletes))


def _vector(seen: Scanned, path: str, rows: RowSet) -> DeleteFile:
    home = seen.homes[path]
    return DeleteFile(
        f"vector of {path}", DeleteContent.VECTOR, home.partition, home.spec_id, positions=((path, rows),)
    )


def copied_change(
    table: Table, base: TableChange, seen: Scanned, targets: list[tuple[str, int, Row]], files: list[DataFile]
) -> tuple[TableChange, NewFiles]:
    places = by_file(targets)
    kept = {path: [each for each in seen.rows if each[0] == path and each[1] not in at] for path, at in places.items()}
    moves, copied = [], []
    for path, rows in kept.items():
        if rows:
            (file,) = write(table, [row for _, _, row in rows], seen.moved(rows))
            copied.append(file)
            moves.append(Move(path, row_set([at for _, at, _ in rows]), file.file_path, 0))
    change = base._replace(
        removed_data_files=tuple(seen.homes[path] for path in places),
        targets=rows_of((path, row_set(at)) for path, at in places.items()),
        kept=rows_of((path, row_set([at for _, at, _ in rows])) for path, rows in kept.items() if rows),
        mapping=tuple(moves),
    )
    return change, NewFiles((*files, *copied))


@dataclass
class Compact(Command_):
    """All files of one partition become one."""

    partition: int
    only_there = False

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        for _ in range(MOST_RERUNS):
            table = tables.load_table(catalog, name)
            seen = scanned(table, self.partition if self.only_there else None)
            if seen is None:
                continue
            made = self._prepared(table, seen)
            if made is None:
                return None
            files = made[1].data_files
            with removed(table, files):
                answer = commit_change(table, *made, reruns_left=True, summary=self.told)
            if isinstance(answer, Committed):
                return answer
            remove_files(table, [file.file_path for file in files])
        raise CommitConflict("the compaction gave up")

    def _prepared(self, table: Table, seen: Scanned) -> tuple[TableChange, NewFiles] | None:
        homes = [home for home in seen.homes.values() if home.partition == (self.partition,)]
        head = table.current_snapshot()
        if len(homes) < 2 or head is None or seen.equality:
            return None
        rows = [each for home in homes for each in seen.rows if each[0] == home.path]
        files = write(table, [row for _, _, row in rows], seen.moved(rows))
        kept, start, moves = by_file(rows), 0, []
        for path, at in kept.items():
            moves.append(Move(path, row_set(at), files[0].file_path, start))
            start += len(at)
        change = TableChange(
            Command.REWRITE,
            command_id=f"command-{self.number}-{uuid.uuid4()}",
            scan_snapshot=head.snapshot_id,
            scan_sequence_number=head.sequence_number or 0,
            removed_data_files=tuple(homes),
            kept=rows_of((path, row_set(at)) for path, at in kept.items()),
            mapping=tuple(moves),
        )
        return change, NewFiles(tuple(files))


@dataclass
class RewriteManifests(Command_):
    """The same files through other manifests."""

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        rewrite_manifests(tables.load_table(catalog, name))
        return None
