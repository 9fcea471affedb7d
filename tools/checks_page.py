"""The reference page of checks and policies, made from `commit/checks.py` and `commit/policy.py`."""

from __future__ import annotations

from dataclasses import fields
from itertools import groupby

from lakeproof.commit import POLICIES, Command, Isolation, Mode, Policy, checks_of
from lakeproof.commit.checks import (
    ALL_CHECKS,
    CHANGE_CHECKS,
    HEAD_CHECKS,
    NEWEST_ONLY,
    ROW_CHECKS,
    SNAPSHOT_CHECKS,
    WINDOW_CHECKS,
    Part,
    describe_check,
)

PATH = "docs/reference/checks-and-policies.md"

INTRODUCTION = """\
# Checks and policies

A **check** is one named question about a change and the snapshots that its writer did not see; a "no" comes with its
evidence. A **policy** says which checks a command asks, by mode, isolation and format version. Another engine's rules
are another policy beside ours, and a file of your own can change any of them:

```toml
base = "iceberg-spark"
name = "ours"

[[line]]
commands = ["DELETE"]
mode = "merge-on-read"
always = ["data_files_exist", "no_new_delete_files"]
serializable = ["added_data_files"]
```

This page is made from the code that a commit runs (`make docs`).
"""

SWITCHES = {
    "replaces_by_filter": "an INSERT OVERWRITE drops what matches at the head, not what it planned",
    "always_copies": "writes copy-on-write whatever the table's mode says",
    "filters_by_all_reads": "narrows by every predicate that the command reads by, subqueries included",
    "runs_again": "runs the command again when re-reading resolves the conflict",
    "row_ids_at_first_try": "numbers its new rows once, and keeps the numbers when it has lost its swap",
    "mints_row_ids": "gives a row that it changes the id of a new one",
    "carries_deletes": "carries deletes committed meanwhile over to rewritten files",
    "maps_rewrites": "records where a compaction put each row",
    "maps_copy_on_write": "records where copy-on-write put each row",
    "falls_back_to_merge_on_read": "runs copy-on-write again as merge-on-read",
    "finds_own_commit": "looks for its own command id on every attempt",
    "drops_dangling_deletes": "drops delete files that point nowhere any more",
    "aging_counts_added_files": "counts the files it adds before it drops an old delete file",
}

PARTS = Part._fields


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    parts = [INTRODUCTION, "## The policies\n", _titles(), *map(_policy, POLICIES.values()), _switches(), _checks()]
    return PATH, "\n".join(parts)


def _titles() -> str:
    return "".join(f"- [`{policy.name}`](#{policy.name}): {policy.title}\n" for policy in POLICIES.values())


def _policy(policy: Policy) -> str:
    """One table: commands that ask the same are one line."""
    lines = []
    for answers, group in groupby(_asked(policy), key=lambda pair: pair[1:]):
        commands = list(dict.fromkeys(command for command, *_ in group))
        lines.append(f"| {', '.join(commands)} | {' | '.join(answers)} |")
    head = "| command | mode | at `snapshot` | `serializable` adds | format v3 adds |\n|---|---|---|---|---|"
    return f"### {policy.name}\n\n{policy.title[0].upper()}{policy.title[1:]}.\n\n" + "\n".join([head, *lines]) + "\n"


def _asked(policy: Policy) -> list[tuple[str, str, str, str, str]]:
    """What each command asks, in each mode; a mode that changes nothing is "any"."""
    found = []
    for command in Command:
        answers = {mode: _answers(policy, command, mode) for mode in Mode}
        if len(set(answers.values())) == 1:
            found.append((str(command), "any", *answers[Mode.MERGE_ON_READ]))
        else:
            found.extend((str(command), str(mode), *answers[mode]) for mode in Mode)
    return sorted(found, key=lambda line: _first(found, line[1:]))


def _first(lines: list[tuple[str, str, str, str, str]], answers: tuple[str, ...]) -> int:
    return next(i for i, line in enumerate(lines) if line[1:] == answers)


def _answers(policy: Policy, command: Command, mode: Mode) -> tuple[str, str, str]:
    base = checks_of(policy, command, mode, Isolation.SNAPSHOT, 2).names
    serializable = checks_of(policy, command, mode, Isolation.SERIALIZABLE, 2).names
    v3 = checks_of(policy, command, mode, Isolation.SNAPSHOT, 3).names
    return _listed(base), _listed(_more(serializable, base)), _listed(_more(v3, base))


def _more(names: tuple[str, ...], base: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in base)


def _listed(names: tuple[str, ...]) -> str:
    return "<br>".join(f"`{name}`" for name in names) or "–"


def _switches() -> str:
    """What policies do beside asking."""
    policies = list(POLICIES.values())
    known = [field.name for field in fields(Policy) if field.type in ("bool", bool)]
    head = f"| | {' | '.join(f'`{policy.name}`' for policy in policies)} |\n|---{'|---' * len(policies)}|"
    lines = []
    for switch in known:
        marks = ("yes" if getattr(policy, switch) else "–" for policy in policies)
        lines.append(f"| {SWITCHES.get(switch, switch.replace('_', ' '))} (`{switch}`) | {' | '.join(marks)} |")
    stamps = " | ".join(str(policy.compaction_stamp) for policy in policies)
    lines.append(f"| sequence number of a compaction's output (`compaction_stamp`) | {stamps} |")
    return "## What they do beside asking\n\n" + "\n".join([head, *lines]) + "\n"


def _checks() -> str:
    """Every check, its question, and what it looks at."""
    lines = [f"| `{name}` | {describe_check(name)} | {_looks_at(name)} |" for name in ALL_CHECKS]
    return "## The checks\n\n" + "\n".join(["| check | question | looks at |", "|---|---|---|", *lines]) + "\n"


def _looks_at(name: str) -> str:
    if name in ROW_CHECKS:
        return "the rows that each unseen snapshot added, removed or moved"
    if name in CHANGE_CHECKS:
        return "the change itself"
    if name in HEAD_CHECKS:
        return "the head"
    if name in WINDOW_CHECKS:
        return "the lineage of the unseen snapshots"
    part = {**SNAPSHOT_CHECKS, **NEWEST_ONLY}[name][1]
    named = [field.replace("_", " ") for field in PARTS if getattr(part, field)]
    which = "the newest unseen snapshot" if name in NEWEST_ONLY else "each unseen snapshot"
    return f"{', '.join(named) or 'the metadata'} of {which}"
