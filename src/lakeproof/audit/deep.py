"""Every file of the retained snapshots is looked into: footers, and with checksums every page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from lakeproof.audit.findings import Finding, find
from lakeproof.audit.holdings import NOBODY, Entries, Holdings
from lakeproof.iceberg.inspecting.contents import FoundInside, ToOpen, look_into

CHUNK = 200
"""Files that are looked into at once."""
Look = Callable[[list[ToOpen]], list[FoundInside]]
Mapper = Callable[[Look, list[list[ToOpen]]], Iterable[list[FoundInside]]]


class Depth(NamedTuple):
    """How far the files are looked into: not at all, their footers, or every page."""

    footers: bool = False
    pages: bool = False

    @property
    def deep(self) -> bool:
        """Whether files are opened."""
        return self.footers or self.pages


def one_by_one(look: Look, chunks: list[list[ToOpen]]) -> Iterator[list[FoundInside]]:
    """The files are looked into by threads of this process."""
    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(look, chunks)


def judge_contents(holdings: Holdings, depth: Depth, run: Mapper) -> Iterator[Finding]:
    """What is wrong inside the files."""
    asked = list(_asked(holdings))
    chunks = [asked[start : start + CHUNK] for start in range(0, len(asked), CHUNK)]
    look = partial(look_into, holdings.io, holdings.words, pages=depth.pages)
    for found in run(look, chunks):
        for one in found:
            path = holdings.name(one.number)
            yield find(one.kind, one.because, snapshots=holdings.holders(one.number), files=[path])


def _asked(holdings: Holdings) -> Iterator[ToOpen]:
    """Every live file once, with the rows of the data files that a delete file may name."""
    manifests = list({each.line.path: each for held in holdings.held for each in held.entries}.values())
    rows = _rows_of(holdings, [each for each in manifests if each.line.content == 0])
    seen: set[int] = set()
    for entries in manifests:
        for at, entry in zip(np.flatnonzero(entries.live).tolist(), entries.of(entries.live), strict=True):
            number, named = int(entries.file[at]), int(entries.named[at])
            if number in seen:
                continue
            seen.add(number)
            target = holdings.name(named) if named != NOBODY else ""
            mine = (
                rows if entries.line.content == 1 and not target else {target: rows[target]} if target in rows else {}
            )
            if entries.line.content == 0:
                mine = {}
            yield ToOpen(number, holdings.name(number), entries.line.spec_id, entry, mine)


def _rows_of(holdings: Holdings, manifests: list[Entries]) -> dict[str, int]:
    """How many rows each data file has, as the manifests say."""
    found: dict[str, int] = {}
    for each in manifests:
        live = each.live
        found.update(zip(map(holdings.name, each.file[live].tolist()), each.rows[live].tolist(), strict=True))
    return found
