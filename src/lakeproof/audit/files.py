"""The files that the snapshots hold: whether they are there, once, and what their deletes reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.holdings import EQUALITY, NOBODY, POSITIONS, Entries, Held, Holdings, Ints
from lakeproof.audit.kinds import MAY
from lakeproof.audit.metadata import field_ids_of
from lakeproof.iceberg.upkeep.table_on_disk import sizes_of

PUFFIN = "PUFFIN"


class SaidOnDisk(NamedTuple):
    """What is said of each file by its number: size, and whether any snapshot holds it."""

    size: Ints
    needed: np.ndarray[tuple[int], np.dtype[np.bool_]]


def judge_files(holdings: Holdings) -> Iterator[Finding]:
    """What is wrong with the files as far as their names, sizes and numbers tell."""
    yield from _on_disk(holdings)
    yield from _of_every_snapshot(holdings)
    yield from _entries(holdings)


def _all_entries(holdings: Holdings) -> list[Entries]:
    """The entries of every manifest, once."""
    found = {each.line.path: each for held in holdings.held for each in held.entries}
    return list(found.values())


def _known(holdings: Holdings) -> SaidOnDisk:
    count = len(holdings.paths)
    size, needed = np.full(count, NOBODY, np.int64), np.zeros(count, bool)
    for entries in _all_entries(holdings):
        files = entries.file[entries.live]
        size[files] = entries.size[entries.live]
        needed[files] = True
    return SaidOnDisk(size, needed)


def _on_disk(holdings: Holdings) -> Iterator[Finding]:
    known = _known(holdings)
    asked: dict[str, int] = {}
    for number in np.flatnonzero(known.needed).tolist():
        asked.setdefault(holdings.name(number), number)  # one Puffin file holds many vectors
    gone, changed = [], []
    for path, size in zip(asked, sizes_of(holdings.io, list(asked)), strict=True):
        said = int(known.size[asked[path]])
        if size is None:
            gone.append(path)
        elif size != said:
            changed.append((path, size, said))
    for path in gone:
        yield find("missing_file", f"{path} is not there", snapshots=holdings.holders(asked[path]), files=[path])
    for path, size, said in changed:
        text = f"{path} has {size} bytes, the table says {said}"
        yield find("changed_file", text, snapshots=holdings.holders(asked[path]), files=[path])


def _of_every_snapshot(holdings: Holdings) -> Iterator[Finding]:
    """What is wrong between the files of one snapshot; what is wrong in several of them is said once."""
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for held in holdings.held:
        for kind, number, text in _of_one(holdings, held):
            found.setdefault((kind, number), []).append((held.id, text))
    for (kind, number), seen in found.items():
        path = holdings.name(number)
        yield find(kind, seen[-1][1], snapshots=[each for each, _ in seen], files=[path])


def _of_one(holdings: Holdings, held: Held) -> Iterator[tuple[str, int, str]]:
    data, seqs = held.joined("file", deletes=False), held.joined("seq", deletes=False)
    files, counts = np.unique(data, return_counts=True)
    paths = {line.path for line in held.list.lines}
    if len(paths) == len(held.list.lines):  # a manifest that is listed twice is said as that
        for number, count in zip(files[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
            yield "file_twice", number, f"{holdings.name(number)} is in the table {count} times"
    deletes, named = held.joined("file", deletes=True), held.joined("named", deletes=True)
    known = named != NOBODY
    if held.whole and held.id in holdings.heads:  # in an older snapshot nobody need do anything about it
        for number in deletes[known & ~np.isin(named, files)].tolist():
            yield (
                "dangling_delete_file",
                number,
                f"{holdings.name(number)} deletes rows of a file that is not in the table",
            )
    vectors, many = np.unique(_vectors(held), return_counts=True)
    for number, count in zip(vectors[many > 1].tolist(), many[many > 1].tolist(), strict=True):
        yield (
            "two_vectors",
            number,
            f"{holdings.name(number)} has {count} deletion vectors, where the format allows one",
        )
    age = dict(zip(data.tolist(), seqs.tolist(), strict=True)) if known.any() else {}
    own, of = held.joined("seq", deletes=True)[known], named[known]
    content = held.joined("content", deletes=True)[known]
    for number, seq, target, kind in zip(
        deletes[known].tolist(), own.tolist(), of.tolist(), content.tolist(), strict=True
    ):
        if kind == POSITIONS and seq < age.get(target, -1):
            text = f"{holdings.name(number)} is of {seq}, and names rows of a file of {age[target]}"
            yield "idle_delete_file", number, text


def _vectors(held: Held) -> Ints:
    """The data files that the vectors of a snapshot name."""
    parts = [np.zeros(0, np.int64)]
    for each in held.entries:
        if each.line.content == 1 and "blob_offset" in each.table.column_names:
            is_vector = each.table.column("blob_offset").is_valid().to_numpy()
            parts.append(each.named[each.live & np.asarray(is_vector, bool)])
    found = np.concatenate(parts)
    vectors: Ints = found[found != NOBODY]
    return vectors


def _entries(holdings: Holdings) -> Iterator[Finding]:
    words = holdings.words
    fields = {number for schema in words.get("schemas") or [] for number in field_ids_of(schema)}
    orders = {int(each["order-id"]) for each in words.get("sort-orders") or []} | {0}
    for entries in _all_entries(holdings):
        at = holdings.snapshots_with(entries.line.path)[:1]
        yield from _strange_entries(holdings, entries, fields, orders, at)


def _strange_entries(
    holdings: Holdings, entries: Entries, fields: set[int], orders: set[int], at: list[int]
) -> Iterator[Finding]:
    version, live = int(holdings.words["format-version"]), np.flatnonzero(entries.live).tolist()
    if (entries.content == EQUALITY).any():
        ids = entries.text("equality_ids")
        for row in live:
            if int(entries.content[row]) == EQUALITY and (not ids[row] or not set(ids[row]) <= fields):
                path = holdings.name(int(entries.file[row]))
                text = f"{path} compares columns {ids[row]}, and the table's are {sorted(fields)}"
                yield find("equality_ids", text, snapshots=holdings.holders(int(entries.file[row])), files=[path])
    if entries.line.content == 1:
        formats = entries.text("format")
        puffin = [row for row in live if str(formats[row]).upper() == PUFFIN]
        if puffin and version < 3:
            text = f"{len(puffin)} deletion vectors are in a table of format version {version}"
            yield find("format_version", text, snapshots=at, files=[entries.line.path])
        return
    strange = [each for each in set(entries.text("sort_order_id")) if each is not None and each not in orders]
    if strange:
        text = f"files say that they are sorted by order {strange[0]}, which is not there"
        yield find("sort_order_ids", text, snapshots=at, files=[entries.line.path])
    if version == 1 and (entries.content != 0).any():
        yield find("format_version", "delete files are in a table of format version 1", snapshots=at, severity=MAY)
