"""A difference is made smaller: fewer steps, fewer rows, a simpler predicate, as long as it stays one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oracle import Difference, Oracle
from random_predicates import smaller
from steps import Alter, Copy, Create, Delete, Episode, Insert, Merge, Read, Step, Update


def shrunk(oracle: Oracle, difference: Difference, attempts: int = 40) -> Difference:
    """The smallest difference that so many attempts find, of the same kind of statement at the end."""
    if difference.at < 0:
        return difference
    best = _cut(difference)
    left = attempts
    tried = True
    while tried and left > 0:
        tried = False
        for candidate in candidates(best.episode):
            if left == 0:
                break
            left -= 1
            found = [one for one in oracle.differences(candidate) if one.at == len(candidate.steps) - 1]
            if found:
                best, tried = found[0], True
                break
    return best


def _cut(difference: Difference) -> Difference:
    """Nothing after the difference matters, and no other query does."""
    before = [step for step in difference.episode.steps[: difference.at] if not isinstance(step, Read)]
    steps = (*before, difference.episode.steps[difference.at])
    return difference._replace(episode=difference.episode._replace(steps=steps), at=len(steps) - 1)


def candidates(episode: Episode) -> Iterator[Episode]:
    """Episodes with a little less in them, the boldest first."""
    steps = episode.steps
    for at in range(len(steps) - 2, 0, -1):
        if isinstance(steps[at], Alter):  # later steps speak of the columns that it made
            continue
        yield episode._replace(steps=(*steps[:at], *steps[at + 1 :]))
    for one in _simpler(steps[-1]):
        yield episode._replace(steps=(*steps[:-1], one))
    for at, step in enumerate(steps[:-1]):
        if isinstance(step, Insert) and len(step.rows) > 1:
            half = len(step.rows) // 2
            for rows in (step.rows[:half], step.rows[half:]):
                yield episode._replace(steps=(*steps[:at], step._replace(rows=rows), *steps[at + 1 :]))
        if isinstance(step, Create) and step.partitions:
            for gone in range(len(step.partitions)):
                kept = step.partitions[:gone] + step.partitions[gone + 1 :]
                yield episode._replace(steps=(step._replace(partitions=kept), *steps[1:]))


def _simpler(step: Step) -> Iterator[Any]:
    match step:
        case Read() | Copy() | Delete() | Update() if step.predicate is not None:
            for predicate in smaller(step.predicate):
                yield step._replace(predicate=predicate)
    match step:
        case Insert(rows) if len(rows) > 1:
            half = len(rows) // 2
            yield from (step._replace(rows=rows[:half]), step._replace(rows=rows[half:]))
        case Update(assignments) if len(assignments) > 1:
            for at in range(len(assignments)):
                yield step._replace(assignments=assignments[:at] + assignments[at + 1 :])
        case Merge(clauses=clauses) if len(clauses) > 1:
            for at in range(len(clauses)):
                yield step._replace(clauses=clauses[:at] + clauses[at + 1 :])
