"""What is in a world of this model: a log of records, a table, what a sink saved of itself, and its processes."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Batch(NamedTuple):
    """Records that are committed together: by which job, in which checkpoint and part of it, and up to which offset."""

    records: tuple[int, ...]
    job: int = 0
    checkpoint: int = 0
    part: int = 0
    upto: int = 0


class Saved(NamedTuple):
    """What survives a restart: job, checkpoint, the offset to read on from, and what is still to be committed."""

    job: int = 0
    checkpoint: int = 0
    offset: int = 0
    pending: tuple[Batch, ...] = ()


class Shared(NamedTuple):
    """The table's commits, everything that was saved, the oldest record that the log still has, and what was spent."""

    table: tuple[Batch, ...] = ()
    saved: tuple[Saved, ...] = (Saved(),)
    retained_from: int = 0
    spent: tuple[str, ...] = ()
    finished: bool = False
    jobs: int = 0

    def spend(self, what: str) -> Shared:
        """One more of it."""
        return self._replace(spent=tuple(sorted((*self.spent, what))))


class Waiting(NamedTuple):
    """A process that is not elected yet."""


class Sinking(NamedTuple):
    """A sink at work. `loaded` is the length of the table that it has seen; `None`: it has to look."""

    job: int = 0
    checkpoint: int = 0
    position: int = 0
    pending: tuple[Batch, ...] = ()
    loaded: int | None = None
    recovering: bool = False
    late: tuple[tuple[int, Batch], ...] = ()  # requests on their way: the length that they expect, and what they bring


Own = Waiting | Sinking


class Knows(StrEnum):
    """By what a sink recognizes its own commits in the table."""

    OFFSET = "the offset that the table has reached"
    PART = "job, checkpoint and part"
    CHECKPOINT = "the highest checkpoint of the job"


class SinkRules(NamedTuple):
    """The rules of a sink; as they stand here, each record is committed once."""

    name: str = "each record once"
    knows_by: Knows = Knows.OFFSET
    looks_under_own_job: bool = False  # not under the job that wrote what is to be committed
    new_job_after_restart: bool = True
    notes_position: bool = False  # the commit says how far the reader is, not which record is the highest in it
    saves_after_commit: bool = False  # else before
    last_save_wins: bool = False  # what is saved may go back
    looks_once: bool = False  # a lost swap is tried again without another look
    skips_what_is_gone: bool = False  # a log that no longer has the saved offset is read from its end


class Setup(NamedTuple):
    """Everything that does not change during a run."""

    rules: SinkRules
    limits: tuple[tuple[str, int], ...]
    records: int = 2
    apart: bool = False  # each record of a checkpoint is a commit of its own
    late: bool = False

    def may(self, shared: Shared, what: str) -> bool:
        """Whether this may happen once more."""
        return shared.spent.count(what) < dict(self.limits).get(what, 0)
