"""Errors that the oracle must find, each a piece of the product's source and what is planted there.

They lie in `planted_errors.tsv`, one line each; `mix` and `seed` name a random episode, `step` the statement in
it that shows the error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from random_episodes import random_episode
from random_statements import Mix
from steps import Episode, Read

STATEMENTS: dict[Mix, int] = {"reads": 40, "commands": 14, "all": 20}


class Planted(NamedTuple):
    """An error: in which module, what is replaced by what; and the random episode that shows it."""

    name: str
    mix: Mix
    seed: int
    step: int
    module: str
    old: str
    new: str

    def episode(self) -> Episode:
        """The life of a table in which the error shows, up to there, without the queries that do not."""
        whole = random_episode(self.seed, STATEMENTS[self.mix], self.mix)
        before = [step for step in whole.steps[: self.step] if not isinstance(step, Read)]
        return whole._replace(steps=(*before, whole.steps[self.step]))


def planted_errors() -> tuple[Planted, ...]:
    """The lines of the list; a line break inside a piece of source is written as `\\n`."""
    lines = (Path(__file__).parent / "planted_errors.tsv").read_text().splitlines()[1:]
    made = []
    for line in lines:
        mix: Any
        name, mix, seed, step, module, old, new = line.split("\t")
        assert mix in ("all", "reads", "commands"), line
        pieces = [piece.replace("\\n", "\n") for piece in (old, new)]
        made.append(Planted(name, mix, int(seed), int(step), module, *pieces))
    return tuple(made)
