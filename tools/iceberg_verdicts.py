"""The figures of the Iceberg pages, computed: what each preset says under each policy, and which refusals are needless.

`tools/docs.py` writes what `presets_table` returns; nothing in it depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from typing import NamedTuple

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import PRESETS, build

PAGE = "docs/reference/iceberg-verdicts.md"

_HEAD = """# Verdicts of the Iceberg model

Made by `make docs`; every space is explored whole, with reductions on. What the model is and what the verdicts mean:
[the Iceberg model](../explanation/iceberg-model.md).

## Presets under each policy

`lakeproof check iceberg --set preset=NAME --policy POLICY` prints each line. *Depth* counts the levels of the search,
which takes steps that nobody else can see at once; the *steps* of a violation count all of them.
"""
_NEEDLESS = """
## Refusals that were not needed

Under `lakeproof` one writer runs the one command and a second writer the other, three commands in all, on a table of
two rows in two files (merge-on-read). A refusal is *needless* when committing the change as it was written would have
kept the isolation level; it costs a re-run, not an abort. Pairs that are not listed have none:
[why these have some](../explanation/iceberg-model.md#refusals-that-were-not-needed).
"""

CORE = ("INSERT", "UPDATE", "DELETE", "MERGE")
KINDS: Mapping[str, tuple[str, str]] = {
    # how the page calls a command: its kind in the workload, and how its SQL begins
    "INSERT": ("insert", "insert into t values"),
    "UPDATE": ("update", "update"),
    "DELETE": ("delete", "delete"),
    "MERGE": ("merge", "merge"),
    "upsert": ("upsert", "upsert"),
    "DELETE with a subquery": ("delete-exists", "delete"),
    "INSERT … SELECT": ("insert-select", "insert into t select"),
    "INSERT OVERWRITE": ("overwrite", "insert overwrite"),
}
ISOLATIONS = ("snapshot", "serializable")


class Refusals(NamedTuple):
    """What two commands do to each other: how often one was refused, and how often without need."""

    first: str
    second: str
    isolation: str
    refused: int
    needless: int


def presets_table() -> tuple[str, str]:
    """The path of the page and its text."""
    return PAGE, "\n".join([_HEAD, *_presets(), _NEEDLESS, *_needless()]) + "\n"


def _presets() -> Iterator[str]:
    yield "| preset | policy | states | depth | verdict |"
    yield "|---|---|---|---|---|"
    for preset in PRESETS:
        for policy in POLICIES.values():
            found = check(build({"preset": preset}, policy), engine="readable")  # the same trace on every machine
            yield f"| `{preset}` | `{policy.name}` | {found.states:,} | {found.depth} | {_worded(found)} |"


def _worded(verdict: Verdict) -> str:
    worst = verdict.first_violation
    if worst is None or not worst.counts:
        return verdict.verdict
    return f"violates `{worst.name}` after {worst.depth} steps" + (", one writer alone" if worst.alone else "")


def _needless() -> Iterator[str]:
    yield "| isolation | one writer | the other | needless | of all refusals |"
    yield "|---|---|---|---|---|"
    for isolation in ISOLATIONS:
        for pair in pairs():
            found = refusals(*pair, isolation)
            if found.needless:
                yield f"| {isolation} | {pair[0]} | {pair[1]} | {found.needless} | {found.refused} |"


def pairs() -> Iterator[tuple[str, str]]:
    """The pairs of commands that are counted; not DELETE beside DELETE with a subquery, whose SQL begins alike."""
    yield from combinations_with_replacement(CORE, 2)
    for other in ("upsert", "DELETE with a subquery", "INSERT … SELECT", "INSERT OVERWRITE"):
        for command in (*CORE, other):
            if (command, other) != ("DELETE", "DELETE with a subquery"):
                yield command, other


def refusals(first: str, second: str, isolation: str) -> Refusals:
    """How often each of two commands is refused beside the other, and how often without need."""
    (one, begins), (other, also_begins) = KINDS[first], KINDS[second]
    parameters = {
        "commands": ",".join(dict.fromkeys((one, other))),
        "commands-of-writer-1": begins,
        "commands-of-writer-2": also_begins,
        "isolation": isolation,
        "num-keys": "2",
        "initial": "two-files",
        "predicates": "id",
        "duplicates": "true",
        "measure-aborts": "true",
    }
    marks = check(build(parameters, POLICIES["lakeproof"]), engine="readable").statistics.marks
    refused = sum(count for mark, count in marks.items() if mark.startswith("refused by"))
    return Refusals(first, second, isolation, refused, marks.get("needless", 0))
