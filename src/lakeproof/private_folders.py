"""Folders that belong to this user alone, for files that programs of ours trust."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def cache_home() -> Path:
    """Where this user's programs keep what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakeproof"


def private_cache() -> Path | None:
    """The user's cache folder, made if need be; `None`: it cannot be made, or somebody else could write to it.

    The home may be another user's (`sudo` keeps it), and `XDG_CACHE_HOME` may name a place that all share.
    """
    folder = cache_home()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & stat.S_IWOTH or not _keeps_its_entries(folder.parent):
            return None
        if found.st_mode & stat.S_IWGRP:
            folder.chmod(stat.S_IMODE(found.st_mode) & ~stat.S_IWGRP)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _keeps_its_entries(folder: Path) -> bool:
    """Whether nobody else can put another entry in the place of ours."""
    found = folder.stat()
    of_others = not found.st_mode & stat.S_ISVTX and found.st_mode & stat.S_IWOTH
    return found.st_uid in (os.getuid(), 0) and not of_others


def private_folders() -> Iterator[Path]:
    """The folders to try in turn: the user's cache and one below the temporary folder, if they are ours; a new one."""
    cache = private_cache()
    if cache is not None:
        yield cache
    shared = Path(tempfile.gettempdir()) / f"lakeproof-{os.getuid()}"
    if _is_ours(shared):
        yield shared
    yield _new_folder()


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have put anything into it: anybody may make a folder whose name they can guess."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


@cache
def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="lakeproof-"))
