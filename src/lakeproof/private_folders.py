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


def private_folders() -> Iterator[Path]:
    """The folders to try in turn: the user's cache; one below the temporary folder, if it is ours; a new one."""
    yield cache_home()
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
