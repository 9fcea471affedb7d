"""How a command begins: what it reads of the head, what it writes, and what of it is remembered.

Reading and writing private files is computed at once, since the snapshot that is read never changes; the steps `read`
and `write` only say how far the writer has come.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.model import Outcome
from lakeproof.commit.change import ONLY_REMOVES, Command, Isolation, TableChange
from lakeproof.commit.meaning import RowCommand
from lakeproof.commit.validation import RunAgain
from lakeproof.commit.window import open_window
from lakeproof.commit.writing import Written, deletes_rewritten, placed, rewritten, written
from lakeproof.format import DataFile, DeleteContent, Row, Rows, TableState, Value
from lakeproof.models.iceberg.committing import fits
from lakeproof.models.iceberg.naming import single_rows
from lakeproof.models.iceberg.world import (
    COMPACTION,
    READ,
    UNBOUNDED,
    WRITE,
    Conflicted,
    Ghost,
    Op,
    Own,
    Ready,
    Setup,
    Shared,
    Writer,
)

DELETE_FILES = "delete files"
"""The group of a compaction that rewrites delete files, not data files."""


def start(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts a command: from here on it reads the snapshot that is the head now."""
    setup = writer.setup
    if not isinstance(own, Ready) or shared.violated or shared.commands >= setup.max_commands:
        return
    if not fits(setup, shared.table):
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
        if writer.program is None and setup.max_commands != UNBOUNDED:
            after = after._replace(commands=shared.commands + 1)
        op = op_of(writer, index, "", plan, own.next)
        yield Outcome(after, op, label=str(command), marks=(f"{command.command} starts",))


