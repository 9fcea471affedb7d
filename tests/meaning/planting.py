"""An error is planted in a module of the product: a piece of its source is replaced, and put back.

The errors lie in `planted_errors.tsv`, one line each; `mix` and `seed` name a random episode, `step` the statement in
it that shows the error.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from random_episodes import random_episode
from random_statements import Mix
from steps import Episode, Read

STATEMENTS: dict[Mix, int] = {"reads": 40, "commands": 14, "all": 20}


class Planted(NamedTuple):
    """An error: in which module, what is replaced by what; and the random episode that shows it."""

    name: str
    mix: Mix
    seed: int
    step: int
    module: str
    old: str
    new: str

    def episode(self) -> Episode:
        """The life of a table in which the error shows, up to there, without the queries that do not."""
        whole = random_episode(self.seed, STATEMENTS[self.mix], self.mix)
        before = [step for step in whole.steps[: self.step] if not isinstance(step, Read)]
        return whole._replace(steps=(*before, whole.steps[self.step]))


def planted_errors() -> tuple[Planted, ...]:
    """The lines of the list; a line break inside a piece of source is written as `\\n`."""
    lines = (Path(__file__).parent / "planted_errors.tsv").read_text().splitlines()[1:]
    made = []
    for line in lines:
        mix: Any
        name, mix, seed, step, module, old, new = line.split("\t")
        assert mix in ("all", "reads", "commands"), line
        pieces = [piece.replace("\\n", "\n") for piece in (old, new)]
        made.append(Planted(name, mix, int(seed), int(step), module, *pieces))
    return tuple(made)


@contextmanager
def planted(error: Planted) -> Iterator[None]:
    """Inside, the module's functions do what the changed source says, for whoever has imported them."""
    module = importlib.import_module(f"lakeproof.{error.module}")
    source = inspect.getsource(module)
    assert source.count(error.old) == 1, f"{error.name}: `{error.old}` stands {source.count(error.old)} times"
    changed: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(source.replace(error.old, error.new), str(module.__file__), "exec"), changed)
    codes = list(_pairs(module, changed))
    kept = [function.__code__ for function, _ in codes]
    tables = [(mine, dict(mine), theirs) for mine, theirs in _tables(module, changed)]
    for function, wrong in codes:
        function.__code__ = wrong.__code__
    for mine, _, theirs in tables:
        mine.update(theirs)
    try:
        yield
    finally:
        for (function, _), code in zip(codes, kept, strict=True):
            function.__code__ = code
        for mine, before, _ in tables:
            mine.update(before)


def _pairs(module: ModuleType, changed: dict[str, Any]) -> Iterator[tuple[FunctionType, FunctionType]]:
    """The functions and methods of a module, each with its changed twin."""
    for name, mine in list(vars(module).items()):
        if getattr(mine, "__module__", None) != module.__name__ or name not in changed:
            continue
        theirs = changed[name]
        if isinstance(mine, FunctionType):
            yield mine, theirs
        elif inspect.isclass(mine):
            for own, twin in _methods(mine, theirs):
                if own.__code__.co_freevars == twin.__code__.co_freevars:
                    yield own, twin


def _methods(mine: type, theirs: type) -> Iterator[tuple[FunctionType, FunctionType]]:
    for name, member in list(vars(mine).items()):
        twin = vars(theirs).get(name)
        if isinstance(member, property) and isinstance(twin, property):
            member, twin = member.fget, twin.fget
        if isinstance(member, FunctionType) and isinstance(twin, FunctionType):
            yield member, twin


def _tables(module: ModuleType, changed: dict[str, Any]) -> Iterator[tuple[dict[Any, Any], dict[Any, Any]]]:
    for name, mine in vars(module).items():
        if isinstance(mine, dict) and not name.startswith("__") and isinstance(changed.get(name), dict):
            yield mine, changed[name]
