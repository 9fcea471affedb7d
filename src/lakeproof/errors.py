"""Exception families, named after what the caller does next."""

from __future__ import annotations

import errno
import re

_SECRET = r"[\w.-]*(?:passw|pwd|token|secret|credential|signature|api[-_.]?key|access[-_.]?key|account[-_.]?key)[\w.-]*"
_USER_AND_PASSWORD = re.compile(r"(://[^\s:/@?#'\"]*):[^\s'\"]*@")  # to the last @: a password may hold one, or a slash
_USER_OF_WEB = re.compile(r"(https?://)[^\s:/@?#'\"]+@")  # of a web address it may be a token
_IN_QUERY = re.compile(rf"([?&;]{_SECRET}=)[^\s&;'\"#]*", re.IGNORECASE)
_IN_WORDS = re.compile(r"\b(passw(?:or)?d=)(?:'[^']*'|[^\s'\"&;]+)", re.IGNORECASE)
_QUOTED = re.compile(rf"""((['"]){_SECRET}\2\s*[:=]\s*)(['"]).*?(?<!\\)\3""", re.IGNORECASE)
_HEADER = re.compile(r"\b(Bearer|Basic) +[\w.~+/=-]{8,}")


def hide_secrets(text: str) -> str:
    """The text with passwords and tokens left out: those of URIs, of connection strings, of properties and headers."""
    text = _USER_AND_PASSWORD.sub(r"\1:…@", text)
    text = _USER_OF_WEB.sub(r"\1…@", text)
    text = _IN_QUERY.sub(r"\1…", text)
    text = _IN_WORDS.sub(r"\1…", text)
    text = _QUOTED.sub(r"\1\3…\3", text)
    return _HEADER.sub(r"\1 …", text)


class LakeproofError(Exception):
    """The parent of every error that Lakeproof raises on purpose; none prints a secret."""

    exit_code = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(hide_secrets(message))


class PlacedError(LakeproofError):
    """An error that says where, and gives a hint."""

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.place, self.hint = (hide_secrets(text) for text in (message, place, hint))

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


FULL_DISK, MAKE_ROOM = "the disk is full", "make room and run it again: nothing was committed"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def disk_is_full(error: OSError) -> bool:
    """Whether the system had no room for what was written: on the disk, in a quota, or in a process's limit."""
    return error.errno in _FULL


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


class Defect(PlacedError):
    """Lakeproof itself is wrong, and nothing is known of what it was doing: report it."""

    exit_code = 3


class ModelError(LakeproofError):
    """The model itself is wrong: its own code raised, or broke a promise that the checker relies on."""