def start_compaction(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts a compaction of some files."""
    setup = writer.setup
    if not isinstance(own, Ready) or shared.violated or not fits(setup, shared.table):
        return
    if writer.program is None:
        chosen = groups(shared.table, needless=setup.endless)
        spent = int(setup.max_compactions != UNBOUNDED)
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
        plan = rewritten(shared.table, _members(shared.table, group), setup.shape, "me")
        after = shared._replace(compactions=shared.compactions + spent, under_way=shared.under_way + 1)
        op = op_of(writer, COMPACTION, group, plan, own.next)
        yield Outcome(after, op, label=_compaction_label(writer, shared.table, group), marks=("REWRITE starts",))


def start_delete_rewrite(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer starts to merge the position delete files of each data file into one."""
    if not isinstance(own, Ready) or shared.violated or shared.delete_rewrites >= writer.setup.max_delete_rewrites:
        return
    plan = deletes_rewritten(shared.table, "me")
    if plan is not None:
        after = shared._replace(delete_rewrites=shared.delete_rewrites + 1, under_way=shared.under_way + 1)
        op = op_of(writer, COMPACTION, DELETE_FILES, plan, own.next)
        yield Outcome(after, op, label=f"compact {DELETE_FILES}", marks=("REWRITE of delete files starts",))


def _compaction_label(writer: Writer, table: TableState, group: str) -> str:
    """What is compacted, told by content: file names differ between a model and a told run."""
    if not group.startswith("file "):
        return f"compact {group}"
    rows = sorted(row for (file, _), row in placed(table, writer.setup.shape.columns) if group == f"file {file}")
    return "compact the file of " + ("; ".join(" ".join(map(str, row)) for row in rows) or "no row")


def groups(table: TableState, partition: tuple[Value, ...] | None = None, *, needless: bool = False) -> list[str]:
    """What can be compacted: everything (or a whole partition), or one file that has deletes.

    `needless`: also what needs no compaction, as a user may ask for. An endless run forgets which files had deletes.
    """
    whole = partition is None
    files = [f for f in table.data_files if whole or f.partition[: len(partition or ())] == partition]
    dirty = [f.path for f in files if needless or any(d.references(f.path) for d in table.delete_files)]
    several = len(files) > 1
    if partition is not None:
        return [f"partition {partition}"] if several or dirty else []
    return (["all files"] if several or dirty else []) + ([f"file {path}" for path in dirty] if several else [])


def _members(table: TableState, group: str) -> list[str]:
    def fits(file: DataFile) -> bool:
        inside = [f"partition {file.partition[: n + 1]}" for n in range(len(file.partition))]
        return group in ("all files", f"file {file.path}", *inside)

    return [file.path for file in table.data_files if fits(file)]


def _may_start(writer: Writer, shared: Shared, command: RowCommand) -> bool:
    """Whether the ids that a command brings are free: the workload inserts each id once."""
    selects = command.select is not None and writer.setup.endless  # else every commit would bring one more row
    if writer.setup.duplicates or not (command.command is Command.INSERT or selects):
        return True
    there = {row[0] for _, row in placed(shared.table, writer.setup.shape.columns)} | set(shared.pending)
    brings = [row[0] for row in command.rows]
    if selects and command.select is not None:
        brings = [command.select.terms[0].value]
    return not there.intersection(brings)


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


def _plan(writer: Writer, table: TableState, index: int, again: RunAgain | None = None) -> Written | None:
    command = writer.setup.commands[index]
    rows: list[Row] = []
    if command.meaning is not None and command.meaning.has_subquery:
        rows = [row for _, row in placed(table, writer.setup.shape.columns)]
    return written(command, table, writer.setup.shape, writer.plan(command, again, rows), "me")


def op_of(writer: Writer, index: int, group: str, plan: Written, turn: int) -> Op:
    """A command that has read its snapshot; only what will be asked is kept."""
    change = plan.change
    window = open_window(change, writer.checks(change), writer.setup.shape)
    return Op(
        stage=WRITE if change.command in (Command.INSERT, Command.UPSERT) else READ,
        command=index,
        group=group,
        change=_lightened(writer.setup, change, by_rows=window.rows is not None),
        window=window,
        ghost=_ghost(writer.setup, plan, compacts=index == COMPACTION),
        policy=writer.policy.name,
        turn=turn,
        as_is=change.targets if writer.setup.measure else (),
    )


def _ghost(setup: Setup, plan: Written, *, compacts: bool) -> Ghost:
    """What the judge will need of a command that starts now."""
    only_removes = plan.change.command in ONLY_REMOVES
    mine: Rows = () if compacts or plan.change.isolation is not Isolation.SNAPSHOT else plan.change.targets
    meant: Rows = plan.change.targets if only_removes and not setup.lean else ()
    return Ghost(plan.origins, mine, hits=mine if only_removes else (), removes=meant)


def _lightened(setup: Setup, change: TableChange, *, by_rows: bool) -> TableChange:
    """The change without what the window remembers by row, and without what no canonical table knows."""
    change = change._replace(targets=(), reads=(), mapping=change.mapping and single_rows(change.mapping))
    if by_rows:
        equality = tuple(file for file in change.added_delete_files if file.content is DeleteContent.EQUALITY)
        kept = change.added_delete_files if equality else ()
        change = change._replace(added_delete_files=kept, required_data_files=())
    if setup.canonical:
        removed = tuple(
            file._replace(rows=None, bounds=(), record_count=0, first_row_id=None, lineage=None)
            for file in change.removed_data_files
        )
        change = change._replace(scan_snapshot=None, removed_data_files=removed)
    return change


def planned_again(writer: Writer, shared: Shared, own: Op | Conflicted, answer: RunAgain) -> Written | None:
    """What a refused command does when it runs from the head; `None`: nothing is left to do."""
    if own.command != COMPACTION:
        return _plan(writer, shared.table, own.command, answer)
    if own.group == DELETE_FILES:
        return deletes_rewritten(shared.table, "me")
    possible = (
        ["all files"]
        if writer.setup.compacts_always
        else groups(shared.table, writer.partition, needless=writer.setup.endless)
    )
    if own.group not in possible or own.group.startswith("file "):
        return None
    members = _members(shared.table, own.group)
    return rewritten(shared.table, members, writer.setup.shape, "me")
