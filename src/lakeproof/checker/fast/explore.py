"""The fast engine behind the interface of the readable one."""

from __future__ import annotations

import functools

from lakeproof.checker.fast.cycles import is_acyclic
from lakeproof.checker.fast.engine import Search
from lakeproof.checker.fast.judge import Judge
from lakeproof.checker.fast.memo import TooWide
from lakeproof.checker.fast.statistics import counts_of
from lakeproof.checker.limits import Cut, Watch
from lakeproof.checker.model import Model, Outcome, Process, Step
from lakeproof.checker.readable import Exploration, Successors
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger

__all__ = ["TooWide", "compile_kernels", "explore"]


def explore(successors: Successors, ledger: Ledger, watch: Watch, search: Search | None = None) -> Exploration:
    """Visit every state once, nearest first, until all are seen or a limit cuts."""
    search = search or Search(successors)
    ledger.check_state(successors.canonical(successors.tables.initial()), 0)
    cut = search.run(watch, Judge(ledger))
    asked = any(claim.kind == "eventually" for claim in ledger.claims)
    acyclic = True if asked and not cut and is_acyclic(search.memo) else None
    return Exploration(
        states=search.states,
        transitions=search.transitions,
        depth=len(search.levels) - 1,
        terminals=search.terminals,
        cut_by=cut,
        acyclic=acyclic,
        counts=counts_of(search.memo, search.visits()),
        path_to=search.path_to,
        seconds_in=search.seconds,
    )


@functools.cache
def compile_kernels() -> None:
    """Have every kernel compiled, or loaded from where a run before kept it."""
    tables = Tables(_toy())
    search = Search(Successors(tables, symmetric=True), workers=1, buffer=64)
    search.run(Watch(Cut()), Judge(Ledger(tables)))
    is_acyclic(search.memo)


def _toy() -> Model:
    """Three processes that count together: large enough to need every kernel once."""

    def count(shared: int, own: int) -> list[Outcome]:
        return [Outcome(shared + 1, own + 1, "counted")] if shared < 40 else []

    processes = tuple(Process(f"p{number}", 0) for number in range(3))
    return Model("toy", 0, processes, (Step("count", count),), observe=lambda own, event: min(own + 1, 50))
