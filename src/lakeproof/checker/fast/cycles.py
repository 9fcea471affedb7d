"""Can any run go round? An argument over pairs instead of states: it proves that none can, or it says nothing.

On a way round, every process comes back to the own value it had, beside the shared value it had. So the outcomes taken
on it lie on closed walks through pairs, where a walk may also use what the process observes of outcomes that themselves
lie on such a walk. Outcomes that cannot be on one are struck off, again and again; if none is left, every run ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakeproof.checker.fast.expand import KIND_SHIFT, OWN
from lakeproof.checker.fast.jit import I64, U64, kernel
from lakeproof.checker.fast.memo import Memo

MOST_EDGES = 30_000_000  # beyond this many the argument is not tried

Mask = NDArray[np.bool_]


@kernel
def components(first: I64, to: I64) -> I64:
    """The number of the strongly connected component of each node (Tarjan, without recursion)."""
    count = len(first) - 1
    order, low = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    part, edge = np.full(count, -1, np.int64), first[:-1].copy()
    path, stack = np.empty(count, np.int64), np.empty(count, np.int64)
    clock = parts = on_stack = 0
    for root in range(count):
        if order[root] >= 0:
            continue
        depth = 1
        path[0] = root
        while depth:
            node = path[depth - 1]
            if order[node] < 0:
                order[node] = low[node] = clock
                clock += 1
                stack[on_stack] = node
                on_stack += 1
            if edge[node] < first[node + 1]:
                target = to[edge[node]]
                edge[node] += 1
                if order[target] < 0:
                    path[depth] = target
                    depth += 1
                elif part[target] < 0:
                    low[node] = min(low[node], order[target])
                continue
            depth -= 1
            if depth:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[node])
            if low[node] == order[node]:
                while part[node] < 0:
                    on_stack -= 1
                    part[stack[on_stack]] = parts
                parts += 1
    return part


def parts_of(nodes: int, sources: I64, targets: I64) -> I64:
    """The components of a graph given as two columns."""
    order = np.argsort(sources, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))]).astype(np.int64)
    return components(first, targets[order].astype(np.int64))


def is_acyclic(memo: Memo) -> bool:
    """Is it certain that no run goes round? False: perhaps one does."""
    rows, owner = memo.rows[: memo.row_count], memo.owner[: memo.row_count].astype(np.int64)
    sources, targets = memo.shared_of[owner].astype(np.int64), rows[:, 0].astype(np.int64)
    after = memo.slots[memo.place[memo.kind_of[owner], targets, 0] + rows[:, 1]].astype(np.int64)
    by_shared = _by_shared(memo)
    alive = np.ones(len(rows), np.bool_)
    while alive.any():
        before = int(alive.sum())
        shared_parts = parts_of(len(memo.tables.shared.values), sources[alive], targets[alive])
        alive &= shared_parts[sources] == shared_parts[targets]
        observed = _observed(memo, by_shared, sources[alive], targets[alive], rows[alive, 2].astype(np.int64))
        if observed is None:
            return False
        froms, tos = np.concatenate([owner[alive], observed[0]]), np.concatenate([after[alive], observed[1]])
        pair_parts = parts_of(memo.known.count, froms, tos)
        alive &= pair_parts[owner] == pair_parts[after]
        if int(alive.sum()) == before:
            return False
    return True


def _by_shared(memo: Memo) -> tuple[I64, I64]:
    """All pairs ordered by shared value, and where those of each begin."""
    shared = memo.shared_of[: memo.known.count]
    counts = np.bincount(shared, minlength=len(memo.tables.shared.values))
    return np.argsort(shared, kind="stable"), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _observed(
    memo: Memo, by_shared: tuple[I64, I64], sources: I64, targets: I64, events: I64
) -> tuple[I64, I64] | None:
    """From which pair to which a process is moved by these outcomes of others; None: too many to try."""
    moving = (sources != targets) | (events != 0)
    if not moving.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    links = np.unique(np.stack([sources[moving], targets[moving], events[moving]]), axis=1)
    pairs, begins = by_shared
    lengths = begins[links[0] + 1] - begins[links[0]]
    if lengths.sum() > MOST_EDGES:
        return None
    link = np.repeat(np.arange(links.shape[1]), lengths)
    within = np.arange(len(link)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    froms = pairs[begins[links[0]][link] + within]
    tags = ((memo.kind_of[froms].astype(np.uint64) + np.uint64(1)) << np.uint64(KIND_SHIFT)).astype(np.uint64)
    owns = memo.pairs[froms, OWN].astype(np.int64)
    heard = links[2][link]
    keys: U64 = (heard.astype(np.uint64) << np.uint64(32)) | tags | owns.astype(np.uint64)
    owns = np.where(heard == 0, owns, memo.seen.look(keys))
    keys = (links[1][link].astype(np.uint64) << np.uint64(32)) | tags | np.maximum(owns, 0).astype(np.uint64)
    tos = np.where(owns < 0, -1, memo.known.look(keys))
    met = tos >= 0  # the others never came together in a reached state
    return froms[met], tos[met]
