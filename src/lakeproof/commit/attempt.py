"""What a writer does next: the commit as a state machine, written down as data. This file is the whole protocol.

A runtime, a model and a scenario perform the phase that `Attempt` names and report what happened (`driver.py`);
whatever goes wrong in a phase is something that happened too. Three facts carry it:

1. Every try has a snapshot id and files of its own, and asks the catalog to swap the pointer from the head that it
   validated. A try that was answered is settled: it is the head, or it never will be.
2. A try without an answer is *unanswered*: it may still arrive, as long as nobody has taken the sequence number that it
   carries. Numbers only grow, also over a rollback, and no catalog adds a snapshot whose number is taken: SQL catalogs
   compare the metadata file, which has changed; REST catalogs compare the branch's head, which a rollback can bring
   back, and the number, which it cannot. So the number decides (`what_became`), not the head. All tries that are
   unanswered at a time carry the same number, for a try is only sent when the number was found free. When one of ours
   took it, or somebody else's snapshot did and can be seen, each of them is settled.
3. While a try is unanswered nobody may say that the command did not commit, and no file of it may be removed. The
   attempt ends as *unknown* instead, whatever the reason is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lakeproof.commit.validation import AlreadyCommitted, Answer, NothingLeft, Refuse, RunAgain
from lakeproof.errors import ModelError


class Phase(StrEnum):
    """Where an attempt stands; the last four end it."""

    REFRESH = "refresh"
    LOOK = "look for its own commit"
    VALIDATE = "validate"
    WRITE_METADATA = "write metadata"
    SWAP = "swap"
    COMMITTED = "committed"
    RUN_AGAIN = "run again"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Happened(StrEnum):
    """What a phase reports."""

    LOADED = "the head and the unseen snapshots are loaded"
    OWN_ID_FOUND = "its own snapshot is in the table"
    CERTAINLY_NOT = "somebody else took the sequence number of the request"
    MAY_STILL_ARRIVE = "nobody has taken the sequence number of the request"
    CANNOT_TELL = "whoever took the sequence number of the request was expired"
    MAY_COMMIT = "validation allows the commit"
    MUST_RUN_AGAIN = "validation says run again"
    REFUSED = "validation refuses"
    ALREADY_COMMITTED = "its own command id is in the window"
    NOTHING_LEFT = "nothing is left to do"
    WRITTEN = "the metadata is written"
    SWAPPED = "the pointer was swapped"
    HEAD_EXPIRED = "the head was expired while it was read"
    LOST_SWAP = "somebody else swapped first"
    TURNED_DOWN = "the catalog says that the request is wrong"
    NO_ANSWER = "the catalog did not answer"
    FAILED = "the phase failed, or was interrupted"
    OUT_OF_TIME = "the time for retries is over"


NEXT: dict[tuple[Phase, Happened], Phase] = {
    (Phase.REFRESH, Happened.LOADED): Phase.VALIDATE,
    (Phase.REFRESH, Happened.FAILED): Phase.ABORTED,
    (Phase.REFRESH, Happened.OUT_OF_TIME): Phase.ABORTED,
    (Phase.LOOK, Happened.OWN_ID_FOUND): Phase.COMMITTED,
    (Phase.LOOK, Happened.CERTAINLY_NOT): Phase.VALIDATE,
    (Phase.LOOK, Happened.MAY_STILL_ARRIVE): Phase.VALIDATE,
    (Phase.LOOK, Happened.CANNOT_TELL): Phase.UNKNOWN,
    (Phase.LOOK, Happened.FAILED): Phase.UNKNOWN,
    (Phase.LOOK, Happened.OUT_OF_TIME): Phase.UNKNOWN,
    (Phase.VALIDATE, Happened.MAY_COMMIT): Phase.WRITE_METADATA,
    (Phase.VALIDATE, Happened.MUST_RUN_AGAIN): Phase.RUN_AGAIN,
    (Phase.VALIDATE, Happened.REFUSED): Phase.ABORTED,
    (Phase.VALIDATE, Happened.ALREADY_COMMITTED): Phase.COMMITTED,
    (Phase.VALIDATE, Happened.NOTHING_LEFT): Phase.COMMITTED,
    (Phase.VALIDATE, Happened.HEAD_EXPIRED): Phase.REFRESH,
    (Phase.VALIDATE, Happened.FAILED): Phase.ABORTED,
    (Phase.WRITE_METADATA, Happened.WRITTEN): Phase.SWAP,
    (Phase.WRITE_METADATA, Happened.HEAD_EXPIRED): Phase.REFRESH,
    (Phase.WRITE_METADATA, Happened.FAILED): Phase.ABORTED,
    (Phase.SWAP, Happened.SWAPPED): Phase.COMMITTED,
    (Phase.SWAP, Happened.LOST_SWAP): Phase.REFRESH,
    (Phase.SWAP, Happened.TURNED_DOWN): Phase.ABORTED,
    (Phase.SWAP, Happened.NO_ANSWER): Phase.LOOK,
    (Phase.SWAP, Happened.FAILED): Phase.UNKNOWN,
}
"""What comes next when nothing is unanswered; `Attempt.after` says what an unanswered try changes about it."""

ENDED = frozenset({Phase.COMMITTED, Phase.RUN_AGAIN, Phase.ABORTED, Phase.UNKNOWN})
UNANSWERED = frozenset({(Phase.SWAP, Happened.NO_ANSWER), (Phase.SWAP, Happened.FAILED)})
SETTLED = frozenset({Happened.OWN_ID_FOUND, Happened.CERTAINLY_NOT, Happened.ALREADY_COMMITTED, Happened.SWAPPED})
"""After these no try of ours can commit any more but the one that did: the sequence number is taken."""


class Keeps(StrEnum):
    """What an ended attempt leaves alone of the files that it wrote."""

    NAMED = "what the committed snapshot names"
    LAST_TRY = "what the last try wrote"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Protocol:
    """The rules of an attempt as a value, so that a model can explore other engines' beside ours (`None`: ours)."""

    next: Mapping[tuple[Phase, Happened], Phase]
    unanswered: frozenset[tuple[Phase, Happened]] = UNANSWERED
    settled: frozenset[Happened] = SETTLED
    heeds_unanswered: bool = True  # nothing ends as 'not committed' while a try is unanswered
    removes_after: frozenset[Phase] = ENDED - {Phase.UNKNOWN}
    keeps: Keeps = Keeps.NAMED

    def lets_clean_up(self, attempt: Attempt) -> bool:
        """Whether files of an attempt that has ended like this are removed."""
        return attempt.phase in self.removes_after and not (self.heeds_unanswered and attempt.unanswered)


