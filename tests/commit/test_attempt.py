"""The commit as a state machine: what it may hear, where it ends, and that it never removes files it committed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

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
    heard,
)
from lakeproof.commit.attempt import ENDED, NEXT
from lakeproof.errors import ModelError

PAIRS = list(product(Phase, Happened))


@pytest.mark.parametrize(("phase", "happened"), PAIRS, ids=[f"{p}: {h}" for p, h in PAIRS])
def test_a_phase_hears_what_the_table_says_and_nothing_else(phase: Phase, happened: Happened) -> None:
    if (phase, happened) in NEXT:
        assert Attempt(phase).after(happened).phase is NEXT[phase, happened]
    else:
        with pytest.raises(ModelError, match=f"«{phase}» cannot hear «{happened}»"):
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


def test_an_unknown_outcome_ends_without_clean_up() -> None:
    unknown = told(Attempt(), *ONCE, Happened.NO_ANSWER, Happened.CANNOT_LOOK)
    assert (unknown.phase, unknown.ended, unknown.may_clean_up) == (Phase.UNKNOWN, True, False)


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        pytest.param((*ONCE, Happened.LOST_SWAP), Phase.LOOK, id="whoever won the swap may have been ourselves"),
        pytest.param((Happened.HISTORY_BROKEN,), Phase.UNKNOWN, id="our own snapshot may be among the expired"),
        pytest.param((Happened.LOADED, Happened.REFUSED), Phase.ABORTED, id="refused: the head moved on without it"),
        pytest.param((*ONCE, Happened.SWAPPED), Phase.COMMITTED, id="the second request won"),
    ],
)
def test_a_request_without_an_answer_may_still_commit(words: tuple[Happened, ...], phase: Phase) -> None:
    waiting = told(Attempt(max_retries=0), *ONCE, Happened.NO_ANSWER, Happened.HEAD_UNCHANGED)
    assert waiting == Attempt(Phase.REFRESH, max_retries=0, unanswered=True)
    after = told(waiting, *words)
    assert (after.phase, after.may_clean_up) == (phase, phase is Phase.ABORTED)
    assert waiting.given_up().phase is Phase.UNKNOWN
    assert told(Attempt(), Happened.LOADED).given_up().phase is Phase.ABORTED


# ---------------------------------------------------------------- every way that a catalog can lose an answer


class World(NamedTuple):
    """A table and one writer. `late`: heads for which a request of ours is under way; `allowed`: heads that passed."""

    attempt: Attempt
    head: int = 0
    commits: int = 0
    late: frozenset[int] = frozenset()
    expired: bool = False
    seen: int = 0
    seen_own: bool = False
    allowed: frozenset[int] = frozenset({0})


def others(world: World) -> Iterator[World]:
    """Somebody else commits, a late request of ours arrives, snapshots expire."""
    if world.head < 4:
        yield world._replace(head=world.head + 1)
    for expected in world.late:
        left = world._replace(late=world.late - {expected})
        yield left._replace(head=world.head + 1, commits=world.commits + 1) if expected == world.head else left
    if world.head and not world.expired:
        yield world._replace(expired=True)


def writer(world: World) -> Iterator[World]:
    """The writer performs its phase; everything that can happen there happens."""
    attempt = world.attempt
    match attempt.phase:
        case Phase.REFRESH if world.expired:
            yield world._replace(attempt=attempt.after(Happened.HISTORY_BROKEN))
        case Phase.REFRESH:
            seen = world._replace(seen=world.head, seen_own=world.commits > 0)
            yield seen._replace(attempt=attempt.after(Happened.LOADED))
        case Phase.VALIDATE:
            if world.seen_own:
                yield world._replace(attempt=attempt.after(Happened.ALREADY_COMMITTED))
                return
            allowed = world._replace(allowed=world.allowed | {world.seen})
            yield allowed._replace(attempt=attempt.after(Happened.MAY_COMMIT))
            if world.seen not in world.allowed:  # what passed once on a head passes again
                yield world._replace(attempt=attempt.after(Happened.REFUSED))
                yield world._replace(attempt=attempt.after(Happened.MUST_RUN_AGAIN))
        case Phase.WRITE_METADATA:
            yield world._replace(attempt=attempt.after(Happened.WRITTEN))
        case Phase.SWAP:
            yield from swapped(world)
        case Phase.LOOK:
            yield world._replace(attempt=attempt.after(Happened.CANNOT_LOOK))
            if not world.expired:
                moved = Happened.HEAD_UNCHANGED if world.head == world.seen else Happened.CERTAINLY_NOT
                happened = Happened.OWN_ID_FOUND if world.commits else moved
                yield world._replace(attempt=attempt.after(happened))


def swapped(world: World) -> Iterator[World]:
    """The swap wins or loses, and the answer may be lost; the request may even be under way for a long time."""
    silent = world.attempt.after(Happened.NO_ANSWER)
    yield world._replace(attempt=silent)
    yield world._replace(attempt=silent, late=world.late | {world.seen})
    if world.head != world.seen:
        yield world._replace(attempt=world.attempt.after(Happened.LOST_SWAP))
        return
    won = world._replace(head=world.head + 1, commits=world.commits + 1)
    yield won._replace(attempt=world.attempt.after(Happened.SWAPPED))
    yield won._replace(attempt=silent)


def worlds(start: World) -> set[World]:
    """Every world that can be reached."""
    found, new = {start}, [start]
    while new:
        world = new.pop()
        for after in (*others(world), *(() if world.attempt.ended else writer(world))):
            if after.attempt.retries <= 3 and after not in found:
                found.add(after)
                new.append(after)
    return found


@pytest.mark.parametrize("max_retries", [0, 1, None])
def test_no_schedule_commits_twice_or_cleans_up_what_was_committed(max_retries: int | None) -> None:
    reached = worlds(World(Attempt(max_retries=max_retries)))
    ends = {world.attempt.phase for world in reached if world.attempt.ended}
    assert ends == {Phase.COMMITTED, Phase.RUN_AGAIN, Phase.ABORTED, Phase.UNKNOWN}
    assert max(world.commits for world in reached) == 1
    for world in reached:
        if world.attempt.phase is Phase.COMMITTED:
            assert world.commits == 1
        if world.attempt.may_clean_up:
            assert world.commits == 0, "the files of a committed snapshot would be removed"
            assert world.head not in world.late, "a request under way could still commit them"
