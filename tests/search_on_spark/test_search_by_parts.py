"""The search on partitions says what the local engines say, whoever does which task and however often."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import toys
from checker_runs import assert_all_shown, words
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_models import Size, random_model
from workers_here import Here, by_parts, facts, locally

from in_part import in_part, where_quick
from lakeproof.checker import Model, Outcome, Process, Step, check
from lakeproof.checker.search import REDUCTIONS
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput, ModelError
from lakeproof.models import iceberg, paimon
from lakeproof.search_on_spark.files import StatesReader
from lakeproof.search_on_spark.folder import STATES, Folder
from lakeproof.search_on_spark.jobs import JobFailed
from lakeproof.search_on_spark.partition import Partition, SearchPlan
from lakeproof.search_on_spark.search import check_on_spark
from lakeproof.search_on_spark.stable_hash import number_of
from lakeproof.search_on_spark.task import Work

T = TypeVar("T")

MODELS: dict[str, Callable[[], Model]] = {
    "a hand that goes round": partial(toys.clock, 12, bad=7),
    "retries for ever": toys.retry_loop,
    "retries that end": partial(toys.retry_loop, 3, limit=1),
    "a lease without a fence": partial(toys.lease, fenced=False),
    "peterson without the turn": partial(toys.peterson, with_turn=False),
    "letters that may be renamed": partial(toys.letters, most=4),
    "cells, every kind of step": partial(toys.cells, 2, 2, 3, 2),
    "a ring of two kinds": partial(toys.ring, 3, 4),
    "iceberg, violated": partial(iceberg.build, {"preset": "undelete"}, POLICIES["iceberg-spark"]),
    "iceberg, holds": partial(iceberg.build, {"preset": "compaction"}, POLICIES["lakeproof"]),
    "paimon, two kinds and renamings": partial(paimon.build, {"preset": "two-compactors"}),
}
LARGER = ("iceberg, holds", "paimon, two kinds and renamings")


@pytest.mark.parametrize("name", where_quick(MODELS, lambda name: name not in LARGER))
def test_counts_verdicts_and_depths_are_those_of_the_local_engine(name: str) -> None:
    model = MODELS[name]()
    verdict = by_parts(model)
    assert facts(verdict) == locally(model)
    assert verdict.engine == "spark"
    assert_all_shown(model, verdict)


@pytest.mark.parametrize(
    "name", in_part(["letters that may be renamed", "iceberg, violated", "paimon, two kinds and renamings"], every=3)
)
def test_a_worker_that_remembers_nothing_reads_it_all_again(name: str) -> None:
    model = MODELS[name]()
    verdict = by_parts(model, cluster=Here(forgetful=True))
    assert facts(verdict) == locally(model)
    assert_all_shown(model, verdict)


@pytest.mark.parametrize("reductions", [(), *((name,) for name in REDUCTIONS), REDUCTIONS])
def test_each_reduction_alone(reductions: tuple[str, ...]) -> None:
    model = toys.letters(jobs=3)
    assert facts(by_parts(model, reductions=reductions)) == locally(model, reductions=reductions)


def test_states_lie_where_their_shared_value_belongs_and_each_once(tmp_path: Path) -> None:
    model = toys.cells(2, 2, 3, 2)
    verdict = by_parts(model, parts=4, checkpoint=str(tmp_path), reductions=("processes",))
    plan = SearchPlan("", "", str(tmp_path), 4, ("processes",))
    worlds = Counter[Any]()
    for part in range(4):
        there = Partition(plan, part, model)
        for level in range(verdict.depth + 1):
            folder = there.folder.part(level, part)
            if (folder / STATES).exists():
                for columns in StatesReader(folder, there.packed).read(STATES):
                    found = [there.world(tuple(state)) for state in columns.T.tolist()]
                    assert {number_of(shared) % 4 for shared, _ in found} == {part}
                    worlds.update((shared, frozenset(Counter(owns).items())) for shared, owns in found)
    assert len(worlds) == verdict.states == 4788
    assert set(worlds.values()) == {1}


def test_what_was_sent_is_gone_when_it_was_read(tmp_path: Path) -> None:
    verdict = by_parts(toys.cells(2, 2, 3, 2), checkpoint=str(tmp_path))
    last = Folder(str(tmp_path)).level(verdict.depth)
    assert list(tmp_path.glob("level-*/part-*/to-*")) == list(last.glob("part-*/to-*"))
    assert list(tmp_path.glob("level-*/turn-*")) == list(tmp_path.glob("level-*/writing-*")) == []


# ---------------------------------------------------------------- tasks that run twice, or are lost


def test_a_task_that_runs_twice_does_no_harm(tmp_path: Path) -> None:
    model, folder, states = MODELS["iceberg, violated"](), Folder(str(tmp_path)), 0
    plan = SearchPlan("", "", str(tmp_path), 2, ("processes", "private"))
    first = [Partition(plan, number, model) for number in range(2)]
    for level in range(100):
        for part in first:
            part.search(level)
            before = sorted((path, os.stat(path).st_ino) for path in tmp_path.rglob("*"))
            again = Partition(plan, part.number, model)  # another worker, which remembers nothing
            again.search(level)
            assert sorted((path, os.stat(path).st_ino) for path in tmp_path.rglob("*")) == before
            assert len(again.ahead) == len(part.ahead)
        done = folder.done(level, 2)
        assert done is not None
        states += sum(one.states for one in done)
        if not sum(one.ahead for one in done):
            break
    assert states == check(model).states


class Dies(Here):
    """The cluster is gone after so many tasks."""

    left = 0

    def run(self, function: Callable[[int], T], tasks: int, look: Callable[[], str] = lambda: "") -> list[T]:
        answers = []
        for number in range(tasks):
            self.left -= 1
            if self.left < 0:
                raise JobFailed("ExecutorLost: nobody is left")
            answers.append(function(number))
        return answers


@pytest.mark.parametrize("tasks", in_part([12, 1, 5, 26], every=4))
def test_a_search_whose_cluster_died_goes_on_where_it_stopped(tasks: int, tmp_path: Path) -> None:
    model, dying = MODELS["iceberg, violated"](), Dies()
    dying.left = tasks
    folder = str(tmp_path / "there")
    cut = by_parts(model, cluster=dying, checkpoint=folder)
    assert (cut.verdict, cut.cut_by, cut.exhausted) == ("unknown", "a failed Spark job", False)
    assert "nobody is left" in cut.notes[-1]
    before = {path: os.stat(path).st_ino for path in Path(folder).rglob("done.packed")}
    assert len(before) == max(0, tasks - 3)  # three tasks see first whether all is ready
    verdict = by_parts(model, checkpoint=folder, cluster=Here(forgetful=True))
    assert facts(verdict) == locally(model)
    assert {path: os.stat(path).st_ino for path in before} == before


class Listens(Here):
    """Notes what is asked of the partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Counter[str]()

    def run(self, function: Any, tasks: int, look: Callable[[], str] = lambda: "") -> list[Any]:
        work = function.args[0]
        asked: Any = getattr(work, "question", None)
        self.asked[asked.func.__name__ if isinstance(work, Work) else "ready?"] += 1
        return super().run(function, tasks, look)


