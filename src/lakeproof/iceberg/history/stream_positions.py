"""How far a stream has read a table: up to which snapshot, and how many of the files that it added.

A stream reads the files that appends added, in the order of the history and, within a snapshot, of its manifests. A
compaction changed no rows and is passed over; snapshots that deleted or overwrote rows end the stream, unless it is
told to pass over them too. Positions are written as Apache Iceberg writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.history.changes import APPEND, COMPACTION, operation_of
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.manifest_cache import manifests_of, shared_cache
from lakeproof.iceberg.reading.segments import rows_of_spans

_ADDED = 1
_MOST_TOGETHER = 256
_FIRST = "lakeproof-first-snapshot-id"
SKIP_OVERWRITES, SKIP_DELETES = "streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots"
_added: Recent[tuple[AddedFile, ...]] = Recent(256)


class AddedFile(NamedTuple):
    """A data file that a snapshot added."""

    path: str
    size: int
    rows: int
    file_format: str


class StreamPosition(NamedTuple):
    """Behind the first `files` added files of a snapshot; `first` is the snapshot that the stream began with."""

    snapshot_id: int
    files: int
    first: int | None = None

    def as_json(self) -> str:
        """The position as Apache Iceberg writes it, and where the stream began: its first batch may be read again."""
        said = {"version": 1, "snapshot_id": self.snapshot_id, "position": self.files, "scan_all_files": False}
        return json.dumps(said if self.first is None else {**said, _FIRST: self.first})


class StreamRules(NamedTuple):
    """What a stream reads: from which instant on (`None`: all), and which snapshots it passes over."""

    from_ms: int | None = None
    skip_overwrites: bool = False
    skip_deletes: bool = False


class BatchLimits(NamedTuple):
    """How much one batch may hold; a file is never divided, and the one that reaches `rows` is the last."""

    files: int | None = None
    rows: int | None = None

    def reached(self, files: int, rows: int) -> bool:
        """Whether a batch of so many files and rows takes no further file."""
        return (self.files is not None and files >= self.files) or (self.rows is not None and rows >= self.rows)


NO_LIMITS = BatchLimits()


def position_of(text: str, place: str) -> StreamPosition:
    """The position that a checkpoint holds."""
    try:
        said = json.loads(text)
        if said.get("scan_all_files"):
            raise InvalidInput("the checkpoint is in the middle of a whole table, which is not read here", place=place)
        return StreamPosition(int(said["snapshot_id"]), int(said["position"]), said.get(_FIRST))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"the checkpoint holds no position in a table: {text}", place=place) from None


def next_position(
    table: Table,
    start: StreamPosition | None,
    rules: StreamRules,
    limits: BatchLimits = NO_LIMITS,
    *,
    until: int | None = None,
) -> StreamPosition | None:
    """Where the next batch ends, at the latest behind the snapshot `until` (`None`: the head); `None`: no new file.

    What cannot be read stops the stream behind the files before it, so that those are not lost.
    """
    files = rows = 0
    found = start
    line = _history(table)
    known = next((at for at, each in enumerate(line) if each.snapshot_id == until), len(line) - 1)
    for snapshot, done in _decoded_together(table, _to_read(table, line[: known + 1], start, rules)):
        if files and _refused(snapshot, rules):
            break
        first = snapshot.snapshot_id if found is None else found.first
        found = StreamPosition(snapshot.snapshot_id, done, first)
        for each in _files_read(table, snapshot, rules)[done:]:
            if files and limits.reached(files, rows):
                return found
            files, rows = files + 1, rows + each.rows
            found = found._replace(files=found.files + 1)
    return found if files else None


def files_between(
    table: Table, start: StreamPosition | None, end: StreamPosition, rules: StreamRules
) -> list[AddedFile]:
    """The files of one batch: after its start (`None`: from where the stream began) up to its end."""
    line = _history(table)
    found: list[AddedFile] = []
    line = line[: _place_in(table, line, end.snapshot_id) + 1]
    for snapshot, done in _decoded_together(table, _to_read(table, line, start, rules, end.first)):
        last = end.files if snapshot.snapshot_id == end.snapshot_id else None
        found += _files_read(table, snapshot, rules)[done:last]
    return found


def _to_read(
    table: Table,
    line: Sequence[Snapshot],
    start: StreamPosition | None,
    rules: StreamRules,
    first: int | None = None,
) -> Iterator[tuple[Snapshot, int]]:
    """The snapshots of the line that are left, each with the number of its files that were read."""
    if start is None:
        at = _beginning(line, rules) if first is None else _place_in(table, line, first)
        yield from ((each, 0) for each in line[at:])
        return
    at = _place_in(table, line, start.snapshot_id)
    if operation_of(line[at]) == APPEND:  # another was passed over, whatever the rules are by now
        yield line[at], start.files
    yield from ((each, 0) for each in line[at + 1 :])


def _history(table: Table) -> list[Snapshot]:
    """The snapshots up to the head, oldest first, as far back as none was expired."""
    known = {each.snapshot_id: each for each in table.metadata.snapshots}
    found: list[Snapshot] = []
    last = table.metadata.current_snapshot_id
    while last is not None and last in known:
        found.append(known[last])
        last = known[last].parent_snapshot_id
    return found[::-1]


def _beginning(line: Sequence[Snapshot], rules: StreamRules) -> int:
    """Where in the history a stream begins that has read nothing."""
    wanted = rules.from_ms
    return next((at for at, each in enumerate(line) if wanted is None or each.timestamp_ms >= wanted), len(line))


def _files_read(table: Table, snapshot: Snapshot, rules: StreamRules) -> tuple[AddedFile, ...]:
    if refused := _refused(snapshot, rules):
        raise InvalidInput(
            f"a stream cannot read snapshot {snapshot.snapshot_id}, which {refused[0]} rows",
            place=f"table {'.'.join(table.name())}",
            hint=f"set {refused[1]} to true to pass over such snapshots, or read system.create_changelog_view",
        )
    return added_files(table, snapshot) if operation_of(snapshot) == APPEND else ()


def _refused(snapshot: Snapshot, rules: StreamRules) -> tuple[str, str] | None:
    """What a snapshot did that a stream does not read, and the option by which it is passed over."""
    operation = operation_of(snapshot)
    if operation == "delete":
        return None if rules.skip_deletes else ("deleted", SKIP_DELETES)
    if operation in (APPEND, COMPACTION):
        return None
    return None if rules.skip_overwrites else ("overwrote", SKIP_OVERWRITES)


def added_files(table: Table, snapshot: Snapshot) -> tuple[AddedFile, ...]:
    """The data files that a snapshot added, in the order of its manifests; nothing ever changes them."""
    key = f"{snapshot.manifest_list} {snapshot.snapshot_id}"
    return _added.get(key, lambda: tuple(_read_added(table, snapshot)))


def _decoded_together(table: Table, left: Iterable[tuple[Snapshot, int]]) -> Iterator[tuple[Snapshot, int]]:
    """The same snapshots; the manifests of more and more of them are decoded at once.

    A batch of thousands of small commits would spend its time on one decoding for each. What cannot be decoded fails
    where it is read, behind the files before it.
    """
    left, many = iter(left), 1
    while portion := list(islice(left, many)):
        if len(portion) > 1:
            with suppress(LakeproofError), translate_errors(f"table {'.'.join(table.name())}"):
                appends = (each for each, _ in portion if operation_of(each) == APPEND)
                shared_cache().load(table.io, [one for each in appends for one in _own_manifests(table, each)])
        yield from portion
        many = min(2 * many, _MOST_TOGETHER)


def _own_manifests(table: Table, snapshot: Snapshot) -> list[ManifestFile]:
    """The manifests in which a snapshot lists what it added."""
    found = manifests_of(table.io, snapshot)
    return [m for m in found if m.added_snapshot_id == snapshot.snapshot_id and m.content == ManifestContent.DATA]


def _read_added(table: Table, snapshot: Snapshot) -> Iterator[AddedFile]:
    with translate_errors(f"table {'.'.join(table.name())}"):
        for manifest in _own_manifests(table, snapshot):
            for segment, spans in shared_cache().load(table.io, [manifest]):  # one by one: the order must stay
                mine = (segment.numpy("status") == _ADDED) & (segment.snapshot_id == snapshot.snapshot_id)
                rows = pa.array(np.flatnonzero(mine & rows_of_spans(segment, spans)))
                columns = ("path", "size", "record_count", "format")
                values = [segment.column(name).take(rows).to_pylist() for name in columns]
                yield from (AddedFile(*each) for each in zip(*values, strict=True))


def _place_in(table: Table, line: Sequence[Snapshot], number: int) -> int:
    """Where a snapshot stands in the history; it may have been expired, or the branch set back behind it."""
    found = next((at for at, each in enumerate(line) if each.snapshot_id == number), None)
    if found is not None:
        return found
    place, again = f"table {'.'.join(table.name())}", "begin with a new checkpoint"
    if table.snapshot_by_id(number) is not None:
        raise InvalidInput(
            f"the stream stands at snapshot {number}, which is not in the table's history any more",
            place=place,
            hint=f"the table was rolled back: {again}",
        )
    raise InvalidInput(
        f"the stream stands at snapshot {number}, which was expired: what came after it cannot be told",
        place=place,
        hint=f"{again} (stream-from-timestamp says from when on), and keep snapshots for longer",
    )
