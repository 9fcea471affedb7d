"""A trace of writers as commands for a real table, and a change as the case that a real conflict detection judges."""

from __future__ import annotations

from typing import Any

from lakeproof.checker.verdicts.trace import Trace
from lakeproof.errors import InvalidInput
from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.lsm import read_key
from lakeproof.models.paimon.world import Append, Bucket, Busy, Rewrite, Shared, file_name


def writes_and_commits(setup: Setup, trace: Trace) -> list[dict[str, Any]]:
    """The writes and commits of a trace, each commit with the rows that the model then reads and those it expects."""
    commands: list[dict[str, Any]] = []
    for step in trace.steps:
        own = step.owns[trace.actors.index(step.actor)]
        if step.step == "start_write" and isinstance(own, Busy) and isinstance(own.work, Append):
            row = own.work.row
            values = {"key": row.key, "col2": row.col2 or None, "col3": row.col3 or None, "kind": row.kind}
            commands.append({"actor": step.actor, "do": "write", "row": values})
        elif step.step == "swap" and "swap lost" not in step.marks:
            rows, wanted = rows_at_head(setup, step.shared), rows_expected(setup, step.shared)
            commands.append({"actor": step.actor, "do": "commit", "reads": rows, "expected": wanted})
        elif step.step in ("start_compaction", "hand_over"):
            raise InvalidInput(
                f"the trace has the step {step.step!r}, which a writer of a real table cannot be told to take",
                place=step.actor,
                hint="replay a trace of writers only",
            )
    return commands


def rows_at_head(setup: Setup, shared: Shared) -> list[dict[str, str]]:
    """What a reader of the head gets, in the order of the keys."""
    found = (read_key(setup, shared.buckets[setup.bucket_of_key[key]], key) for key in sorted(setup.keys))
    return [{"key": row.key, "col2": row.col2, "col3": row.col3} for row in found if row]


def rows_expected(setup: Setup, shared: Shared) -> list[dict[str, str]]:
    """What the ghost history says a reader must get."""
    wanted = sorted(zip(setup.keys, shared.expected, strict=True))
    return [{"key": key, "col2": want.col2, "col3": want.col3} for key, want in wanted if want.col2]


def case_of(change: Rewrite, head: Bucket) -> dict[str, Any]:
    """A change of a bucket by file names and levels, as manifest entries and an index file would say it."""

    def file(identity: int, level: int) -> dict[str, Any]:
        return {"name": file_name(identity), "level": level}

    new = file(change.keeps_id, change.level) if change.keeps_id else {"name": "data-new", "level": change.level}
    return {
        "base": [file(one.id, one.level) for one in head.files],
        "removed": [file(*entry) for entry in change.removed],
        "added": [new],
        "vectors": None if change.vectors is None else [file_name(identity) for identity, _ in change.vectors],
    }
