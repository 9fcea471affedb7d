"""Properties over whole levels: the model's tests run once per value, and arrays say which states they concern."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lakeproof.checker.fast.expand import OWN
from lakeproof.checker.fast.jit import I64, U64
from lakeproof.checker.fast.layout import Layout
from lakeproof.checker.fast.memo import Memo
from lakeproof.checker.model import Property
from lakeproof.checker.verdicts.ledger import Ledger, lives

CHUNK = 1 << 18  # states decoded at a time

Mask = NDArray[np.bool_]


class Sight(Protocol):
    """What the judge may look at."""

    memo: Memo
    layout: Layout

    def visits(self) -> I64:
        """How often each pair was expanded."""


class Judge:
    """Notes in the ledger what the states and moves of each level hit."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.shared_hits: dict[str, list[int]] = {}  # property -> shared values that hit it
        self.pair_hits: dict[str, list[int]] = {}  # property -> pairs that hit it
        self.move_hits: dict[str, list[I64]] = {}  # property -> rows that hit it
        self.shared_seen = self.pairs_seen = self.rows_seen = 0
        self.rest_fails: dict[str, dict[int, bool]] = {}  # property -> pair -> fails at rest

    def open(self, hits: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
        """What may be hit and was not yet."""
        return [(name, numbers) for name, numbers in hits.items() if name not in self.ledger.found]

    def states(self, sight: Sight, states: U64, depth: int) -> None:
        """Note what the new states of one depth hit."""
        self._test_values(sight.memo)
        for name, numbers in self.open(self.shared_hits):
            flags = _flags(numbers, len(self.ledger.tables.shared.values))
            self._note_first(name, sight, states, depth, partial(_has_shared, flags))
        for name, numbers in self.open(self.pair_hits):
            flags = _flags(numbers, sight.memo.known.count)
            self._note_first(name, sight, states, depth, partial(_has_pair, flags, sight.memo))
        if self.ledger.asks_all:
            for begin in range(0, len(states), CHUNK):
                columns = sight.layout.columns(states[begin : begin + CHUNK])
                for state in sight.memo.states(columns):
                    names = self.ledger.of_state(state)
                    if names:
                        self.ledger.note(names, depth, state)

    def _test_values(self, memo: Memo) -> None:
        """Run the tests on shared values and pairs that are new since the last level."""
        tables, ledger = self.ledger.tables, self.ledger
        for shared in range(self.shared_seen, len(tables.shared.values)):
            for name in ledger.of_shared(shared):
                self.shared_hits.setdefault(name, []).append(shared)
        self.shared_seen = len(tables.shared.values)
        if ledger.asks_each:
            span = slice(self.pairs_seen, memo.known.count)
            news = zip(memo.kind_of[span], memo.shared_of[span], memo.pairs[span, OWN], strict=True)
            for pair, (kind, shared, own) in enumerate(news, self.pairs_seen):
                for name in ledger.of_pair(int(kind), int(shared), int(own)):
                    self.pair_hits.setdefault(name, []).append(pair)
        self.pairs_seen = memo.known.count

    def moves(self, sight: Sight, states: U64, depth: int) -> None:
        """Note what the transitions out of the states of one depth hit."""
        memo = sight.memo
        moves = memo.rows[self.rows_seen : memo.row_count, 3]
        for move in np.unique(moves).tolist():
            for name in self.ledger.of_move(move):
                if name not in self.ledger.found:
                    self.move_hits.setdefault(name, []).append(np.nonzero(moves == move)[0] + self.rows_seen)
        self.rows_seen = memo.row_count
        open_hits = [(name, rows) for name, rows in self.move_hits.items() if name not in self.ledger.found]
        visits = sight.visits() if open_hits else np.empty(0, np.int64)
        for name, parts in open_hits:
            rows = np.concatenate(parts)
            taken = rows[visits[memo.owner[rows]] > 0]
            if len(taken):
                self._note_move(name, sight, states, depth, taken)

    def _note_move(self, name: str, sight: Sight, states: U64, depth: int, rows: I64) -> None:
        memo = sight.memo
        flags = _flags(memo.owner[rows].tolist(), memo.known.count)
        found = first_where(sight.layout, states, partial(_has_pair, flags, memo))
        if found is None:
            return
        columns = sight.layout.columns(states[found : found + 1])
        pairs = memo.pairs_in(columns)[:, 0]
        by = int(np.argmax(flags[pairs]))
        move = int(memo.rows[rows[memo.owner[rows] == pairs[by]][0], 3])
        self.ledger.note((name,), depth + 1, memo.state(columns[:, 0]), move, by + 1)

    def at_rest(self, sight: Sight, states: U64, depth: int) -> None:
        """Note what is violated because nothing moves any more in these states."""
        for claim in self.ledger.claims:
            if claim.name in self.ledger.found or not len(states):
                continue
            if claim.subject == "rest" or (claim.kind == "eventually" and claim.subject == "each"):
                self._note_first(claim.name, sight, states, depth, partial(self._fails, claim, sight.memo))
            elif claim.kind == "eventually":
                self._note_lifeless(claim, sight, states, depth)

    def _fails(self, claim: Property, memo: Memo, columns: I64) -> Mask:
        """Which of these states have a process that may not rest so."""
        test = self.ledger.model.is_final if claim.subject == "rest" else claim.test
        assert test is not None
        known = self.rest_fails.setdefault(claim.name, {})
        pairs = memo.pairs_in(columns)
        shared, owns = self.ledger.tables.shared.values, self.ledger.tables.owns
        for pair in np.unique(pairs).tolist():
            if pair not in known:
                own = owns[memo.kind_of[pair]].values[memo.pairs[pair, OWN]]
                known[pair] = not test(shared[memo.shared_of[pair]], own)
        flags = _flags([pair for pair, fails in known.items() if fails], memo.known.count)
        return _has_pair(flags, memo, columns)

    def _note_lifeless(self, claim: Property, sight: Sight, states: U64, depth: int) -> None:
        for begin in range(0, len(states), CHUNK):
            for state in sight.memo.states(sight.layout.columns(states[begin : begin + CHUNK])):
                if not lives(claim, *self.ledger.tables.values_of(state)):
                    self.ledger.note((claim.name,), depth, state)
                    return

    def _note_first(self, name: str, sight: Sight, states: U64, depth: int, test: Callable[[I64], Mask]) -> None:
        found = first_where(sight.layout, states, test)
        if found is not None:
            state = sight.memo.state(sight.layout.columns(states[found : found + 1])[:, 0])
            self.ledger.note((name,), depth, state)


def first_where(layout: Layout, states: U64, test: Callable[[I64], Mask]) -> int | None:
    """The number of the first state whose columns pass the test."""
    for begin in range(0, len(states), CHUNK):
        mask = test(layout.columns(states[begin : begin + CHUNK]))
        if mask.any():
            return begin + int(np.argmax(mask))
    return None


def _has_shared(flags: Mask, columns: I64) -> Mask:
    mask: Mask = flags[columns[0]]
    return mask


def _has_pair(flags: Mask, memo: Memo, columns: I64) -> Mask:
    mask: Mask = np.any(flags[memo.pairs_in(columns)], axis=0)
    return mask


def _flags(numbers: list[int], length: int) -> Mask:
    flags = np.zeros(length, np.bool_)
    flags[numbers] = True
    return flags
