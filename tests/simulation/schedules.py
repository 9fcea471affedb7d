"""A seed becomes a schedule: a catalog, a table, its first commits, and actors with their commands in some weather."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from random import Random
from typing import NamedTuple

import clockwork
import memory_store
from clockwork import Actor, Clockwork, Crashed, Weather
from commands import (
    Command_,
    Compact,
    DeletePartition,
    Insert,
    OverwritePartition,
    RewriteManifests,
    RowLevel,
)
from judge import Fault, Judge, Outcome
from memory_catalogs import Database, Server
from pyiceberg.catalog import Catalog
from rows_in_files import Row
from upkeep import Create, CreateAs, Drop, EqualityDelete, Expire, RemoveOrphans, Rename, SetProperty, Tag

import lakeproof.iceberg.reading.manifest_cache as cache_module
from lakeproof.commit import Command, Mode
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.reading.manifest_cache import ManifestCache

snapshots_module = import_module("lakeproof.commit.snapshots")  # the package gives a function of that name
TABLE = "default.t"
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20", "commit.retry.total-timeout-ms": "3000"}
CALM, USUAL, STORM, LATE, CRASHES = range(5)
WEATHER = (
    Weather(turn=0.4),
    Weather(swap=0.15, read=0.02, storage=0.008, crash=0.002),
    Weather(swap=0.5, read=0.05, storage=0.008, crash=0.002, arrival=0.15),
    Weather(swap=0.5, read=0.01, turn=0.5, arrival=0.2),
    Weather(storage=0.04, crash=0.01),
)


class Schedule(NamedTuple):
    """What will happen, but for the order and the faults."""

    seed: int
    theme: str
    sql: bool
    weather: Weather
    properties: dict[str, str]
    first: tuple[Command_, ...]
    actors: tuple[tuple[Command_, ...], ...]
    unmapped: bool = False  # nobody records where a rewrite put its rows, as other engines do not: ids tell it


class Found(NamedTuple):
    """What the judge found in one run, and the run itself."""

    seed: int
    faults: tuple[Fault, ...]
    log: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def told(self) -> str:
        """The faults and what led to them."""
        lines = [f"seed {self.seed}", *(f"  {kind}: {told}" for kind, told in self.faults), "the run"]
        return "\n".join([*lines, *(f"  {line}" for line in self.log)])


def scheduled(seed: int, wanted: Theme | None = None) -> Schedule:
    """The schedule of a seed, of a theme that it draws too, unless one is wanted."""
    chance = Random(f"schedule {seed}")
    theme = chance.choice(THEMES)
    theme = wanted or theme
    maker = _Maker(chance, theme)
    properties = dict(FAST)
    if chance.random() < 0.25:
        properties["write.metadata.delete-after-commit.enabled"] = "true"
        properties["write.metadata.previous-versions-max"] = "2"
    if chance.random() < 0.15:
        properties["commit.manifest.min-count-to-merge"] = "2"
    if chance.random() < 0.15:
        properties["commit.retry.num-retries"] = "1"
    first = tuple(maker.insert() for _ in range(chance.choice(theme.first)))
    actors = tuple(
        tuple(maker.command() for _ in range(chance.choice(theme.each))) for _ in range(chance.choice(theme.actors))
    )
    weather = WEATHER[chance.choice(theme.weather)]
    return Schedule(seed, theme.name, chance.random() < 0.6, weather, properties, first, actors)


def in_version_three(schedule: Schedule) -> Schedule:
    """The same, on a table of format version 3; in half of them nobody records where a rewrite put its rows."""
    properties = {**schedule.properties, "format-version": "3"}
    return schedule._replace(properties=properties, unmapped=bool(schedule.seed % 2))


class Theme(NamedTuple):
    """Which commands meet: how many there are of each kind, in which weather, after how many commits, by how many."""

    name: str
    kinds: dict[str, int]
    weather: tuple[int, ...] = (CALM, USUAL, STORM, LATE, CRASHES)
    first: tuple[int, ...] = (0, 1, 2, 3)
    actors: tuple[int, ...] = (2, 3, 3, 4, 5)
    each: tuple[int, ...] = (1, 1, 2, 3)


EVERYTHING = {
    **{"insert": 30, "row": 20, "merge": 8, "overwrite": 5, "drop rows": 3, "compact": 6, "manifests": 3, "expire": 16},
    **{"orphans": 5, "tag": 8, "alter": 4, "rename": 2, "drop": 1, "foreign": 6, "create as": 3, "insert there": 1},
}
NAMES = {"rename": 2, "orphans": 3, "insert": 2, "insert old": 4, "drop": 1}
THEMES = (
    Theme("everything", EVERYTHING),
    Theme("everything", EVERYTHING),
    Theme("late", {"insert": 6, "expire": 2, "alter": 1, "row": 2}, (STORM, LATE), (0, 1, 2)),
    Theme("empty", {"merge": 4, "insert": 3, "expire": 4}, (CALM, CALM, LATE), (0,), actors=(4, 5), each=(2, 3)),
    Theme("tags", {"tag": 3, "expire": 3, "insert": 1}, (CALM, USUAL), (2, 3)),
    Theme("names", NAMES, (CALM, USUAL, CRASHES), each=(2, 3)),
    Theme("made", {"create as": 4, "insert there": 3, "orphans": 1}),
    Theme("rows", {"insert": 3, "row": 5, "foreign": 3, "compact": 1}, (CALM, STORM, LATE), (1, 2)),
)

MOVES = Theme("moves", {"row": 6, "compact": 4, "insert": 1}, (CALM, STORM, LATE), (3, 4), actors=(4, 5), each=(2, 3))
"""Rewrites beside commands on the rows that they move."""


def moving(seed: int) -> Schedule:
    """A schedule on format version 3 in which rows are moved, and nobody records where to."""
    return in_version_three(scheduled(seed, MOVES))._replace(unmapped=True)


class _Maker:
    """Draws commands; keys and numbers are never given twice, but for those of a MERGE."""

    def __init__(self, chance: Random, theme: Theme) -> None:
        self.chance, self.theme = chance, theme
        self.numbers, self.keys = iter(range(1, 1000)), iter(range(1, 1000))
        self.known: list[int] = []

    def rows(self, number: int) -> tuple[Row, ...]:
        """One or two new rows."""
        rows = tuple((next(self.keys), self.partition(), number) for _ in range(self.chance.choice((1, 2))))
        self.known += [row[0] for row in rows]
        return rows

    def partition(self) -> int:
        return self.chance.choice((0, 1))

    def insert(self) -> Command_:
        number = next(self.numbers)
        return Insert(number, self.rows(number))

    def command(self) -> Command_:
        """One command of the theme."""
        kinds = self.theme.kinds
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        number = next(self.numbers)
        return self._of_rows(kind, number) or self._of_table(kind, number)

    def _of_rows(self, kind: str, number: int) -> Command_ | None:
        chance = self.chance
        mode = chance.choice((Mode.COPY_ON_WRITE, Mode.MERGE_ON_READ))
        key = chance.choice(self.known) if self.known else 1
        match kind:
            case "insert":
                return Insert(number, self.rows(number))
            case "insert there" | "insert old":
                elsewhere = Insert(number, self.rows(number))
                elsewhere.on = CreateAs.on if kind == "insert there" else Rename.to
                return elsewhere
            case "create as":
                return CreateAs(number, self.rows(number), chance.random() < 0.3)
            case "row":
                return RowLevel(number, chance.choice((Command.DELETE, Command.UPDATE)), mode, key)
            case "merge":
                return RowLevel(number, Command.MERGE, mode, 1001)
            case "overwrite":
                rows = self.rows(number)
                return OverwritePartition(number, tuple((row[0], rows[0][1], number) for row in rows))
            case "foreign":
                return EqualityDelete(number, key, self.partition())
        return None

    def _of_table(self, kind: str, number: int) -> Command_:
        chance = self.chance
        match kind:
            case "drop rows":
                return DeletePartition(number, self.partition())
            case "compact":
                return Compact(number, self.partition())
            case "manifests":
                return RewriteManifests(number)
            case "expire":
                return Expire(number, chance.choice((1, 1, 2)))
            case "orphans":
                return RemoveOrphans(number)
            case "tag":
                return Tag(number, chance.random() < 0.7)
            case "alter":
                return SetProperty(number)
            case "rename":
                return Rename(number)
        return Drop(number, chance.random() < 0.5)


@cache
def _database() -> Database:
    return Database()


def run(schedule: Schedule) -> Found:
    """The schedule, run to its end and judged."""
    world = Clockwork(schedule.seed, schedule.weather)
    memory_store.clear()
    kept, cache_module._shared = cache_module._shared, ManifestCache(None)
    try:
        with clockwork.ruled_by(world), _nothing_recorded(asked=schedule.unmapped):
            return _judged(schedule, world)
    finally:
        cache_module._shared = kept


@contextmanager
def _nothing_recorded(*, asked: bool) -> Iterator[None]:
    """Inside, no snapshot says where its rows went."""
    kept = vars(snapshots_module)["records_mapping"]
    if asked:
        vars(snapshots_module)["records_mapping"] = lambda change, policy: False
    try:
        yield
    finally:
        vars(snapshots_module)["records_mapping"] = kept


_runs = iter(range(10**9))


def _judged(schedule: Schedule, world: Clockwork) -> Found:
    warehouse = f"mem://{schedule.seed:08d}-{next(_runs):08d}"
    server = None if schedule.sql else Server(warehouse)
    catalog: Catalog = _database().opened(warehouse) if server is None else server
    commands = [*schedule.first, *(command for actor in schedule.actors for command in actor)]
    pointers = _database().pointers if server is None else server.pointers
    judge = Judge(pointers, {command.number: command for command in commands}, server=not schedule.sql)
    world.observe = judge.observe
    Create(0, tuple(schedule.properties.items())).run(catalog, TABLE)
    for command in schedule.first:
        command.run(catalog, TABLE)
    outcomes: list[Outcome] = []
    world.run([_actor(world, catalog, f"actor {n}", told, outcomes) for n, told in enumerate(schedule.actors, 1)])
    judge.ended(outcomes)
    return Found(schedule.seed, tuple(judge.faults), tuple(world.log), tuple(outcomes))


def _actor(
    world: Clockwork, catalog: Catalog, name: str, commands: tuple[Command_, ...], outcomes: list[Outcome]
) -> Actor:
    def live() -> None:
        for command in commands:
            actor.faults, actor.unanswered, actor.began_ms = [], 0, world.now_ms
            world.log.append(f"{name} begins {command}")
            _once(world, actor, catalog, command, outcomes)

    actor = Actor(name, live)
    return actor


def _once(world: Clockwork, actor: Actor, catalog: Catalog, command: Command_, outcomes: list[Outcome]) -> None:
    error: BaseException | None = None
    done: Committed | None = None
    try:
        done = command.run(catalog, command.on)
    except Crashed:
        outcomes.append(Outcome(command, None, None, True, tuple(actor.faults), actor.unanswered, command.on))
        raise
    except Exception as caught:
        error = caught
    world.watched()
    snapshot = None if done is None else done.snapshot_id
    world.log.append(f"{actor.name} ends {command.number}: {'ok' if error is None else repr(error)[:200]}")
    outcomes.append(Outcome(command, error, snapshot, False, tuple(actor.faults), actor.unanswered, command.on))
