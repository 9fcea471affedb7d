"""The answer of `lakeproof check` to a random file, as the oracle compares it."""

from __future__ import annotations

import time

from jobs_oracle.comparing import Answer
from jobs_oracle.grammar import File
from lakeproof.commit import POLICIES
from lakeproof.jobs.preparing import prepared
from lakeproof.jobs.reading import read_jobs
from lakeproof.jobs.searching import Clock, Limits, covered
from lakeproof.jobs.text import taken_apart

SECONDS = 6.0
"""The time of this process that a file may take, before the answer is «unknown»."""


def check(file: File, text: str, seconds: float = SECONDS) -> Answer:
    """Read the file, explore it, and give its verdict with what decided it."""
    jobs = read_jobs(taken_apart(text, name="random.sql"))
    ready = prepared(jobs)
    found = covered(ready, POLICIES[file.policy], Limits(Clock(seconds, time.process_time))).found
    if found.violated is not None:
        first = {
            table.name: tuple(rows for name, rows in found.violated.rows if name == table.name) for table in file.tables
        }
        return Answer("violated", jobs.notes, first)
    why = [*ready.cut, *([found.cut] if found.cut else []), *jobs.open]
    return Answer("unknown" if why else "holds", jobs.notes, reason="; ".join(why))