def ours() -> Protocol:
    """The protocol of this file."""
    return Protocol(NEXT, UNANSWERED, SETTLED)


class Attempt(NamedTuple):
    """How far a commit has come. `retries` counts lost swaps; `unanswered`: a try may still commit."""

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
        """Whether it is known of every try whether it committed, so that what nobody needs can be removed."""
        return self.ended and self.phase is not Phase.UNKNOWN and not self.unanswered

    def after(self, happened: Happened, by: Protocol | None = None) -> Attempt:
        """The attempt after its phase reported this."""
        rules = by or ours()
        phase = rules.next.get((self.phase, happened))
        if phase is None:
            raise ModelError(f"an attempt in phase '{self.phase}' cannot hear '{happened}'")
        lost = happened is Happened.LOST_SWAP
        told = self._replace(
            phase=phase,
            retries=self.retries + lost,
            unanswered=happened not in rules.settled
            and (self.unanswered or (self.phase, happened) in rules.unanswered),
        )
        if told._is_spent and phase in (Phase.REFRESH, Phase.VALIDATE) and not (lost and told.unanswered):
            told = told._replace(phase=Phase.ABORTED)
        return told._while_unanswered() if told.unanswered and rules.heeds_unanswered else told

    @property
    def _is_spent(self) -> bool:
        return self.max_retries is not None and self.retries > self.max_retries

    def _while_unanswered(self) -> Attempt:
        """Whoever was faster may have been our own try, so look; and nothing ends as 'not committed'."""
        if self.phase is Phase.REFRESH:
            return self._replace(phase=Phase.LOOK)
        return self._replace(phase=Phase.UNKNOWN) if self.phase in ENDED else self


def what_became(*, asked: int, last: int, taken: Collection[int]) -> Happened:
    """What the table says of an unanswered try that is not in it.

    `asked` is the sequence number that the try carries, `last` the last one that the table gave away, and `taken` those
    of the snapshots that can still be seen.
    """
    if last < asked:
        return Happened.MAY_STILL_ARRIVE
    return Happened.CERTAINLY_NOT if asked in taken else Happened.CANNOT_TELL


def removable(
    attempt: Attempt, written: Iterable[str], named: Collection[str], by: Protocol | None = None
) -> tuple[str, ...]:
    """What may be deleted of the files that an ended attempt wrote, over all its tries.

    `named` is what the committed snapshot itself names; nothing, where none was committed.
    """
    may = attempt.may_clean_up if by is None else by.lets_clean_up(attempt)
    return tuple(path for path in written if path not in named) if may else ()


def certainly_in_vain(attempt: Attempt, by: Protocol | None = None) -> bool:
    """Whether an ended attempt certainly committed nothing, so that its writer may remove its own files too."""
    may = attempt.may_clean_up if by is None else by.lets_clean_up(attempt)
    return may and attempt.phase is not Phase.COMMITTED


def written_in_vain(attempt: Attempt, brought: Iterable[str], named: Collection[str]) -> tuple[str, ...]:
    """Which delete files that the writer brought along the committed snapshot does not name.

    Their rows had moved, or somebody else deleted them first, or nothing was left to do. What an attempt without a
    commit leaves of its writer's files is the writer's to say.
    """
    return removable(attempt, brought, named) if attempt.phase is Phase.COMMITTED else ()


def heard(answer: Answer) -> Happened:
    """What the attempt hears when validation answers this."""
    if isinstance(answer, RunAgain):
        return Happened.MUST_RUN_AGAIN
    if isinstance(answer, Refuse):
        return Happened.REFUSED
    if isinstance(answer, AlreadyCommitted):
        return Happened.ALREADY_COMMITTED
    return Happened.NOTHING_LEFT if isinstance(answer, NothingLeft) else Happened.MAY_COMMIT
