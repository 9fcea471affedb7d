"""The protocol, step by step. Each step sees the shared table and its own writer, nothing else.

    READY → READ_DATA_FILES → WRITE_DATA_FILES → WRITE_METADATA_FILES → COMMIT → (COMMITTED | ABORTED =) READY

Validation belongs to WRITE_METADATA_FILES, the swap of the pointer to COMMIT. Whoever observes a commit while in COMMIT
has lost its swap and validates again. All decisions are `commit/`'s: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.model import Outcome
from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation, TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.row_command import RowCommand
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
from lakeproof.commit.window import open_window
from lakeproof.format import DeleteContent, Rows, TableState, Value
from lakeproof.models.iceberg.committing import committed, ended
from lakeproof.models.iceberg.naming import single_rows
from lakeproof.models.iceberg.observing import observe
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
    Ghost,
    Op,
    Own,
    Ready,
    Shared,
    Writer,
)
from lakeproof.models.iceberg.writing import Written, placed, rewritten, written

# ---------------------------------------------------------------- starting


def start(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts a command: from here on it reads the snapshot that is the head now."""
    setup = writer.setup
    if not isinstance(own, Ready) or shared.violated or shared.commands >= setup.max_commands:
        return
    for index in writer.choices(own):
        if index == COMPACTION:
            continue
        command = setup.commands[index]
        if not _may_start(writer, shared, command):
            continue
        plan = _plan(writer, shared.table, index)
        if writer.program is None and (plan is None or _changes_nothing(plan, shared.table)):
            continue
        if plan is None:
            yield Outcome(shared, Ready(own.next + 1), label=f"{command}: no row", marks=("nothing to do",))
            continue
        pending = shared.pending
        if not setup.duplicates and command.command is Command.INSERT:
            pending = tuple(sorted((*pending, *(row[0] for row in command.rows)), key=repr))
        after = shared._replace(under_way=shared.under_way + 1, pending=pending)
        if writer.program is None:
            after = after._replace(commands=shared.commands + 1)
        op = _op(writer, index, "", plan, own.next)
        yield Outcome(after, op, label=str(command), marks=(f"{command.command} starts",))


