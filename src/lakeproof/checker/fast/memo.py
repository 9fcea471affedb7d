"""The model's answers as arrays: filled in batches from `Tables` whenever the kernels miss something."""

from __future__ import annotations

import numpy as np

from lakeproof.checker.fast.expand import (
    COUNT,
    FIRST,
    KIND_SHIFT,
    NUMBER,
    OWN,
    UNKNOWN,
    URGENT,
    Answers,
    find_all,
    give_numbers,
    insert_all,
)
from lakeproof.checker.fast.jit import I32, I64, U64
from lakeproof.checker.tables import State, Tables

MOST_KINDS, MOST_OWNS = 14, 1 << KIND_SHIFT
OWN_MASK = np.uint64(MOST_OWNS - 1)


class TooWide(Exception):
    """A state does not fit into 64 bits, or there are more values than the tables can number."""


class Map:
    """From 64-bit keys to numbers, filled in batches and read by kernels."""

    def __init__(self) -> None:
        self.keys, self.values, self.count = np.zeros(4096, np.uint64), np.zeros(4096, np.int32), 0

    def add(self, keys: U64, values: I32) -> None:
        """Add keys that are not there yet; at most half of the map is ever full."""
        room = len(self.keys)
        while 2 * (self.count + len(keys)) > room:
            room *= 2
        if room > len(self.keys):
            used = self.keys != 0
            old = self.keys[used], self.values[used]
            self.keys, self.values = np.zeros(room, np.uint64), np.zeros(room, np.int32)
            insert_all(self.keys, self.values, *old)
        insert_all(self.keys, self.values, keys, values)
        self.count += len(keys)

    def look(self, keys: U64) -> I64:
        """The number of each key, or -1."""
        found = np.empty(len(keys), np.int64)
        find_all(self.keys, self.values, keys, found)
        return found


