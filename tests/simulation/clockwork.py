"""Actors that take turns: one thread runs at a time, a seeded generator says which, and time is a number.

Everything an actor does to the world outside passes through `Clockwork.step`: there another actor may be let in, a
request of the past may arrive, a fault may strike, and the actor's process may die. Nothing else is random, so one
seed is one run.
"""

from __future__ import annotations

import _thread
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

import pyiceberg.table.update as pyiceberg_update

START_MS = 2_000_000_000_000
NO_FAULT = ""
REAL = {name: getattr(time, name) for name in ("sleep", "time_ns", "time", "monotonic")}
REAL_UUID4, REAL_UNIFORM = uuid.uuid4, random.uniform


class Crashed(BaseException):
    """The actor's process is dead: nothing that it still tries has an effect."""


class Weather(NamedTuple):
    """How likely a fault is, by the kind of the call, and how often the turn changes."""

    swap: float = 0.0
    read: float = 0.0
    storage: float = 0.0
    crash: float = 0.0
    turn: float = 0.3
    stall: float = 0.02
    arrival: float = 0.1


class Late(NamedTuple):
    """A request that its sender has given up on, and that may still arrive."""

    sender: str
    began_ms: int
    arrive: Callable[[], None]


class Actor:
    """One process: what it runs, until when it sleeps, and whether it is dead."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self.name, self.run = name, run
        self.gate = _thread.allocate_lock()
        self.gate.acquire()
        self.wakes_ms = 0
        self.done = self.dead = False
        self.faults: list[str] = []
        self.unanswered = 0
        self.began_ms = 0
        self.broken: BaseException | None = None


class Clockwork:
    """The actors of one run, their clock and their weather."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self.random = random.Random(seed)
        self.weather, self.now_ms = weather, START_MS
        self.actors: list[Actor] = []
        self.turn: Actor | None = None
        self.late: list[Late] = []
        self.log: list[str] = []
        self.observe: Callable[[], None] = lambda: None
        self.quiet = 0
        self.idents = {threading.get_ident()}
        self._finished = _thread.allocate_lock()

    # ---- turns

    def run(self, actors: list[Actor]) -> None:
        """Run the actors to their ends; afterwards whatever is still under way arrives or is lost."""
        self.actors = actors
        self._finished.acquire()
        for actor in actors:
            threading.Thread(target=self._live, args=(actor,), daemon=True).start()
        self._pass_on()
        self._finished.acquire()
        self.turn = None
        broken = next((actor.broken for actor in actors if actor.broken is not None), None)
        if broken is not None:
            raise broken
        while self.late:
            self._arrive(chance=0.5)

    def _live(self, actor: Actor) -> None:
        actor.gate.acquire()
        self.idents.add(threading.get_ident())
        try:
            actor.run()
        except Crashed:
            self.log.append(f"{actor.name} is dead")
        except BaseException as error:
            actor.broken = error
        actor.done = True
        self.idents.discard(threading.get_ident())
        self._pass_on()

    def _pass_on(self) -> None:
        chosen = self._next()
        self.turn = chosen
        if chosen is None:
            self._finished.release()
        else:
            chosen.gate.release()

    def _next(self) -> Actor | None:
        alive = [actor for actor in self.actors if not actor.done]
        if not alive:
            return None
        ready = [actor for actor in alive if actor.wakes_ms <= self.now_ms]
        if not ready:
            self.now_ms = min(actor.wakes_ms for actor in alive)
            ready = [actor for actor in alive if actor.wakes_ms <= self.now_ms]
        return ready[int(self.random.random() * len(ready))]

    def give_way(self) -> None:
        """Let whoever is chosen run; come back when it is this actor's turn again."""
        actor, chosen = self.turn, self._next()
        if actor is None or chosen is None or chosen is actor:
            return
        self.turn = chosen
        chosen.gate.release()
        actor.gate.acquire()

    # ---- what happens at a call

    def step(self, kind: str, label: str) -> str:
        """The actor is about to call; the fault that strikes this call, or `NO_FAULT`."""
        actor = self.turn
        if actor is None or self.quiet or threading.get_ident() not in self.idents:
            return NO_FAULT
        if actor.dead:
            raise Crashed
        self.now_ms += 1
        self.watched()
        if self.late and self.random.random() < self.weather.arrival:
            self._arrive(chance=0.8)
        draw = self.random.random()
        if draw < self.weather.stall:  # long enough for others to run several commands
            actor.wakes_ms = self.now_ms + 20 + int(self.random.random() * 200)
        if draw < self.weather.turn:
            self.give_way()
        fault = self._fault(actor, kind)
        self.log.append(f"{actor.name} {kind} {label}{f' <- {fault}' if fault else ''}")
        if fault:
            actor.faults.append(f"{kind}: {fault}")
        if fault == "crash":
            self.die()
        return fault

    def watched(self) -> None:
        """The judge looks at what has become of the last call."""
        self.quiet += 1
        try:
            self.observe()
        finally:
            self.quiet -= 1

    def die(self) -> None:
        """The actor whose turn it is dies here."""
        assert self.turn is not None
        self.turn.dead = True
        raise Crashed

    def _fault(self, actor: Actor, kind: str) -> str:
        weather, draw = self.weather, self.random.random()
        if draw < weather.crash:
            return "crash"
        chance = weather.swap if kind == "swap" else weather.read if kind == "read" else weather.storage
        if kind == "read" and actor.unanswered:
            chance = max(chance, weather.read and 0.2)  # an outage does not last for one call alone
        if self.random.random() >= chance:
            return NO_FAULT
        if kind == "swap":
            faults = ("late", "late", "late", "late", "lost", "fail", "busy", "crash late", "crash after")
            return faults[int(self.random.random() * len(faults))]
        if kind in ("put", "delete"):
            return ("fail", "lost", "crash after")[int(self.random.random() * 3)]
        return "fail"

    def send_late(self, arrive: Callable[[], None]) -> None:
        """Nobody waits for this request any more; it may arrive at any later step, or never."""
        assert self.turn is not None
        self.late.append(Late(self.turn.name, self.turn.began_ms, arrive))

    def _arrive(self, chance: float) -> None:
        request = self.late.pop(int(self.random.random() * len(self.late)))
        if self.random.random() < chance:
            self.log.append(f"a late request of {request.sender} arrives")
            self.quiet += 1
            try:
                request.arrive()
            finally:
                self.quiet -= 1
            self.watched()

    def sleep(self, seconds: float) -> None:
        """The actor sleeps; the clock moves on when all do."""
        if self.turn is None or self.quiet:
            return
        self.turn.wakes_ms = self.now_ms + max(1, int(seconds * 1000))
        self.give_way()
        self.now_ms = max(self.now_ms, self.turn.wakes_ms)


