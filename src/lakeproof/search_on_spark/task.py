"""What runs in Spark's Python workers: one question to one partition, from memory where this worker has it."""

from __future__ import annotations

import gc
import os
import sys
import zipimport
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from lakeproof.checker.fast.explore import TooWide, compile_kernels
from lakeproof.checker.faults import blaming
from lakeproof.checker.limits import memory_mb
from lakeproof.checker.model import Model
from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.search_on_spark.folder import Folder
from lakeproof.search_on_spark.forecast import machine_memory_mb
from lakeproof.search_on_spark.partition import Partition, SearchPlan

MOST_MEMORY = 0.6  # of the machine's, for the workers of all its cores: beyond it a partition is read again when needed

Source = Callable[[], Model]  # makes the model again in another process; must be picklable


class Work(NamedTuple):
    """What is asked of every partition in one job."""

    plan: SearchPlan
    source: Source
    run: str  # the job's own name
    level: int
    question: Callable[[Partition], Any]


class Answer(NamedTuple):
    """A partition's answer, or what is wrong with the model or the folder."""

    part: int | None  # None: there was nothing left to do
    value: Any = None
    error: LakeproofError | None = None


class BadLuck(LakeproofError):
    """Nobody's model is to blame: a full disk, a lost mount. Spark may try again elsewhere."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


_parts: OrderedDict[int, Partition] = OrderedDict()  # of the search that this worker takes part in, the latest last


def prepare(plan: SearchPlan, source: Source, task: int) -> Answer:
    """See whether this worker can take part, and compile what it needs."""
    try:
        header = Folder(plan.folder).header()
        if header is None or header.get("search") != plan.search:
            hint = "--checkpoint DIR must name a folder that the driver and all workers share"
            raise InvalidInput("A worker does not see the folder of the search", hint=hint)
        with blaming(plan.model):
            source()
    except LakeproofError as error:
        return Answer(task, error=error)
    compile_kernels()
    return Answer(task)


def answer_task(work: Work, task: int) -> Answer:
    """Put the question to a partition that no other task of this job asks, best one that this worker remembers."""
    plan = work.plan
    _forget_other_searches(plan)
    remembered = sorted(_parts, key=lambda number: _parts[number].level, reverse=True)
    wishes = [*remembered, *(number for number in range(plan.parts) if number not in _parts)]
    number = Folder(plan.folder).take_turn(work.run, work.level, task, wishes)
    if number is None:
        return Answer(None)
    try:
        with _unhindered():
            return Answer(number, _asked(work, number))
    except BadLuck as bad_luck:
        raise bad_luck.error from None
    except LakeproofError as error:
        return Answer(number, error=error)


@contextmanager
def _unhindered() -> Iterator[None]:
    """Spare the worker two chores between tasks that would cost more than a small level does.

    It collects garbage, but what is remembered is none; and it reads the directory of each archive on its path again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimport.zipimporter):
                del sys.path_importer_cache[path]  # an import makes it again


def _asked(work: Work, number: int) -> Any:
    """The answer; a partition that fails on the way is not remembered."""
    part = _parts.pop(number, None)
    with blaming(work.plan.model):
        if part is None:
            while _parts and memory_mb() > MOST_MEMORY * machine_memory_mb() / (os.cpu_count() or 1):
                _parts.popitem(last=False)
            part = Partition(work.plan, number, work.source())
        try:
            value = work.question(part)
        except TooWide as error:
            hint = "--engine local searches it state by state"
            raise InvalidInput(f"The Spark engine cannot number the states: {error}", hint=hint) from None
        except (OSError, MemoryError, pa.ArrowException) as error:
            raise BadLuck(error) from error
    _parts[number] = part
    return value


def _forget_other_searches(plan: SearchPlan) -> None:
    if any(part.plan.search != plan.search for part in _parts.values()):
        _parts.clear()
        gc.unfreeze()