class Memo:
    """Pairs, rows and observations so far, for the kernels to read."""

    def __init__(self, tables: Tables, *, symmetric: bool) -> None:
        if len(tables.steps) > MOST_KINDS:
            raise TooWide(f"{len(tables.steps)} kinds of processes")
        self.tables = tables
        self.kinds = np.array(tables.kinds, np.int64)
        self.tags = ((self.kinds + 1) << KIND_SHIFT).astype(np.uint64)
        alone = range(len(tables.kinds))
        self.same = np.array([tables.kinds.index(tables.kinds[i]) if symmetric else i for i in alone], np.int64)
        self.known, self.seen = Map(), Map()
        self.place = np.zeros((len(tables.steps), 1024, 3), np.int64)
        self.slots, self.top = np.zeros(4096, np.int32), 0
        self.pairs, self.rows, self.row_count = np.zeros((1024, 4), np.int32), np.zeros((4096, 4), np.int32), 0
        self.shared_of = np.zeros(1024, np.int32)  # per pair
        self.kind_of = np.zeros(1024, np.int32)  # per pair
        self.owner = np.zeros(4096, np.int32)  # per row: its pair
        start = tables.initial()
        self.add_pairs(self.keys(np.full(len(alone), start[0]), np.array(start[1:])))

    def answers(self) -> Answers:
        """The arrays as they are now; they move when the memo grows."""
        known, seen = self.known, self.seen
        maps = known.keys, known.values, seen.keys, seen.values
        return Answers(self.kinds, self.tags, self.same, self.place, self.slots, self.pairs, self.rows, *maps)

    def keys(self, shared: I64, owns: I64) -> U64:
        """The keys of one pair per process."""
        keys: U64 = (shared.astype(np.uint64) << np.uint64(32)) | self.tags | owns.astype(np.uint64)
        return keys

    def add_pairs(self, keys: U64) -> None:
        """Number pairs that were not met before; the model is not asked anything yet."""
        keys = np.unique(keys)
        keys = keys[self.known.look(keys) < 0]
        before, after = self.known.count, self.known.count + len(keys)
        while len(self.tables.shared.values) > self.place.shape[1]:
            self.place = np.concatenate([self.place, np.zeros_like(self.place)], axis=1)
        self.pairs = _room(self.pairs, after)
        self.shared_of, self.kind_of = _room(self.shared_of, after), _room(self.kind_of, after)
        self.pairs[before:after, OWN] = keys & OWN_MASK
        self.pairs[before:after, COUNT] = UNKNOWN
        self.shared_of[before:after] = keys >> np.uint64(32)
        self.kind_of[before:after] = ((keys >> np.uint64(KIND_SHIFT)) & np.uint64(15)) - np.uint64(1)
        at, self.top = give_numbers(keys, 0, before, self.place, self.pairs, self.slots, self.top)
        while at < len(keys):
            self.slots = np.concatenate([self.slots, np.zeros_like(self.slots)])
            at, self.top = give_numbers(keys, at, before, self.place, self.pairs, self.slots, self.top)
        self.known.add(keys, np.arange(before, after, dtype=np.int32))

    def ask(self, keys: U64) -> None:
        """Ask the model for the outcomes of these pairs."""
        tables, flat, counts, targets = self.tables, list[int](), list[int](), list[int]()
        compute, kept = tables.compute, tables.rows
        for key in keys.tolist():
            kind, shared, own = (key >> KIND_SHIFT & 15) - 1, key >> 32, key & (MOST_OWNS - 1)
            urgent, rows = kept[kind].pop(shared << 32 | own, None) or compute(kind, shared, own)
            counts.append(len(rows) + URGENT if urgent else len(rows))
            for row in rows:
                flat += row
                targets.append(row[0] << 32 | (kind + 1) << KIND_SHIFT | row[1])
        if max(len(owns.values) for owns in tables.owns) > MOST_OWNS:
            raise TooWide("more own values than the tables can number")
        pairs = self.known.look(keys)
        self._add_rows(pairs, np.array(counts, np.int64), np.array(flat, np.int64).reshape(-1, 4), targets)

    def _add_rows(self, pairs: I64, counts: I64, rows: I64, targets: list[int]) -> None:
        before, after = self.row_count, self.row_count + len(rows)
        target_keys = np.array(targets, np.uint64)
        self.add_pairs(target_keys)
        rows[:, 1] = self.pairs[self.known.look(target_keys), NUMBER]
        self.rows, self.owner = _room(self.rows, after), _room(self.owner, after)
        lengths = counts & (URGENT - 1)
        self.rows[before:after], self.owner[before:after] = rows, np.repeat(pairs, lengths)
        self.row_count = after
        self.pairs[pairs, FIRST] = before + np.cumsum(lengths) - lengths
        self.pairs[pairs, COUNT] = counts

    def ask_seen(self, keys: U64) -> None:
        """Ask the model what processes make of events; of own values that are heard as one, only once."""
        observe, owns = self.tables.observe, dict[int, int]()
        twins = [self.twin_of(key) for key in keys.tolist()]
        known = self.seen.look(np.array(twins, np.uint64)).tolist()
        for key, twin, own in zip(keys.tolist(), twins, known, strict=True):
            if own < 0:
                own = owns.get(twin, -1)
            if own < 0:
                own = owns[twin] = observe((twin >> KIND_SHIFT & 15) - 1, twin & (MOST_OWNS - 1), twin >> 32)
            owns[key] = own
        self.seen.add(np.array(list(owns), np.uint64), np.array(list(owns.values()), np.int32))

    def twin_of(self, key: int) -> int:
        """The key of the same event and of the own value that this one is heard as."""
        own = key & (MOST_OWNS - 1)
        return key - own + self.tables.twin((key >> KIND_SHIFT & 15) - 1, own)

    def pairs_in(self, fields: I64) -> I64:
        """Per process and state the pair, for states given as columns (shared, then a number per process)."""
        begins = [self.place[kind, fields[0], 0] for kind in self.kinds]
        return np.array(
            [self.slots[begin + number] for begin, number in zip(begins, fields[1:], strict=True)], np.int64
        )

    def states(self, fields: I64) -> list[State]:
        """States given as columns, as the tables number them."""
        owns = self.pairs[self.pairs_in(fields), OWN]
        return list(zip(fields[0].tolist(), *owns.tolist(), strict=True))

    def state(self, fields: I64) -> State:
        """One state, given as a column, as the tables number it."""
        return self.states(fields.reshape(-1, 1))[0]

    def fields(self, state: State) -> list[int]:
        """The columns of a state that the tables number so, with interchangeable processes in order."""
        keys = self.keys(np.full(len(self.kinds), state[0]), np.array(state[1:]))
        numbers = self.pairs[self.known.look(keys), NUMBER].tolist()
        for first in set(self.same.tolist()):
            group = [i for i, same in enumerate(self.same.tolist()) if same == first]
            ordered = sorted(numbers[i] for i in group)
            for i, number in zip(group, ordered, strict=True):
                numbers[i] = number
        return [state[0], *numbers]

    def widths(self) -> list[int]:
        """Bits that each field of a state needs now."""
        most = [len(self.tables.shared.values), *(int(self.place[kind, :, 1].max()) for kind in self.kinds)]
        return [max(1, (count - 1).bit_length()) for count in most]


def _room(array: I32, length: int) -> I32:
    """The array, or one twice as long and longer with the same beginning, if it is shorter than that."""
    if length <= len(array):
        return array
    grown = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
