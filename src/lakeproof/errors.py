"""Exception families, named after what the caller does next."""

from __future__ import annotations


class LakeproofError(Exception):
    """The parent of every error that Lakeproof raises on purpose."""

    exit_code = 2


class PlacedError(LakeproofError):
    """An error that says where, and gives a hint."""

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.place, self.hint = message, place, hint

    def __str__(self) -> str:
        lines = [self.message]
        if self.place:
            lines.append(f"  at    {self.place}")
        if self.hint:
            lines.append(f"  hint  {self.hint}")
        return "\n".join(lines)


class InvalidInput(PlacedError):
    """The call is wrong: fix it."""


class Unavailable(PlacedError):
    """The catalog or the storage does not answer; nothing was committed: try later."""

    exit_code = 3


class CommitConflict(LakeproofError):
    """Somebody else's commit conflicts with this one: run the command again, it must re-read."""

    exit_code = 1

    def __init__(self, message: str, conflict: object = None) -> None:
        super().__init__(message)
        self.conflict = conflict


class CommitRejected(LakeproofError):
    """The attempt lost the race for the table pointer and certainly wrote nothing: safe to retry."""

    exit_code = 1


class CommitUnknown(LakeproofError):
    """Nobody knows whether the commit happened: do not retry, do not clean up, look first."""

    exit_code = 3


class ModelError(LakeproofError):
    """The model itself is wrong: its own code raised, or broke a promise that the checker relies on."""
