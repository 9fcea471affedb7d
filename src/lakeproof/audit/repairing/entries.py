"""What can be set right in manifests: entries that tell their files wrong, an entry that is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lakeproof.audit.findings import Finding
from lakeproof.audit.holdings import NOBODY, Held, Holdings
from lakeproof.audit.row_ids import first_row_ids
from lakeproof.iceberg.inspecting.metrics import RealFile, read_real
from lakeproof.iceberg.mending.avro_records import AvroFile
from lakeproof.iceberg.mending.drafts import Draft

TOLD_WRONG = ("record_count", "null_counts", "bounds", "wide_bounds", "changed_file", "file_format")
"""Kinds that say that an entry and its file disagree. Where several meet, the file may be another: a person decides."""
TOGETHER = ({"bounds", "wide_bounds"},)


def mend_entries(
    draft: Draft, holdings: Holdings, findings: Sequence[Finding], *, opened: bool
) -> Iterator[tuple[Finding, str]]:
    """Entries that tell one thing of their file wrong get what its footer says, where the files were `opened`."""
    if not opened:
        return  # a file of another size may be another file
    by_file: dict[str, list[Finding]] = {}
    for each in findings:
        for path in each.files:
            by_file.setdefault(path, []).append(each)
    for path, several in by_file.items():
        kinds = {each.kind for each in several}
        if not kinds <= set(TOLD_WRONG) or (len(kinds) > 1 and kinds not in TOGETHER):
            continue
        real = read_real(holdings.io, holdings.words, path)
        if real is not None and _set_all(draft, holdings, path, real):
            for each in several:
                yield each, f"let the manifests say of {path} what its footer says"


def _manifests_of(holdings: Holdings, path: str) -> list[str]:
    found: dict[str, None] = {}
    for held in holdings.held:
        for each in held.entries:
            if each.line.path not in found and path in each.text("path"):
                found[each.line.path] = None
    return list(found)


def _set_all(draft: Draft, holdings: Holdings, path: str, real: RealFile) -> bool:
    manifests = _manifests_of(holdings, path)
    for name in manifests:
        file = _pinned(draft, holdings, name)
        for record in file.records:
            told = record[file.name(2)]
            if told[file.name(2, 100)] == path:
                _set(file, told, real)
        draft.touch(name)
    return bool(manifests)


def _set(file: AvroFile, told: dict[str, Any], real: RealFile) -> None:
    told[file.name(2, 101)] = real.format
    told[file.name(2, 103)] = real.rows
    told[file.name(2, 104)] = real.size
    for number, values in real.metrics.items():
        if not file.has(2, number):
            continue
        pairs = {each["key"]: each["value"] for each in told[file.name(2, number)] or []}
        wanted = {key: value for key, value in values.items() if key in pairs}
        told[file.name(2, number)] = [{"key": key, "value": value} for key, value in {**pairs, **wanted}.items()]


def mend_twice(draft: Draft, holdings: Holdings, findings: Sequence[Finding]) -> Iterator[tuple[Finding, str]]:
    """Of a file that is live twice one entry stays, the older one, if no snapshot would lose the file by that."""
    for each in findings:
        if each.kind == "file_twice" and _drop_second(draft, holdings, each.files[0]):
            yield each, f"name {each.files[0]} once"


def _drop_second(draft: Draft, holdings: Holdings, path: str) -> bool:
    places: Counter[str] = Counter()
    for name in _manifests_of(holdings, path):
        file = draft.manifest(name)
        places[name] += sum(_is_live(file, record, path) for record in file.records)
    within = [name for name, count in places.items() if count > 1]
    if within:
        for name in within:
            _keep_first(draft, holdings, name, path)
        return True
    first, *others = sorted(places, key=lambda name: _age(holdings, name))
    if not all(set(holdings.snapshots_with(name)) <= set(holdings.snapshots_with(first)) for name in others):
        return False
    for name in others:
        file = _pinned(draft, holdings, name)
        kept = [record for record in file.records if not _is_live(file, record, path)]
        draft.manifests[name] = file._replace(records=kept)
        draft.touch(name)
    return bool(others)


def _age(holdings: Holdings, manifest: str) -> int:
    return min(e.line.sequence_number for h in holdings.held for e in h.entries if e.line.path == manifest)


def _is_live(file: AvroFile, record: dict[str, Any], path: str) -> bool:
    return bool(record[file.name(0)] != 2 and record[file.name(2)][file.name(2, 100)] == path)


def _pinned(draft: Draft, holdings: Holdings, name: str) -> AvroFile:
    """The manifest, in which every data file says its own first row id: it no longer follows from those before it."""
    file = draft.manifest(name)
    if file.has(2, 142) and name not in draft.changed:
        entries = next(e for h in holdings.held for e in h.entries if e.line.path == name)
        for record, first in zip(file.records, first_row_ids(entries).tolist(), strict=True):
            if first != NOBODY:
                record[file.name(2)][file.name(2, 142)] = first
    return file


def _keep_first(draft: Draft, holdings: Holdings, name: str, path: str) -> None:
    file, seen, kept = _pinned(draft, holdings, name), False, []
    for record in file.records:
        live = _is_live(file, record, path)
        if not (live and seen):
            kept.append(record)
        seen = seen or live
    draft.manifests[name] = file._replace(records=kept)
    draft.touch(name)


def mend_statuses(draft: Draft, holdings: Holdings, findings: Sequence[Finding]) -> Iterator[tuple[Finding, str]]:
    """An entry that a snapshot calls deleted, of a file that was never there before: the snapshot added it."""
    for each in findings:
        held = holdings.by_id.get(each.snapshots[0]) if each.kind == "entry_status" and each.snapshots else None
        files = [path for one in (held,) if one is not None for path in _added_as_deleted(draft, holdings, one)]
        if files:
            yield each, f"call {files[0]} added by snapshot {each.snapshots[0]}, which it is"


def _added_as_deleted(draft: Draft, holdings: Holdings, held: Held) -> Iterator[str]:
    parent = holdings.by_id.get(held.words.get("parent-snapshot-id") or -1)
    if parent is None and held.words.get("parent-snapshot-id") is not None:
        return
    before = {path for one in (parent,) if one is not None for each in one.entries for path in each.text("path")}
    for entries in held.entries:
        if entries.line.added_snapshot_id != held.id:
            continue
        file = _pinned(draft, holdings, entries.line.path)
        for record in file.records:
            path = str(record[file.name(2)][file.name(2, 100)])
            if record[file.name(0)] == 2 and record[file.name(1)] in (None, held.id) and path not in before:
                record[file.name(0)] = 1
                draft.touch(entries.line.path)
                yield path
