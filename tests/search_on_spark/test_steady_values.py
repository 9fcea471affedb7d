"""Equal values come out alike in every process, and turns and advice are given once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeproof.checker.limits import Progress
from lakeproof.cli.main import main
from lakeproof.errors import InvalidInput
from lakeproof.search_on_spark.folder import Folder
from lakeproof.search_on_spark.forecast import advice, reached
from lakeproof.search_on_spark.search import check_on_spark
from lakeproof.search_on_spark.stable_hash import number_of, to_bytes

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=8,
)


class Pair(NamedTuple):
    one: object
    two: object


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Noted:
    what: object
    note: str = field(default="", compare=False)


@given(values, values)
def test_values_are_equal_where_their_bytes_are(one: object, two: object) -> None:
    assert (one == two) == (to_bytes(one) == to_bytes(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param(1, True, id="a number and a truth value"),
        pytest.param((2, "a"), Pair(2.0, "a"), id="a tuple and one with names"),
        pytest.param(Noted(1, "x"), Noted(1, "y"), id="a field that is not compared"),
        pytest.param(frozenset({"a", "b", None}), frozenset({None, "b", "a"}), id="a set in another order"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="parameters in another order"),
    ],
)
def test_equal_values_have_equal_bytes(one: object, two: object) -> None:
    assert one == two
    assert to_bytes(one) == to_bytes(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param(("a", "bc"), ("ab", "c"), id="where a text ends"),
        pytest.param(((1,), 2), ((1, 2),), id="where a tuple ends"),
        pytest.param(Colour.RED, Colour.BLUE, id="members of one class"),
        pytest.param(-1, -2, id="numbers with one hash"),
        pytest.param(check_on_spark, number_of, id="functions"),
    ],
)
def test_other_values_have_other_bytes(one: object, two: object) -> None:
    assert to_bytes(one) != to_bytes(two)


def test_another_process_gives_the_same_numbers() -> None:
    value = ("text", None, frozenset({"a", "b", "c"}), (1, -2, 3.5))
    program = f"from lakeproof.search_on_spark.stable_hash import number_of; print(number_of({value!r}))"
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told == [f"{number_of(value)}\n"] * 2


def test_each_partition_is_taken_once_and_given_again_to_its_task(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    assert folder.take_turn("run", 3, 0, [1, 0, 2]) == 1
    assert folder.take_turn("run", 3, 1, [1, 0, 2]) == 0
    assert folder.take_turn("run", 3, 0, [2, 1, 0]) == 1  # tried again in a worker that would rather have another one
    assert folder.take_turn("run", 3, 2, [0, 1, 2]) == 2
    assert folder.take_turn("run", 3, 3, [0, 1, 2]) is None
    assert folder.take_turn("another run", 3, 3, [0, 1, 2]) == 0


# ---------------------------------------------------------------- advice and bad input


def standing(states: int, memory_mb: float, frontier: int, remaining: int | None) -> Progress:
    return Progress(states, 0, 0, frontier, 0.0, memory_mb, 0.0, remaining, "")


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        pytest.param(standing(1_000, 150.0, 500, 10_000_000), False, id="too early to tell"),
        pytest.param(standing(10_000_000, 2_000.0, 1_000_000, 1_000_000), False, id="it will fit"),
        pytest.param(standing(10_000_000, 2_000.0, 1_000_000, 40_000_000), True, id="five times as much will not fit"),
        pytest.param(standing(10_000_000, 6_000.0, 8_000_000, None), True, id="the frontier alone will not fit"),
    ],
)
def test_a_local_search_that_will_not_fit_is_advised(progress: Progress, told: bool) -> None:
    word = advice(progress, memory_mb=12_000.0)
    assert ("--engine spark --checkpoint DIR" in word) == told
    assert bool(word) == told


def test_the_advice_names_what_is_needed() -> None:
    word = advice(standing(10_000_000, 2_000.0, 1_000_000, 40_000_000), memory_mb=8_000.0)
    assert word.startswith("this space needs about 10.0 GB and this machine has 8.0 GB: ")


def test_a_master_that_does_not_answer_is_refused_at_once() -> None:
    assert reached("local[2]") is None
    for master in ("spark://127.0.0.1:1", "spark://127.0.0.1:1,127.0.0.1:2", "spark://127.0.0.1:x"):
        with pytest.raises(InvalidInput, match="master cannot be reached") as refused:
            reached(master)
        assert refused.value.place == master
    with pytest.raises(InvalidInput, match="not the URL of a Spark master"):
        reached("nonsense")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["iceberg", "--checkpoint", "x"], "Only a search on Spark has a checkpoint", id="checkpoint"),
        pytest.param(["iceberg", "--master", "local[1]"], "Only a search on Spark has a master", id="master"),
        pytest.param(["iceberg", "--engine", "spark", "--simulate", "2"], "Random runs are taken", id="random runs"),
        pytest.param(
            ["iceberg", "--engine", "spark", "--master", "spark://127.0.0.1:1", "--checkpoint", "x"],
            "The Spark master cannot be reached: Connection refused",
            id="nobody there",
        ),
        pytest.param(["jobs.sql", "--engine", "spark"], "A file of jobs is explored in this process", id="jobs"),
    ],
)
def test_bad_arguments_are_one_sentence_and_leave_nothing(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", *arguments]) == 2
    assert message in capsys.readouterr().err.splitlines()[0]
    assert list(tmp_path.iterdir()) == []
