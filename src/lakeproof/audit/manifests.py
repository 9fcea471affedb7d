"""Every line of a manifest list against the manifest that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.holdings import ADDED, DELETED, EXISTING, POSITIONS, Entries, Holdings
from lakeproof.audit.kinds import MAY, ROWS
from lakeproof.iceberg.inspecting.partitions import PartitionTypes, wrong_summaries
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone, Listed, RawManifest

FILES = ("existing_files", "added_files", "deleted_files")
ROWS_OF = ("existing_rows", "added_rows", "deleted_rows")
NAMES = ("existing", "added", "deleted")


class ListedLine(NamedTuple):
    """A line, the manifest, its entries, and the snapshots whose lists hold it."""

    line: Listed
    read: RawManifest
    entries: Entries
    snapshots: list[int]

    def wrong(self, kind: str, because: str, severity: str = "") -> Finding:
        """A finding about this line."""
        return find(kind, because, snapshots=self.snapshots, files=[self.line.path], severity=severity)


def judge_manifests(holdings: Holdings) -> Iterator[Finding]:
    """What is wrong between the lists and the manifests."""
    yield from _unreadable(holdings)
    lines: dict[Listed, list[int]] = {}
    for snapshot in holdings.held:
        for line in snapshot.list.lines:
            lines.setdefault(line, []).append(snapshot.id)
    types = PartitionTypes(holdings.words)
    sequence = {int(each["snapshot-id"]): each.get("sequence-number") for each in holdings.snapshots}
    for line, snapshots in lines.items():
        read, entries = holdings.manifests[line.path], holdings.entries_of(line)
        if not isinstance(read, RawManifest) or entries is None:
            continue
        here = ListedLine(line, read, entries, list(dict.fromkeys(snapshots)))
        yield from _itself(here)
        yield from _counts(here)
        yield from _order(here, sequence.get(line.added_snapshot_id))
        yield from _partitions(here, types)


def _unreadable(holdings: Holdings) -> Iterator[Finding]:
    for path, read in holdings.manifests.items():
        if isinstance(read, Gone):
            text = f"the manifest {path} is not there"
            yield find("missing_manifest", text, snapshots=holdings.snapshots_with(path), files=[path])
        elif isinstance(read, Damaged):
            text = f"the manifest {path} cannot be read: {read}"
            yield find("unreadable_manifest", text, snapshots=holdings.snapshots_with(path), files=[path])


def _itself(here: ListedLine) -> Iterator[Finding]:
    """What the manifest says of itself."""
    line, read, header = here.line, here.read, here.read.header
    if read.size != line.length:
        yield here.wrong("manifest_length", f"the manifest has {read.size} bytes, its list says {line.length}")
    content = "deletes" if line.content == 1 else "data"
    holds_deletes = bool(np.any(here.entries.content >= POSITIONS))
    said = header.get("content", content)
    if said != content or (len(here.entries.status) and holds_deletes != (line.content == 1)):
        really = "deletes" if holds_deletes else said
        yield here.wrong("manifest_content", f"its list says {content}, the manifest {said}, its entries {really}")
    spec = header.get("partition-spec-id", str(line.spec_id))
    if spec.isdecimal() and int(spec) != line.spec_id:
        yield here.wrong("manifest_spec", f"its list says partition spec {line.spec_id}, the manifest {spec}")


def counted(entries: Entries) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The files and the rows that a manifest holds: existing, added, deleted."""
    masks = [entries.status == status for status in (EXISTING, ADDED, DELETED)]
    return tuple(int(each.sum()) for each in masks), tuple(int(entries.rows[each].sum()) for each in masks)


def _counts(here: ListedLine) -> Iterator[Finding]:
    for names, counts, what in zip((FILES, ROWS_OF), counted(here.entries), ("files", "rows"), strict=True):
        said = [getattr(here.line, name) for name in names]
        if any(one is not None and one != two for one, two in zip(said, counts, strict=True)):
            words = ", ".join(f"{count} {name}" for count, name in zip(counts, NAMES, strict=True))
            text = f"the manifest holds {words} {what}, its list says {', '.join(map(str, said))}"
            # a reader skips a manifest of which the list says that nothing in it is live
            skipped = what == "files" and not (said[0] or said[1]) and bool(counts[0] or counts[1])
            yield here.wrong("manifest_counts", text, ROWS if skipped else MAY)


def _order(here: ListedLine, made_at: Any) -> Iterator[Finding]:
    """Sequence numbers of a manifest and its entries."""
    line, entries = here.line, here.entries
    if made_at and line.sequence_number != int(made_at):
        text = (
            f"its list says sequence number {line.sequence_number}, the snapshot that wrote the manifest has {made_at}"
        )
        yield here.wrong("sequence_numbers", text)
    live = entries.live
    least = int(entries.seq[live].min()) if live.any() else line.min_sequence_number
    if least >= 0 and line.min_sequence_number > least:
        text = f"its list says that nothing is older than {line.min_sequence_number}, and a file is of {least}"
        yield here.wrong("sequence_numbers", text)
    late = live & ((entries.seq > line.sequence_number) | (entries.file_seq > line.sequence_number))
    if line.sequence_number and late.any():
        text = f"{int(late.sum())} files claim to be younger than their manifest of {line.sequence_number}"
        yield here.wrong("sequence_numbers", text, ROWS)
    lacking = live & (entries.status == EXISTING) & _null(entries.table, "seq")
    if line.sequence_number and lacking.any():
        text = f"{int(lacking.sum())} existing files have no sequence number of their own"
        yield here.wrong("sequence_numbers", text)


def _null(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if name not in table.column_names:
        return np.ones(table.num_rows, bool)
    found = pc.is_null(table.column(name)).to_numpy()
    return np.asarray(found, bool)


def _partitions(here: ListedLine, types: PartitionTypes) -> Iterator[Finding]:
    if here.line.spec_id not in types.specs:
        yield here.wrong(
            "partition_spec_ids", f"the manifest is of partition spec {here.line.spec_id}, which is not there"
        )
        return
    for text in wrong_summaries(here.line, here.read.entries, types.fields(here.line.spec_id)):
        yield here.wrong("partition_summary", text)
