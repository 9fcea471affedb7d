"""`check`: explore a model with the engine that fits its size, and give the verdict."""

from __future__ import annotations

import difflib
import gc
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from lakeproof.checker.faults import blaming
from lakeproof.checker.limits import Cut, Progress, Watch
from lakeproof.checker.model import Model
from lakeproof.checker.readable import Successors, explore
from lakeproof.checker.reduction_promises import broken_on_a_sample
from lakeproof.checker.simulate import walk
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.conclusion import Searched, conclude
from lakeproof.checker.verdicts.ledger import Ledger
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.errors import InvalidInput

REDUCTIONS = ("processes", "values", "private")
PATIENCE_STATES = 20_000
"""What the readable engine visits (in about half a second) before the fast one is worth its start.

Counted, not timed: the engines may choose different traces of one length, and a trace must not depend on the machine.
"""

Engine = Literal["auto", "readable", "fast"]


def check(
    model: Model,
    *,
    reductions: bool | Collection[str] = True,
    max_states: int | None = None,
    max_seconds: float | None = None,
    first: bool = False,
    simulate: int | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    engine: Engine = "auto",
    require: Collection[str] = (),
    witnesses: bool = False,
) -> Verdict:
    """Explore every run of the model (or `simulate` random ones) and say which properties hold.

    `require` names properties that count in the verdict although they do not by themselves; `witnesses` asks for
    traces of reached `reachable` properties too.
    """
    _refuse_unknown(require, [claim.name for claim in model.claims()], "property")
    chosen, notes = reductions_for(model, () if simulate is not None else reductions)
    watch = Watch(Cut(max_states, max_seconds, first), progress)
    with blaming(model.name), without_garbage_collection(), watch:
        broken = broken_on_a_sample(model, chosen)
        chosen = tuple(name for name in chosen if name not in broken)
        notes = (*notes, *(f"{WITHOUT[name]}: {how}" for name, how in broken.items()))
        tables = Tables(model, private="private" in chosen, values="values" in chosen)
        successors = Successors(tables, symmetric="processes" in chosen)
        if simulate is not None:
            ledger = Ledger(tables)
            searched = Searched(
                walk(successors, ledger, watch, simulate, seed), ledger, successors, "simulation", notes
            )
        else:
            searched = _explored(successors, watch, engine, notes)
        return conclude(searched, watch, chosen, require, witnesses, seed if simulate is not None else None)


WITHOUT = {"private": "private steps are taken one by one", "values": "values are not renamed"}
"""What a search does whose model breaks the promise of a reduction."""


def _explored(successors: Successors, watch: Watch, engine: Engine, notes: tuple[str, ...]) -> Searched:
    """The whole space: by the readable engine as long as that is quick, then again by the fast one."""
    if engine != "fast":
        watch.patience = PATIENCE_STATES if engine == "auto" else None
        explored = _by_readable(successors, watch, notes)
        if explored.explored.cut_by != "patience":
            return explored
    watch.patience = None
    before = time.perf_counter()
    from lakeproof.checker.fast import explore as fast  # numba takes its time: only a large space pays for it

    fast.compile_kernels()
    compile_seconds = time.perf_counter() - before
    watch.pauses += compile_seconds
    watch.widths.clear()
    ledger = Ledger(successors.tables)
    try:
        seen = fast.explore(successors, ledger, watch)
    except fast.TooWide as error:
        watch.widths.clear()
        successors = Successors(successors.tables, symmetric=bool(successors.groups))
        return _by_readable(successors, watch, (*notes, f"searched by the readable engine: {error}"))
    return Searched(replace(seen, compile_seconds=compile_seconds), ledger, successors, "fast", notes)


def _by_readable(successors: Successors, watch: Watch, notes: tuple[str, ...]) -> Searched:
    ledger = Ledger(successors.tables)
    return Searched(explore(successors, ledger, watch), ledger, successors, "readable", notes)


def reductions_for(model: Model, asked: bool | Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The reductions that this model allows of those asked for, and why one was left out."""
    names = (REDUCTIONS if asked else ()) if isinstance(asked, bool) else tuple(asked)
    _refuse_unknown(names, REDUCTIONS, "reduction")
    kinds = tuple(sorted(process.kind for process in model.processes))
    able = {
        "processes": len(set(kinds)) < len(kinds),
        "values": bool(model.value_symmetries),
        "private": any(step.private for step in model.all_steps().values()),
    }
    chosen = [name for name in REDUCTIONS if name in names and able[name]]
    picky = [claim.name for claim in model.claims() if not claim.symmetric]
    if picky and "processes" in chosen:
        chosen.remove("processes")
        note = f"process symmetry is off: {picky[0]} may tell processes apart (say symmetric=True if it does not)"
        return tuple(chosen), (note,)
    return tuple(chosen), ()


def _refuse_unknown(names: Collection[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(known) or 'none'}"
            raise InvalidInput(f"there is no {what} {name!r}", hint=hint)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Millions of interned values are not garbage; looking through them again and again costs a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
