"""A change is validated, written and swapped in, again and again until it is committed, refused or unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyiceberg.table import Table

from lakeproof.iceberg.produce import FileChange

PHASES = ("scanned", "files written", "metadata written", "swapped")


class Committed(NamedTuple):
    """The table after the commit, the snapshot it made, and how many attempts it took."""

    table: Table
    snapshot_id: int
    attempts: int


def no_hook(phase: str) -> None:
    """Nobody watches the phases."""


def commit_files(
    table: Table,
    change: FileChange,
    *,
    scan_snapshot_id: int | None,
    command_id: str,
    branch: str = "main",
    on_phase: Callable[[str], None] = no_hook,
) -> Committed:
    """The change as one snapshot on `branch`, on top of whatever others committed meanwhile."""
    raise NotImplementedError
