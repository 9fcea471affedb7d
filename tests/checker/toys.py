"""Toy models with spaces small enough to count by hand or by a loop of ten lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lakeproof.checker import (
    Model,
    Outcome,
    Process,
    Step,
    ValueSymmetry,
    always,
    always_of_all,
    always_of_each,
    eventually,
    eventually_each,
    never,
    reachable,
)


def clock(hours: int = 12, bad: int | None = None) -> Model:
    """One hand that goes round: as many states as hours."""

    def tick(shared: int, own: None) -> Iterator[Outcome]:
        """The hand moves on. Nothing else does."""
        yield Outcome((shared + 1) % hours, None)

    properties = (
        always("not_bad", lambda shared: shared != bad),
        eventually("noon", lambda shared, owns: shared == 0, symmetric=True),
    )
    return Model("clock", 0, (Process("hand", None),), (Step("tick", tick),), properties)


class Try(NamedTuple):
    """Where a writer of the retry loop stands."""

    phase: str = "idle"
    tries: int = 0


def retry_loop(writers: int = 2, limit: int | None = None) -> Model:
    """Writers that append for ever against a pointer swap; a lost swap is tried again, `limit` times or for ever."""

    def prepare(shared: None, own: Try) -> Iterator[Outcome]:
        if own.phase == "idle":
            yield Outcome(shared, Try("ready", own.tries))

    def swap(shared: None, own: Try) -> Iterator[Outcome]:
        if own.phase == "ready":
            yield Outcome(shared, Try("done"), event="swapped", marks=("swapped",))

    def again(shared: None, own: Try) -> Iterator[Outcome]:
        if own.phase == "lost" and limit is None:
            yield Outcome(shared, Try("idle"), marks=("tried again",))
        elif own.phase == "lost" and limit is not None:
            over = own.tries >= limit
            yield Outcome(shared, Try("done") if over else Try("idle", own.tries + 1))

    def restart(shared: None, own: Try) -> Iterator[Outcome]:
        if own.phase == "done":
            yield Outcome(shared, Try())

    def observe(own: Try, event: str) -> Try:
        return Try("lost", own.tries) if own.phase == "ready" else own

    steps = (Step("prepare", prepare), Step("swap", swap), Step("again", again), Step("restart", restart))
    properties = (
        eventually_each("each_finishes", lambda shared, own: own.phase == "done"),
        eventually("some_finishes", lambda shared, owns: any(own.phase == "done" for own in owns), symmetric=True),
        reachable("some_swap", "swapped"),
        reachable("some_third_state", lambda shared: shared == 3),
    )
    processes = tuple(Process(f"w{number}", Try()) for number in range(1, writers + 1))
    return Model("retry loop", None, processes, steps, properties, observe)


class Lock(NamedTuple):
    """A lock with a lease: who holds it is known by a ticket, and it runs out when time passes."""

    ticket: int = 0
    held: bool = False


class Client(NamedTuple):
    """A client that has asked for the lock, believes to hold it with a ticket, or has written with it."""

    phase: str = "out"
    ticket: int = 0


def lease(clients: int = 2, tickets: int = 2, *, fenced: bool) -> Model:
    """Leases that may run out while a client still believes in its own; `fenced`: the store looks at the ticket."""

    def take(shared: Lock, own: Client) -> Iterator[Outcome]:
        if own.phase == "out" and not shared.held and shared.ticket < tickets:
            yield Outcome(Lock(shared.ticket + 1, True), Client("in", shared.ticket + 1))

    def run_out(shared: Lock, own: Client) -> Iterator[Outcome]:
        if own.phase == "in" and shared.held and shared.ticket == own.ticket:
            yield Outcome(shared._replace(held=False), own)

    def write(shared: Lock, own: Client) -> Iterator[Outcome]:
        if own.phase == "in" and (own.ticket == shared.ticket or not fenced):
            marks = ("stale write",) if own.ticket != shared.ticket else ("write",)
            yield Outcome(Lock(shared.ticket, shared.held and own.ticket != shared.ticket), Client(), marks=marks)
        elif own.phase == "in":
            yield Outcome(shared, Client(), marks=("refused",))

    def inside(shared: Lock, owns: tuple[Client, ...]) -> bool:
        return sum(own.phase == "in" for own in owns) <= 1

    properties = (
        never("no_stale_write", "stale write"),
        reachable("some_refusal", "refused"),
        always_of_all("one_believer", inside, symmetric=True, counts=False),
        always_of_each("ticket_known", lambda shared, own: own.ticket <= shared.ticket),
    )
    steps = (Step("take", take), Step("run out", run_out), Step("write", write))
    processes = tuple(Process(f"c{number}", Client()) for number in range(1, clients + 1))
    return Model("lease", Lock(), processes, steps, properties, is_final=lambda shared, own: own.phase == "out")


class Peer(NamedTuple):
    """A process of Peterson's algorithm: its side, and where it stands."""

    side: int
    at: str = "out"


class Flags(NamedTuple):
    """The shared variables of Peterson's algorithm."""

    wants: tuple[bool, bool] = (False, False)
    turn: int = 0