def test_a_finished_search_is_not_searched_again(tmp_path: Path) -> None:
    model, first, second = MODELS["letters that may be renamed"](), Listens(), Listens()
    verdict = by_parts(model, cluster=first, checkpoint=str(tmp_path))
    assert first.asked == {"ready?": 1, "_search": verdict.depth + 1, "_cycles": 1, "_predecessors": 8}
    assert facts(by_parts(model, cluster=second, checkpoint=str(tmp_path))) == locally(model)
    assert second.asked == {"ready?": 1, "_cycles": 1, "_predecessors": 8}


def test_a_cluster_that_dies_while_a_trace_is_sought_leaves_the_checkpoint(tmp_path: Path) -> None:
    model, dying = MODELS["letters that may be renamed"](), Dies()
    by_parts(model, checkpoint=str(tmp_path))
    dying.left = 3 * 4
    with pytest.raises(JobFailed, match="nobody is left") as failed:
        by_parts(model, cluster=dying, checkpoint=str(tmp_path))
    assert failed.value.exit_code == 3
    assert facts(by_parts(model, checkpoint=str(tmp_path))) == locally(model)


# ---------------------------------------------------------------- limits


def test_limits_cut_between_levels_and_say_so() -> None:
    model = toys.cells(2, 2, 3, 2)
    cut = by_parts(model, max_states=100)
    assert (cut.verdict, cut.cut_by, cut.exhausted) == ("unknown", "max-states", False)
    assert 100 <= cut.states < 4788
    assert by_parts(model, max_seconds=0.0).cut_by == "max-seconds"
    first = by_parts(model, first=True)
    assert (first.cut_by, first.verdict) == ("first violation", "violated")
    assert first.property("not_all_last").depth == check(model).property("not_all_last").depth


def test_a_limit_that_comes_with_the_end_cuts_nothing() -> None:
    model = toys.letters()
    whole = check(model)
    assert facts(by_parts(model, max_states=whole.states)) == facts(whole)


