"""Whether every file can be named that a table's snapshots need: who removes files asks this first."""

from __future__ import annotations

from functools import partial

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.inspecting.raw_files import (
    Damaged,
    Gone,
    Listed,
    RawList,
    RawManifest,
    read_all,
    read_list,
    read_manifest,
)

HINT = "no file was removed: `lakeproof audit` says what is damaged"


def require_whole(table: Table) -> None:
    """Refuse where a list or a manifest of a retained snapshot is damaged; `FileNotFoundError`: it is not there."""
    place = f"table {'.'.join(table.name())}"
    lists = read_all((each.manifest_list for each in table.metadata.snapshots), partial(read_list, table.io))
    for snapshot in table.metadata.snapshots:
        if problem := _list_problem(snapshot, lists[snapshot.manifest_list]):
            raise InvalidInput(f"snapshot {snapshot.snapshot_id} cannot be read: {problem}", place=place, hint=HINT)
    lines = {line.path: line for each in lists.values() if isinstance(each, RawList) for line in each.lines}
    manifests = read_all(lines, partial(read_manifest, table.io))
    for path, line in lines.items():
        if problem := _manifest_problem(line, manifests[path]):
            raise InvalidInput(f"manifest {path} cannot be read: {problem}", place=place, hint=HINT)


def _list_problem(snapshot: Snapshot, read: RawList | Damaged | Gone) -> str:
    """What is wrong with a manifest list; nothing, if it names all that its snapshot says it holds."""
    if isinstance(read, Gone):
        raise FileNotFoundError(snapshot.manifest_list)
    if isinstance(read, Damaged):
        return f"its manifest list is damaged: {read}"
    said = snapshot.summary.additional_properties if snapshot.summary else {}
    total = said.get("total-data-files", "")
    counts = [(line.added_files, line.existing_files) for line in read.lines if line.content == 0]
    held = sum((added or 0) + (existing or 0) for added, existing in counts)
    known = all(None not in pair for pair in counts)
    if total.isdecimal() and known and held < int(total):
        return f"its manifest list names {held} of {total} data files"
    if not read.lines and int(said.get("added-data-files", "0") or 0):
        return "its manifest list names nothing, though it added data files"
    return ""


def _manifest_problem(line: Listed, read: RawManifest | Damaged | Gone) -> str:
    if isinstance(read, Gone):
        raise FileNotFoundError(line.path)
    if isinstance(read, Damaged):
        return str(read)
    said = (line.added_files, line.existing_files, line.deleted_files)
    total = sum(count or 0 for count in said)
    if None not in said and read.entries.num_rows < total:
        return f"it names {read.entries.num_rows} of {total} files"
    return ""
