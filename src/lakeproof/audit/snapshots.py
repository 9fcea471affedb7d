"""Every retained snapshot: its list, its place in the line of parents, its totals, and what its entries claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.holdings import ADDED, DELETED, EQUALITY, EXISTING, Entries, Held, Holdings, Ints, list_of
from lakeproof.audit.kinds import MAY
from lakeproof.iceberg.inspecting.raw_files import Damaged, Gone

TOTALS = {
    "total-data-files": (False, None),
    "total-records": (False, "rows"),
    "total-delete-files": (True, None),
    "total-position-deletes": (True, "positions"),
    "total-equality-deletes": (True, "values"),
    "total-files-size": (None, "size"),
}
CHANGES = {"added-data-files": ADDED, "deleted-data-files": DELETED}


def judge_snapshots(holdings: Holdings) -> Iterator[Finding]:
    """What is wrong with the snapshots themselves."""
    yield from _lists(holdings)
    for held in holdings.held:
        yield from _header(held)
        yield from _lines(held)
        if held.whole:
            yield from _totals(held)
        if not _is_cut(held):
            yield from _claims(holdings, held)
    yield from _lost_parents(holdings)


def _is_cut(held: Held) -> bool:
    """Whether a list without lines belongs to a snapshot that says that it holds files."""
    said = _said(held.words, "total-data-files") or _said(held.words, "added-data-files")
    return not held.list.lines and bool(said)


def _lists(holdings: Holdings) -> Iterator[Finding]:
    for words in holdings.snapshots:
        path, number = list_of(words), int(words["snapshot-id"])
        read = holdings.lists[path]
        if isinstance(read, Gone):
            text = f"the manifest list {path} is not there"
            yield find("missing_manifest_list", text, snapshots=[number], files=[path])
        elif isinstance(read, Damaged):
            text = f"the manifest list {path} cannot be read: {read}"
            yield find("unreadable_manifest_list", text, snapshots=[number], files=[path])
        elif _is_cut(Held(number, words, read, (), True)):
            text = "the manifest list names no manifest, and its snapshot says that there are data files: it is cut"
            yield find("unreadable_manifest_list", text, snapshots=[number], files=[path])


def _said(words: object, key: str) -> int | None:
    """A number of a summary; `None`: it is not said, or is none."""
    summary = words.get("summary") if isinstance(words, dict) else None
    text = str((summary or {}).get(key, ""))
    return int(text) if text.isdecimal() else None


def _header(held: Held) -> Iterator[Finding]:
    """The list says for whom it was written: the snapshot, its parent and its number."""
    header, words, path = held.list.header, held.words, list_of(held.words)
    if header.get("snapshot-id", str(held.id)) != str(held.id):
        text = f"the manifest list of snapshot {held.id} was written for snapshot {header['snapshot-id']}"
        yield find("manifest_list_of_another", text, snapshots=[held.id], files=[path])
        return
    parent = words.get("parent-snapshot-id")
    on = header.get("parent-snapshot-id")
    if parent is not None and on is not None and on != str(parent):
        text = f"snapshot {held.id} names parent {parent}, its manifest list was written on {on}"
        yield find("wrong_parent", text, snapshots=[held.id], files=[path])
    number, said = header.get("sequence-number", ""), words.get("sequence-number")
    if number.isdecimal() and said is not None and int(number) != int(said):
        text = f"snapshot {held.id} has sequence number {said}, its manifest list says {number}"
        yield find("sequence_numbers", text, snapshots=[held.id], files=[path])


def _lost_parents(holdings: Holdings) -> Iterator[Finding]:
    """A snapshot that says it has no parent, though it was written on one that is still there."""
    for held in holdings.held:
        on = held.list.header.get("parent-snapshot-id", "null")
        if held.words.get("parent-snapshot-id") is None and on.isdecimal() and int(on) in holdings.parents:
            text = f"snapshot {held.id} names no parent, its manifest list was written on {on}"
            yield find("wrong_parent", text, snapshots=[held.id], files=[list_of(held.words)])


def _lines(held: Held) -> Iterator[Finding]:
    for path, count in Counter(line.path for line in held.list.lines).items():
        if count > 1:
            text = f"the manifest list names {path} {count} times: its rows are read {count} times"
            yield find("manifest_twice", text, snapshots=[held.id], files=[path])
    number = int(held.words.get("sequence-number") or 0)
    late = [line.path for line in held.list.lines if number and line.sequence_number > number]
    if late:
        text = f"{len(late)} manifests claim to be younger than their snapshot of {number}"
        yield find("sequence_numbers", text, snapshots=[held.id], files=late)


def totals_of(held: Held) -> dict[str, int]:
    """The totals that a snapshot's manifests really hold."""
    data, deletes = held.joined("rows", deletes=False), held.joined("rows", deletes=True)
    content = held.joined("content", deletes=True)
    size = _size(held, "content_size")
    return {
        "total-data-files": len(data),
        "total-records": int(data.sum()),
        "total-delete-files": len(deletes),
        "total-position-deletes": int(deletes[content != EQUALITY].sum()),
        "total-equality-deletes": int(deletes[content == EQUALITY].sum()),
        "total-files-size": size,
    }


