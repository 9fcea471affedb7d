"""The answer of `lakeproof check` to a random file, as the oracle compares it."""

from __future__ import annotations

import time

from jobs_oracle.comparing import Answer, First
from jobs_oracle.grammar import File
from lakeproof.commit import POLICIES
from lakeproof.jobs.model import Beginning
from lakeproof.jobs.preparing import prepare_jobs
from lakeproof.jobs.reading import independent_parts, read_jobs
from lakeproof.jobs.searching import Clock, Limits, explore_by_writers
from lakeproof.jobs.text import taken_apart

SECONDS = 10.0
"""The time of this process that a file may take, before the answer is "unknown"."""


def check(file: File, text: str, seconds: float = SECONDS) -> Answer:
    """Read the file, explore it, and give its verdict with what decided it."""
    jobs = read_jobs(taken_apart(text, name="random.sql"))
    limits = Limits(Clock(seconds, time.process_time))
    why = list(jobs.open)
    for part in independent_parts(jobs):
        ready = prepare_jobs(part)
        found = explore_by_writers(ready, POLICIES[file.policy], limits).found
        if found.violated is not None:
            return Answer("violated", jobs.notes, _first(file, found.violated))
        why += [*ready.cut, *([found.cut] if found.cut else [])]
    return Answer("unknown" if why else "holds", jobs.notes, reason="; ".join(why))


def _first(file: File, violated: Beginning) -> First:
    """The first tables of a counterexample; one that it does not touch is empty."""
    return {table.name: tuple(rows for name, rows in violated.rows if name == table.name) for table in file.tables}
