"""The protocol, step by step. Each step sees the shared table and its own writer, nothing else.

    READY → READ_DATA_FILES → WRITE_DATA_FILES → WRITE_METADATA_FILES → COMMIT → (COMMITTED | ABORTED =) READY

Validation belongs to WRITE_METADATA_FILES, the swap of the pointer to COMMIT. Whoever observes a commit while in COMMIT
has lost its swap. What comes next is `commit/attempt.py`'s to say. `STEPS`, at the end, is the whole protocol in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from lakeproof.checker.model import Outcome, Step
from lakeproof.commit.attempt import Happened, Phase, removable
from lakeproof.commit.change import Command, Mode, TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.planning import WHOLE_FILES
from lakeproof.commit.validation import AlreadyCommitted, Answer, Commit, CommitWith, Refuse, RunAgain, refused
from lakeproof.commit.writing import placed
from lakeproof.models.iceberg.calls import ANSWER_LOST, ANSWERED, LATE, WriterCalls, answered
from lakeproof.models.iceberg.committing import committed, ended
from lakeproof.models.iceberg.judging import misses_a_write
from lakeproof.models.iceberg.observing import observe
from lakeproof.models.iceberg.starting import op_of, planned_again, start, start_compaction, start_delete_rewrite
from lakeproof.models.iceberg.world import (
    COMMIT,
    COMMITTING,
    COMPACTION,
    GIVEN,
    GIVEN_AGAIN,
    KEPT,
    LOST,
    READ,
    UNBOUNDED,
    WRITE,
    Conflicted,
    Event,
    Op,
    Own,
    Ready,
    Shared,
    Writer,
)

# ---------------------------------------------------------------- reading and writing files nobody sees yet


def read(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer reads the data files of its scan snapshot, which never change."""
    if isinstance(own, Op) and own.stage == READ:
        yield Outcome(shared, own._replace(stage=WRITE))


