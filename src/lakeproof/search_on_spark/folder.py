"""The folder of a search: what it is a search of, and what is done.

    search.json                       what is searched, and in how many partitions
    level-00007/part-002/             level 7 of partition 2; the folder appears all at once when its task is done
        states.parquet values.parquet the states that are new there: a visited run, never changed again
        to-000.parquet                successors that belong to partition 0 (gone when level 8 is done)
        done.packed                   its counts and findings, and the checksums of the other files
    level-00007/turn-<run>-002        a link to the number of the task that took partition 2

A task that runs twice finds its folder there, or comes too late to put its own in place: both say the same.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lakeproof.checker.readable import Counts
from lakeproof.errors import InvalidInput
from lakeproof.search_on_spark.packing import pack, unpack, with_checksum, without_checksum
from lakeproof.search_on_spark.sound import are_counts, checksum_of, damaged, is_count, reading, signed, wrong_in_header

FORMAT = 2
HEADER, DONE, STATES = "search.json", "done.packed", "states.parquet"


class Found(NamedTuple):
    """Where a partition hit a property, as values that every process understands."""

    depth: int
    shared: Any
    owns: tuple[Any, ...]  # in the order of the tables
    move: tuple[tuple[str, ...], tuple[str, ...]] | None  # steps and marks of the transition; None: the state itself
    by: int


class LevelDone(NamedTuple):
    """What came of one level of one partition."""

    states: int
    ahead: int  # successors that the next level has to look at
    transitions: int
    terminals: int
    counts: Counts
    found: dict[str, Found]
    worker: str
    memory_mb: float
    level: int
    part: int
    files: dict[str, int]  # the checksum of each file beside


class Folder:
    """A search's folder, as seen by the driver and by every worker."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def header(self) -> dict[str, Any] | None:
        """What the folder is a search of; `None`: it does not say."""
        try:
            header = json.loads((self.path / HEADER).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"The checkpoint cannot be read: {error}", place=str(self.path / HEADER)) from None
        except RecursionError:
            raise damaged(self.path / HEADER, "it is nested too deeply") from None
        if not isinstance(header, dict):
            return {}
        wrong = wrong_in_header(header) if header.get("format") == FORMAT else ""
        if wrong:
            raise damaged(self.path / HEADER, wrong)
        return header

    def begin(self, header: dict[str, Any]) -> None:
        """Say what the folder is a search of."""
        self.must_be_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            _put(self.path / HEADER, json.dumps(signed(header), indent=1).encode())
        except OSError as error:
            reason = error.strerror or str(error)
            raise InvalidInput(f"The checkpoint cannot be written: {reason}", place=str(self.path)) from None

    def must_be_free(self) -> None:
        """A search begins in a new or an empty folder."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput("The checkpoint is a folder, not a file", place=str(self.path), hint="name a new folder")
        there = sorted(item.name for item in self.path.iterdir()) if self.path.exists() else []
        if there:
            hint = f"it has {there[0]} in it; name a new folder"
            raise InvalidInput("The checkpoint folder holds something else", place=str(self.path), hint=hint)

    def clear(self) -> None:
        """Remove the search, and the folder if nothing else is in it."""
        for item in self.path.glob("level-*"):
            shutil.rmtree(item, ignore_errors=True)
        (self.path / HEADER).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def level(self, level: int) -> Path:
        """Where a level lies."""
        return self.path / f"level-{level:05d}"

    def part(self, level: int, part: int) -> Path:
        """Where a level of a partition lies, if it is done."""
        return self.level(level) / f"part-{part:03d}"

    def is_done(self, level: int, part: int) -> bool:
        """Is this level of this partition done?"""
        return (self.part(level, part) / DONE).exists()

    def done(self, level: int, parts: int) -> list[LevelDone] | None:
        """What came of a level; `None`: a partition of it is not done."""
        found: list[LevelDone] = []
        for part in range(parts):
            if not self.is_done(level, part):
                return None
            done = done_in(self.part(level, part))
            if (done.level, done.part) != (level, part):
                raise damaged(self.part(level, part), "it was another folder")
            found.append(done)
        return found

    def new_part(self, level: int, part: int) -> Path:
        """A folder to write into before it is put in place."""
        folder = self.level(level) / f"writing-{part:03d}-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        return folder

    def put(self, written: Path, level: int, part: int, done: LevelDone) -> None:
        """Put what was written in place, unless somebody else was first: they wrote the same."""
        done = done._replace(files={file.name: checksum_of(file) for file in sorted(written.iterdir())})
        _put(written / DONE, with_checksum(pack(done)))
        try:
            written.rename(self.part(level, part))
        except OSError:
            there = self.part(level, part)
            if there.exists() and not self.is_done(level, part):  # a folder appears with all that is in it
                raise damaged(there / DONE, "it is missing") from None
            if not there.exists():
                raise
            shutil.rmtree(written, ignore_errors=True)

    def take_turn(self, run: str, level: int, task: int, wishes: Sequence[int]) -> int | None:
        """The partition that a task works on: the first of its wishes that no other task of this run took.

        A task that is tried again gets the partition that it had. `None`: all are taken.
        """
        folder = self.level(level)
        folder.mkdir(parents=True, exist_ok=True)
        turns = {part: folder / f"turn-{run}-{part:03d}" for part in wishes}
        for part, turn in turns.items():
            if turn.is_symlink() and os.readlink(turn) == str(task):
                return part
        for part, turn in turns.items():
            try:
                turn.symlink_to(str(task))
            except FileExistsError:
                continue
            return part
        return None

    def end_turns(self, level: int) -> None:
        """No task of any run is at work on the level any more."""
        for item in self.level(level).glob("turn-*"):
            item.unlink(missing_ok=True)

    def sweep(self, level: int) -> None:
        """Remove what a finished level needs no more: unfinished folders, and what the level before sent."""
        for item in self.level(level).glob("writing-*"):
            shutil.rmtree(item, ignore_errors=True)
        if level > 0:
            for item in self.level(level - 1).glob("part-*/to-*.parquet"):
                item.unlink(missing_ok=True)


def done_in(folder: Path) -> LevelDone:
    """What came of the level of a partition that lies here."""
    with reading(folder / DONE):
        found = unpack(without_checksum((folder / DONE).read_bytes()))
        if not _is_level_done(found):
            raise ValueError("it does not say what came of a level")
        assert isinstance(found, LevelDone)
        return found


def _is_level_done(value: object) -> bool:
    if type(value) is not LevelDone or not isinstance(value.found, dict) or not isinstance(value.files, dict):
        return False
    numbers = (value.states, value.ahead, value.transitions, value.terminals, value.level, value.part)
    counts = value.counts if isinstance(value.counts, Counts) else None
    return (
        all(map(is_count, (*numbers, *value.files.values())))
        and counts is not None
        and all(map(are_counts, (counts.enabled, counts.taken, counts.marks)))
        and isinstance(value.worker, str)
        and isinstance(value.memory_mb, float | int)
        and all(isinstance(name, str) and _is_found(one) for name, one in value.found.items())
    )


def _is_found(value: object) -> bool:
    if type(value) is not Found or not (is_count(value.depth) and is_count(value.by) and isinstance(value.owns, tuple)):
        return False
    hash((value.shared, value.owns))
    move = value.move
    return move is None or (
        isinstance(move, tuple)
        and len(move) == len(("steps", "marks"))
        and all(isinstance(names, tuple) and all(isinstance(name, str) for name in names) for names in move)
    )


def _put(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    half = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    half.write_bytes(content)
    half.replace(path)