def test_a_search_cut_by_a_limit_goes_on(tmp_path: Path) -> None:
    model = toys.cells(2, 2, 3, 2)
    assert by_parts(model, max_states=100, checkpoint=str(tmp_path)).cut_by == "max-states"
    assert facts(by_parts(model, checkpoint=str(tmp_path))) == locally(model)


# ---------------------------------------------------------------- what is wrong is said


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param(toys.letters(), "model", id="another model"),
        pytest.param(iceberg.build({"preset": "undelete"}, POLICIES["lakeproof"]), "parameters", id="another policy"),
        pytest.param(
            iceberg.build({"preset": "undelete", "num-writers": "3"}, POLICIES["iceberg-spark"]),
            "parameters",
            id="another parameter",
        ),
    ],
)
def test_a_checkpoint_of_another_search_is_refused(other: Model, differs: str, tmp_path: Path) -> None:
    by_parts(MODELS["iceberg, violated"](), checkpoint=str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput) as refused:
        by_parts(other, checkpoint=str(tmp_path))
    assert refused.value.message == "The checkpoint is of another search"
    assert refused.value.place == str(tmp_path)
    assert refused.value.hint.startswith("it holds iceberg ")
    assert f"differs in its {differs}" in refused.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_checkpoint_with_other_reductions_or_another_text_of_the_model_is_refused(tmp_path: Path) -> None:
    model = toys.letters()
    by_parts(model, checkpoint=str(tmp_path), version_of_model="one")
    with pytest.raises(InvalidInput, match="of another search") as refused:
        by_parts(model, checkpoint=str(tmp_path), version_of_model="one", reductions=False)
    assert "differs in its reductions" in refused.value.hint
    with pytest.raises(InvalidInput, match="of another search"):
        by_parts(model, checkpoint=str(tmp_path), version_of_model="two")


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "level-of-the-sea.txt").write_text("rising")
    with pytest.raises(InvalidInput, match="holds something else"):
        by_parts(toys.letters(), checkpoint=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["level-of-the-sea.txt"]
    with pytest.raises(InvalidInput, match="a folder, not a file"):
        by_parts(toys.letters(), checkpoint=str(tmp_path / "level-of-the-sea.txt"))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    by_parts(toys.letters(), checkpoint=str(tmp_path))
    broken = sorted(tmp_path.rglob("done.packed"))[4]
    broken.write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="damaged") as refused:
        by_parts(toys.letters(), checkpoint=str(tmp_path))
    assert refused.value.place == str(broken)
    (tmp_path / "search.json").write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read"):
        by_parts(toys.letters(), checkpoint=str(tmp_path))


def test_a_fault_of_the_model_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def stumble(shared: int, own: int) -> list[Outcome]:
        if shared == 3:
            raise ValueError("three is too much")
        return [Outcome(shared + 1, own)]

    model = Model("stumbles", 0, (Process("p", 0),), (Step("stumble", stumble),))
    with pytest.raises(ModelError, match="three is too much"):
        by_parts(model, checkpoint=str(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_states_too_wide_for_the_kernels_are_refused(tmp_path: Path) -> None:
    model = toys.ring(16, 40)
    with pytest.raises(InvalidInput, match="cannot number the states") as refused:
        by_parts(model, parts=1, reductions=False)
    assert "--engine local" in refused.value.hint


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no property 'nonsense'"):
        by_parts(toys.letters(), require=["nonsense"])


def test_a_cluster_needs_a_shared_folder() -> None:
    class Far(Here):
        master = "spark://far:7077"

    with pytest.raises(InvalidInput, match="needs a folder to work in"):
        check_on_spark(Far, toys.letters)


# ---------------------------------------------------------------- random models


sizes = st.builds(
    Size,
    events=st.just(3),
    shared=st.integers(2, 4),
    places=st.integers(2, 3),
    kinds=st.sampled_from([(2,), (2, 1), (1, 1), (3,)]),
    density=st.sampled_from([0.3, 0.45]),
    private=st.booleans(),
    mirrored=st.booleans(),
    ends=st.booleans(),
    restless=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 10_000), sizes, st.integers(1, 3), st.booleans())
def test_random_models_agree(seed: int, size: Size, parts: int, forgetful: bool) -> None:
    model = random_model(seed, size)
    readable = check(model, engine="readable", witnesses=True)
    verdict = by_parts(model, parts, cluster=Here(forgetful=forgetful), witnesses=True)
    assert words(verdict) == words(readable)
    if not model.value_symmetries:  # which of several renamings is taken may decide how many states are left
        assert (verdict.states, verdict.transitions) == (readable.states, readable.transitions)
        assert (verdict.depth, verdict.statistics) == (readable.depth, readable.statistics)
    assert_all_shown(model, verdict)
