"""What a writer does next: the commit as a state machine, written down as data.

A runtime performs the phase that `Attempt` names and reports what happened; a model does the same with its table. The
table below is the whole protocol. Files may be cleaned up only when it ends in «not committed».
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from lakeproof.commit.validation import AlreadyCommitted, Answer, NothingLeft, Refuse, RunAgain
from lakeproof.errors import ModelError


class Phase(StrEnum):
    """Where an attempt stands; the last four end it."""

    REFRESH = "refresh"
    VALIDATE = "validate"
    WRITE_METADATA = "write metadata"
    SWAP = "swap"
    LOOK = "look for the own commit"
    COMMITTED = "committed"
    RUN_AGAIN = "run again"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Happened(StrEnum):
    """What a phase reports."""

    LOADED = "the head and the unseen snapshots are loaded"
    HISTORY_BROKEN = "a snapshot of the window was expired"
    MAY_COMMIT = "validation allows the commit"
    MUST_RUN_AGAIN = "validation says run again"
    REFUSED = "validation refuses"
    ALREADY_COMMITTED = "the own command id is in the window"
    NOTHING_LEFT = "nothing is left to do"
    WRITTEN = "the metadata is written"
    SWAPPED = "the pointer was swapped"
    LOST_SWAP = "somebody else swapped first"
    NO_ANSWER = "the catalog did not answer"
    OWN_ID_FOUND = "the own snapshot is in the table"
    CERTAINLY_NOT = "the head has moved on without it"
    HEAD_UNCHANGED = "the head is the expected one: a second swap cannot win twice"
    CANNOT_LOOK = "the table cannot be read, or its history has a hole"


NEXT: dict[tuple[Phase, Happened], Phase] = {
    (Phase.REFRESH, Happened.LOADED): Phase.VALIDATE,
    (Phase.REFRESH, Happened.HISTORY_BROKEN): Phase.ABORTED,
    (Phase.VALIDATE, Happened.MAY_COMMIT): Phase.WRITE_METADATA,
    (Phase.VALIDATE, Happened.MUST_RUN_AGAIN): Phase.RUN_AGAIN,
    (Phase.VALIDATE, Happened.REFUSED): Phase.ABORTED,
    (Phase.VALIDATE, Happened.ALREADY_COMMITTED): Phase.COMMITTED,
    (Phase.VALIDATE, Happened.NOTHING_LEFT): Phase.COMMITTED,
    (Phase.WRITE_METADATA, Happened.WRITTEN): Phase.SWAP,
    (Phase.SWAP, Happened.SWAPPED): Phase.COMMITTED,
    (Phase.SWAP, Happened.LOST_SWAP): Phase.REFRESH,
    (Phase.SWAP, Happened.NO_ANSWER): Phase.LOOK,
    (Phase.LOOK, Happened.OWN_ID_FOUND): Phase.COMMITTED,
    (Phase.LOOK, Happened.CERTAINLY_NOT): Phase.REFRESH,
    (Phase.LOOK, Happened.HEAD_UNCHANGED): Phase.REFRESH,
    (Phase.LOOK, Happened.CANNOT_LOOK): Phase.UNKNOWN,
}

ENDED = frozenset({Phase.COMMITTED, Phase.RUN_AGAIN, Phase.ABORTED, Phase.UNKNOWN})


SETTLED = frozenset({Happened.CERTAINLY_NOT, Happened.REFUSED, Happened.MUST_RUN_AGAIN})
"""After these a request without an answer is dead: the head has moved on, and our own snapshot is not behind it."""


class Attempt(NamedTuple):
    """How far a commit has come. `retries` counts lost swaps; `unanswered`: a request may still commit."""

    phase: Phase = Phase.REFRESH
    retries: int = 0
    max_retries: int | None = None
    unanswered: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be done."""
        return self.phase in ENDED

    @property
    def may_clean_up(self) -> bool:
        """Whether the files written for this attempt can be removed: only when it certainly did not commit."""
        return self.phase in (Phase.RUN_AGAIN, Phase.ABORTED) and not self.unanswered

    def after(self, happened: Happened) -> Attempt:
        """The attempt after its phase reported this."""
        step = NEXT.get((self.phase, happened))
        if step is None:
            raise ModelError(f"an attempt in phase «{self.phase}» cannot hear «{happened}»")
        unanswered = happened is Happened.NO_ANSWER or (self.unanswered and happened not in SETTLED)
        told = self._replace(phase=step, unanswered=unanswered)
        if happened is Happened.LOST_SWAP:
            return told._lost_swap()
        return told.given_up() if step is Phase.ABORTED else told

    def _lost_swap(self) -> Attempt:
        """One retry less. Whoever was faster may have been our own unanswered request: then look before giving up."""
        lost = self._replace(retries=self.retries + 1)
        if self.max_retries is None or lost.retries <= self.max_retries:
            return lost
        return lost._replace(phase=Phase.LOOK if self.unanswered else Phase.ABORTED)

    def given_up(self) -> Attempt:
        """The attempt when its time is over, or its history is broken: unknown while a request may still commit."""
        return self._replace(phase=Phase.UNKNOWN if self.unanswered else Phase.ABORTED)


def heard(answer: Answer) -> Happened:
    """What the attempt hears when validation answers this."""
    if isinstance(answer, RunAgain):
        return Happened.MUST_RUN_AGAIN
    if isinstance(answer, Refuse):
        return Happened.REFUSED
    if isinstance(answer, AlreadyCommitted):
        return Happened.ALREADY_COMMITTED
    return Happened.NOTHING_LEFT if isinstance(answer, NothingLeft) else Happened.MAY_COMMIT
