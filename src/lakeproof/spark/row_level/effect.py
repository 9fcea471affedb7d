"""What a command does to the rows of one snapshot, before any file is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lakeproof.commit import Command, Policy
from lakeproof.commit.planning import conflict_filter
from lakeproof.filters import ALWAYS, NEVER, Expression, any_of
from lakeproof.format import DataFile
from lakeproof.spark.row_level.new_rows import NewRows, Read
from lakeproof.spark.row_level.row_positions import Found, PlacedScan, places_in
from lakeproof.spark.row_level.scan_filters import Asked, condition_of
from lakeproof.spark.writing.repetition import largest_files


class RowEffect(NamedTuple):
    """Rows that are removed or rewritten, the rows that take their place or are new, and what was read for it.

    `whole` are files that go as they are, without a look at their rows.
    """

    targets: Found
    new_rows: NewRows | None = None
    reads: Found = {}  # noqa: RUF012 - never changed
    conflict_filter: Expression = ALWAYS
    whole: tuple[DataFile, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the command has nothing to do at this snapshot."""
        return not self.targets and self.new_rows is None and not self.whole

    def release(self) -> None:
        """Spark forgets what it kept for this effect."""
        if self.new_rows is not None:
            self.new_rows.release()


def wanted_by(said: Asked, command: Command, policy: Policy, *, more: Sequence[Expression] = ()) -> Expression:
    """The conflict filter of a command that asked this, and by `more`, of its own table."""
    target = [NEVER if said.target is None else said.target, *more]
    return conflict_filter(command, policy, target=any_of(target), everything=any_of([*target, *said.reads]))


def rows_read(scan: PlacedScan, said: Asked, targets: Found) -> Found:
    """The rows that subqueries read of the command's own table and that it does not write."""
    if not said.reads:
        return {}
    found = scan.found(places_in(scan.rows.filter(condition_of(any_of(said.reads), scan.rows))))
    return without(found, targets)


def amount_read(scan: PlacedScan, said: Asked) -> Read:
    """How much the files hold that the target's predicate leaves."""
    if said.target is None:
        return Read(0, 0)
    planned = scan.files.source.planned(said.target)
    return Read(planned.bytes_kept, planned.rows_kept, largest_files(planned))


def without(found: Found, others: Found) -> Found:
    """The positions that are not among the others."""
    left = {
        path: np.setdiff1d(positions, others[path], assume_unique=True) if path in others else positions
        for path, positions in found.items()
    }
    return {path: positions for path, positions in left.items() if len(positions)}
