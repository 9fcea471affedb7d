"""Exception families, named after what the caller does next; none prints a secret, in whatever form it was given."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote

_NAMES = (
    r"passw|passphrase|pwd|token|secret|credential|signature|authorization|private[-_.]?key"
    r"|api[-_.]?key|access[-_.]?key|account[-_.]?key"
)
_NAME = rf"[\w.-]*(?:{_NAMES})[\w.-]*"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_SHORT_NAMES = frozenset({"pass", "sig", "auth", "jwt", "key", "code"})  # secret in a query, common words elsewhere
_USER_AND_PASSWORD = re.compile(r"(://[^\s:/@?#'\"%]*)(?::|%3A)[^\s'\"]*@", re.IGNORECASE)
"""Up to the last @: a password may hold one, or a slash."""
_INSIDE_ANOTHER = re.compile(r"(%3A(?://|%2F%2F)[^\s:/@?#'\"%]*)%3A[^\s'\"]*?%40", re.IGNORECASE)
_USER_OF_WEB = re.compile(r"(https?://)[^\s/@?#'\"]+@", re.IGNORECASE)  # of a web address it may be a token
_IN_QUERY = re.compile(r"([?&;#])([\w.%+-]+?)(=|%3D)([^\s&;'\"#]*)", re.IGNORECASE)
_OF_QUERY = re.compile(r"[?&;#]([\w.%+-]+?)(?:=|%3D)([^&;#]*)", re.IGNORECASE)  # of a URI that stands alone
_IN_WORDS = re.compile(rf"(?<![\w./-])({_NAME}=)(?!=)(?:'[^']*'|\"[^\"]*\"|[^\s'\"&;,)]+)", re.IGNORECASE)
_CONNECTION = re.compile(rf"\b{_NAME}=('[^']*'|[^\s'\"&;]+)", re.IGNORECASE)
_SAID = re.compile(r"\b(passw(?:or)?d: +)\S+", re.IGNORECASE)
_QUOTED = re.compile(rf"""((['"]){_NAME}\2\s*[:=]\s*)(['"]).*?(?<!\\)\3""", re.IGNORECASE)
_PAIR = re.compile(rf"""(\((['"]){_NAME}\2,\s*)(['"]).*?(?<!\\)\3\)""", re.IGNORECASE)
_HEADER = re.compile(r"\b(Bearer|Basic) +[\w.~+/=-]{8,}", re.IGNORECASE)
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*")
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL)

_given: dict[str, re.Pattern[str]] = {}
"""The secrets that this process was given: a library may print one in a form that nobody has thought of."""
_SHORTEST, _SHORTEST_WORD = 4, 8


def hide_secrets(text: str) -> str:
    """The text with passwords and tokens left out: those of URIs, of connection strings, of properties and headers."""
    for pattern in _given.values():
        text = pattern.sub("…", text)
    text = _USER_AND_PASSWORD.sub(r"\1:…@", text)
    text = _INSIDE_ANOTHER.sub(r"\1%3A…%40", text)
    text = _USER_OF_WEB.sub(r"\1…@", text)
    text = _IN_QUERY.sub(_hide_value, text)
    text = _IN_WORDS.sub(r"\1…", text)
    text = _SAID.sub(r"\1…", text)
    text = _QUOTED.sub(r"\1\3…\3", text)
    text = _PAIR.sub(r"\1\3…\3)", text)
    text = _HEADER.sub(r"\1 …", text)
    text = _WEB_TOKEN.sub("…", text)
    return _PRIVATE_KEY.sub(r"\1…\2", text)


def _hide_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{found[3]}…" if _is_secret(unquote(found[2])) else found[0]


def _is_secret(name: str) -> bool:
    return name.lower() in _SHORT_NAMES or _SECRET_NAME.fullmatch(name) is not None


def remember_secrets(uri: str, properties: Mapping[str, object]) -> None:
    """From now on no text shows what is secret in this URI and these properties, whatever stands around it."""
    found = [*_of_user(uri)]
    found += [value for key, value in _OF_QUERY.findall(uri) if _is_secret(unquote(key))]
    found += [value.strip("'\"") for value in _CONNECTION.findall(uri)]
    for key, value in properties.items():
        if _is_secret(key) and isinstance(value, str):
            found += [value, value.rpartition(":")[2]]
    for each in found:
        _remember(each)


def _of_user(uri: str) -> Iterator[str]:
    """What stands before the host: a password, however it is written, and of a web address also the user."""
    scheme, divided, rest = uri.partition("://")
    if not divided:  # a slip of the pen: what comes first may be the scheme or the user
        scheme, rest = "", uri
    user, at, _host = rest.rpartition("@")
    name, colon, password = user.partition(":")
    if at and colon:
        yield from (password, password.rpartition(":")[2])
    if scheme.lower().startswith("http") and "@" in re.split("[/?#]", rest)[0]:
        yield name


def _remember(secret: str) -> None:
    """A short plain word is not looked for: it would be found in sentences that have nothing to hide."""
    for form in {secret, unquote(secret), quote(secret, safe="")}:
        plain = re.fullmatch("[A-Za-z]*", form) is not None
        if len(form) >= (_SHORTEST_WORD if plain else _SHORTEST):
            _given[form] = re.compile(rf"(?<!\w){re.escape(form)}(?!\w)")


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
