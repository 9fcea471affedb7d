"""A trace of the Paimon model told in sentences: what was read and decided, refused, and committed."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.verdicts.trace import Trace, TraceStep
from lakeproof.models.paimon.describe import row_in_words
from lakeproof.models.paimon.world import Append, Busy, Rewrite, Shared, file_name


def told(trace: Trace) -> list[str]:
    """The trace as sentences; steps in which nothing is decided are passed over."""
    return [f"{step.actor} {said}" for step, before in _with_before(trace) for said in sentences(step, before, trace)]


def _with_before(trace: Trace) -> Iterator[tuple[TraceStep, TraceStep | None]]:
    before: TraceStep | None = None
    for step in trace.steps:
        yield step, before
        before = step


def sentences(step: TraceStep, before: TraceStep | None, trace: Trace) -> Iterator[str]:
    """What one step says, if it says anything."""
    at = trace.actors.index(step.actor)
    now, was = step.owns[at], before.owns[at] if before else None
    version = before.shared.version if before else 0
    if step.step == "start_write":
        yield f"reads snapshot {version} and decides: {step.label}" if version else f"decides: {step.label}"
    elif isinstance(now, Busy) and isinstance(now.work, Rewrite) and step.step in ("compact", "start_compaction"):
        yield f"reads snapshot {version} and {rewriting(now.work)}"
    elif step.step == "compact":
        yield "finds nothing left to compact"
    elif any(mark.startswith("refused") for mark in step.marks):
        check = next(mark for mark in step.marks if mark.startswith("refused")).removeprefix("refused by ")
        yield f"is refused by {check}: {step.label}"
    elif "swap lost" in step.marks:
        yield "finds the next snapshot's name taken and will write its metadata again"
    elif step.step == "swap" and isinstance(was, Busy):
        yield f"commits snapshot {step.shared.version}: {added(was, before, step)}"


def rewriting(work: Rewrite) -> str:
    """What a compaction takes and makes."""
    taken = " and ".join(f"{file_name(identity)} of level {level}" for identity, level in work.removed)
    rows = ", ".join(row_in_words(row) for row in work.rows) or "no row"
    text = f"compacts {taken} into level {work.level} ({rows})"
    if work.vectors is None:
        return text + ", its vectors as they are"
    vectors = ", ".join(f"{file_name(identity)} {list(positions)}" for identity, positions in work.vectors)
    return text + f", with new vectors: {vectors or 'none'}"


def added(own: Busy, before: TraceStep | None, step: TraceStep) -> str:
    """What a commit put there and took away."""
    bucket = own.work.bucket
    old = {file.id for file in before.shared.buckets[bucket].files} if before else set()
    shared: Shared = step.shared
    new = [f"{file_name(f.id)} in level {f.level}" for f in shared.buckets[bucket].files if f.id not in old]
    if isinstance(own.work, Append):
        return f"{', '.join(new)} ({row_in_words(own.work.row)})"
    assert isinstance(own.work, Rewrite)
    gone = ", ".join(file_name(identity) for identity, _ in own.work.removed if identity != own.work.keeps_id)
    moved = f"{file_name(own.work.keeps_id)} moves to level {own.work.level}" if own.work.keeps_id else ""
    parts = [moved or ", ".join(new) or "no new file", f"without {gone}" if gone else ""]
    return ", ".join(part for part in parts if part)
