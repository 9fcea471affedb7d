"""One seed: a random file, the answer of `lakeproof check`, the brute force's, and whether they fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from jobs_oracle.brute_force import Anomaly, BruteForce
from jobs_oracle.generator import Maker, any_row, first_rows
from jobs_oracle.grammar import Column, File
from jobs_oracle.in_sqlite import Engine, Values
from jobs_oracle.planning import first_table
from jobs_oracle.wording import text_of

TABLES = 40
"""First tables that the brute force tries for one file."""

First = dict[str, tuple[tuple[Values, ...], ...]]


class Answer(NamedTuple):
    """What the check says: its verdict, what it took cautiously, and the first tables of its counterexample."""

    verdict: str
    cautious: tuple[str, ...] = ()
    first: First | None = None
    reason: str = ""


class Compared(NamedTuple):
    """One file's two answers. `wrong`: why they do not fit, or nothing."""

    file: File
    answer: Answer
    anomaly: Anomaly | None
    first: First | None
    wrong: str


Check = Callable[[File, str], Answer]


def compared(seed: int, check: Check, *, tables: int | None = None, tries: int = TABLES) -> Compared:
    """The two answers to the file of this seed."""
    return compared_file(Maker(seed, tables=tables).file(), check, tries=tries)


def compared_file(file: File, check: Check, *, tries: int = TABLES) -> Compared:
    """The two answers to a file."""
    answer = check(file, text_of(file))
    if answer.verdict == "violated":
        return _confirmed(file, answer)
    found, first = searched(file, tries)
    wrong = "holds, but there is an anomaly" if found and answer.verdict == "holds" else ""
    return Compared(file, answer, found, first, wrong)


def _confirmed(file: File, answer: Answer) -> Compared:
    """A counterexample that nothing was taken cautiously for must be one for the brute force too."""
    if answer.cautious or answer.first is None:
        return Compared(file, answer, None, answer.first, "")
    found = on(file, answer.first, {})
    wrong = "" if found else "violated, but the brute force finds nothing wrong on that first table"
    return Compared(file, answer, found, answer.first, wrong)


def searched(file: File, tries: int) -> tuple[Anomaly | None, First | None]:
    """The first anomaly on random first tables and random rows of unknown sources."""
    random = Random(file.seed + 7_000_000)
    engine = Engine(file)
    for _ in range(1 if file.rows and not _free(file) else tries):
        first = first_rows(file, random)
        sources = {place: (any_row(columns, random, file.constants),) for place, columns in _free(file).items()}
        found = on(file, first, sources, engine)
        if found:
            return found, first
    return None, None


def on(
    file: File, first: First, sources: Mapping[tuple[int, int], tuple[Values, ...]], engine: Engine | None = None
) -> Anomaly | None:
    """The anomaly on this first table, if there is one."""
    force = BruteForce(file, engine or Engine(file), sources)
    tables = {table.name: first_table(first[table.name], table, table.name) for table in file.tables}
    return force.run(tables).anomaly


def _free(file: File) -> dict[tuple[int, int], tuple[Column, ...]]:
    """The MERGEs and INSERTs whose source is any row."""
    return {
        (number, at): one.source_columns
        for number, job in enumerate(file.jobs)
        for at, one in enumerate(job.statements)
        if one.kind == "feed" or (one.kind == "merge" and not one.source and not one.source_table)
    }