running: Clockwork | None = None


def _of_the_run() -> Clockwork | None:
    return running if running is not None and threading.get_ident() in running.idents else None


def _sleep(seconds: float) -> None:
    world = _of_the_run()
    (REAL["sleep"] if world is None else world.sleep)(seconds)


def _time_ns() -> int:
    world = _of_the_run()
    return int(REAL["time_ns"]() if world is None else world.now_ms * 1_000_000)


def _seconds(real: str) -> Callable[[], float]:
    def read() -> float:
        world = _of_the_run()
        return float(REAL[real]() if world is None else world.now_ms / 1000)

    return read


def _uuid4() -> uuid.UUID:
    world = _of_the_run()
    return REAL_UUID4() if world is None else uuid.UUID(int=world.random.getrandbits(128), version=4)


def _uniform(low: float, high: float) -> float:
    world = _of_the_run()
    return REAL_UNIFORM(low, high) if world is None else world.random.uniform(low, high)


class _Now(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(_time_ns() / 1_000_000_000, tz or UTC)


@contextmanager
def ruled_by(world: Clockwork) -> Iterator[None]:
    """Inside, time, sleep and chance are those of the run, for its threads alone."""
    global running
    patched: list[tuple[Any, str, Any]] = [
        (time, "sleep", _sleep),
        (time, "time_ns", _time_ns),
        (time, "time", _seconds("time")),
        (time, "monotonic", _seconds("monotonic")),
        (uuid, "uuid4", _uuid4),
        (random, "uniform", _uniform),
        (pyiceberg_update, "datetime", _Now),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patched]
    running = world
    for owner, name, new in patched:
        setattr(owner, name, new)
    try:
        yield
    finally:
        running = None
        for owner, name, old in before:
            setattr(owner, name, old)