def _size(held: Held, column: str) -> int:
    return sum(int(held.joined(column, deletes=each).sum()) for each in (False, True))


def _totals(held: Held) -> Iterator[Finding]:
    real = totals_of(held)
    if _is_cut(held):
        return  # that is a finding of its own
    whole = _size(held, "size")  # of a vector some writers count its file, Apache Iceberg the vector alone
    if _said(held.words, "total-files-size") == whole:
        real["total-files-size"] = whole
    wrong = {name: count for name, count in real.items() if _said(held.words, name) not in (None, count)}
    if wrong:
        words = ", ".join(f"{name} {_said(held.words, name)} (really {count})" for name, count in wrong.items())
        fewer = real["total-data-files"] < (_said(held.words, "total-data-files") or 0)
        text = f"the summary of snapshot {held.id} says {words}"
        yield find("summary_totals", text, snapshots=[held.id], severity=MAY if fewer else "")


def _own(held: Held, entries: Entries) -> bool:
    return entries.line.added_snapshot_id == held.id


def _claims(holdings: Holdings, held: Held) -> Iterator[Finding]:
    """What the snapshot's own manifests say they added, kept and removed, against what its parent held."""
    parent = holdings.by_id.get(held.words.get("parent-snapshot-id") or -1)
    on = held.list.header.get("parent-snapshot-id")
    strange = parent is None or parent is held or (on is not None and on != str(parent.id))
    if parent is None or strange or _is_cut(parent) or not (parent.whole and held.whole):
        yield from _first_claims(holdings, held)
        return
    theirs = {each.line.path for each in parent.entries}
    mine = {each.line.path for each in held.entries}
    before = _files([each for each in parent.entries if each.line.path not in mine])
    new = [each for each in held.entries if each.line.path not in theirs]
    removed = _files(new, lambda each: each.status == DELETED)
    stays = _files(new, lambda each: each.status == EXISTING)
    now = _files(new)
    for files, text in (
        (np.setdiff1d(before, np.union1d(now, removed)), "live before, and nothing says that they were removed"),
        (np.setdiff1d(stays, before), "called existing, and were not in the table before"),
        (np.setdiff1d(removed, before), "called deleted, and were not in the table before"),
        (np.intersect1d(removed, now), "called deleted, and are live"),
    ):
        if len(files):
            said = f"{len(files)} files of snapshot {held.id} were {text}" if "live before" in text else ""
            said = said or f"{len(files)} files of snapshot {held.id} are {text}"
            named = [holdings.name(int(each)) for each in files[:20]]
            yield find("entry_status", said, snapshots=_reached(holdings, held, new), files=named)


def _reached(holdings: Holdings, held: Held, entries: list[Entries]) -> list[int]:
    """A snapshot, and those that read the same manifests."""
    paths = {each.line.path for each in entries}
    others = [each.id for each in holdings.held if any(line.path in paths for line in each.list.lines)]
    return [held.id, *(each for each in others if each != held.id)]


def _first_claims(holdings: Holdings, held: Held) -> Iterator[Finding]:
    """A snapshot whose parent nobody can ask is held against its own summary."""
    if not held.whole:
        return
    own = [each for each in held.entries if _own(held, each) and each.line.content == 0]
    for key, status in CHANGES.items():
        said = _said(held.words, key)
        real = sum(int(((each.status == status) & (each.snapshot == held.id)).sum()) for each in own)
        if said is not None and said != real and _is_first(held):
            word = "added" if status == ADDED else "deleted"
            text = f"snapshot {held.id} says that it {word} {said} data files, its manifests hold {real} such"
            yield find("entry_status", text, snapshots=_reached(holdings, held, own))


def _is_first(held: Held) -> bool:
    """The first snapshot of a table: everything in it was added by itself."""
    return int(held.words.get("sequence-number") or 0) == 1


def _files(entries: list[Entries], mask: object = None) -> Ints:
    """The files of these manifests, the live ones unless another mask is asked for."""
    chosen = [each.file[mask(each)] if callable(mask) else each.file[each.live] for each in entries]
    return np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
