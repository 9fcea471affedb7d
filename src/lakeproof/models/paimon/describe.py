"""A world in words: what a report prints beside a step, and what a violation shows of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import read_key
from lakeproof.models.paimon.properties import dangling, valid_keys
from lakeproof.models.paimon.steps import place
from lakeproof.models.paimon.world import (
    Append,
    Bucket,
    Busy,
    CompactionPlan,
    Own,
    Rewrite,
    Row,
    Shared,
    Work,
    file_name,
)


def describe(setup: Setup, names: tuple[str, ...], shared: Shared, owns: tuple[Own, ...]) -> dict[str, Any]:
    """The version, and per bucket its file ids, its vectors and where each row lies; then what a read must return."""
    view: dict[str, Any] = {"version": shared.version}
    for index, bucket in enumerate(shared.buckets):
        view[place(setup, index)] = bucket_in_words(setup, index, bucket)
    view["expected"] = {
        key: f"{want.col2} {want.col3}" if want.col2 else "no row"
        for key, want in zip(setup.keys, shared.expected, strict=True)
    }
    if setup.use_lock:
        view["lock"] = "held" if shared.locked else "free"
    if setup.committer_apart:
        view["queue"] = [work_in_words(setup, handed.change) for handed in shared.queue]
    for name, own in zip(names, owns, strict=True):
        view[name] = own_in_words(setup, own)
    return {**view, "violation": violation(setup, shared)}  # always there, so that a report shows its lines one by one


def violation(setup: Setup, shared: Shared) -> dict[str, Any]:
    """What is wrong with the head, if anything: because of what, and all of each bucket that it concerns."""
    said, concerned = [], set()
    for index, bucket in enumerate(shared.buckets):
        for why in broken_vectors(setup, index, bucket):
            said.append(why)
            concerned.add(index)
    for key, want, got in misread(setup, shared):
        said.append(f"{key} reads {got}, expected: {want}")
        concerned.add(setup.bucket_of_key[key])
    if not said:
        return {}
    lines: dict[str, Any] = {"because": "; ".join(said), "version": shared.version}
    for index in sorted(concerned):
        prefix = f"{place(setup, index)} " if len(concerned) > 1 else ""
        lines |= {prefix + name: line for name, line in in_lines(setup, index, shared.buckets[index]).items()}
    return lines


def in_lines(setup: Setup, index: int, bucket: Bucket) -> dict[str, str]:
    """A bucket with a line for its files, one for its vectors, and one per row."""
    view = bucket_in_words(setup, index, bucket)
    vectors = ", ".join(f"{name}: {positions}" for name, positions in view["vectors"].items())
    rows = {f"row {number}": row for number, row in enumerate(view["rows"], 1)}
    return {"file ids": ", ".join(view["files"]) or "none", "vectors": vectors or "none", **rows}


def broken_vectors(setup: Setup, index: int, bucket: Bucket) -> Iterator[str]:
    """Vectors that dangle, and keys with more than one valid row above level 0."""
    if not setup.dv_enabled:
        return
    for identity in dangling(bucket):
        yield f"the vector of {place(setup, index)}_{file_name(identity)} dangles"
    for key, count in Counter(valid_keys(bucket)).items():
        if count > 1:
            yield f"{key} has {count} valid rows in levels 1 and above"


def misread(setup: Setup, shared: Shared) -> list[tuple[str, str, str]]:
    """The keys whose value differs from what the ghost history says: (key, expected, read)."""
    found = []
    for key, want in zip(setup.keys, shared.expected, strict=True):
        row = read_key(setup, shared.buckets[setup.bucket_of_key[key]], key, setup.read_vectors)
        got = (row.col2, row.col3) if row else ("", "")
        if got != want[:2]:
            found.append((key, " ".join(want[:2]).strip() or "no row", " ".join(got).strip() or "no row"))
    return found


def bucket_in_words(setup: Setup, index: int, bucket: Bucket) -> dict[str, Any]:
    """A bucket of the head snapshot: file ids, vectors by file, and each row with its file, level and position."""
    where, deleted = place(setup, index), dict(bucket.vectors)
    return {
        "files": [f"{where}_{file_name(file.id)}" for file in bucket.files],
        "vectors": {f"{where}_{file_name(identity)}": list(positions) for identity, positions in bucket.vectors},
        "rows": [
            f"{row_in_words(row)}, data file: {where}_{file_name(file.id)}, level: {file.level}, pos: {position}"
            + (", deleted" if position in deleted.get(file.id, ()) else "")
            for file in bucket.files
            for position, row in enumerate(file.rows)
        ],
    }


def row_in_words(row: Row) -> str:
    """A row's kind, key, values and sequence number."""
    values = " ".join(value for value in (row.col2, row.col3) if value)
    number = "" if row.sequence < 0 else f" (sequence {row.sequence})"
    return " ".join(part for part in (row.kind, row.key, values) if part) + number


def own_in_words(setup: Setup, own: Own) -> str:
    """What a process holds."""
    return f"{own.phase}: {work_in_words(setup, own.work)}" if isinstance(own, Busy) else "idle"


def work_in_words(setup: Setup, work: Work) -> str:
    """A write or a compaction, as far as it is known."""
    where = place(setup, work.bucket)
    if isinstance(work, Append):
        return f"{row_in_words(work.row)} for {where}"
    if isinstance(work, CompactionPlan):
        return f"compact level {work.level} of {where}"
    return rewrite_in_words(work, where)


def rewrite_in_words(work: Rewrite, where: str) -> str:
    """What a rewrite takes, what it puts there, and the vectors it brings."""
    taken = ", ".join(f"{file_name(identity)} of level {level}" for identity, level in work.removed)
    rows = "; ".join(row_in_words(row) for row in work.rows) or "no rows"
    vectors = ""
    if work.vectors is not None:
        marks = ", ".join(f"{file_name(identity)} {list(positions)}" for identity, positions in work.vectors)
        vectors = f", vectors: {marks or 'none'}"
    return f"{where} {taken} -> level {work.level}: {rows}{vectors}"
