"""The page of other engines' bugs: every case of `examples/cases/` is searched, and what was found is written down.

`tools/docs.py` writes what `page` returns; nothing in it depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.trace import TraceStep
from lakeproof.models.cases import Case, case_from_text
from lakeproof.models.catalog import with_told_traces

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "examples" / "cases"
PAGE = "docs/explanation/bugs-of-others.md"
TOLD = ("start", "start compaction", "start delete rewrite", "swap", "finish", "expire")

HEAD = """# Bugs of others, by mechanism

Made by `make docs`. Of 34 correctness bugs that were reported in 2024 to 2026 against Iceberg, Trino, Flink, DuckDB,
StarRocks, ClickHouse, Paimon, Hudi, DuckLake and catalogs, those below are found by a search. No case has a switch that
says "bug": each is the rule that the thread describes, written over a rule that holds, and the control is the rule that
holds at the same parameters. `lakeproof check examples/cases/NAME.toml` prints the trace, `--control` the other
verdict, and `--report F.html` draws it.

```
                     what the table means              which files are there          which records are in
                     lakeproof check iceberg           lakeproof check files          lakeproof check sink
 validates too       commands read, write, validate
 little, too much    and swap; `[policy]` changes
                     which checks are asked
 is wrong about                                        attempts, clean-up, expiry,
 the outcome                                           orphans, readers; `[policy]`
                                                       changes lines of the protocol
 forgets what it                                                                      checkpoints, restarts, two
 has committed                                                                        coordinators; `[policy]`
                                                                                      changes how a commit is known
```

A mechanism is what a thread or a fix says, reduced to the smallest table on which it can be seen; that the engine does
nothing else wrong, or that its newest version still does this, is not claimed. Several threads have one rule in common
(a lost answer taken for a failure, in five engines) and differ in what is then removed.

## On real software

Three counterexamples of `lakeproof check files`, found under the rules of PyIceberg 0.12 and then done to it, on real
tables with a catalog that commits and answers 409 (`tests/models/files/test_replayed_on_pyiceberg.py`). None is in the
list.

| what the catalog and others do | what PyIceberg 0.12 does |
|---|---|
| the only or last try is committed, and answered with 409 (a transport that sends twice) | it removes the manifests \
and the manifest list of the head: the table cannot be read. With a try left it looks first, finds its snapshot, and \
is right |
| somebody tags a snapshot while it is expired | the tag is gone, silently: an expiry asserts nothing |
| a try is committed and answered with 409, somebody appends and expires that snapshot before the look | it \
commits again, so the row is there twice, and removes the manifest of the first try, which the head names: the table \
cannot be read |

## Not found

| row | thread | the concept that is missing |
|---|---|---|
| 23 | [trinodb/trino#26853](https://github.com/trinodb/trino/issues/26853) | a cause: the thread has the damage \
(metadata files that had to be restored after a MERGE conflict) and no mechanism |
| 29 | [duckdb/ducklake#1215](https://github.com/duckdb/ducklake/issues/1215) | a second store of deletes: rows \
inlined in the catalog beside files |
| 34 | [apache/paimon#8964](https://github.com/apache/paimon/pull/8964) | Paimon's tables without a primary key, \
whose columns are updated by ranges of row numbers |
"""


def cases() -> list[Case]:
    """Every case, in the order of the list."""
    found = [case_from_text(path.read_text(encoding="utf-8"), place=path.name) for path in sorted(CASES.glob("*.toml"))]
    return sorted(found, key=lambda case: case.row)


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    lines = list(cases())
    rows = [
        "## Found",
        "",
        "| row | thread | engine | violates | steps | states | control |",
        "|---|---|---|---|---|---|---|",
    ]
    stories: list[str] = []
    for case in lines:
        line, story = _searched(case)
        rows.append(line)
        stories += story
    return PAGE, "\n".join([HEAD, *rows, "", "## Step by step", "", *stories])


def _searched(case: Case) -> tuple[str, list[str]]:
    subject = case.subject()
    verdict = with_told_traces(check(subject.model, first=True, require=case.require, engine="readable"), subject)
    control = check(case.subject(control=True).model, require=case.require)
    found = verdict.property(case.violates)
    assert (found.verdict, control.verdict) == ("violated", "holds"), case.name
    about = f"| {'+' if case.row > 34 else case.row} | {link(case.thread)} | {case.engine} | `{case.violates}`"
    line = f"{about} | {found.depth} | {verdict.states:,} | holds, {control.states:,} |"
    steps = found.trace.steps if found.trace is not None else ()
    return line, [f"### {case.name}", "", case.mechanism, "", *_told(case.model, steps), ""]


def link(thread: str) -> str:
    """The thread as a link."""
    project, _, number = thread.partition("#")
    return f"[{thread}](https://github.com/{project}/issues/{number})"


def _told(model: str, steps: tuple[TraceStep, ...]) -> Iterator[str]:
    """The steps: a sentence for each that counts, or what each actor did, one after the other."""
    if model == "iceberg":
        yield from (f"- step {n}: {step.caption}" for n, step in enumerate(steps, 1) if step.step in TOLD)
        return
    for actor, mine in groupby(steps, key=lambda step: step.actor):
        yield f"- {actor}: " + ", ".join(step.label or step.step for step in mine)
