"""The loop over an attempt, and the calls that it makes of a runtime, a model or a scenario.

A call says what happened, or raises; the attempt decides what that means. Whoever has calls of its own (a real table, a
world of the model, a scenario's history) hands them in and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from lakeproof.commit import attempt as rules
from lakeproof.commit.attempt import Attempt, Happened, Phase, removable, written_in_vain
from lakeproof.errors import CommitUnknown, LakeproofError


class Calls(Protocol):
    """What is done in each phase; each call says what happened, or raises.

    `look` loads what `refresh` does and looks for its own commit there. `write_metadata` writes the files of a new try:
    none has a name that another try's file has. When the attempt has ended, `written` are the files of all tries,
    `named` those that the committed snapshot names, and `remove` deletes as far as it can.
    """

    def refresh(self) -> Happened: ...
    def look(self) -> Happened: ...
    def validate(self) -> Happened: ...
    def write_metadata(self) -> Happened: ...
    def swap(self) -> Happened: ...
    def written(self) -> Sequence[str]: ...
    def named(self) -> Collection[str]: ...
    def remove(self, paths: Sequence[str]) -> None: ...


class Ended(NamedTuple):
    """An attempt that has ended, and what its last phase raised, if it did."""

    attempt: Attempt
    error: BaseException | None = None


def call(attempt: Attempt, calls: Calls, by: rules.Protocol | None = None) -> Ended:
    """Perform the attempt's phase: one call. `by`: the protocol of somebody else, to be explored."""
    phases = {
        Phase.REFRESH: calls.refresh,
        Phase.LOOK: calls.look,
        Phase.VALIDATE: calls.validate,
        Phase.WRITE_METADATA: calls.write_metadata,
        Phase.SWAP: calls.swap,
    }
    error: BaseException | None = None
    try:
        happened = phases[attempt.phase]()
    except Exception as raised:
        happened, error = Happened.NO_ANSWER if attempt.phase is Phase.SWAP else Happened.FAILED, raised
    except BaseException as raised:  # an interrupt: the writer does not go on
        happened, error = Happened.FAILED, raised
    return Ended(attempt.after(happened, by), error)


def drive(attempt: Attempt, calls: Calls, *, may_wait: Callable[[Attempt], bool]) -> Ended:
    """Obey the attempt until it has ended, and remove what nobody can need; `may_wait` is asked before each retry."""
    swaps = 0
    while True:
        swaps += attempt.phase is Phase.SWAP
        before, (attempt, error) = attempt, call(attempt, calls)
        if attempt.ended:
            break
        if before.phase is Phase.SWAP and not may_wait(attempt):
            attempt = attempt.after(Happened.OUT_OF_TIME)
            break
    only_try = swaps == 1 and attempt.phase is Phase.COMMITTED and before.phase is not Phase.VALIDATE
    if not only_try:  # whose files are the committed ones
        leave(attempt, calls)
    return Ended(attempt, error)


def leave(attempt: Attempt, calls: Calls) -> None:
    """Remove what an ended attempt leaves behind; what cannot be looked at or deleted stays, as orphans."""
    with suppress(Exception):
        written = calls.written()
        if written and attempt.may_clean_up:
            named = calls.named() if attempt.phase is Phase.COMMITTED else ()
            calls.remove(removable(attempt, written, named))


def remove_in_vain(attempt: Attempt, brought: Sequence[str], calls: Calls) -> None:
    """Remove what the writer brought along in vain; the command is done, so a failure here leaves orphans too."""
    with suppress(Exception):
        calls.remove(written_in_vain(attempt, brought, calls.named()))


def certainly_failed(error: BaseException) -> bool:
    """Whether a command that raised this did not commit and never will: an interrupt can come right after the swap."""
    return isinstance(error, LakeproofError) and not isinstance(error, CommitUnknown)
