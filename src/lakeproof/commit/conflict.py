"""A check's refusal, with its evidence."""

from __future__ import annotations

from typing import NamedTuple


class Conflict(NamedTuple):
    """Which check refuses the change, and because of which snapshot and files; `explain` finds the words.

    `snapshot` is `None` when no single commit is at fault: the change itself is, or a file is just not there.
    """

    check: str
    snapshot: int | None = None
    files: tuple[str, ...] = ()
    fate: str = ""  # what happened to the rows: deleted, updated, lost, moved
