"""CALL system.rewrite_position_delete_files: one delete file for each data file, and none that points nowhere."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from lakeproof.commit import Command, RunAgain, TableChange
from lakeproof.commit.planning import Run, run_until_done
from lakeproof.errors import InvalidInput
from lakeproof.filters import Expression, columns_of, may_match_file
from lakeproof.format import DeleteFile
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED, Committed
from lakeproof.iceberg.committing.physical import NewFiles
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.committing.table_commits import commit_change
from lakeproof.iceberg.committing.values import shape_of
from lakeproof.iceberg.pyiceberg_names import DataFile as IcebergFile
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import DeletesAt, read_positions, write_position_deletes
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.spark.compaction.plan import condition
from lakeproof.spark.engine import Engine
from lakeproof.spark.row_level.prepared import VECTORS_SINCE, delete_value, unite_positions, vector_value
from lakeproof.spark.row_level.rerun import note_rerun, require_writable, reruns_left
from lakeproof.spark.row_level.row_positions import Found, as_rows, head_source
from lakeproof.spark.row_level.scanned_files import homes_of
from lakeproof.spark.writing.leftovers import removed_if_refused


class DeletesRewritten(NamedTuple):
    """What became of the delete files."""

    rewritten_files: int = 0
    added_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0


class _Old(NamedTuple):
    """A delete file that goes."""

    path: str
    format: str
    bytes: int
    data_files: tuple[str, ...]


OPTIONS = ("rewrite-all", "min-input-files", "max-concurrent-file-group-rewrites")
"""What a call may be told. The others are about sizes: here a data file has one delete file, however large."""


def rewrite_position_delete_files(
    engine: Engine, name: str, where: str | None = None, options: Mapping[str, str] | None = None
) -> DeletesRewritten:
    """The table `name` with as few position delete files as it needs; no row comes or goes.

    `where`: only delete files that reach a data file which may hold such rows.
    """
    told = options or {}
    if unknown := sorted(set(told) - set(OPTIONS)):
        raise InvalidInput(f"there is no option `{unknown[0]}`", hint=f"known are {', '.join(OPTIONS)}")
    for option, text in told.items():
        is_flag = option == "rewrite-all"
        if not (text in ("true", "false") if is_flag else text.isdecimal()):
            hint = "true or false" if is_flag else "a whole number"
            raise InvalidInput(f"option `{option}` cannot be {text!r}", hint=hint)
    rewrite_all, least = told.get("rewrite-all") == "true", int(told.get("min-input-files", 1))

    def once(run: Run) -> DeletesRewritten | RunAgain:
        table = engine.load(name)
        require_writable(table)
        chosen = condition(engine, table, where)
        old = to_rewrite(head_source(engine, table).planned(), rewrite_all=rewrite_all)
        if where is not None:
            old = _reaching(engine, table, old, chosen)
        old = old if rewrite_all or len(old) >= least else []
        engine.watch.on_phase(SCANNED)
        if not old:
            return DeletesRewritten()
        new, values = _written(engine, table, old)
        answer = _committed(engine, table, old, NewFiles((), tuple(new)), values, run)
        if isinstance(answer, RunAgain):
            remove_files(table, (file.file_path for file in new))
            return answer
        sizes = sum(file.file_size_in_bytes for file in new) or _added_bytes(answer)
        return DeletesRewritten(len(old), len(values), sum(one.bytes for one in old), sizes)

    return run_until_done(once, partial(note_rerun, engine, f"REWRITE of delete files of {name}"))[0]


def _added_bytes(done: Committed) -> int:
    """The size of what a commit added: vectors are written with it."""
    made = done.table.snapshot_by_id(done.snapshot_id) if done.snapshot_id is not None else None
    return int(made.summary.additional_properties.get("added-files-size", 0)) if made and made.summary else 0


def _reaching(engine: Engine, table: Table, old: list[_Old], chosen: Expression) -> list[_Old]:
    homes, shape = homes_of(engine, table, columns=columns_of(chosen)), shape_of(table)
    kept = {path for path, home in homes.items() if may_match_file(chosen, home.file, shape)}
    return [one for one in old if kept & set(one.data_files)]


def to_rewrite(planned: ScanPlan, *, rewrite_all: bool) -> list[_Old]:
    """Position delete files that share a data file with others, span several, or reach none."""
    columns = ("path", "format", "size", "content", "referenced_file")
    described = [planned.delete_files[name].to_pylist() for name in columns]
    reach: list[list[str]] = [[] for _ in described[0]]
    crowded: set[int] = set()
    lists = planned.files["delete_files"].to_pylist()
    for path, numbers in zip(planned.files["path"].to_pylist(), lists, strict=True):
        by_position = [number for number in numbers if described[3][number] == "position"]
        if len(by_position) > 1:
            crowded.update(by_position)
        for number in by_position:
            reach[number].append(path)
    return [
        _Old(path, kind, size, tuple(reach[number]))
        for number, (path, kind, size, content, named) in enumerate(zip(*described, strict=True))
        if content == "position" and (rewrite_all or number in crowded or named is None or not reach[number])
    ]


def _written(engine: Engine, table: Table, old: list[_Old]) -> tuple[list[IcebergFile], list[DeleteFile]]:
    """One new delete file for each data file that an old one reaches."""
    found: Found = {}
    for one in old:
        positions = read_positions(table.io, DeletesAt(one.path, one.format))
        found = unite_positions(found, {path: positions[path] for path in one.data_files if path in positions})
    homes = homes_of(engine, table, found)
    files, values = [], []
    for path, rows in as_rows(found):
        home, positions_there = homes[path], np.unique(found[path])
        if table.format_version >= VECTORS_SINCE:
            values.append(vector_value(home, rows))
            continue
        file = write_position_deletes(table, path, positions_there, partition=home.partition, spec_id=home.file.spec_id)
        files.append(file)
        values.append(delete_value(file, home, ((path, rows),)))
    return files, values


def _committed(
    engine: Engine, table: Table, old: list[_Old], new: NewFiles, values: list[DeleteFile], run: Run
) -> Committed | RunAgain:
    head, watch = table.current_snapshot(), engine.watch
    change = TableChange(
        command=Command.REWRITE_DELETES,
        command_id=str(uuid.uuid4()),
        scan_snapshot=None if head is None else head.snapshot_id,
        removed_delete_files=tuple(DeleteFile(one.path) for one in old),
        added_delete_files=tuple(values),
    )
    with removed_if_refused(lambda: remove_files(table, (file.file_path for file in new.delete_files))):
        watch.on_phase(FILES_WRITTEN)
        return commit_change(
            table,
            change,
            new,
            policy=watch.policy_of(table),
            reruns=run.reruns,
            reruns_left=reruns_left(table, run),
            summary=watch.summary,
            on_phase=watch.on_phase,
        )