def peterson(*, with_turn: bool = True) -> Model:
    """Peterson's mutual exclusion; without the turn both may wait for each other for ever."""

    def ask(shared: Flags, own: Peer) -> Iterator[Outcome]:
        if own.at == "out":
            one, other = (True if side == own.side else want for side, want in enumerate(shared.wants))
            yield Outcome(shared._replace(wants=(one, other)), own._replace(at="asked"))

    def give_way(shared: Flags, own: Peer) -> Iterator[Outcome]:
        if own.at == "asked":
            yield Outcome(shared._replace(turn=1 - own.side), own._replace(at="waiting"))

    def enter(shared: Flags, own: Peer) -> Iterator[Outcome]:
        mine = with_turn and shared.turn == own.side
        if own.at == "waiting" and (not shared.wants[1 - own.side] or mine):
            yield Outcome(shared, own._replace(at="in"))

    def leave(shared: Flags, own: Peer) -> Iterator[Outcome]:
        if own.at == "in":
            one, other = (False if side == own.side else want for side, want in enumerate(shared.wants))
            yield Outcome(shared._replace(wants=(one, other)), own._replace(at="out"))

    steps = (Step("ask", ask), Step("give way", give_way), Step("enter", enter), Step("leave", leave))
    properties = (
        always_of_all("exclusion", lambda shared, owns: [own.at for own in owns].count("in") < 2, symmetric=True),
        eventually_each("each_gets_in", lambda shared, own: own.at == "in"),
    )
    return Model(
        "peterson",
        Flags(),
        (Process("left", Peer(0)), Process("right", Peer(1))),
        steps,
        properties,
        is_final=lambda shared, own: False,
    )


class Job(NamedTuple):
    """A job that wants to put a letter into the table, and has copied it or not."""

    letter: str = ""
    copied: bool = False


def letters(jobs: int = 2, alphabet: str = "ab", most: int = 3) -> Model:
    """Jobs append letters; choosing one is a step, copying it is private, and the letters may be renamed."""

    def choose(shared: tuple[str, ...], own: Job) -> Iterator[Outcome]:
        if not own.letter:
            for letter in alphabet:
                yield Outcome(shared, Job(letter), label=letter)

    def copy(shared: tuple[str, ...], own: Job) -> Iterator[Outcome]:
        if own.letter and not own.copied:
            yield Outcome(shared, own._replace(copied=True))

    def append(shared: tuple[str, ...], own: Job) -> Iterator[Outcome]:
        if own.copied and len(shared) < most:
            twice = own.letter in shared
            yield Outcome((*shared, own.letter), Job(), marks=("twice",) if twice else ())

    def swapped(letter: str) -> str:
        return {"a": "b", "b": "a"}.get(letter, letter)

    renaming = ValueSymmetry(
        lambda shared: tuple(map(swapped, shared)), lambda own: own._replace(letter=swapped(own.letter))
    )
    properties = (
        always("not_full_of_one", lambda shared: len(shared) < most or len(set(shared)) > 1),
        reachable("twice", "twice"),
        never("never_twice", "twice", counts=False),
        eventually("full", lambda shared, owns: len(shared) == most, symmetric=True),
    )
    return Model(
        "letters",
        (),
        tuple(Process(f"j{number}", Job()) for number in range(1, jobs + 1)),
        (Step("choose", choose), Step("copy", copy, private=True), Step("append", append)),
        properties,
        value_symmetries=(renaming,),
        is_final=lambda shared, own: len(shared) == most,
    )


class Writing(NamedTuple):
    """A writer that has picked a cell and a value for it, and how far it has got."""

    phase: int
    cell: int
    value: int
    stale: bool = False


def cells(writers: int = 3, cells: int = 3, values: int = 4, phases: int = 3) -> Model:
    """Writers set cells of a shared row by a swap that fails if the cell was set since: a space of any size."""

    def start(shared: tuple[int, ...], own: Writing | None) -> Iterator[Outcome]:
        if own is None:
            for cell in range(cells):
                for value in range(values):
                    yield Outcome(shared, Writing(0, cell, value), label=f"cell {cell} = {value}")

    def work(shared: tuple[int, ...], own: Writing | None) -> Iterator[Outcome]:
        if own is not None and own.phase < phases:
            yield Outcome(shared, own._replace(phase=own.phase + 1))

    def swap(shared: tuple[int, ...], own: Writing | None) -> Iterator[Outcome]:
        if own is None or own.phase < phases:
            return
        if own.stale:
            yield Outcome(shared, Writing(0, own.cell, own.value), marks=("lost",))
        else:
            after = (*shared[: own.cell], own.value, *shared[own.cell + 1 :])
            yield Outcome(after, None, event=own.cell, marks=("swapped",))

    def observe(own: Writing | None, cell: int) -> Writing | None:
        return own._replace(stale=True) if own is not None and own.cell == cell else own

    properties = (
        always("not_all_last", lambda shared: set(shared) != {values - 1}),
        reachable("lost", "lost"),
    )
    processes = tuple(Process(f"w{number}", None) for number in range(1, writers + 1))
    steps = (Step("start", start), Step("work", work), Step("swap", swap))
    return Model("cells", (0,) * cells, processes, steps, properties, observe)


def ring(members: int, turns: int) -> Model:
    """Members count one after the other: few states, but many members with many values each."""

    def count(shared: None, own: tuple[int, int]) -> Iterator[Outcome]:
        waits, counted = own
        if not waits and counted < turns:
            yield Outcome(shared, (0, counted + 1), event="done" if counted + 1 == turns else None)

    def observe(own: tuple[int, int], event: str) -> tuple[int, int]:
        return max(0, own[0] - 1), own[1]

    processes = tuple(Process(f"m{number}", (number, 0), f"kind {number % 2}") for number in range(members))
    last = eventually("all_done", lambda shared, owns: all(own[1] == turns for own in owns), symmetric=True)
    return Model("ring", None, processes, (Step("count", count),), (last,), observe)
