"""What somebody else's commit means to a writer: `commit/`'s fold, and the ghosts beside it."""

from __future__ import annotations

from lakeproof.commit.attempt import Attempt, Happened, Phase
from lakeproof.commit.change import ONLY_REMOVES, Isolation
from lakeproof.commit.meaning import RowCommand, effect
from lakeproof.commit.rows import Touched
from lakeproof.commit.window import CommitWindow, follow, lasting_conflict, with_hole
from lakeproof.filters import matches
from lakeproof.format import Row, Snapshot, rows_of
from lakeproof.models.iceberg.naming import followed_ghost, renamed_op
from lakeproof.models.iceberg.world import COMPACTION, HIDDEN, Conflicted, Event, Ghost, Op, Own, Setup, Writer


def observe(writer: Writer, own: Own, event: Event, *, me: bool = False) -> Own:
    """What somebody else's commit means to a writer; `me`: it is the writer's own, which does not know it."""
    if not isinstance(own, Op):
        return own
    if event.snapshot is None:
        return expired(writer, own)
    snapshot = event.snapshot._replace(command_id=own.change.command_id) if me else event.snapshot
    mine = not writer.setup.several or _touches(snapshot, writer.table_of(own))
    window = _followed_window(writer, own, snapshot, event.touched) if mine else own.window
    if window.conflict and _is_settled(writer, own, window):
        return Conflicted(own.command, own.group, window.conflict.check, own.turn)
    ghost, replaced = _followed_ghost(writer, own, event), not snapshot.adds_no_data
    op = renamed_op(own, window, ghost, event.new_names, replaced=replaced, ids=event.ids)
    return _passed_by(writer.setup, op, me=me) if mine else op


def _followed_window(writer: Writer, own: Op, snapshot: Snapshot, by: Touched) -> CommitWindow:
    """`commit/`'s fold of one more snapshot."""
    checks = writer.checks(own.change)
    window = follow(own.change, own.window, snapshot, checks, writer.setup.shape, by)
    conflict = lasting_conflict(window, checks)
    return window if conflict is window.conflict else window._replace(conflict=conflict)


def _followed_ghost(writer: Writer, own: Op, event: Event) -> Ghost:
    """The ghost after the commit: where the rows are in truth."""
    only_removes = own.change.command in ONLY_REMOVES
    ghost = followed_ghost(own.ghost, event.fates, only_removes=only_removes)
    if only_removes and own.change.isolation is Isolation.SNAPSHOT and own.command != COMPACTION:
        return _later(writer, own, ghost, event)
    return ghost


def _passed_by(setup: Setup, op: Op, *, me: bool) -> Op:
    """The attempt after a commit: a request hears of it, a validated head is no more, and the window is longer."""
    if op.attempt.unanswered or me or op.request.taken:
        op = op._replace(request=op.request.passed(me, setup.max_expiries))
    if op.attempt.phase is Phase.SWAP:
        op = op._replace(attempt=_lost_swap(setup, op.attempt))
    return op._replace(since=min(op.since + 1, 2)) if setup.max_expiries else op


def _touches(snapshot: Snapshot, table: str | None) -> bool:
    """Whether a commit is one of this table: others have a history of their own."""
    data = (*snapshot.added_data_files, *snapshot.removed_data_files)
    partitions = [*(file.partition for file in data), *(file.partition for file in snapshot.added_delete_files)]
    return table is None or any(partition[0] == table for partition in partitions)


def _is_settled(writer: Writer, own: Op, window: CommitWindow) -> bool:
    """Whether a conflict is all that need be remembered: nothing is measured, unanswered or ever forgotten."""
    forgets = writer.setup.max_expiries > 0 and not writer.checks(own.change).asks_history
    return not (writer.setup.measure or window.committed or own.attempt.unanswered or forgets)


def heard_as(writer: Writer, own: Own) -> Own:
    """The writer that hears of every commit what this one does: whoever has validated, as if it had lost its swap."""
    if not isinstance(own, Op) or own.attempt.phase is not Phase.SWAP or writer.setup.several:
        return own
    return own._replace(attempt=_lost_swap(writer.setup, own.attempt))


def _lost_swap(setup: Setup, attempt: Attempt) -> Attempt:
    """Whoever has validated against a former head has lost its swap, though it has not tried yet."""
    return attempt.after(Happened.LOST_SWAP)._replace(retries=int(setup.tracks_lost_swaps))


def _later(writer: Writer, own: Op, ghost: Ghost, event: Event) -> Ghost:
    """One more snapshot at which a DELETE might have started instead."""
    setup = writer.setup
    command = setup.commands[own.command]
    columns = setup.shape.columns
    if command.exists or (command.meaning is not None and command.meaning.has_subquery):
        done = effect(command, [row for _, row in event.rows], columns)
        hits = rows_of((event.rows[i][0][0], 1 << event.rows[i][0][1]) for i, _ in done.changed)
    else:
        fresh = [place for place, row in event.fresh if _hits(command, own, row, columns)]
        hits = rows_of((*ghost.hits, *((file, 1 << p) for file, p in fresh)))
    if ghost.mine is not None and setup.lean:
        # while nobody wrote a row of mine, mine is part of every candidate: they would all fall together
        return ghost._replace(hits=hits if ghost.mine else (), others=frozenset())
    return ghost._replace(hits=hits, others=ghost.others | {hits})


def _hits(command: RowCommand, own: Op, row: Row, columns: tuple[str, ...]) -> bool:
    if command.meaning is not None:
        return command.meaning.hits(row)
    return matches(own.change.conflict_filter, row, columns)


def expired(writer: Writer, own: Op, *, snapshot: int = 0) -> Own:
    """Old snapshots are gone: whoever has to know what happened meanwhile cannot find out any more.

    A window of one snapshot, the head, is still whole.
    """
    if own.attempt.phase is Phase.SWAP:
        own = own._replace(attempt=_lost_swap(writer.setup, own.attempt))
    request, window = own.request.expired(), own.window
    if request.taken == HIDDEN:
        window = window._replace(committed=False)
    if own.since > 1:
        window = with_hole(window, writer.checks(own.change), snapshot)
        if window.conflict and _is_settled(writer, own, window) and not request.landed:
            return Conflicted(own.command, own.group, window.conflict.check, own.turn)
    return own._replace(window=window, request=request)
