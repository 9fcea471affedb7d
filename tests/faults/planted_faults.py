"""Errors that are put into a writer's process, one line each: the judge of a fault run must find every one of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from lakeproof.commit import Isolation, Phase
from lakeproof.errors import CommitRejected, CommitUnknown
from lakeproof.iceberg.committing import commit, pointer, table_commits
from lakeproof.iceberg.upkeep import expire

COMMIT, POINTER = "lakeproof.iceberg.committing.commit", "lakeproof.iceberg.committing.pointer"


class Planted(NamedTuple):
    """What is done wrong, on which catalog it shows, and what stands in place of what: made when it is put in."""

    says: str
    catalog: str
    kinds: dict[str, int]
    patches: tuple[tuple[str, str, Callable[[], Any]], ...]


def _told_as_ok() -> Any:
    real = commit.TableCalls.outcome

    def outcome(self: Any, ended: Any) -> Any:
        if ended.attempt.phase is Phase.UNKNOWN:
            return commit.Committed(self.on.table, 1, 0)
        return real(self, ended)

    return outcome


def _run_again() -> Any:
    """A writer that takes no answer for a no: a new command with the same rows."""
    real = table_commits.commit_change

    def committed(table: Any, change: Any, *more: Any, **named: Any) -> Any:
        try:
            return real(table, change, *more, **named)
        except CommitUnknown:
            for attempt in range(100):
                try:
                    return real(table, change._replace(command_id=f"{change.command_id} again"), *more, **named)
                except Exception:
                    if attempt == 99:
                        raise
                    time.sleep(0.1)

    return committed


def _names_nothing() -> Any:
    return lambda self: frozenset()


def _at_snapshot() -> Any:
    real = table_commits.checks_of

    def checks(policy: Any, command: Any, mode: Any, _isolation: Any, version: int) -> Any:
        return real(policy, command, mode, Isolation.SNAPSHOT, version)

    return checks


def _blind_to_tags() -> Any:
    real = expire._to_expire

    def to_expire(table: Any, *more: Any) -> Any:
        refs = {name: ref for name, ref in table.metadata.refs.items() if name == "main"}
        blind = table.metadata.model_copy(update={"refs": refs})
        return real(type(table)(table.name(), blind, table.metadata_location, table.io, table.catalog), *more)

    return to_expire


def _all_of_theirs() -> Any:
    return lambda theirs, _others: tuple(sorted(theirs))


def _swapped_blindly() -> Any:
    bound: list[Any] = [pointer.bindparam(f"{which}_location") for which in ("old", "new")]
    old, new = bound
    swap = pointer.update(pointer.POINTERS).where(*pointer._HERE)
    return swap.values(metadata_location=new, previous_metadata_location=old)


def _lost_is_ok() -> Any:
    real = commit.TableCalls.swap

    def swap(self: Any) -> Any:
        said = real(self)
        return commit.Happened.SWAPPED if said is commit.Happened.LOST_SWAP else said

    return swap


def _done_and_refused() -> Any:
    real = commit.TableCalls.outcome
    count = [0]

    def outcome(self: Any, ended: Any) -> Any:
        done = real(self, ended)
        count[0] += 1
        if count[0] % 5 == 0:
            raise CommitRejected("it was done")
        return done

    return outcome


INSERTS = {"insert": 10, "tag": 1}
PLANTED = {
    "told as ok": Planted(
        "an unknown outcome is told as ok", "rest", INSERTS, ((f"{COMMIT}.TableCalls", "outcome", _told_as_ok),)
    ),
    "run again": Planted(
        "a command whose outcome is unknown is run again",
        "rest",
        INSERTS,
        (("lakeproof.iceberg.committing.whole_file_commits", "commit_change", _run_again),),
    ),
    "cleans up": Planted(
        "the files of a committed try are cleaned up",
        "sqlite",
        INSERTS,
        (("lakeproof.iceberg.committing.table_access.TableAccess", "named", _names_nothing),),
    ),
    "unchecked": Planted(
        "a serializable command validates as at snapshot isolation",
        "sqlite",
        {"merge": 5},
        (("lakeproof.iceberg.committing.table_commits", "checks_of", _at_snapshot),),
    ),
    "blind expiry": Planted(
        "an expiry does not look at tags",
        "sqlite",
        {"insert": 2, "tag": 2, "expire": 2},
        (("lakeproof.iceberg.upkeep.expire", "_to_expire", _blind_to_tags),),
    ),
    "greedy expiry": Planted(
        "an expiry removes files that retained snapshots need",
        "sqlite",
        {"insert": 5, "compact": 4, "expire": 2},
        (("lakeproof.iceberg.upkeep.expire", "only_theirs", _all_of_theirs),),
    ),
    "blind swap": Planted(
        "the pointer is swapped whoever was faster", "sqlite", INSERTS, ((POINTER, "_SWAP", _swapped_blindly),)
    ),
    "lost is ok": Planted(
        "a lost swap is told as ok", "sqlite", INSERTS, ((f"{COMMIT}.TableCalls", "swap", _lost_is_ok),)
    ),
    "done and refused": Planted(
        "a commit that has happened is refused",
        "sqlite",
        INSERTS,
        ((f"{COMMIT}.TableCalls", "outcome", _done_and_refused),),
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Inside, the planted error of that name is what runs; nothing, without a name."""
    before = []
    for owner, attribute, make in PLANTED[name].patches if name else ():
        there = _found(owner)
        before.append((there, attribute, there.__dict__[attribute]))
        setattr(there, attribute, make())
    try:
        yield
    finally:
        for there, attribute, old in reversed(before):
            setattr(there, attribute, old)


def _found(dotted: str) -> Any:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(module), name)
