"""How often what happened, from how often each pair was expanded."""

from __future__ import annotations

import numpy as np

from lakeproof.checker.fast.jit import I64
from lakeproof.checker.fast.memo import Memo
from lakeproof.checker.readable import Counts


def counts_of(memo: Memo, visits: I64) -> Counts:
    """The counts that the readable engine would give."""
    counts = Counts()
    moves, owner = memo.rows[: memo.row_count, 3], memo.owner[: memo.row_count]
    times = np.zeros(len(memo.tables.moves.values), np.int64)
    np.add.at(times, moves, visits[owner])
    names: dict[str, list[int]] = {}
    for move, (steps, marks) in enumerate(memo.tables.moves.values):
        for name in steps:
            counts.taken[name] += int(times[move])
            names.setdefault(name, []).append(move)
        for mark in marks:
            if times[move]:
                counts.marks[mark] += int(times[move])
    for name, wanted in names.items():
        open_to = np.zeros(len(visits), np.bool_)
        open_to[owner[np.isin(moves, wanted)]] = True
        counts.enabled[name] = int(visits[open_to].sum())
    return counts
