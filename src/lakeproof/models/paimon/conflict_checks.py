"""Paimon's commit conflict rules as pure checks, each named after what Paimon says when it gives up.

A check reads the change and the bucket as the head snapshot has it, and answers with its evidence or with `None`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from lakeproof.models.paimon.world import Bucket, LevelFile, Rewrite, file_name

Check = Callable[[Rewrite, Bucket], str | None]


def file_deletion_conflict(change: Rewrite, head: Bucket) -> str | None:
    """Every file that the change removes must still be there ("File deletion conflicts detected!")."""
    live = {(file.id, file.level) for file in head.files}
    for entry in change.removed:
        if entry not in live:
            return f"{file_name(entry[0])} of level {entry[1]} is already removed"
    return None


def lsm_conflict(change: Rewrite, head: Bucket) -> str | None:
    """The key ranges of two files of one level above 0 must not meet ("LSM conflicts detected!")."""
    levels: dict[int, list[tuple[str, str, str]]] = {}
    for file in files_after(change, head, "the new file"):
        if file[1] and file[2].rows:
            keys = [row.key for row in file[2].rows]
            levels.setdefault(file[1], []).append((min(keys), max(keys), file[0]))
    for level, ranges in levels.items():
        for lower, upper in pairwise(sorted(ranges)):
            if lower[1] >= upper[0]:
                return f"{lower[2]} and {upper[2]} overlap in level {level}"
    return None


def files_after(change: Rewrite, head: Bucket, new_name: str) -> list[tuple[str, int, LevelFile]]:
    """The (name, level, file) of the bucket as the change would leave it."""
    kept = [file for file in head.files if (file.id, file.level) not in change.removed]
    name = file_name(change.keeps_id) if change.keeps_id else new_name
    added = LevelFile(change.keeps_id, change.level, change.rows)
    return [(file_name(file.id), file.level, file) for file in kept] + [(name, change.level, added)]


def deletion_vector_index_conflict(change: Rewrite, head: Bucket) -> str | None:
    """A new index file must replace the one that was read and name live files ("Deletion vector index conflict")."""
    if change.vectors is None:
        return None
    if change.seen_vectors != head.vectors:
        return "the bucket has a newer deletion-vector index file"
    live = {file.id for file in head.files} | {change.keeps_id}
    for identity, _ in change.vectors:
        if identity not in live:
            return f"{file_name(identity)}, which a vector is for, is not in the head snapshot"
    return None


def deletion_vector_conflict(change: Rewrite, head: Bucket) -> str | None:
    """What `deletion_vector_index_conflict` asks, and that nobody deleted rows of a file that the change rewrites.

    This is the data conflict check that Paimon has for no primary-key table. The second half is needed: a compaction
    that took no vector and writes none brings no index file, so the first half never looks at it.
    """
    before, now = dict(change.seen_vectors or ()), dict(head.vectors)
    for identity, _ in change.removed:
        if now.get(identity) != before.get(identity):
            return f"rows of {file_name(identity)} were marked deleted meanwhile"
    return deletion_vector_index_conflict(change, head)


def strict_mode_conflict(partition: int, unsafe: tuple[int, ...]) -> str | None:
    """No other user may have compacted or overwritten my partition since the last safe snapshot (strict mode)."""
    return f"another user compacted partition {partition}" if partition in unsafe else None


JAVA: tuple[Check, ...] = (file_deletion_conflict, lsm_conflict)
PYPAIMON: tuple[Check, ...] = (file_deletion_conflict, deletion_vector_index_conflict)


def first_conflict(checks: tuple[Check, ...], change: Rewrite, head: Bucket) -> tuple[str, str] | None:
    """The first check that says no, by its name and with its evidence."""
    for check in checks:
        evidence = check(change, head)
        if evidence is not None:
            return check.__name__, evidence
    return None
