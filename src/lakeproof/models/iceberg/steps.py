"""The protocol, step by step. Each step sees the shared table and its own writer, nothing else.

    READY → READ_DATA_FILES → WRITE_DATA_FILES → WRITE_METADATA_FILES → COMMIT → (COMMITTED | ABORTED =) READY

Validation belongs to WRITE_METADATA_FILES, the swap of the pointer to COMMIT. Whoever observes a commit while in COMMIT
has lost its swap and validates again. All decisions are `commit/`'s: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.model import Outcome
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.validation import (
    AlreadyCommitted,
    Answer,
    Commit,
    CommitWith,
    NothingLeft,
    Refuse,
    RunAgain,
    validate,
)
from lakeproof.models.iceberg.committing import committed, ended
from lakeproof.models.iceberg.judging import misses_a_write
from lakeproof.models.iceberg.observing import observe
from lakeproof.models.iceberg.starting import op_of, planned_again
from lakeproof.models.iceberg.world import (
    COMMIT,
    COMPACTION,
    LOOK,
    LOST,
    METADATA,
    READ,
    VALIDATING,
    WRITE,
    Conflicted,
    Op,
    Own,
    Ready,
    Shared,
    Writer,
)
from lakeproof.models.iceberg.writing import placed

# ---------------------------------------------------------------- starting


# ---------------------------------------------------------------- reading and writing files nobody sees yet


def read(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer reads the data files of its scan snapshot, which never change."""
    if isinstance(own, Op) and own.phase == READ:
        yield Outcome(shared, own._replace(phase=WRITE))


def write(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer writes its data and delete files; nobody can see them yet."""
    if isinstance(own, Op) and own.phase == WRITE:
        yield Outcome(shared, own._replace(phase=METADATA))


# ---------------------------------------------------------------- validation and the swap


def answered(writer: Writer, shared: Shared, op: Op) -> Answer:
    """What `commit/` says of this change now."""
    checks = writer.checks(op.change)
    head = shared.table if "whole_files_match" in checks.head else None
    return validate(
        op.change,
        op.window,
        writer.policy,
        checks,
        reruns_left=writer.setup.reruns,
        head=head,
        shape=writer.setup.shape,
    )


def validate_and_write_metadata(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer refreshes the table, validates its change against the unseen snapshots and writes its metadata."""
    if not isinstance(own, Op) or own.phase not in VALIDATING or writer.setup.fused:
        return
    answer = answered(writer, shared, own)
    if isinstance(answer, Commit | CommitWith):
        again = ("lost swap, then may commit",) if own.phase == LOST else ()
        label = ", ".join(writer.checks(own.change).names) or "nothing to ask"
        yield Outcome(shared, own._replace(phase=COMMIT), label=label, marks=("validation passes", *again))


def swap(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer swaps the table pointer, and its snapshot is the new head."""
    if shared.violated or not isinstance(own, Op) or own.phase != (METADATA if writer.setup.fused else COMMIT):
        return
    answer = answered(writer, shared, own)
    if not isinstance(answer, Commit | CommitWith):
        return
    after, event = committed(writer, shared, own, answer)
    yield Outcome(after, writer.rested(own), event, marks=(f"{own.change.command} commits", *_adjustments(own, answer)))
    if writer.setup.unknown and not own.sent and own.command != COMPACTION:
        back = after._replace(under_way=shared.under_way, pending=shared.pending)
        waiting = observe(writer, own, event, me=True)
        yield Outcome(back, _looking(waiting), event, label="the answer is lost", marks=("answer lost",))
        yield Outcome(shared, own._replace(phase=LOOK, sent=True), label="the request is late", marks=("request late",))


def _looking(own: Own) -> Own:
    return own._replace(phase=LOOK) if isinstance(own, Op) else own


def _adjustments(op: Op, answer: Commit | CommitWith) -> tuple[str, ...]:
    if isinstance(answer, Commit):
        return ()
    return ("deletes carried over",) if answer.carried else ()


def finish(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer learns that nothing is left to do: its command is committed already, or its files are gone."""
    if isinstance(own, Op) and own.phase in VALIDATING and not shared.violated:
        answer = answered(writer, shared, own)
        if isinstance(answer, AlreadyCommitted):
            yield Outcome(ended(writer, shared, own), writer.rested(own), marks=("found its own commit",))
        elif isinstance(answer, NothingLeft):
            yield Outcome(ended(writer, shared, own), writer.rested(own), marks=("nothing left to compact",))


def refuse(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A check says no: the command aborts, or runs again from the head."""
    if shared.violated:
        return
    answer = _refusal(writer, shared, own)
    if answer is None or isinstance(own, Ready):
        return
    fine = isinstance(own, Op) and writer.setup.measure and _was_fine(writer, shared, own)
    lost = isinstance(own, Op) and own.phase == LOST
    told = ("needless",) * fine + ("lost swap, then refused",) * lost
    check, plan, kind = answer.conflict.check, None, "abort"
    if isinstance(answer, RunAgain):
        plan = planned_again(writer, shared, own, answer)
        kind = "compaction planned again" if own.command == COMPACTION else "re-run"
    marks = (f"refused by {check}", kind, *told)
    if plan is None:
        yield Outcome(ended(writer, shared, own), writer.rested(own), label=check, marks=marks)
        return
    yield Outcome(shared, op_of(writer, own.command, own.group, plan, own.turn), label=check, marks=marks)


def _refusal(writer: Writer, shared: Shared, own: Own) -> RunAgain | Refuse | None:
    if isinstance(own, Conflicted):
        conflict = Conflict(own.check)
        again = writer.policy.runs_again and writer.setup.reruns
        return RunAgain(conflict, writer.rerun_mode(own.command)) if again else Refuse(conflict)
    if isinstance(own, Op) and own.phase in VALIDATING:
        answer = answered(writer, shared, own)
        return answer if isinstance(answer, RunAgain | Refuse) else None
    return None


def _was_fine(writer: Writer, shared: Shared, op: Op) -> bool:
    """Whether committing the refused change just as it was written would have been no anomaly."""
    there = {file.path for file in shared.table.data_files}
    removed = tuple(file.path for file in op.change.removed_data_files if file.path in there)
    answer = CommitWith(tuple(pair for pair in op.as_is if not op.change.rewrites), (), removed)
    after, _ = committed(writer, shared, op, answer)
    if {"consistent_read", "isolation_kept"} & set(after.violated):
        return False
    return not misses_a_write(writer.setup, op, dict(placed(shared.table, writer.setup.shape.columns)))
