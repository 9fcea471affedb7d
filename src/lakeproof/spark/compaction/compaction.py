"""CALL system.rewrite_data_files: small files and dead rows go, and no concurrent delete is lost or in the way.

Deletes that others commit meanwhile are carried over to the new files; the mapping of the rows is recorded, so that a
late command follows them. Only where a file itself was replaced meanwhile its piece is planned again from the head.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lakeproof.commit import Command, Conflict, Mode, RunAgain, TableChange
from lakeproof.commit.planning import Run, run_until_done
from lakeproof.commit.policy import without_mapping
from lakeproof.format import RowMapping, rows_of
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.pyiceberg_names import DataFile as IcebergFile
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.compaction.plan import (
    CompactionOptions,
    Partition,
    condition,
    options_of,
    partitions_of,
    pieces_of,
)
from lakeproof.spark.compaction.rewrite_files import Piece, RewrittenFiles, rewrite
from lakeproof.spark.compaction.sorting import Sorting, rewrite_sorted, together
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.rerun import note_rerun, require_writable, reruns_left
from lakeproof.spark.row_level.row_positions import Found
from lakeproof.spark.row_level.scanned_files import dead_rows, kept_rows
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused

PIECES_AT_ONCE = 50


class Compacted(NamedTuple):
    """What a compaction did."""

    rewritten_files: int = 0
    added_files: int = 0
    rewritten_bytes: int = 0
    failed_files: int = 0
    removed_delete_files: int = 0
    replans: int = 0


class _Done(NamedTuple):
    """A piece whose file is written."""

    piece: Piece
    files: tuple[IcebergFile, ...]
    mapping: RowMapping


def rewrite_data_files(
    engine: Engine, name: str, where: str | None, given: Mapping[str, str], order: Sorting | None = None
) -> Compacted:
    """Compact the table `name`; every commit is a `replace` snapshot that reads the same rows.

    With an `order` the rows of a partition are sorted. Where each of them went is not recorded then: what others do to
    them meanwhile is a conflict, and their partition is sorted again.
    """
    total, mine = Compacted(), frozenset[str]()
    among: frozenset[Partition] | None = None

    def once(run: Run) -> Compacted | RunAgain:
        nonlocal total, mine, among
        table = engine.load(name)
        require_writable(table)
        options = options_of(table, given)
        pieces = pieces_of(engine, table, condition(engine, table, where), options, among=among, but=mine)
        pieces = pieces if order is None else together(pieces)
        engine.watch.on_phase(SCANNED)
        lost: list[_Lost] = []
        for batch in _batches(pieces, options):
            done, left = _compacted(engine, table, batch, run.reruns, _Sorted(order, options) if order else None)
            lost += left
            total = _sum(total, done.counts)
            mine |= done.added
        if lost and reruns_left(table, run):
            among = partitions_of(one.piece for one in lost)
            return RunAgain(lost[0].conflict, Mode.COPY_ON_WRITE)
        return total._replace(replans=run.reruns, failed_files=sum(len(one.piece) for one in lost))

    return run_until_done(once, partial(note_rerun, engine, f"REWRITE of {name}"))[0]


class _Sorted(NamedTuple):
    """How rows are sorted, into files of which size."""

    order: Sorting
    options: CompactionOptions


class _Lost(NamedTuple):
    """A piece whose files somebody else replaced first."""

    piece: Piece
    conflict: Conflict


class _Committed(NamedTuple):
    counts: Compacted = Compacted()
    added: frozenset[str] = frozenset()


def _batches(pieces: Sequence[Piece], options: CompactionOptions) -> list[Sequence[Piece]]:
    """The pieces of each commit: all of them in one, or about as many as partial progress allows."""
    if not options.partial_progress or not pieces:
        return [pieces] if pieces else []
    size = -(-len(pieces) // max(1, options.max_commits))
    return [pieces[start : start + size] for start in range(0, len(pieces), size)]


def _compacted(
    engine: Engine, table: Table, pieces: Sequence[Piece], reruns: int, how: _Sorted | None
) -> tuple[_Committed, list[_Lost]]:
    """These pieces in one commit, and those among them whose files somebody else replaced first."""
    dead = dead_rows(engine, table, [home for piece in pieces for home in piece])
    if how is None:
        parts = [
            rewrite(engine, table, pieces[start : start + PIECES_AT_ONCE], dead)
            for start in range(0, len(pieces), PIECES_AT_ONCE)
        ]
        standing = [_done(piece, parts) for piece in pieces]
    else:
        parts = [rewrite_sorted(engine, table, piece, dead, how.order, how.options.target_bytes) for piece in pieces]
        standing = [_Done(piece, part.files, ()) for piece, part in zip(pieces, parts, strict=True)]
    lost: list[_Lost] = []

    def remove() -> None:
        for part in parts:
            remove_folder(engine.gateway, part.folder)

    engine.watch.on_phase(FILES_WRITTEN)
    with removed_if_refused(remove):
        while standing:
            answer = _commit(engine, table, standing, dead, reruns, sorts=how is not None)
            if not isinstance(answer, RunAgain):
                return answer, lost
            gone = [one for one in standing if any(home.path in answer.conflict.files for home in one.piece)]
            for one in gone or standing:
                remove_files(table, (file.file_path for file in one.files))
                lost.append(_Lost(one.piece, answer.conflict))
            standing = [one for one in standing if gone and one not in gone]
    return _Committed(), lost


def _done(piece: Piece, parts: Sequence[RewrittenFiles]) -> _Done:
    paths = {home.path for home in piece}
    mapping = tuple(move for part in parts for move in part.mapping if move.old_file in paths)
    new = {move.new_file for move in mapping}
    return _Done(piece, tuple(file for part in parts for file in part.files if file.file_path in new), mapping)


def _commit(
    engine: Engine, table: Table, standing: Sequence[_Done], dead: Found, reruns: int, *, sorts: bool
) -> _Committed | RunAgain:
    homes = [home for one in standing for home in one.piece]
    files = tuple(file for one in standing for file in one.files)
    head = table.current_snapshot()
    change = TableChange(
        command=Command.REWRITE,
        mode=Mode.COPY_ON_WRITE,
        command_id=str(uuid.uuid4()),
        scan_snapshot=None if head is None else head.snapshot_id,
        scan_sequence_number=0 if head is None else head.sequence_number or 0,
        removed_data_files=tuple(home.file for home in homes),
        kept=rows_of((home.path, kept_rows(home, dead)) for home in homes),
        mapping=None if sorts else tuple(move for one in standing for move in one.mapping),
    )
    watch = engine.watch
    policy = watch.policy_of(table)
    answer = commit_change(
        table,
        change,
        NewFiles(files),
        policy=without_mapping(policy) if sorts else policy,
        reruns=reruns,
        reruns_left=True,
        summary=watch.summary,
        on_phase=watch.on_phase,
    )
    if isinstance(answer, RunAgain):
        return answer
    if answer.snapshot_id is None:  # nothing was left to do
        remove_files(table, (file.file_path for file in files))
        return _Committed()
    snapshot = answer.table.snapshot_by_id(answer.snapshot_id)
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return _Committed(
        Compacted(
            rewritten_files=len(homes),
            added_files=len(files),
            rewritten_bytes=sum(home.bytes for home in homes),
            removed_delete_files=int(said.get("removed-delete-files", 0)),
        ),
        frozenset(file.file_path for file in files),
    )


def _sum(one: Compacted, other: Compacted) -> Compacted:
    return Compacted(*(a + b for a, b in zip(one, other, strict=True)))
