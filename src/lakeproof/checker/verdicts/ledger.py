"""Which properties were hit, where first: a violation of `always` and `eventually`, a witness of `reachable`.

Tests run once per distinct shared value, pair or state; a hit is noted for the first place only, which in a search
level by level is one of the nearest.
"""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.checker.model import Property
from lakeproof.checker.tables import State, Tables


class PropertyHit(NamedTuple):
    """Where a property was hit first."""

    depth: int  # transitions from the initial state
    state: State
    move: int | None = None  # the hit is a transition out of the state, with this move; None: the state itself
    by: int = 0  # position of the process that takes that transition


class Ledger:
    """Evaluates the properties of a model and keeps what was found first."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.model = tables, tables.model
        self.claims = self.model.claims()
        self.found: dict[str, PropertyHit] = {}
        self._of_shared = self._about("shared")
        self._of_each = self._about("each")
        self._of_all = self._about("all")
        self.asks_each, self.asks_all = bool(self._of_each), bool(self._of_all)
        self._shared: list[tuple[str, ...]] = []  # per shared number
        self._pairs: list[dict[int, tuple[str, ...]]] = [{} for _ in tables.steps]
        self._moves: list[tuple[str, ...]] = []  # per move number

    def _about(self, subject: str) -> list[Property]:
        return [claim for claim in self.claims if claim.subject == subject and claim.kind != "eventually"]

    @property
    def violated(self) -> bool:
        """A property that counts is violated."""
        return any(claim.counts and claim.kind != "reachable" and claim.name in self.found for claim in self.claims)

    def note(self, names: tuple[str, ...], depth: int, state: State, move: int | None = None, by: int = 0) -> None:
        """Remember the first place of each."""
        for name in names:
            if name not in self.found:
                self.found[name] = PropertyHit(depth, state, move, by)

    def of_shared(self, shared: int) -> tuple[str, ...]:
        """Properties that this shared value hits."""
        while len(self._shared) <= shared:
            value = self.tables.shared.values[len(self._shared)]
            self._shared.append(tuple(claim.name for claim in self._of_shared if _hit(claim, value)))
        return self._shared[shared]

    def of_pair(self, kind: int, shared: int, own: int) -> tuple[str, ...]:
        """Properties that this shared value with this own value hits."""
        key = shared << 32 | own
        names = self._pairs[kind].get(key)
        if names is None:
            values = self.tables.shared.values[shared], self.tables.owns[kind].values[own]
            names = self._pairs[kind][key] = tuple(claim.name for claim in self._of_each if _hit(claim, *values))
        return names

    def of_state(self, state: State) -> tuple[str, ...]:
        """Properties about all own values together that this state hits."""
        values = self.tables.values_of(state)
        return tuple(claim.name for claim in self._of_all if _hit(claim, *values))

    def of_move(self, move: int) -> tuple[str, ...]:
        """Properties whose mark this move carries."""
        while len(self._moves) <= move:
            _, marks = self.tables.moves.values[len(self._moves)]
            names = (claim.name for claim in self.claims if claim.subject == "mark" and claim.mark in marks)
            self._moves.append(tuple(names))
        return self._moves[move]

    def at_rest(self, state: State) -> tuple[str, ...]:
        """Properties that are violated because nothing moves any more in this state."""
        shared, owns = self.tables.values_of(state)
        names = [claim.name for claim in self.claims if claim.kind == "eventually" and not lives(claim, shared, owns)]
        final = self.model.is_final
        if final is not None and not all(final(shared, own) for own in owns):
            names.append("no_deadlock")
        return tuple(names)

    def check_state(self, state: State, depth: int) -> None:
        """Evaluate everything that is about states, and note what is hit."""
        names = self.of_shared(state[0])
        if self.asks_each:
            for kind, own in zip(self.tables.kinds, state[1:], strict=True):
                names += self.of_pair(kind, state[0], own)
        if self.asks_all:
            names += self.of_state(state)
        if names:
            self.note(names, depth, state)


def lives(claim: Property, shared: object, owns: tuple[object, ...]) -> bool:
    """Does what must come eventually hold here?"""
    assert claim.test is not None
    if claim.subject == "all":
        return bool(claim.test(shared, owns))
    return all(claim.test(shared, own) for own in owns)


def hit_by(claim: Property, shared: object, owns: tuple[object, ...]) -> bool:
    """Does this state hit a property about states?"""
    if claim.subject == "shared":
        return _hit(claim, shared)
    if claim.subject == "all":
        return _hit(claim, shared, owns)
    return any(_hit(claim, shared, own) for own in owns)


def _hit(claim: Property, *values: object) -> bool:
    assert claim.test is not None
    return bool(claim.test(*values)) == (claim.kind == "reachable")
