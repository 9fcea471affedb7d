"""The inner loop: all successors of a slice of states, from tables of integers.

This is one long function because it is one loop nest that must stay in registers; everything around it is elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lakeproof.checker.fast.jit import I32, I64, U64, i64, kernel, u64

KIND_SHIFT = 28  # a key of the maps is (shared or event) << 32 | (kind + 1) << 28 | own; it is never 0
OWN, NUMBER, FIRST, COUNT = 0, 1, 2, 3  # columns of `pairs`
UNKNOWN, ASKED = -1, -2  # in COUNT: the model has not been asked yet / is on the list to be asked
URGENT = 1 << 30  # added to COUNT: only private steps, nobody else need move first
N_OUT, N_PUT_OFF, N_PAIRS, N_SEEN, N_NEW, N_REST = range(6)  # what `counts` counts


class Answers(NamedTuple):
    """What the model answered, as arrays that the kernel reads.

    A pair is a (kind, shared, own) met so far. A state holds, per process, the number of its own value among those met
    with that kind and shared value; place[kind, shared] says where in `slots` those pairs begin.
    """

    kinds: I64  # per process
    tags: U64  # per process: (kind + 1) << KIND_SHIFT
    same: I64  # per process: the first one that is interchangeable with it (itself: none before it)
    place: I64  # [kind, shared, (begin, used, room)]
    slots: I32  # begin + number -> pair
    pairs: I32  # [pair, (own, number, first row, rows)]
    rows: I32  # [row, (shared after, number after, event, move)]
    pair_keys: U64  # hash map: shared, kind, own -> pair
    pair_values: I32
    seen_keys: U64  # hash map: event, kind, own -> own after
    seen_values: I32


class Missing(NamedTuple):
    """What the kernel must know and the model has not been asked yet."""

    pairs: U64  # outcomes of these pairs
    seen: U64  # own values after these observations
    new: U64  # numbers for these pairs


@kernel
def find(keys: U64, values: I32, key: np.uint64) -> int:
    """The value of a key in an open hash map, or -1. The key 0 means "empty"."""
    mask = u64(len(keys) - 1)
    at = ((key * u64(0x9E3779B97F4A7C15)) >> u64(32)) & mask
    while keys[at] != key:
        if keys[at] == u64(0):
            return -1
        at = (at + u64(1)) & mask
    return i64(values[at])


@kernel
def find_all(keys: U64, values: I32, wanted: U64, found: I64) -> None:
    """Look up many keys."""
    for number in range(len(wanted)):
        found[number] = find(keys, values, wanted[number])


@kernel
def insert_all(keys: U64, values: I32, new_keys: U64, new_values: I32) -> None:
    """Add keys that are not in the map yet."""
    mask = u64(len(keys) - 1)
    for number in range(len(new_keys)):
        at = ((new_keys[number] * u64(0x9E3779B97F4A7C15)) >> u64(32)) & mask
        while keys[at] != u64(0):
            at = (at + u64(1)) & mask
        keys[at] = new_keys[number]
        values[at] = new_values[number]


@kernel
def note(keys: U64, count: int, key: np.uint64) -> int:
    """Put a missing key on its list; when the list is full the state just waits for another turn."""
    if count < len(keys):
        keys[count] = key
        return count + 1
    return count


@kernel
def expand(
    states: U64,
    at: int,
    end: int,
    shifts: U64,
    masks: U64,
    t: Answers,
    visits: I64,
    out: U64,
    parents: I64,
    put_off: I64,
    rest: I64,
    missing: Missing,
    counts: I64,
) -> int:
    """Write the successors of states[at:end] to `out`, and where each came from to `parents` (if it has room).

    A state for which an answer is missing is put off as a whole. Stops when `out` is full; the place reached.
    """
    n = len(t.kinds)
    n_out, n_put_off, n_rest = counts[N_OUT], counts[N_PUT_OFF], counts[N_REST]
    n_pairs, n_seen, n_new = counts[N_PAIRS], counts[N_SEEN], counts[N_NEW]
    pair = np.empty(n, np.int64)
    number = np.empty(n, np.uint64)
    after = np.empty(n, np.uint64)
    while at < end:
        state = states[at]
        shared = (state >> shifts[0]) & masks[0]
        complete, fan, low, high, urgent = True, 0, 0, n, False
        for i in range(n):
            number[i] = (state >> shifts[i + 1]) & masks[i + 1]
            q = i64(t.slots[t.place[t.kinds[i], i64(shared), 0] + i64(number[i])])
            pair[i] = q
            count = t.pairs[q, COUNT]
            if count < 0:
                complete = False
                if count == UNKNOWN and n_pairs < len(missing.pairs):
                    missing.pairs[n_pairs] = (shared << u64(32)) | t.tags[i] | u64(t.pairs[q, OWN])
                    n_pairs += 1
                    t.pairs[q, COUNT] = ASKED  # list it once; threads may race here, the lists are made unique
            elif count >= URGENT:
                if not urgent:
                    urgent, low, high, fan = True, i, i + 1, count - URGENT
            elif not urgent:
                fan += count
        if complete and n_out + fan > len(out):
            break
        first = n_out
        if complete:
            for i in range(low, high):
                begin = t.pairs[pair[i], FIRST]
                for r in range(begin, begin + (t.pairs[pair[i], COUNT] & (URGENT - 1))):
                    s2, event = u64(t.rows[r, 0]), u64(t.rows[r, 2])
                    for j in range(n):
                        after[j] = number[j]
                        if j != i and (event or s2 != shared):
                            own = u64(t.pairs[pair[j], OWN])
                            if event:
                                key = (event << u64(32)) | t.tags[j] | own
                                seen = find(t.seen_keys, t.seen_values, key)
                                if seen < 0:
                                    complete = False
                                    n_seen = note(missing.seen, n_seen, key)
                                    continue
                                own = u64(seen)
                            key = (s2 << u64(32)) | t.tags[j] | own
                            q = find(t.pair_keys, t.pair_values, key)
                            if q < 0:
                                complete = False
                                n_new = note(missing.new, n_new, key)
                                continue
                            after[j] = u64(t.pairs[q, NUMBER])
                    after[i] = u64(t.rows[r, 1])
                    for j in range(1, n):  # interchangeable processes in order
                        k = j
                        while k > t.same[j] and after[k - 1] > after[k]:
                            after[k - 1], after[k] = after[k], after[k - 1]
                            k -= 1
                    state2 = s2 << shifts[0]
                    for j in range(n):
                        state2 |= after[j] << shifts[j + 1]
                    out[n_out] = state2
                    if len(parents):
                        parents[n_out] = at
                    n_out += 1
        if not complete:
            n_out = first
            put_off[n_put_off] = at
            n_put_off += 1
        else:
            for i in range(low, high):
                visits[pair[i]] += 1
            if fan == 0:
                rest[n_rest] = at
                n_rest += 1
        at += 1
    counts[N_OUT], counts[N_PUT_OFF], counts[N_REST] = n_out, n_put_off, n_rest
    counts[N_PAIRS], counts[N_SEEN], counts[N_NEW] = n_pairs, n_seen, n_new
    return at


@kernel
def partition_of(shared: np.uint64, bits: int) -> int:
    """The partition of all states with this shared value."""
    x = (shared ^ (shared >> u64(32))) * u64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> u64(29))) * u64(0xBF58476D1CE4E5B9)
    return i64((x ^ (x >> u64(32))) >> u64(64 - bits))


@kernel
def scatter(states: U64, count: int, shared_shift: np.uint64, bits: int, out: U64, first: I64) -> None:
    """Counting sort by partition: partition p becomes out[first[p]:first[p + 1]]."""
    first[:] = 0
    for number in range(count):
        first[partition_of(states[number] >> shared_shift, bits) + 1] += 1
    for part in range(1, len(first)):
        first[part] += first[part - 1]
    at = first[:-1].copy()
    for number in range(count):
        part = partition_of(states[number] >> shared_shift, bits)
        out[at[part]] = states[number]
        at[part] += 1


@kernel
def repack(states: U64, shifts: U64, masks: U64, new_shifts: U64) -> None:
    """Rewrite states in place for wider fields; sorted states stay sorted."""
    for number in range(len(states)):
        state = u64(0)
        for field in range(len(shifts)):
            state |= ((states[number] >> shifts[field]) & masks[field]) << new_shifts[field]
        states[number] = state


@kernel
def give_numbers(keys: U64, at: int, first_pair: int, place: I64, pairs: I32, slots: I32, top: int) -> tuple[int, int]:
    """Number new pairs keys[at:] among those of their kind and shared value; a full region moves to the end of `slots`.

    The next key and the new end of `slots`; stops early when `slots` is too short.
    """
    while at < len(keys):
        shared, kind = i64(keys[at] >> u64(32)), i64((keys[at] >> u64(KIND_SHIFT)) & u64(15)) - 1
        begin, used, room = place[kind, shared, 0], place[kind, shared, 1], place[kind, shared, 2]
        if used == room:
            room = max(4, 2 * room)
            if top + room > len(slots):
                break
            for i in range(used):
                slots[top + i] = slots[begin + i]
            begin = top
            top += room
        slots[begin + used] = first_pair + at
        pairs[first_pair + at, NUMBER] = used
        place[kind, shared, 0], place[kind, shared, 1], place[kind, shared, 2] = begin, used + 1, room
        at += 1
    return at, top
