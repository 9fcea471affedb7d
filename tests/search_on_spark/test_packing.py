"""Packed values come back equal, and bytes that would run something are refused before they do."""

from __future__ import annotations

import enum
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lakeproof.checker.readable import Counts
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput
from lakeproof.models import iceberg
from lakeproof.search_on_spark.packing import pack, unpack


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    left: Any
    right: Any = None


@dataclass(frozen=True)
class Fields:
    name: str
    inner: Pair


class Calls:
    """Its pickle calls a function when it is read."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class HasState:
    def __setstate__(self, state: Any) -> None:
        os.system(state)


@dataclass
class Hooked:
    path: str

    def __setstate__(self, state: Any) -> None:
        Path(state["path"]).touch()


class Made(NamedTuple("Made", [("path", str)])):
    def __new__(cls, path: str) -> Any:
        Path(path).touch()
        return super().__new__(cls, path)


@pytest.mark.parametrize(
    "value",
    [
        (1, -2.5, True, None, "text", b"bytes", 2**70),
        frozenset({Pair(1), Pair((2, frozenset()), Colour.RED)}),
        Fields("a", Pair({"k": [1, 2]}, {3})),
        Counts(Counter("aab"), Counter(), Counter(x=2)),
        iceberg.build({"preset": "undelete"}, POLICIES["lakeproof"]).shared,
    ],
)
def test_values_come_back_equal(value: Any) -> None:
    assert unpack(pack(value)) == value


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize(
    "made",
    [
        lambda path: Calls(os.system, f"touch {path}"),
        lambda path: Calls(exec, f"open({path!r}, 'w')"),
        lambda path: Calls(subprocess.check_call, ["touch", path]),
        lambda path: Calls(partial(Path.touch, Path(path))),
        lambda path: Pair(1, (Calls(Path.touch, Path(path)),)),
        lambda path: Calls(getattr, path, "upper"),
        lambda path: Hooked(path),
        lambda path: HasState(),
    ],
)
def test_what_would_run_something_is_refused(tmp_path: Path, made: Callable[[str], Any], protocol: int) -> None:
    target = tmp_path / "ran"
    packed = pickle.dumps(made(str(target)), protocol)
    with pytest.raises(InvalidInput, match="not a class that only holds fields"):
        unpack(packed)
    assert not target.exists()


class Switch:
    """Its pickle names a class and then sets what belongs to it."""

    def __init__(self, kind: type, **changed: Any) -> None:
        self.kind, self.changed = kind, changed

    def written(self, protocol: int) -> bytes:
        name = f"c{self.kind.__module__}\n{self.kind.__qualname__}\n".encode()
        state = pickle.dumps((None, self.changed), protocol)
        return bytes([0x80, protocol]) + name + state[2 if protocol > 1 else 0 : -1] + b"b."


@pytest.mark.parametrize("kind", [Pair, Fields, Colour, Counter, Counts])
def test_a_class_cannot_be_changed(kind: type) -> None:
    packed = Switch(kind, planted="here").written(2)
    pickle.loads(packed)  # a plain reader lets it happen
    assert kind.planted == "here"  # type: ignore[attr-defined]
    del kind.planted  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="would change a class"):
        unpack(packed)
    assert not hasattr(kind, "planted")


def test_no_class_can_be_made_or_got() -> None:
    made = Calls(enum.Enum, "Made", ("A", "B"))
    with pytest.raises(InvalidInput, match="only holds fields"):
        unpack(pickle.dumps(made, 5))
    with pytest.raises(ValueError, match="too many values"):
        unpack(pickle.dumps(Calls(Colour, "Made", ("A", "B")), 5))
    assert not isinstance(unpack(pickle.dumps(Pair, 5)), type)


@pytest.mark.parametrize("value", [Path("x"), Calls(len), Pair(1, Colour), len, Pair(int), object()])
def test_what_could_not_be_read_is_not_written(value: Any) -> None:
    with pytest.raises(InvalidInput, match="only holds fields"):
        pack(value)


def test_only_modules_that_values_come_from_are_imported() -> None:
    packed = b"clakeproof.cli.commands.explore\nNothing\n."
    before = set(sys.modules)
    with pytest.raises(InvalidInput, match="only holds fields"):
        unpack(packed)
    assert "lakeproof.cli.commands.explore" not in set(sys.modules) - before


def test_a_constructor_of_its_own_is_not_called(tmp_path: Path) -> None:
    packed = pickle.dumps(Made(str(tmp_path / "ran")), 5)
    (tmp_path / "ran").unlink()
    with pytest.raises(InvalidInput, match="only holds fields"):
        unpack(packed)
    assert not (tmp_path / "ran").exists()
