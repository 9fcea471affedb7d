"""What a sink does, step by step: take records, save itself, look for its own commits, commit, and start anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from lakeproof.checker.model import Outcome, Step
from lakeproof.models.sink.world import Batch, Knows, Own, Saved, Setup, Shared, Sinking, Waiting


class Event(NamedTuple):
    """The table has another commit."""

    length: int


def observe(own: Own, event: Event) -> Own:
    """A request that expects an older table will never fit."""
    if isinstance(own, Sinking) and own.late:
        return own._replace(late=tuple(r for r in own.late if r[0] == event.length))
    return own


def take(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The sink takes the next records, writes their files, and (a streaming job) saves itself with them."""
    if not isinstance(own, Sinking) or own.pending or own.late or own.position >= setup.records:
        return
    for size in range(1, setup.records - own.position + 1):
        records = tuple(range(own.position + 1, own.position + size + 1))
        number, upto = own.checkpoint + 1, own.position + size
        parts = [(r,) for r in records] if setup.apart else [records]
        pending = tuple(Batch(p, own.job, number, i, p[-1]) for i, p in enumerate(parts))
        after = shared
        if not setup.rules.saves_after_commit:
            after = shared._replace(saved=(*shared.saved, Saved(own.job, number, upto, pending)))
        recovering = setup.rules.saves_after_commit or own.recovering
        mine = own._replace(checkpoint=number, position=upto, pending=pending, recovering=recovering, loaded=None)
        yield Outcome(after, mine, label=f"records {records}", marks=("records are taken",))


