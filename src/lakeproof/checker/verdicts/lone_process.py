"""A race, or the protocol itself? A violation that one process reaches while no other moves needs no concurrency."""

from __future__ import annotations

from collections.abc import Collection

from lakeproof.checker.limits import Cut, Watch
from lakeproof.checker.model import Model
from lakeproof.checker.readable import Successors, explore
from lakeproof.checker.tables import Tables
from lakeproof.checker.verdicts.ledger import Ledger
from lakeproof.checker.verdicts.liveness import Graph, TooLarge, lasso_of

MOST_STATES, MOST_SECONDS = 200_000, 5.0  # per process; past them the answer is "not known"


def reached_alone(model: Model, names: Collection[str], endless: Collection[str] = ()) -> dict[str, bool | None]:
    """For each violated property: does a single process get there alone? `endless` names those that a loop violates."""
    tables = Tables(model)
    tried = {(kind, own): position for position, (kind, own) in enumerate(_starts(tables), 1)}
    answers: dict[str, bool | None] = dict.fromkeys(names, False)
    for position in tried.values():
        successors = Successors(tables, symmetric=False, movers=frozenset({position}))
        ledger = Ledger(tables)
        wanted = [name for name in names if not answers[name]]
        explored = explore(successors, ledger, Watch(Cut(MOST_STATES, MOST_SECONDS)), enough=wanted)
        for name in wanted:
            if name in ledger.found or (name in endless and _goes_round(model, position, name)):
                answers[name] = True
            elif explored.cut_by:
                answers[name] = None
    return answers


def _starts(tables: Tables) -> list[tuple[int, int]]:
    return list(zip(tables.kinds, tables.initial()[1:], strict=True))


def _goes_round(model: Model, position: int, name: str) -> bool:
    tables = Tables(model, private=False, values=False)
    successors = Successors(tables, symmetric=False, movers=frozenset({position}))
    claim = next(claim for claim in model.claims() if claim.name == name)
    try:
        return lasso_of(Graph(successors, MOST_STATES), claim) is not None
    except TooLarge:
        return False
