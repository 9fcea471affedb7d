"""The search's tasks run in this process, one after the other: all of it but Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lakeproof.checker import Model, Verdict, check
from lakeproof.search_on_spark import task
from lakeproof.search_on_spark.jobs import CutShort
from lakeproof.search_on_spark.search import check_on_spark

T = TypeVar("T")


class Here:
    """Runs tasks here; a forgetful worker must read every partition again."""

    master, slots = "local", 1

    def __init__(self, *, forgetful: bool = False) -> None:
        self.forgetful = forgetful

    def run(self, function: Callable[[int], T], tasks: int, look: Callable[[], str] = lambda: "") -> list[T]:
        """The function of each number below `tasks`."""
        answers = []
        for number in range(tasks):
            if self.forgetful:
                task._parts.clear()  # as if another worker had got the task
            answers.append(function(number))
            if look():
                raise CutShort(look())
        return answers


def by_parts(model: Model, parts: int = 3, *, cluster: Here | None = None, **options: Any) -> Verdict:
    """The verdict of the search on partitions."""
    return check_on_spark(lambda: cluster or Here(), lambda: model, parts=parts, **options)


def facts(verdict: Verdict) -> dict[str, Any]:
    """Everything that does not depend on the engine: counts, verdicts, depths, statistics."""
    told = verdict.to_json()
    other = ("seconds", "compile_seconds", "peak_memory_mb", "engine", "notes", "trace", "seconds_in")
    properties = [{name: p[name] for name in p if name != "trace"} for p in told["properties"]]
    return {name: value for name, value in told.items() if name not in other} | {"properties": properties}


def locally(model: Model, **options: Any) -> dict[str, Any]:
    """What the local engine says."""
    return facts(check(model, **options))
