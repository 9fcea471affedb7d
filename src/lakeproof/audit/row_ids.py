"""Format version 3: every row has an id, no two rows have the same, and none changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.holdings import NOBODY, Entries, Held, Holdings, Ints


def first_row_ids(entries: Entries) -> Ints:
    """The first row id of each entry, `NOBODY` where it has none.

    An entry without one takes the manifest's, plus the rows of the live entries before it that have none either.
    """
    own = np.full(len(entries.status), NOBODY, np.int64)
    if "first_row_id" in entries.table.column_names:
        column = entries.table.column("first_row_id").combine_chunks().fill_null(NOBODY)
        own = np.array(column.to_numpy(zero_copy_only=False), np.int64)
    if entries.line.first_row_id is None:
        return own
    lacking = (own == NOBODY) & entries.live
    before = np.cumsum(np.where(lacking, entries.rows, 0)) - np.where(lacking, entries.rows, 0)
    own[lacking] = entries.line.first_row_id + before[lacking]
    return own


def judge_row_ids(holdings: Holdings) -> Iterator[Finding]:
    """What is wrong with the row ids of the retained snapshots."""
    if int(holdings.words["format-version"]) < 3:
        return
    following = int(holdings.words.get("next-row-id") or 0)
    first: dict[int, tuple[Ints, Ints]] = {}
    said: set[tuple[str, int]] = set()
    for held in holdings.held:
        for finding, number in _of_snapshot(holdings, held, following, first):
            if (finding.kind, number) not in said:
                said.add((finding.kind, number))
                yield finding


def _of_snapshot(
    holdings: Holdings, held: Held, following: int, first: dict[int, tuple[Ints, Ints]]
) -> Iterator[tuple[Finding, int]]:
    if held.words.get("first-row-id") is None:
        return  # written before the table had row ids
    manifests = [each for each in held.entries if each.line.content == 0]
    if not manifests:
        return
    files = np.concatenate([each.file[each.live] for each in manifests])
    ids = np.concatenate([first_row_ids(each)[each.live] for each in manifests])
    rows = np.concatenate([each.rows[each.live] for each in manifests])
    for number in files[(ids == NOBODY) & (rows > 0)].tolist():
        yield _finding(holdings, "row_ids_missing", number, "has no row ids"), number
    known = ids != NOBODY
    first[held.id] = files[known], ids[known]
    before = first.get(held.words.get("parent-snapshot-id") or NOBODY)
    if before is not None:  # along a line of parents: two branches may give ids to one old file each
        yield from _changed(holdings, before, first[held.id])
    most = int((ids + rows)[known].max()) if known.any() else 0
    if most > following:
        text = f"the next row id is {following}, and a file of snapshot {held.id} ends with {most - 1}"
        yield find("next_row_id", text, snapshots=[held.id]), NOBODY
    yield from _overlaps(holdings, files[known], ids[known], rows[known])


def _changed(holdings: Holdings, before: tuple[Ints, Ints], now: tuple[Ints, Ints]) -> Iterator[tuple[Finding, int]]:
    _, theirs, mine = np.intersect1d(before[0], now[0], return_indices=True)
    other = before[1][theirs] != now[1][mine]
    for number, was, at in zip(now[0][mine][other], before[1][theirs][other], now[1][mine][other], strict=True):
        text = f"begins with row id {at}, and in the snapshot before with {was}"
        yield _finding(holdings, "row_ids_changed", int(number), text), int(number)


def _overlaps(holdings: Holdings, files: Ints, ids: Ints, rows: Ints) -> Iterator[tuple[Finding, int]]:
    some = rows > 0
    files, ids, rows = files[some], ids[some], rows[some]
    order = np.lexsort((files, ids))
    files, ids, rows = files[order], ids[order], rows[order]
    ends = ids + rows
    clash = np.flatnonzero((ids[1:] < ends[:-1]) & (files[1:] != files[:-1]))
    for at in clash.tolist():
        other = holdings.name(int(files[at]))
        text = f"begins with row id {int(ids[at + 1])}, and {other} ends with {int(ends[at]) - 1}"
        number = int(files[at + 1])
        yield _finding(holdings, "row_ids_twice", number, text), number


def _finding(holdings: Holdings, kind: str, number: int, text: str) -> Finding:
    path = holdings.name(number)
    return find(kind, f"{path} {text}", snapshots=holdings.holders(number), files=[path])
