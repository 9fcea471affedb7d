"""The text of a jobs file: a set-up, then jobs, each with a comment before it.

create table people (id int, name string) using iceberg;
-- job: recolour times=2
update people set name = 'x' where id = 1;
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lakeproof.errors import InvalidInput
from lakeproof.sql.lexer import split

_JOB = re.compile(r"^--\s*job\s*:\s*(?P<name>[\w.-]+)?(?P<rest>.*)$", re.IGNORECASE)
_TIMES = re.compile(r"^\s*(?:times\s*=\s*(?P<times>\d+))?\s*$")


class Statement(NamedTuple):
    """One statement and the line it begins on."""

    text: str
    line: int


class Job(NamedTuple):
    """A named job: statements in order, run by `times` writers at once."""

    name: str
    times: int
    line: int
    statements: tuple[Statement, ...]


class JobsText(NamedTuple):
    """A jobs file, taken apart."""

    name: str
    setup: tuple[Statement, ...]
    jobs: tuple[Job, ...]


def taken_apart(text: str, *, name: str) -> JobsText:
    """The set-up and the jobs of a file."""
    heads: list[tuple[int, str, int]] = []
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        found = _JOB.match(line.strip())
        if found:
            heads.append((number, *_head(found, f"{name}:{number}")))
    if not heads:
        raise InvalidInput("The file has no job", place=f"{name}:1", hint="put `-- job: NAME` before its statements")
    ends = [number for number, _, _ in heads[1:]] + [len(lines) + 1]
    setup = _statements(lines, 1, heads[0][0], name)
    jobs = tuple(
        Job(job, times, number, _statements(lines, number, end, name))
        for (number, job, times), end in zip(heads, ends, strict=True)
    )
    _refuse_odd(jobs, name)
    return JobsText(name, setup, jobs)


def _head(found: re.Match[str], place: str) -> tuple[str, int]:
    rest = _TIMES.match(found["rest"])
    if not found["name"] or not rest:
        raise InvalidInput("A job is `-- job: NAME` or `-- job: NAME times=N`", place=place)
    times = int(rest["times"] or 1)
    if times < 1:
        raise InvalidInput("times must be at least 1", place=place)
    return found["name"], times


def _statements(lines: list[str], first: int, end: int, name: str) -> tuple[Statement, ...]:
    """The statements from one line up to another, with their own lines."""
    block = "".join(lines[first - 1 : end - 1])
    try:
        pieces = split(block)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=f"{name}:{first}", hint=error.hint) from None
    return tuple(Statement(piece.text, first + block[: piece.start].count("\n")) for piece in pieces)


def _refuse_odd(jobs: tuple[Job, ...], name: str) -> None:
    seen: set[str] = set()
    for job in jobs:
        if job.name in seen:
            raise InvalidInput(f"There are two jobs named {job.name}", place=f"{name}:{job.line}")
        if not job.statements:
            raise InvalidInput(f"The job {job.name} has no statement", place=f"{name}:{job.line}")
        seen.add(job.name)