def start_compaction(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts a compaction of some files."""
    setup = writer.setup
    if not isinstance(own, Ready) or shared.violated:
        return
    if writer.program is None:
        chosen, spent = groups(shared.table), 1
        if shared.compactions >= setup.max_compactions:
            return
    elif COMPACTION in writer.choices(own):
        chosen, spent = groups(shared.table, writer.partition)[:1], 0
        if setup.compacts_always and shared.table.data_files:
            chosen = ["all files"]
        if not chosen:
            yield Outcome(shared, Ready(own.next + 1), label="nothing to compact", marks=("nothing to do",))
    else:
        return
    for group in chosen:
        plan = rewritten(shared.table, _members(shared.table, group), setup.shape, writer.policy, command_id="me")
        after = shared._replace(compactions=shared.compactions + spent, under_way=shared.under_way + 1)
        op = _op(writer, COMPACTION, group, plan, own.next)
        yield Outcome(after, op, label=_compaction_label(writer, shared.table, group), marks=("REWRITE starts",))


def _compaction_label(writer: Writer, table: TableState, group: str) -> str:
    """What is compacted, told by content: file names differ between a model and a told run."""
    if not group.startswith("file "):
        return f"compact {group}"
    rows = sorted(row for (file, _), row in placed(table, writer.setup.shape.columns) if group == f"file {file}")
    return "compact the file of " + ("; ".join(" ".join(map(str, row)) for row in rows) or "no row")


def groups(table: TableState, partition: tuple[Value, ...] | None = None) -> list[str]:
    """What can be compacted: everything (or a whole partition), or one file that has deletes."""
    files = [file for file in table.data_files if partition in (None, file.partition)]
    dirty = [file.path for file in files if any(d.references(file.path) for d in table.delete_files)]
    several = len(files) > 1
    if partition is not None:
        return [f"partition {partition}"] if several or dirty else []
    return (["all files"] if several or dirty else []) + ([f"file {path}" for path in dirty] if several else [])


def _members(table: TableState, group: str) -> list[str]:
    wholes = ("all files", "partition {}")
    return [
        file.path
        for file in table.data_files
        if group in (wholes[0], f"file {file.path}", wholes[1].format(file.partition))
    ]


def _may_start(writer: Writer, shared: Shared, command: RowCommand) -> bool:
    if command.command is not Command.INSERT or writer.setup.duplicates:
        return True
    there = {row[0] for file in shared.table.data_files for row in file.rows or ()}
    if not writer.setup.canonical:
        there = {row[0] for _, row in placed(shared.table, writer.setup.shape.columns)}
    return not any(row[0] in there or row[0] in shared.pending for row in command.rows)


def _changes_nothing(plan: Written, table: TableState) -> bool:
    """An UPDATE that leaves every row as it is: the workload does not run it."""
    if plan.change.command is not Command.UPDATE:
        return False
    old = {(file.path, p): row for file in table.data_files for p, row in enumerate(file.rows or ())}
    pairs = (
        (row, origin)
        for file, origins in zip(plan.change.added_data_files, plan.origins, strict=True)
        for row, origin in zip(file.rows or (), origins, strict=True)
    )
    return all(origin is not None and old[origin] == row for row, origin in pairs)


def _plan(writer: Writer, table: TableState, index: int, answer: RunAgain | None = None) -> Written | None:
    command = writer.setup.commands[index]
    mode = writer.mode_of(command)
    if answer is not None and command.command in (Command.UPDATE, Command.DELETE, Command.MERGE):
        mode = answer.mode
    return written(
        command,
        table,
        writer.setup.shape,
        writer.policy,
        mode=mode,
        isolation=writer.setup.isolation_of(command.command),
        command_id="me",
    )


def _op(writer: Writer, index: int, group: str, plan: Written, turn: int) -> Op:
    """A command that has read its snapshot; only what will be asked is kept."""
    setup, change = writer.setup, plan.change
    targets = change.targets
    window = open_window(change, writer.checks(change), setup.shape)
    snapshot = change.isolation is Isolation.SNAPSHOT
    mine: Rows = targets if snapshot and index != COMPACTION else ()
    later = snapshot and change.command in ONLY_REMOVES
    ghost = Ghost(
        plan.origins,
        mine,
        hits=mine if later else (),
        removes=targets if not setup.lean and change.command in ONLY_REMOVES else (),
    )
    lighter = change._replace(
        targets=(),
        reads=(),
        mapping=change.mapping and single_rows(change.mapping),
        scan_snapshot=None if setup.canonical else change.scan_snapshot,
        added_delete_files=() if window.rows is not None and not _has_equality(change) else change.added_delete_files,
        required_data_files=() if window.rows is not None else change.required_data_files,
        removed_data_files=tuple(
            file._replace(rows=None, bounds=(), record_count=0) if setup.canonical else file
            for file in change.removed_data_files
        ),
    )
    phase = WRITE if change.command in (Command.INSERT, Command.UPSERT) else READ
    return Op(phase, index, group, lighter, window, ghost, writer.policy.name, turn, targets if setup.measure else ())


def _has_equality(change: TableChange) -> bool:
    return any(file.content is DeleteContent.EQUALITY for file in change.added_delete_files)


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
        plan = _again(writer, shared, own, answer)
        kind = "compaction planned again" if own.command == COMPACTION else "re-run"
    marks = (f"refused by {check}", kind, *told)
    if plan is None:
        yield Outcome(ended(writer, shared, own), writer.rested(own), label=check, marks=marks)
        return
    yield Outcome(shared, _op(writer, own.command, own.group, plan, own.turn), label=check, marks=marks)


def _refusal(writer: Writer, shared: Shared, own: Own) -> RunAgain | Refuse | None:
    if isinstance(own, Conflicted):
        conflict = Conflict(own.check)
        again = writer.policy.runs_again and writer.setup.reruns
        return RunAgain(conflict, writer.rerun_mode(own.command)) if again else Refuse(conflict)
    if isinstance(own, Op) and own.phase in VALIDATING:
        answer = answered(writer, shared, own)
        return answer if isinstance(answer, RunAgain | Refuse) else None
    return None


def _again(writer: Writer, shared: Shared, own: Op | Conflicted, answer: RunAgain) -> Written | None:
    if own.command != COMPACTION:
        return _plan(writer, shared.table, own.command, answer)
    if own.group != "all files" or "all files" not in groups(shared.table):
        return None
    return rewritten(
        shared.table, _members(shared.table, "all files"), writer.setup.shape, writer.policy, command_id="me"
    )


def _was_fine(writer: Writer, shared: Shared, op: Op) -> bool:
    """Whether committing the refused change just as it was written would have been no anomaly."""
    there = {file.path for file in shared.table.data_files}
    removed = tuple(file.path for file in op.change.removed_data_files if file.path in there)
    answer = CommitWith(tuple(pair for pair in op.as_is if not op.change.rewrites), (), removed)
    after, _ = committed(writer, shared, op, answer)
    return not {"consistent_read", "isolation_kept"} & set(after.violated)
