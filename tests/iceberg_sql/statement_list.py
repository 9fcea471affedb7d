"""The list of statements as chapters: set-up, settings, cases, and what is looked at after each of them.

`statements.txt` has one line each. A number begins a case (the number of the statement in the list), `py` behind it a
Python call instead of SQL; `look` is a query that is answered after every case of its chapter which is no query;
`apache` is how Apache Iceberg spells the case before it, where a catalog of its own wants another name;
`conf` sets a setting of the session, or unsets it; an indented line without a number is set-up. `{snap:e:1}` is the id
of the first snapshot of `e`, `{snap:e:-1}` that of the newest, `{ms:…}` and `{s:…}` its time, `{place:w}` the folder
of a table, `{metadata:w}` its metadata file, `{warehouse}` the folder of everything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("statements.txt")
_CASE = re.compile(r" {0,4}(\d+) (py )?(.*)")


class Step(NamedTuple):
    """One line: a case has a number, set-up has none; `kind` is `sql`, `py` or `conf`, `apache` the other spelling."""

    number: int | None
    kind: str
    text: str
    apache: str = ""


class Chapter(NamedTuple):
    """Steps that are run in order from an empty catalog."""

    name: str
    looks: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def cases(self) -> list[Step]:
        """The steps that are cases."""
        return [step for step in self.steps if step.number is not None]


def read_chapters(path: Path = LIST) -> list[Chapter]:
    """All chapters of the list, in order."""
    found: list[Chapter] = []
    for line in filter(str.strip, path.read_text().splitlines()):
        if line.startswith("== "):
            found.append(Chapter(line[3:].strip(), (), ()))
            continue
        last = found[-1]
        if line.startswith("look  "):
            found[-1] = last._replace(looks=(*last.looks, line[6:]))
        elif line.startswith("apache  "):
            found[-1] = last._replace(steps=(*last.steps[:-1], last.steps[-1]._replace(apache=line[8:])))
        else:
            found[-1] = last._replace(steps=(*last.steps, _step(line)))
    return found


def _step(line: str) -> Step:
    if line.startswith("conf  "):
        return Step(None, "conf", line[6:])
    case = None if line.startswith(" " * 6) else _CASE.fullmatch(line)
    if case is None:
        return Step(None, "sql", line.strip())
    return Step(int(case[1]), "py" if case[2] else "sql", case[3])
