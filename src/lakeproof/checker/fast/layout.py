"""How a state is one 64-bit number: the shared value on top, then a number per process."""

from __future__ import annotations

import numpy as np

from lakeproof.checker.fast.expand import repack
from lakeproof.checker.fast.jit import I64, U64
from lakeproof.checker.fast.memo import TooWide

BITS = 64
SLACK = 2  # bits to spare per field: short numbers encode better, but no slack means repacking often


class Layout:
    """The bit fields of a state. Widening them keeps the order of states, so sorted runs stay sorted."""

    def __init__(self, needed: list[int]) -> None:
        if sum(needed) > BITS:
            raise TooWide(f"a state needs {sum(needed)} bits")
        slack = min(SLACK, (BITS - sum(needed)) // len(needed))
        self.widths = [bits + slack for bits in needed]
        below = [sum(self.widths[field + 1 :]) for field in range(len(needed))]
        self.shifts = np.array(below, np.uint64)
        self.masks = np.array([(1 << bits) - 1 for bits in self.widths], np.uint64)

    def holds(self, needed: list[int]) -> bool:
        """Are the fields wide enough?"""
        return all(bits <= width for bits, width in zip(needed, self.widths, strict=True))

    def pack(self, fields: list[int]) -> np.uint64:
        """The state with these fields."""
        return np.uint64(sum(field << int(shift) for field, shift in zip(fields, self.shifts, strict=True)))

    def columns(self, states: U64) -> I64:
        """The fields of many states, a row of the array for each field."""
        return np.array([(states >> s) & m for s, m in zip(self.shifts, self.masks, strict=True)]).astype(np.int64)

    def rewritten(self, states: U64, old: Layout) -> U64:
        """States of an older layout in this one, in place."""
        if old is not self:
            repack(states, old.shifts, old.masks, self.shifts)
        return states
