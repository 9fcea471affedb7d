"""The commit as a state machine: what it may hear, where it ends, and that it never removes files it committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import pytest

from lakeproof.commit import (
    AlreadyCommitted,
    Answer,
    Attempt,
    Commit,
    CommitWith,
    Conflict,
    Happened,
    Mode,
    NothingLeft,
    Phase,
    Refuse,
    RunAgain,
    attempt,
    call,
    driver,
    heard,
    what_became,
)
from lakeproof.commit.attempt import ENDED, NEXT, SETTLED
from lakeproof.errors import ModelError

PAIRS = list(product(Phase, Happened))


@pytest.mark.parametrize(("phase", "happened"), PAIRS, ids=[f"{p}: {h}" for p, h in PAIRS])
def test_a_phase_hears_what_the_table_says_and_nothing_else(phase: Phase, happened: Happened) -> None:
    if (phase, happened) in NEXT:
        assert Attempt(phase).after(happened).phase is NEXT[phase, happened]
    else:
        with pytest.raises(ModelError, match=f"'{phase}' cannot hear '{happened}'"):
            Attempt(phase).after(happened)


def test_every_word_is_heard_somewhere_and_every_phase_leads_on_or_ends() -> None:
    assert {happened for _, happened in NEXT} == set(Happened)
    assert {phase for phase, _ in NEXT} == set(Phase) - ENDED
    assert {phase for phase in Phase if Attempt(phase).ended} == ENDED


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Commit(), Happened.MAY_COMMIT),
        (CommitWith(), Happened.MAY_COMMIT),
        (RunAgain(Conflict("target_rows"), Mode.MERGE_ON_READ), Happened.MUST_RUN_AGAIN),
        (Refuse(Conflict("target_rows")), Happened.REFUSED),
        (AlreadyCommitted(), Happened.ALREADY_COMMITTED),
        (NothingLeft(), Happened.NOTHING_LEFT),
    ],
)
def test_every_answer_of_validation_is_heard(answer: Answer, expected: Happened) -> None:
    assert heard(answer) is expected


def told(attempt: Attempt, *words: Happened) -> Attempt:
    """The attempt after it heard all this."""
    for word in words:
        attempt = attempt.after(word)
    return attempt


ONCE = (Happened.LOADED, Happened.MAY_COMMIT, Happened.WRITTEN)


def test_a_lost_swap_validates_again_until_the_retries_are_spent() -> None:
    lost = told(Attempt(max_retries=1), *ONCE, Happened.LOST_SWAP)
    assert lost == Attempt(Phase.REFRESH, retries=1, max_retries=1)
    spent = told(lost, *ONCE, Happened.LOST_SWAP)
    assert (spent.phase, spent.retries, spent.may_clean_up) == (Phase.ABORTED, 2, True)
    forever = [*ONCE, Happened.LOST_SWAP] * 50
    assert told(Attempt(), *forever).phase is Phase.REFRESH, "None: no bound"


def test_an_unknown_outcome_is_never_cleaned_up() -> None:
    unknown = told(Attempt(), *ONCE, Happened.NO_ANSWER, Happened.CANNOT_TELL)
    assert (unknown.phase, unknown.ended, unknown.may_clean_up) == (Phase.UNKNOWN, True, False)


ALLOWED = (Happened.MAY_COMMIT, Happened.WRITTEN)


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        pytest.param((*ALLOWED, Happened.LOST_SWAP), Phase.LOOK, id="whoever won the swap may have been ourselves"),
        pytest.param((Happened.REFUSED,), Phase.UNKNOWN, id="refused, and the request may still arrive"),
        pytest.param((Happened.MUST_RUN_AGAIN,), Phase.UNKNOWN, id="a second run could commit beside the first"),
        pytest.param((Happened.NOTHING_LEFT,), Phase.UNKNOWN, id="nothing left, and the request may still arrive"),
        pytest.param((Happened.FAILED,), Phase.UNKNOWN, id="validation fails"),
        pytest.param((Happened.MAY_COMMIT, Happened.FAILED), Phase.UNKNOWN, id="the metadata cannot be written"),
        pytest.param((*ALLOWED, Happened.TURNED_DOWN), Phase.UNKNOWN, id="the second request is turned down"),
        pytest.param((*ALLOWED, Happened.SWAPPED), Phase.COMMITTED, id="the second request won"),
        pytest.param(
            (*ALLOWED, Happened.LOST_SWAP, Happened.CERTAINLY_NOT), Phase.ABORTED, id="settled, the retries are spent"
        ),
        pytest.param(
            (*ALLOWED, Happened.LOST_SWAP, Happened.MAY_STILL_ARRIVE), Phase.UNKNOWN, id="open, the retries are spent"
        ),
    ],
)
def test_a_request_without_an_answer_may_still_commit(words: tuple[Happened, ...], phase: Phase) -> None:
    waiting = told(Attempt(max_retries=0), *ONCE, Happened.NO_ANSWER, Happened.MAY_STILL_ARRIVE)
    assert waiting == Attempt(Phase.VALIDATE, max_retries=0, unanswered=True)
    after = told(waiting, *words)
    assert (after.phase, after.may_clean_up) == (phase, phase in (Phase.ABORTED, Phase.COMMITTED))


def test_what_became_of_a_request_is_known_by_its_sequence_number() -> None:
    assert what_became(asked=5, last=4, taken={3, 4}) is Happened.MAY_STILL_ARRIVE
    assert what_became(asked=5, last=6, taken={5, 6}) is Happened.CERTAINLY_NOT
    assert what_became(asked=5, last=6, taken={6}) is Happened.CANNOT_TELL


# ---------------------------------------------------------------- every way that a catalog can lose an answer


class World(NamedTuple):
    """A table and one writer. `owners`: whose snapshot has each sequence number, 0 for somebody else, else the try.

    `tries`: the sequence number that each try asks for; `late`: tries whose request is under way; `removed`: tries
    whose files are gone; `expired`: how many of the oldest snapshots are; `seen`: the head that was loaded.
    """

    attempt: Attempt
    owners: tuple[int, ...] = ()
    expired: int = 0
    tries: tuple[int, ...] = ()
    late: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()
    seen: int = 0
    passed: int = -1

    @property
    def commits(self) -> int:
        return sum(owner > 0 for owner in self.owners)

    @property
    def sees_own(self) -> bool:
        return any(self.owners[self.expired : self.seen])


class Writer:
    """The calls of one step in a world; `fate` says how the call ends."""

    def __init__(self, world: World, fate: str) -> None:
        self.world, self.fate = world, fate

    def refresh(self) -> Happened:
        if self.fate == "fails":
            raise OSError
        self.world = self.world._replace(seen=len(self.world.owners))
        return Happened.LOADED

    def look(self) -> Happened:
        self.refresh()
        world = self.world
        if world.sees_own:
            return Happened.OWN_ID_FOUND
        taken = range(world.expired + 1, len(world.owners) + 1)
        return attempt.what_became(asked=world.tries[-1], last=len(world.owners), taken=taken)

    def validate(self) -> Happened:
        if self.fate == "fails":
            raise OSError
        if self.fate == "refuses":
            return Happened.REFUSED
        if self.world.sees_own:
            return Happened.ALREADY_COMMITTED
        self.world = self.world._replace(passed=self.world.seen)
        return Happened.MAY_COMMIT

    def write_metadata(self) -> Happened:
        self.world = self.world._replace(tries=(*self.world.tries, self.world.seen + 1))
        if self.fate == "fails":
            raise OSError
        return Happened.WRITTEN

    def swap(self) -> Happened:
        world, mine = self.world, len(self.world.tries)
        if self.fate == "is late":
            self.world = world._replace(late=world.late | {mine})
            raise TimeoutError
        won = len(world.owners) + 1 == world.tries[-1]
        self.world = world._replace(owners=(*world.owners, mine)) if won else world
        if self.fate == "loses its answer":
            raise TimeoutError
        return Happened.SWAPPED if won else Happened.LOST_SWAP

    def written(self) -> Sequence[str]:
        return [str(number) for number in range(1, len(self.world.tries) + 1)]

    def named(self) -> Sequence[str]:
        return [str(owner) for owner in self.world.owners if owner]

    def remove(self, paths: Sequence[str]) -> None:
        self.world = self.world._replace(removed=self.world.removed | {int(path) for path in paths})


FATES = {
    Phase.REFRESH: ("", "fails"),
    Phase.LOOK: ("", "fails"),
    Phase.VALIDATE: ("", "fails", "refuses"),
    Phase.WRITE_METADATA: ("", "fails"),
    Phase.SWAP: ("", "loses its answer", "is late"),
}


def others(world: World) -> Iterator[World]:
    """Somebody else commits, a late request of ours arrives, snapshots but the head expire."""
    if len(world.owners) < 4:
        yield world._replace(owners=(*world.owners, 0))
    for mine in world.late:
        left = world._replace(late=world.late - {mine})
        wins = world.tries[mine - 1] == len(world.owners) + 1
        yield left._replace(owners=(*world.owners, mine)) if wins else left
    if world.expired < len(world.owners) - 1:
        yield world._replace(expired=len(world.owners) - 1)


def writer(world: World) -> Iterator[World]:
    """The writer performs its phase, by the shipped driver; everything that can happen there happens."""
    for fate in FATES[world.attempt.phase]:
        if fate == "refuses" and (world.passed == world.seen or world.sees_own):
            continue  # what passed once on a head passes again
        calls = Writer(world, fate)
        after, _ = call(world.attempt, calls)
        if after.ended:
            driver.leave(after, calls)
        yield calls.world._replace(attempt=after)


def worlds(start: World) -> set[World]:
    """Every world that can be reached."""
    found, new = {start}, [start]
    while new:
        world = new.pop()
        for after in (*others(world), *(() if world.attempt.ended else writer(world))):
            if len(after.tries) <= 3 and after not in found:
                found.add(after)
                new.append(after)
    return found


def wrong(world: World) -> bool:
    """A command committed twice, a committed snapshot without its files, or an outcome that is not true."""
    says = world.attempt.phase
    untrue = says in (Phase.ABORTED, Phase.RUN_AGAIN) and world.commits
    unheard = says is Phase.COMMITTED and not world.commits
    return (
        world.commits > 1 or any(owner in world.removed for owner in world.owners if owner) or bool(untrue or unheard)
    )


@pytest.mark.parametrize("max_retries", [0, 1, None])
def test_no_schedule_commits_twice_or_cleans_up_what_was_committed(max_retries: int | None) -> None:
    reached = worlds(World(Attempt(max_retries=max_retries)))
    ends = {world.attempt.phase for world in reached if world.attempt.ended}
    assert ends == {Phase.COMMITTED, Phase.ABORTED, Phase.UNKNOWN}
    assert not [world for world in reached if wrong(world)]


def kept_by_the_last_try(patch: pytest.MonkeyPatch) -> None:
    """A1: what is kept is judged by the last try."""
    patch.setattr(driver, "removable", lambda attempt, written, named: written[:-1] if named else written)


def a_lost_swap_settles(patch: pytest.MonkeyPatch) -> None:
    """A2 and A4: somebody else won, so it was not us."""
    patch.setattr(attempt, "SETTLED", SETTLED | {Happened.LOST_SWAP})


def a_failure_is_the_end(patch: pytest.MonkeyPatch) -> None:
    """A3: whatever a phase raises means that nothing was committed."""
    patch.setitem(NEXT, (Phase.LOOK, Happened.FAILED), Phase.ABORTED)
    patch.setattr(Attempt, "_while_unanswered", lambda self: self)
    patch.setattr(Attempt, "may_clean_up", property(lambda self: self.phase is not Phase.UNKNOWN))


def a_hole_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A5: a history that was cut looks like one that begins there."""
    right = attempt.what_became

    def what_became(**known: Any) -> Happened:
        found = right(**known)
        return Happened.CERTAINLY_NOT if found is Happened.CANNOT_TELL else found

    patch.setattr(attempt, "what_became", what_became)


@pytest.mark.parametrize(
    "variant", [kept_by_the_last_try, a_lost_swap_settles, a_failure_is_the_end, a_hole_is_overlooked]
)
def test_the_old_rules_are_found_out(
    variant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    variant(monkeypatch)
    assert [world for world in worlds(World(Attempt())) if wrong(world)]
