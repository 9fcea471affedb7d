"""Sets of states as sorted runs of differences: one or two bytes a state, and no hash table.

States are numbers; in a sorted run neighbours differ little, so each is written as the difference to the one before,
seven bits a byte (LEB128). A skip index notes every 1024th state, so that a search need not decode the whole run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakeproof.checker.fast.jit import I64, U8, U64, kernel, u64

BLOCK = 1024  # states between two entries of the skip index


@kernel
def put(buffer: U8, at: int, number: np.uint64) -> int:
    """Write a number at a place; the place after it."""
    while number >= u64(128):
        buffer[at] = np.uint8((number & u64(127)) | u64(128))
        number >>= u64(7)
        at += 1
    buffer[at] = np.uint8(number)
    return at + 1


@kernel
def get(buffer: U8, at: int) -> tuple[np.uint64, int]:
    """The number at a place, and the place after it."""
    byte = u64(buffer[at])
    at += 1
    number, shift = byte & u64(127), u64(7)
    while byte >= u64(128):
        byte = u64(buffer[at])
        at += 1
        number |= (byte & u64(127)) << shift
        shift += u64(7)
    return number, at


@kernel
def coded_size(states: U64) -> int:
    """Bytes that the sorted states take when encoded."""
    before, size = u64(0), 0
    for state in states:
        rest = (state - before) >> u64(7)
        before = state
        size += 1
        while rest:
            rest >>= u64(7)
            size += 1
    return size


@kernel
def encode(states: U64, buffer: U8, keys: U64, places: I64) -> int:
    """Write the sorted states and their skip index; the bytes used."""
    before, at = u64(0), 0
    for number in range(len(states)):
        at = put(buffer, at, states[number] - before)
        before = states[number]
        if number % BLOCK == 0:
            keys[number // BLOCK], places[number // BLOCK] = before, at
    return at


@kernel
def decode(buffer: U8, states: U64) -> None:
    """Read all states of a run."""
    state, at = u64(0), 0
    for number in range(len(states)):
        difference, at = get(buffer, at)
        state += difference
        states[number] = state


@kernel
def unique(states: U64) -> int:
    """Drop repetitions from sorted states, in place; the number left."""
    left = 0
    for state in states:
        if left == 0 or state != states[left - 1]:
            states[left] = state
            left += 1
    return left


@kernel
def block_of(keys: U64, block: int, state: np.uint64) -> int:
    """The last block, from `block` on, that begins at or before the state: doubling strides, then halving."""
    stride = 1
    while block + stride < len(keys) and keys[block + stride] <= state:
        stride *= 2
    low, high = block + stride // 2, min(block + stride, len(keys))
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] <= state:
            low = middle
        else:
            high = middle
    return low


@kernel
def subtract(states: U64, count: int, buffer: U8, keys: U64, places: I64) -> int:
    """Drop from the first `count` sorted states those that a run holds, in place; the number left."""
    left, block, known, at, end = 0, 0, keys[0], places[0], len(buffer)
    for number in range(count):
        state = states[number]
        if block + 1 < len(keys) and keys[block + 1] <= state:
            block = block_of(keys, block, state)
            if keys[block] > known:
                known, at = keys[block], places[block]
        while known < state and at < end:
            difference, at = get(buffer, at)
            known += difference
        if known != state:
            states[left] = state
            left += 1
    return left


@kernel
def merge(a: U8, b: U8, a_left: int, b_left: int, buffer: U8, keys: U64, places: I64) -> int:
    """Write two disjoint runs as one; the bytes used."""
    before, at, total = u64(0), 0, a_left + b_left
    x, a_at = get(a, 0)
    y, b_at = get(b, 0)
    for number in range(total):
        take_a = b_left == 0 or (a_left > 0 and x < y)
        state = x if take_a else y
        at = put(buffer, at, state - before)
        before = state
        if number % BLOCK == 0:
            keys[number // BLOCK], places[number // BLOCK] = before, at
        if take_a:
            a_left -= 1
            if a_left:
                difference, a_at = get(a, a_at)
                x += difference
        else:
            b_left -= 1
            if b_left:
                difference, b_at = get(b, b_at)
                y += difference
    return at


@dataclass(frozen=True)
class SortedRun:
    """A sorted set of states, never empty."""

    count: int
    buffer: U8
    keys: U64  # the skip index: state number i * BLOCK is keys[i], the state after it is coded at places[i]
    places: I64

    @staticmethod
    def of(states: U64) -> SortedRun:
        """The run of these sorted distinct states."""
        keys, places = _index(len(states))
        buffer = np.empty(coded_size(states), np.uint8)
        encode(states, buffer, keys, places)
        return SortedRun(len(states), buffer, keys, places)

    def states(self) -> U64:
        """All states, decoded."""
        states = np.empty(self.count, np.uint64)
        self.read_into(states)
        return states

    def read_into(self, states: U64) -> None:
        """Decode all states into an array of their number."""
        decode(self.buffer, states)

    def without(self, states: U64, count: int) -> int:
        """Drop from the first `count` sorted states those of this run, in place; the number left."""
        return subtract(states, count, self.buffer, self.keys, self.places)

    def merged(self, other: SortedRun) -> SortedRun:
        """One run of both; they are disjoint."""
        keys, places = _index(self.count + other.count)
        buffer = np.empty(len(self.buffer) + len(other.buffer), np.uint8)  # differences only get smaller
        used = merge(self.buffer, other.buffer, self.count, other.count, buffer, keys, places)
        return SortedRun(self.count + other.count, buffer[:used].copy(), keys, places)


def _index(count: int) -> tuple[U64, I64]:
    blocks = -(-count // BLOCK)
    return np.empty(blocks, np.uint64), np.empty(blocks, np.int64)


def add_run(runs: list[SortedRun], new: SortedRun) -> None:
    """Add to the runs of one set, merging so that each stays at least twice as large as the next."""
    runs.append(new)
    while len(runs) > 1 and runs[-2].count < 2 * runs[-1].count:
        last = runs.pop()
        runs[-1] = runs[-1].merged(last)
