"""A seed becomes a schedule: a catalog, a table, its first commits, and actors with their commands in some weather."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
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
    Row,
    RowLevel,
)
from judge import Fault, Judge, Outcome
from memory_catalogs import Database, Server
from pyiceberg.catalog import Catalog
from upkeep import Create, Drop, EqualityDelete, Expire, RemoveOrphans, Rename, SetProperty, Tag

import lakeproof.iceberg.cache as cache_module
from lakeproof.commit import Command, Mode
from lakeproof.iceberg.cache import ManifestCache
from lakeproof.iceberg.commit import Committed

TABLE = "default.t"
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20", "commit.retry.total-timeout-ms": "60000"}
WEATHER = (
    Weather(),
    Weather(swap=0.15, read=0.02, storage=0.003, crash=0.002),
    Weather(swap=0.5, read=0.06, storage=0.003, crash=0.002, arrival=0.15),
    Weather(swap=0.6, read=0.08, storage=0.0, crash=0.0, turn=0.5, arrival=0.3),
    Weather(storage=0.04, crash=0.01),
)


class Schedule(NamedTuple):
    """What will happen, but for the order and the faults."""

    seed: int
    sql: bool
    weather: Weather
    properties: dict[str, str]
    first: tuple[Command_, ...]
    actors: tuple[tuple[Command_, ...], ...]


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


def scheduled(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = Random(f"schedule {seed}")
    numbers = iter(range(1, 1000))
    keys = iter(range(1, 1000))
    known: list[int] = []
    properties = dict(FAST)
    if chance.random() < 0.25:
        properties |= {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    if chance.random() < 0.15:
        properties["commit.manifest.min-count-to-merge"] = "2"
    if chance.random() < 0.15:
        properties["commit.retry.num-retries"] = "1"
    first = tuple(_insert(chance, next(numbers), keys, known) for _ in range(chance.choice((0, 0, 1, 2, 3))))
    actors = tuple(
        tuple(_command(chance, next(numbers), keys, known) for _ in range(chance.choice((1, 1, 2, 3))))
        for _ in range(chance.choice((2, 3, 3, 4, 5)))
    )
    return Schedule(seed, chance.random() < 0.6, chance.choice(WEATHER), properties, first, actors)


def _insert(chance: Random, number: int, keys: Iterator[int], known: list[int]) -> Insert:
    rows = tuple(_row(chance, next(keys), number) for _ in range(chance.choice((1, 2))))
    known += [row[0] for row in rows]
    return Insert(number, rows)


def _row(chance: Random, key: int, number: int) -> Row:
    return (key, chance.choice((0, 1)), number)


def _command(chance: Random, number: int, keys: Iterator[int], known: list[int]) -> Command_:
    kind = chance.choices(
        ("insert", "row", "merge", "overwrite", "drop rows", "compact", "manifests", "expire", "orphans", "tag")
        + ("alter", "rename", "drop", "foreign"),
        (30, 20, 8, 5, 3, 6, 3, 16, 5, 8, 4, 2, 1, 6),
    )[0]
    key = chance.choice(known) if known else 1
    mode = chance.choice((Mode.COPY_ON_WRITE, Mode.MERGE_ON_READ))
    match kind:
        case "insert":
            return _insert(chance, number, keys, known)
        case "row":
            return RowLevel(number, chance.choice((Command.DELETE, Command.UPDATE)), mode, key)
        case "merge":
            return RowLevel(number, Command.MERGE, mode, chance.choice((1001, 1002)))
        case "overwrite":
            rows = _insert(chance, number, keys, known).rows
            return OverwritePartition(number, tuple((row[0], rows[0][1], number) for row in rows))
        case "drop rows":
            return DeletePartition(number, chance.choice((0, 1)))
        case "compact":
            return Compact(number, chance.choice((0, 1)))
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
        case "drop":
            return Drop(number, chance.random() < 0.5)
    return EqualityDelete(number, key, chance.choice((0, 1)))


@cache
def _database() -> Database:
    return Database()


def run(schedule: Schedule) -> Found:
    """The schedule, run to its end and judged."""
    world = Clockwork(schedule.seed, schedule.weather)
    memory_store.clear()
    kept, cache_module._shared = cache_module._shared, ManifestCache(None)
    try:
        with clockwork.ruled_by(world):
            return _judged(schedule, world)
    finally:
        cache_module._shared = kept


_runs = iter(range(10**9))


def _judged(schedule: Schedule, world: Clockwork) -> Found:
    warehouse = f"mem://{schedule.seed:08d}-{next(_runs):08d}"
    server = None if schedule.sql else Server(warehouse)
    catalog: Catalog = _database().opened(warehouse) if server is None else server
    commands = [*schedule.first, *(command for actor in schedule.actors for command in actor)]
    pointers = _database().pointers if server is None else server.pointers
    judge = Judge(pointers, {command.number: command for command in commands})
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
        done = command.run(catalog, TABLE)
    except Crashed:
        outcomes.append(Outcome(command, None, None, True, tuple(actor.faults), actor.unanswered, TABLE))
        raise
    except Exception as caught:
        error = caught
    world.watched()
    snapshot = None if done is None else done.snapshot_id
    world.log.append(f"{actor.name} ends {command.number}: {'ok' if error is None else repr(error)[:200]}")
    outcomes.append(Outcome(command, error, snapshot, False, tuple(actor.faults), actor.unanswered, TABLE))
