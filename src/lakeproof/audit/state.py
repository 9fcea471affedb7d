"""The table itself: whether what its metadata says is what lies there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from lakeproof.audit.findings import Finding
from lakeproof.format import Snapshot
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.planning import ScanPlan, plan
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.table_on_disk import files_from_the_future, manifest_counts, sizes_of

MOST_NAMED = 20


def lying(table: Table, snapshots: tuple[Snapshot, ...], *, orphans: bool = True) -> Iterator[Finding]:
    """Everything that is wrong with the head and the order of the snapshots."""
    head = table.current_snapshot()
    if head is None:
        return
    yield from _sequence_numbers(table, snapshots)
    for count in manifest_counts(table, head):
        if count.said != count.counted:
            words = [f"{n} {name}" for n, name in zip(count.counted, ("existing", "added", "deleted"), strict=True)]
            said = ", ".join(str(n) for n in count.said)
            text = f"the manifest holds {', '.join(words)} files, its list says {said}"
            do = "rewrite the manifests: call system.rewrite_manifests"
            yield Finding("manifest_counts", (head.snapshot_id,), text, (count.manifest,), "", do)
    planned = plan(table)
    yield from _files(table, planned, head.snapshot_id)
    yield from _deletes(planned, head.snapshot_id)
    if orphans:
        yield from _unreferenced(table)


def _sequence_numbers(table: Table, snapshots: tuple[Snapshot, ...]) -> Iterator[Finding]:
    do = "an engine that ignores sequence numbers wrote this table: find out which, and stop it"
    for older, newer in pairwise(snapshots):
        if newer.sequence_number <= older.sequence_number and newer.sequence_number:
            numbers = f"{newer.sequence_number}, its parent {older.sequence_number}"
            text = f"snapshot {newer.snapshot_id} has sequence number {numbers}"
            yield Finding("sequence_numbers", (older.snapshot_id, newer.snapshot_id), text, (), "", do)
    head = table.current_snapshot()
    late = list(files_from_the_future(table, head)) if head is not None else []
    if head is not None and late:
        text = f"{len(late)} files claim a sequence number greater than the head's {head.sequence_number}"
        yield Finding(
            "sequence_numbers", (head.snapshot_id,), text, tuple(one.file for one in late[:MOST_NAMED]), "", do
        )


def _files(table: Table, planned: ScanPlan, head: int) -> Iterator[Finding]:
    data = planned.files.select(["path", "size"]).to_pylist()
    deletes = {one["path"]: one for one in planned.delete_files.to_pylist()}  # one Puffin file holds many vectors
    listed = [*data, *deletes.values()]
    for one, size in zip(listed, sizes_of(table.io, [one["path"] for one in listed]), strict=True):
        if size is None:
            do = "restore the file from a copy, or roll back to a snapshot that does not need it"
            yield Finding("missing_file", (head,), f"{one['path']} is not there", (one["path"],), "", do)
        elif size != one["size"]:
            text = f"{one['path']} has {size} bytes, the table says {one['size']}"
            do = "somebody wrote over it: restore it from a copy"
            yield Finding("changed_file", (head,), text, (one["path"],), "", do)
    for path, count in Counter(one["path"] for one in data).items():
        if count > 1:
            text = f"{path} is in the table {count} times: its rows are read {count} times"
            yield Finding("file_twice", (head,), text, (path,), "", "remove it and add it once")


def _deletes(planned: ScanPlan, head: int) -> Iterator[Finding]:
    live = set(planned.files["path"].to_pylist())
    vectors: Counter[str] = Counter()
    for one in planned.delete_files.to_pylist():
        named = one["referenced_file"]
        if one["content"] == "deletion-vector" and named is not None:
            vectors[named] += 1
        if named is not None and named not in live:
            text = f"{one['path']} deletes rows of {named}, which is not in the table"
            do = "harmless to readers; call system.rewrite_data_files drops it"
            yield Finding("dangling_delete_file", (head,), text, (one["path"],), "", do)
    for path, count in vectors.items():
        if count > 1:
            text = f"{path} has {count} deletion vectors, where the format allows one"
            yield Finding(
                "two_vectors", (head,), text, (path,), "", "rewrite the data file: it cannot be read as it is"
            )


def _unreferenced(table: Table) -> Iterator[Finding]:
    found = remove_orphan_files(table, older_than_ms=2**62, dry_run=True).files
    if found:
        text = f"{len(found)} files in the table's folders are named by nothing: leftovers, or of a writer at work"
        do = "call system.remove_orphan_files once no writer is at work"
        yield Finding("unreferenced_file", (), text, found[:MOST_NAMED], "", do)
