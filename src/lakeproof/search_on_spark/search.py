"""`check_on_spark`: the model explored on a cluster, and its verdict."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from lakeproof.checker.faults import blaming
from lakeproof.checker.limits import Cut, Progress, Watch
from lakeproof.checker.model import Model
from lakeproof.checker.search import reductions_for
from lakeproof.checker.verdicts.conclusion import conclude
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.errors import InvalidInput, ModelError
from lakeproof.search_on_spark.driver import SparkSearch
from lakeproof.search_on_spark.folder import FORMAT, Folder
from lakeproof.search_on_spark.jobs import TaskRunner
from lakeproof.search_on_spark.partition import SearchPlan
from lakeproof.search_on_spark.stable_hash import number_of
from lakeproof.search_on_spark.task import Source


def check_on_spark(
    cluster: Callable[[], TaskRunner],
    source: Source,
    *,
    reductions: bool | Collection[str] = True,
    max_states: int | None = None,
    max_seconds: float | None = None,
    first: bool = False,
    progress: Callable[[Progress], None] | None = None,
    require: Collection[str] = (),
    witnesses: bool = False,
    checkpoint: str | None = None,
    parts: int | None = None,
    version_of_model: str = "",
) -> Verdict:
    """Explore every run of the model on the session's cluster, with the verdict and the counts of the local engine.

    `source` makes the model, here and in every worker; `version_of_model` tells models apart that the same call makes.
    `checkpoint` is a folder that the driver and all workers share; a search that was stopped goes on from it.
    The cluster (see `cluster_of`) is only asked for when nothing is wrong with the rest.
    """
    model = source()
    _refuse_unknown_properties(model, require)
    chosen, notes = reductions_for(model, reductions)
    told = _told(model, number_of((source, version_of_model)), chosen)
    if checkpoint is not None:
        _refuse_other_search(checkpoint, told)
    jobs = cluster()
    if checkpoint is None and not jobs.master.startswith("local"):
        hint = "--checkpoint DIR, a folder that the driver and all workers share"
        raise InvalidInput("On a cluster the search needs a folder to work in", place=jobs.master, hint=hint)
    watch = Watch(Cut(max_states, max_seconds, first), progress)
    with _working_folder(checkpoint) as folder, blaming(model.name), watch:
        plan = _plan(folder, told, chosen, parts or jobs.slots)
        search = SparkSearch(jobs, plan, source, model, watch)
        verdict = conclude(search.run(notes), watch, chosen, require, witnesses, None)
        memory = verdict.peak_memory_mb + sum(search.memory_mb.values())
        return replace(verdict, peak_memory_mb=memory, notes=(*notes, *search.notes))


@contextmanager
def _working_folder(checkpoint: str | None) -> Iterator[str]:
    """Where the search works; a search that could not begin leaves nothing there."""
    if checkpoint is None:
        with tempfile.TemporaryDirectory(prefix="lakeproof-search-") as folder:
            yield folder
        return
    fresh = Folder(checkpoint).header() is None
    try:
        yield checkpoint
    except (InvalidInput, ModelError):
        if fresh and Folder(checkpoint).header() is not None:
            Folder(checkpoint).clear()
        raise


def _told(model: Model, source: int, reductions: tuple[str, ...]) -> dict[str, Any]:
    """What a search is a search of, as its folder says it."""
    names = [*model.all_steps(), *(process.name for process in model.processes), *(c.name for c in model.claims())]
    owns = tuple(process.own for process in model.processes)
    return {
        "format": FORMAT,
        "version": version("lakeproof"),
        "model": model.name,
        "parameters": {name: str(value) for name, value in model.parameters.items()},
        "reductions": list(reductions),
        "content": number_of((source, tuple(names), model.shared, owns)),
    }


def _refuse_other_search(folder: str, told: dict[str, Any]) -> None:
    there = Folder(folder).header()
    if there is None:
        Folder(folder).must_be_free()
        return
    differing = [name for name, value in told.items() if there.get(name) != value]
    if differing:
        parameters = there.get("parameters")
        named = " ".join(f"{k}={v}" for k, v in parameters.items()) if isinstance(parameters, dict) else ""
        what = f"it holds {there.get('model')} {named}".rstrip()
        hint = f"{what}; it differs in its {differing[0]}, so name another folder"
        raise InvalidInput("The checkpoint is of another search", place=folder, hint=hint)


def _plan(folder: str, told: dict[str, Any], reductions: tuple[str, ...], parts: int) -> SearchPlan:
    """The search of this folder: the one that was begun there, or a new one."""
    there = Folder(folder).header()
    if there is None:
        there = {**told, "parts": parts, "search": uuid.uuid4().hex}
        Folder(folder).begin(there)
    return SearchPlan(told["model"], there["search"], folder, there["parts"], reductions)


def _refuse_unknown_properties(model: Model, names: Collection[str]) -> None:
    known = [claim.name for claim in model.claims()]
    for name in names:
        if name not in known:
            raise InvalidInput(f"there is no property {name!r}", hint=f"there is {', '.join(known)}")
