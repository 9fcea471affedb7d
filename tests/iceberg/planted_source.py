"""An error is planted in a module of the product: a piece of its source is replaced, and put back."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, Protocol


class PlantedSource(Protocol):
    """An error: in which module, what is replaced by what."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...


@contextmanager
def planted(error: PlantedSource) -> Iterator[None]:
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