def look(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The sink loads the table, and after a restart leaves out what it finds committed."""
    if not isinstance(own, Sinking) or not own.pending or own.loaded is not None:
        return
    rules, pending = setup.rules, own.pending
    if own.recovering or rules.knows_by is Knows.OFFSET:
        pending = tuple(left for batch in pending if (left := _left(setup, shared, own, batch)) is not None)
    recovering = own.recovering and rules.saves_after_commit
    mine = own._replace(pending=pending, loaded=len(shared.table), recovering=recovering)
    found = ("finds its own commit",) if pending != own.pending else ()
    yield Outcome(shared, mine if pending else mine._replace(loaded=None), marks=found)


def _left(setup: Setup, shared: Shared, own: Sinking, batch: Batch) -> Batch | None:
    """What of a batch is not in the table yet, as far as the sink can tell."""
    rules = setup.rules
    job = own.job if rules.looks_under_own_job else batch.job
    mine = [c for c in shared.table if c.job == job]
    if rules.knows_by is Knows.CHECKPOINT:
        return None if max((c.checkpoint for c in mine), default=0) >= batch.checkpoint else batch
    if rules.knows_by is Knows.PART:
        there = any((c.checkpoint, c.part) == (batch.checkpoint, batch.part) for c in mine)
        return None if there else batch
    reached = shared.table[-1].upto if shared.table and rules.notes_position else _highest(shared)
    records = tuple(r for r in batch.records if r > reached)
    return batch._replace(records=records) if records else None


def _highest(shared: Shared) -> int:
    return max((batch.upto for batch in shared.table), default=0)


def commit(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The sink commits its next batch, if the table is still the one that it looked at."""
    if not isinstance(own, Sinking) or not own.pending or own.loaded is None:
        return
    if own.loaded != len(shared.table):
        again = len(shared.table) if setup.rules.looks_once else None
        yield Outcome(shared, own._replace(loaded=again), label="lost", marks=("a swap is lost",))
        return
    batch = own.pending[0]
    if setup.rules.notes_position:
        batch = batch._replace(upto=own.position)
    landed = shared._replace(table=(*shared.table, batch))
    event = Event(len(landed.table))
    yield Outcome(*_answered(setup, landed, own), event, str(batch.records), ("a batch is committed",))
    if setup.may(shared, "lost answer"):
        unheard = own._replace(loaded=None, recovering=True)
        yield Outcome(landed.spend("lost answer"), unheard, event, "the answer is lost", ("the answer is lost",))
        if setup.late:
            sent = unheard._replace(late=((own.loaded, batch),))
            yield Outcome(shared.spend("lost answer"), sent, None, "the request is late", ("the request is late",))


def _answered(setup: Setup, shared: Shared, own: Sinking) -> tuple[Shared, Sinking]:
    pending = own.pending[1:]
    if setup.rules.saves_after_commit and not pending:
        shared = _save(setup, shared, Saved(own.job, own.checkpoint, own.position))
    return shared, own._replace(pending=pending, loaded=len(shared.table) if pending else None)


def _save(setup: Setup, shared: Shared, saved: Saved) -> Shared:
    if not setup.rules.last_save_wins and shared.saved[-1].offset > saved.offset:
        return shared
    return shared._replace(saved=(*shared.saved, saved)) if shared.saved[-1] != saved else shared


def arrive(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A request that was late arrives, if the table is still the one that it expects; or it is lost for good."""
    if isinstance(own, Sinking):
        for expected, batch in own.late:
            if expected == len(shared.table):
                landed = shared._replace(table=(*shared.table, batch))
                yield Outcome(landed, own._replace(late=()), Event(len(landed.table)), str(batch.records), ("late",))
            yield Outcome(shared, own._replace(late=()), label="never")


def restart(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The process dies and starts anew from what was saved; somebody may choose an older savepoint."""
    if not isinstance(own, Sinking) or not setup.may(shared, "restart"):
        return
    older = list(shared.saved[:-1]) if setup.may(shared, "older savepoint") else []
    for saved in (shared.saved[-1], *older):
        after = (
            shared.spend("restart") if saved is shared.saved[-1] else shared.spend("restart").spend("older savepoint")
        )
        yield _restored(setup, after, saved, own.late)


def _restored(setup: Setup, shared: Shared, saved: Saved, late: tuple[tuple[int, Batch], ...] = ()) -> Outcome:
    number = shared.jobs + 1 if setup.rules.new_job_after_restart else saved.job
    after = shared._replace(jobs=max(shared.jobs, number))
    offset = saved.offset
    if offset < shared.retained_from:
        offset = setup.records if setup.rules.skips_what_is_gone else shared.retained_from
    mine = Sinking(number, saved.checkpoint, offset, saved.pending, None, True, late)
    return Outcome(after, mine, label=f"from checkpoint {saved.checkpoint}", marks=("a sink starts anew",))


def elect(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Another process takes over; the old one does not know it, and goes on."""
    if isinstance(own, Waiting) and setup.may(shared, "takeover"):
        yield _restored(setup, shared.spend("takeover"), shared.saved[-1])


def rewind(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A rebalance sends the reader back to what was saved, while what it has buffered stays."""
    if isinstance(own, Sinking) and own.pending and setup.may(shared, "rewind"):
        back = shared.saved[-1].offset
        if back < own.position:
            yield Outcome(shared.spend("rewind"), own._replace(position=back), marks=("the reader goes back",))


def save_again(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A sink with nothing to commit saves its offset again."""
    if isinstance(own, Sinking) and not own.pending and setup.may(shared, "idle save"):
        after = _save(setup, shared, Saved(own.job, own.checkpoint, own.position))
        if after != shared:
            yield Outcome(after.spend("idle save"), own, label=f"offset {own.position}", marks=("an offset is saved",))


def forget(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The log forgets records that the table has."""
    if isinstance(own, Sinking) and setup.may(shared, "retention") and _highest(shared) > shared.retained_from:
        yield Outcome(shared.spend("retention")._replace(retained_from=_highest(shared)), own, marks=("retention",))


def finish(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The sink has read the whole log and has nothing left to commit."""
    done = isinstance(own, Sinking) and not own.pending and not own.late and own.position >= setup.records
    if done and not shared.finished:
        yield Outcome(shared._replace(finished=True), own, marks=("the log is read",))


PARTS = (take, look, commit, arrive, restart, elect, rewind, save_again, forget, finish)


def steps_of(setup: Setup) -> tuple[Step, ...]:
    """Every step of a sink's process."""
    return tuple(Step(part.__name__.replace("_", " "), partial(part, setup)) for part in PARTS)