def write(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer writes its data and delete files; nobody can see them yet."""
    if isinstance(own, Op) and own.stage == WRITE:
        yield Outcome(shared, own._replace(stage=COMMITTING))


# ---------------------------------------------------------------- one try: load, validate, write metadata, swap


def _tried(writer: Writer, shared: Shared, own: Own) -> WriterCalls | None:
    """A try up to the request, if the writer is at the beginning of one; several steps ask for the same one in turn."""
    if not isinstance(own, Op) or not own.tries:
        return None
    last = writer.last_try
    if not last or last[0] is not shared or last[1] is not own:
        last[:] = shared, own, WriterCalls(writer, shared, own).tried()
    found: WriterCalls = last[2]
    return found


def validate_and_write_metadata(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer refreshes the table, validates its change against the unseen snapshots and writes its metadata."""
    if isinstance(own, Op) and own.attempt.phase is Phase.REFRESH and not writer.setup.fused:
        calls = _tried(writer, shared, own)
        if calls is not None and calls.attempt.phase is Phase.SWAP:
            lost = own.phase == LOST
            given = lost and GIVEN in _row_id_marks(shared, own)
            again = ("lost swap, then may commit",) * lost + (GIVEN_AGAIN,) * given
            label = ", ".join(writer.checks(own.change).names) or "nothing to ask"
            yield Outcome(shared, calls.own, label=label, marks=("validation passes", *again))


def swap(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer swaps the table pointer, and its snapshot is the new head."""
    if writer.setup.fused:
        tried = _tried(writer, shared, own)
        own = own if tried is None else tried.own
    if shared.violated or not isinstance(own, Op) or own.phase != COMMIT:
        return
    silent = writer.setup.unknown and not own.request.on_its_way and own.command != COMPACTION
    for fate in (ANSWERED, ANSWER_LOST, LATE) if silent else (ANSWERED,):
        calls = WriterCalls(writer, shared, own, fate=fate).called()
        if calls.attempt.phase is Phase.COMMITTED:
            marks = (f"{own.change.command} commits", *_adjustments(calls.answer), *_row_id_marks(shared, own))
            yield Outcome(calls.left().shared, writer.rested(own), calls.event, marks=marks)
        else:
            back = calls.shared._replace(under_way=shared.under_way, pending=shared.pending)
            yield Outcome(back, calls.own, calls.event, label=fate, marks=(_MARKS[fate],))


_MARKS = {ANSWER_LOST: "answer lost", LATE: "request late"}


def _adjustments(answer: Answer | None) -> tuple[str, ...]:
    return ("deletes carried over",) if isinstance(answer, CommitWith) and answer.carried else ()


def _row_id_marks(shared: Shared, own: Op) -> tuple[str, ...]:
    """What the commit says of row ids, where rows have any."""
    if shared.table.next_row_id is None:
        return ()
    new = own.change.added_data_files
    kept = any(number is not None for file in new for number, _ in file.lineage or ())
    given = any(file.lineage is None or (None, None) in file.lineage for file in new)
    return (KEPT,) * kept + (GIVEN,) * given


def finish(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer learns that nothing is left to do: its command is committed already, or its files are gone."""
    calls = None if shared.violated else _tried(writer, shared, own)
    if calls is not None and calls.attempt.phase is Phase.COMMITTED and isinstance(own, Op):
        found = own.attempt.phase is Phase.LOOK or isinstance(calls.answer, AlreadyCommitted)
        mark = "found its own commit" if found else "nothing left to compact"
        yield Outcome(ended(writer, calls.left().shared, own), writer.rested(own), marks=(mark,))


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
        change = TableChange(Command.REWRITE, Mode.COPY_ON_WRITE)
        if own.command != COMPACTION:
            command = writer.setup.commands[own.command]
            change = TableChange(command.command, writer.plan(command).mode)
        return refused(change, Conflict(own.check), writer.policy, reruns_left=writer.setup.reruns)
    calls = _tried(writer, shared, own)
    if calls is None or calls.attempt.phase not in (Phase.RUN_AGAIN, Phase.ABORTED):
        return None
    return calls.answer if isinstance(calls.answer, RunAgain | Refuse) else None


def _was_fine(writer: Writer, shared: Shared, op: Op) -> bool:
    """Whether committing the refused change just as it was written would have been no anomaly."""
    there = {file.path for file in shared.table.data_files}
    removed = tuple(file.path for file in op.change.removed_data_files if file.path in there)
    answer = CommitWith(tuple(pair for pair in op.as_is if not op.change.rewrites), (), removed)
    after, _ = committed(writer, shared, op, answer)
    if {"consistent_read", "isolation_kept"} & set(after.violated):
        return False
    return not misses_a_write(writer.setup, op, dict(placed(shared.table, writer.setup.shape.columns)))


# ---------------------------------------------------------------- lost answers, failures, crashes, expiry


def look(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer, which got no answer, loads the table, looks for its own commit, and goes on from there."""
    if isinstance(own, Op) and own.attempt.phase is Phase.LOOK and not shared.violated:
        calls = WriterCalls(writer, shared, own).tried()
        if calls.attempt.phase in (Phase.SWAP, Phase.UNKNOWN):
            yield Outcome(shared, calls.own, marks=("looks for its own commit",))


def fail(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The catalog or the storage does not answer while the writer loads, validates or writes metadata."""
    if not isinstance(own, Op) or not own.tries or shared.violated:
        return
    found = {}
    for phase in (own.attempt.phase, Phase.VALIDATE, Phase.WRITE_METADATA):
        calls = WriterCalls(writer, shared, own, fails=phase).tried()
        if calls.answer is None or isinstance(calls.answer, Commit | CommitWith):
            found[calls.left().shared.violated, calls.attempt.phase] = calls
    for (_, end), calls in found.items():
        if end is Phase.ABORTED and not calls.own.request.on_its_way:
            yield Outcome(
                ended(writer, calls.shared, own), writer.rested(own), label="a call fails", marks=("failure",)
            )
        elif end in (Phase.ABORTED, Phase.UNKNOWN):
            yield Outcome(calls.shared, calls.own, label="a call fails", marks=("failure",))


def stop(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer cannot find out whether it committed: it stops, retries nothing and cleans up nothing."""
    if isinstance(own, Op) and own.attempt.ended and not shared.violated:
        yield Outcome(ended(writer, shared, own), writer.rested(own), marks=("outcome unknown",))


def arrive(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A commit request that was late arrives while the head is still the expected one; perhaps its writer is gone."""
    if not isinstance(own, Op) or not own.request.on_its_way or shared.violated:
        return
    calls = WriterCalls(writer, shared, own._replace(window=own.window._replace(conflict=None)))
    answer = answered(writer, shared, calls.own)  # it passed on this head, whatever was expired since
    assert isinstance(answer, Commit | CommitWith)
    after, event = committed(writer, shared, own, answer)
    if "1" in removable(own.attempt, calls.written(), ()):
        after = after._replace(violated=(*after.violated, "consistent_read"))
    marks = ("late request arrives",)
    if own.attempt.ended:
        yield Outcome(after, writer.rested(own), event, marks=marks)
    else:
        back = after._replace(under_way=shared.under_way, pending=shared.pending)
        yield Outcome(back, observe(writer, own, event, me=True), event, marks=marks)


def crash(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer's process dies; what it wrote stays behind as files that nobody references."""
    if isinstance(own, Ready) or shared.crashes >= writer.setup.max_crashes or shared.violated:
        return
    after = shared._replace(crashes=shared.crashes + 1)
    if isinstance(own, Op) and own.request.on_its_way:
        dead = own.attempt if own.attempt.ended else own.attempt.after(Happened.FAILED)
        yield Outcome(after, own._replace(attempt=dead), marks=("crash",))
    else:
        yield Outcome(ended(writer, after, own), writer.rested(own), marks=("crash",))


def expire(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Maintenance expires every snapshot but the head and removes the files that only those needed."""
    if not isinstance(own, Ready) or not shared.table.data_files or shared.violated:
        return
    if shared.expiries < writer.setup.max_expiries:
        after = shared._replace(expiries=shared.expiries + (writer.setup.max_expiries != UNBOUNDED))
        yield Outcome(after, own, Event(None), marks=("snapshots expired",))


# ---------------------------------------------------------------- the protocol, in order


class ProtocolPart(NamedTuple):
    """One step of the protocol; it is there for writers of which `when` is true."""

    name: str
    run: Callable[[Writer, Shared, Own], Iterator[Outcome]]
    when: Callable[[Writer], bool] = lambda writer: True
    private: bool = False
    asks_the_head: Callable[[Writer], bool] = lambda writer: True


def _compacts(writer: Writer) -> bool:
    return bool(writer.setup.max_compactions) or COMPACTION in {i for choice in writer.program or () for i in choice}


def _asks_the_head(writer: Writer) -> bool:
    """Whether a try looks at the head itself, not only at what was remembered of the window."""
    return writer.policy.row_ids_at_first_try or any(
        command.command in WHOLE_FILES for command in writer.setup.commands
    )


def _loses_answers(writer: Writer) -> bool:
    return writer.setup.unknown


STEPS = (
    ProtocolPart("start", start),
    ProtocolPart("start compaction", start_compaction, _compacts),
    ProtocolPart("start delete rewrite", start_delete_rewrite, lambda writer: bool(writer.setup.max_delete_rewrites)),
    ProtocolPart("read", read, private=True),
    ProtocolPart("write", write, private=True),
    ProtocolPart("validate", validate_and_write_metadata, lambda writer: not writer.setup.fused, False, _asks_the_head),
    ProtocolPart("swap", swap),
    ProtocolPart("refuse", refuse),
    ProtocolPart("finish", finish, lambda writer: _compacts(writer) or _loses_answers(writer)),
    ProtocolPart("look", look, _loses_answers),
    ProtocolPart("fail", fail, _loses_answers),
    ProtocolPart("arrive", arrive, _loses_answers),
    ProtocolPart("stop", stop, _loses_answers),
    ProtocolPart("crash", crash, lambda writer: bool(writer.setup.max_crashes)),
    ProtocolPart("expire", expire, lambda writer: bool(writer.setup.max_expiries)),
)
"""The protocol of a writer. The order decides nothing but the order in which choices are tried and told."""


def steps_of(writer: Writer) -> tuple[Step, ...]:
    """The steps of this writer; those that the configuration switches off are not there at all."""
    return tuple(
        Step(
            part.name,
            partial(part.run, writer),
            private=part.private,
            reads_shared=not part.private and part.asks_the_head(writer),
        )
        for part in STEPS
        if part.when(writer)
    )
