"""What upkeep removes, and in which order: expiry, orphans, old metadata, a table that a query makes, a dropped one.

A runtime and a model go through the same phases and ask the same functions; neither has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class UpkeepPhase(StrEnum):
    """One thing that upkeep does; others may come between two of them."""

    LIST = "list the folder"
    LOAD = "load the metadata"
    WRITE = "write the files"
    COMMIT = "commit"
    REMOVE = "remove"


LIST, LOAD, WRITE = UpkeepPhase.LIST, UpkeepPhase.LOAD, UpkeepPhase.WRITE
COMMIT, REMOVE = UpkeepPhase.COMMIT, UpkeepPhase.REMOVE

EXPIRY = (LOAD, COMMIT, REMOVE)
"""A file goes when no metadata names it any more: whoever dies in the middle leaves orphans, not holes."""
ORPHANS = (LIST, LOAD, REMOVE)
"""The folder is listed before the metadata is read: whatever was committed until then is named by it."""
CREATION = (WRITE, COMMIT)
"""A table that a query makes becomes visible together with its first snapshot, so a query that fails leaves none."""
DROP = (LOAD, COMMIT, REMOVE)
"""What is dropped is what was read."""


class Asserts(StrEnum):
    """What the request of an expiry or a drop asks of the metadata that it replaces."""

    REFS = "every branch and tag stands where it stood"
    HEAD = "the head of main stands where it stood"
    NOTHING = "nothing"


class WhenMissing(StrEnum):
    """What whoever reads the files of a snapshot does when one is gone."""

    BEGIN_AGAIN = "begin again with the newest metadata"
    SKIP = "go on without it"


@dataclass(frozen=True)
class UpkeepRules:
    """The rules of upkeep as a value, so that a model can explore other engines' beside ours."""

    expiry: tuple[UpkeepPhase, ...] = EXPIRY
    orphans: tuple[UpkeepPhase, ...] = ORPHANS
    creation: tuple[UpkeepPhase, ...] = CREATION
    drop: tuple[UpkeepPhase, ...] = DROP
    expiry_asserts: Asserts = Asserts.REFS
    drop_asserts: Asserts = Asserts.REFS
    when_missing: WhenMissing = WhenMissing.BEGIN_AGAIN
    looks_for_neighbours: bool = True  # a folder in which another table's metadata lies is left alone


def only_theirs(expired: Iterable[str], retained: Collection[str]) -> tuple[str, ...]:
    """What only expired snapshots need: a file stays while any retained snapshot reads it."""
    return tuple(sorted({*expired} - {*retained}))


def refs_stand(planned: Mapping[str, int | str], now: Mapping[str, int | str]) -> bool:
    """Whether no branch or tag was made, moved or dropped since an expiry was planned."""
    return dict(planned) == dict(now)


def unneeded(listed: Iterable[str], needed: Collection[str]) -> tuple[str, ...]:
    """What was in the folder when it was listed and is named by nothing that was loaded after."""
    return tuple(path for path in listed if path not in needed)


def old_versions(before: Iterable[str], after: Collection[str]) -> tuple[str, ...]:
    """The metadata files that left the log with a commit."""
    return tuple(path for path in before if path not in after)
