"""Files that the command line names: their text, and policies by name or from a file."""

from __future__ import annotations

from pathlib import Path

from lakeproof.commit import Policy
from lakeproof.commit.policy_text import named_policy, policy_from_text
from lakeproof.errors import InvalidInput, Unavailable, disk_is_full


def read_policy(word: str) -> Policy:
    """A policy by name, or from a file."""
    if not word.endswith(".toml"):
        return named_policy(word)
    return policy_from_text(read_text(word, "policy file"), place=word)


def read_text(path: str, what: str = "file") -> str:
    """The text of a file that was named."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The {what} cannot be read: {error.strerror}", place=path) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"The {what} is not text in UTF-8", place=path) from None
    except ValueError as error:  # a name that no file can have
        raise InvalidInput(f"The {what} cannot be read: {error}", place=repr(path)) from None


def write_text(path: str, text: str) -> None:
    """Write a file that was asked for."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        if disk_is_full(error):
            raise Unavailable("the disk is full", place=path, hint="make room and run it again") from None
        raise InvalidInput(f"The file cannot be written: {error.strerror}", place=path) from None
    except UnicodeEncodeError:
        raise InvalidInput("The text holds half a character, which no file can hold", place=path) from None
