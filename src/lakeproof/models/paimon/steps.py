"""What writers, compactors and committers do, one function per step: from what everybody sees and what I hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakeproof.checker.model import Outcome, Step
from lakeproof.models.paimon import conflict_checks as checks
from lakeproof.models.paimon.bounds import Setup
from lakeproof.models.paimon.commands import command_text, commands, overwrite, started
from lakeproof.models.paimon.commit import Event, committed, rolled_back
from lakeproof.models.paimon.lsm import compact_level, compact_unit, universal_units
from lakeproof.models.paimon.world import (
    APPEND,
    BAD,
    DELETE,
    HANDED,
    INSERT,
    LOCKED,
    PREPARED,
    STALE,
    STARTED,
    UPDATE,
    WRITTEN,
    Append,
    Base,
    Busy,
    CompactionPlan,
    Handed,
    Idle,
    Own,
    Rewrite,
    Shared,
    file_name,
)

COMMITTED = Event("COMMIT")


def start_write(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer decides on one row: insert it, update it or delete it."""
    if own.phase != "idle" or shared.writes >= setup.max_writes:
        return
    if setup.max_writes_per_writer and own.done >= setup.max_writes_per_writer:
        return
    for index in setup.buckets_of_writer(own.actor):
        for key in setup.keys_of_bucket[index]:
            for row, columns in commands(setup, shared, index, key, own.done):
                write = Append(index, row, columns)
                yield Outcome(started(setup, shared, row), busy(setup, own, write), label=command_text(row, columns))
                if setup.allow_overwrites and row.kind == UPDATE:
                    change = overwrite(setup, shared, write)
                    label = command_text(row, columns) + " by replacing the bucket's files"
                    yield Outcome(started(setup, shared, row), busy(setup, own, change), label=label)


def busy(setup: Setup, own: Own, work: Append | CompactionPlan | Rewrite) -> Busy:
    """The process with an operation begun; it counts its operations only where something reads the count."""
    if is_compaction(work):
        counts = setup.max_compactions_per_compactor > 0
    else:
        by_number = not (setup.sequence_field or setup.snapshot_ordering or setup.restored_sequence)
        counts = by_number or setup.max_writes_per_writer > 0
    phase = WRITTEN if isinstance(work, Rewrite) else STARTED
    return Busy(own.actor, own.done + counts, phase, work)


def is_compaction(work: Append | CompactionPlan | Rewrite) -> bool:
    """The work is a compaction, planned or done."""
    return isinstance(work, CompactionPlan) or (isinstance(work, Rewrite) and work.write is None)


def write_data_file(shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer puts its data file into the store, where nothing refers to it yet."""
    if own.phase == STARTED and isinstance(own, Busy) and isinstance(own.work, Append):
        yield Outcome(shared, Busy(own.actor, own.done, WRITTEN, own.work, own.unsafe))


def start_compaction(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A compactor chooses what to compact."""
    if own.phase != "idle" or shared.compactions >= setup.max_compactions:
        return
    if setup.max_compactions_per_compactor and own.done >= setup.max_compactions_per_compactor:
        return
    after = shared._replace(compactions=shared.compactions + 1)
    for index in setup.buckets_of_compactor(own.actor):
        bucket, where = shared.buckets[index], place(setup, index)
        if setup.universal:
            for taken, output in universal_units(bucket, setup.max_level):
                work = compact_unit(setup, index, bucket, taken, output)
                label = f"{', '.join(file_name(file.id) for file in taken)} of {where} into level {output}"
                yield Outcome(after, busy(setup, own, work), label=label)
        else:
            for level in sorted({file.level for file in bucket.files if file.level < setup.max_level}):
                yield Outcome(after, busy(setup, own, CompactionPlan(index, level)), label=f"level {level} of {where}")


def place(setup: Setup, index: int) -> str:
    """A bucket's name as Paimon's paths have it."""
    return f"p-{setup.partition_of(index)}_b-{index % setup.buckets}"


def compact(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A compactor reads its level as the head snapshot has it, and writes the merged file and the bucket's vectors."""
    if own.phase == STARTED and isinstance(own, Busy) and isinstance(own.work, CompactionPlan):
        work = compact_level(setup, own.work.bucket, shared.buckets[own.work.bucket], own.work.level)
        if work.removed:
            yield Outcome(shared, Busy(own.actor, own.done, WRITTEN, work, own.unsafe))
        else:
            yield Outcome(shared, Idle(own.actor, own.done), label="nothing is left there")


def write_metadata(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The conflict checks pass and the metadata of the next snapshot is written, or the operation is given up."""
    if own.phase != WRITTEN or not isinstance(own, Busy) or isinstance(own.work, CompactionPlan):
        return
    conflict = conflict_of(setup, shared, own)
    marks = who_alone_refuses(shared, own.work) if setup.compare_rules and isinstance(own.work, Rewrite) else ()
    if conflict is None:
        base = None if setup.guarded else Base(shared.version, shared.buckets)
        yield Outcome(shared, Busy(own.actor, own.done, PREPARED, own.work, own.unsafe, base, own.waiter), marks=marks)
        return
    check, evidence = conflict
    marks = (*marks, f"refused by {check}")
    if setup.compaction_rollback and isinstance(own.work, Rewrite) and own.work.write and shared.before:
        after = rolled_back(shared)
        yield Outcome(after, own, Event("ROLLBACK"), f"rolls snapshot {shared.version} back", (*marks, "rolled back"))
        return
    event = None if own.waiter < 0 else Event("REFUSED", None, -1, own.waiter, is_compaction(own.work))
    yield Outcome(given_up(setup, shared, own.work), Idle(own.actor, own.done), event, evidence, marks)


def conflict_of(setup: Setup, shared: Shared, own: Busy) -> tuple[str, str] | None:
    """The first check that says no to the operation on the head as it is."""
    work = own.work
    assert not isinstance(work, CompactionPlan)
    if setup.strict_mode:
        evidence = checks.strict_mode_conflict(setup.partition_of(work.bucket), own.unsafe)
        if evidence is not None:
            return "strict_mode_conflict", evidence
    if isinstance(work, Append):
        return None
    return checks.first_conflict(checks_asked(setup), work, shared.buckets[work.bucket])


def checks_asked(setup: Setup) -> tuple[checks.Check, ...]:
    """The checks that this configuration asks of a change that replaces files."""
    asked = (
        (setup.file_deletion_check, checks.file_deletion_conflict),
        (setup.lsm_key_range_check, checks.lsm_conflict),
        (setup.dv_index_check, checks.deletion_vector_index_conflict),
        (setup.dv_conflict_check, checks.deletion_vector_conflict),
    )
    return tuple(check for wanted, check in asked if wanted)


def who_alone_refuses(shared: Shared, work: Rewrite) -> tuple[str, ...]:
    """Where Java's rules and pypaimon's judge this change differently: who alone refuses it."""
    head = shared.buckets[work.bucket]
    java = checks.first_conflict(checks.JAVA, work, head)
    pypaimon = checks.first_conflict(checks.PYPAIMON, work, head)
    if (java is None) == (pypaimon is None):
        return ()
    return ("only java refuses",) if java else ("only pypaimon refuses",)


def given_up(setup: Setup, shared: Shared, work: Append | Rewrite) -> Shared:
    """A refused insert leaves its key free for another."""
    write = work if isinstance(work, Append) else work.write
    if write is None or write.row.kind != INSERT:
        return shared
    number = setup.keys.index(write.row.key)
    return shared._replace(inserted=(*shared.inserted[:number], False, *shared.inserted[number + 1 :]))


def hand_over(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A process hands its files to the committer; a streaming writer goes on, the others wait for their snapshot."""
    if own.phase != WRITTEN or not isinstance(own, Busy) or isinstance(own.work, CompactionPlan):
        return
    after = shared._replace(queue=(*shared.queue, Handed(own.actor, own.work)))
    if setup.streaming_sink and isinstance(own.work, Append):
        yield Outcome(after, Idle(own.actor, own.done))
    else:
        yield Outcome(after, own._replace(phase=HANDED))


def take_over(shared: Shared, own: Own) -> Iterator[Outcome]:
    """The committer takes what was handed over first."""
    if own.phase == "idle" and shared.queue:
        actor, change = shared.queue[0]
        yield Outcome(shared._replace(queue=shared.queue[1:]), Busy(own.actor, own.done, WRITTEN, change, waiter=actor))


def take_lock(shared: Shared, own: Own) -> Iterator[Outcome]:
    """The process takes the lock and finds the next snapshot's name free, or taken and starts its metadata again."""
    if not isinstance(own, Busy) or shared.locked:
        return
    if own.phase == PREPARED:
        yield Outcome(shared._replace(locked=True), own._replace(phase=LOCKED))
    elif own.phase == STALE:
        yield Outcome(shared, own._replace(phase=WRITTEN), marks=("swap lost",))


def swap(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The prepared snapshot gets its final name, or somebody was faster and the metadata is written again."""
    if not isinstance(own, Busy) or isinstance(own.work, CompactionPlan):
        return
    if own.phase == STALE and not setup.use_lock:
        yield Outcome(shared, own._replace(phase=WRITTEN), marks=("swap lost",))
    elif own.phase == (LOCKED if setup.use_lock else PREPARED):
        base = own.base or Base(shared.version, shared.buckets)
        if isinstance(own.work, Rewrite) and not can_remove(own.work, base):
            yield Outcome(shared, own._replace(phase=BAD))
            return
        after = committed(setup, shared, own.work, base)
        yield Outcome(after, Idle(own.actor, own.done), event_of(setup, own), marks=marks_of(own.work))


def can_remove(work: Rewrite, base: Base) -> bool:
    """All files that the change removes are in the snapshot it builds on."""
    live = {(file.id, file.level) for file in base.buckets[work.bucket].files}
    return all(entry in live for entry in work.removed)


def event_of(setup: Setup, own: Busy) -> Event:
    """What the others learn of a commit: that it was, and for strict mode who replaced files of which partition."""
    if setup.strict_mode and not isinstance(own.work, CompactionPlan):
        return Event(own.work.commit_kind, setup.partition_of(own.work.bucket), own.actor)
    return COMMITTED if own.waiter < 0 else Event("COMMIT", None, -1, own.waiter, is_compaction(own.work))


def marks_of(work: Append | CompactionPlan | Rewrite) -> tuple[str, ...]:
    """What a commit of this work counts as."""
    names = {INSERT: "insert committed", UPDATE: "update committed", DELETE: "delete committed"}
    if isinstance(work, Append):
        return (names[work.row.kind],)
    return ("overwrite committed",) if isinstance(work, Rewrite) and work.write else ("compaction committed",)


def observe(setup: Setup, own: Own, event: Event) -> Own:
    """A commit makes what others have prepared stale, and tells strict mode which partitions are unsafe."""
    if not isinstance(own, Busy):
        return own
    if own.phase == HANDED:
        is_mine = event.waiter == own.actor and event.compacted == is_compaction(own.work)
        return Idle(own.actor, own.done) if is_mine else own
    if event.kind == "REFUSED":
        return own
    phase = STALE if own.phase == PREPARED and setup.guarded else own.phase
    unsafe = own.unsafe
    if event.partition is not None and event.partition not in unsafe and is_unsafe(setup, own, event):
        unsafe = tuple(sorted((*unsafe, event.partition)))
    if phase == own.phase and unsafe == own.unsafe:
        return own
    return Busy(own.actor, own.done, phase, own.work, unsafe, own.base, own.waiter)


def is_unsafe(setup: Setup, own: Busy, event: Event) -> bool:
    """Strict mode minds another user's COMPACT and OVERWRITE, and before an OVERWRITE of mine also an APPEND."""
    another_user = setup.dedicated_compactors or event.user != own.actor
    return another_user and (event.kind != APPEND or (isinstance(own.work, Rewrite) and own.work.write is not None))


def steps(setup: Setup) -> dict[str, tuple[Step, ...]]:
    """The protocol of each kind of process, in order."""
    commit = [Step("write_metadata", partial(write_metadata, setup))]
    commit += [Step("take_lock", take_lock)] if setup.use_lock else []
    commit += [Step("swap", partial(swap, setup))]
    write = [
        Step("start_write", partial(start_write, setup)),
        Step("write_data_file", write_data_file, private=True, reads_shared=False),
    ]
    rewrite = [Step("start_compaction", partial(start_compaction, setup))]
    rewrite += [] if setup.universal else [Step("compact", partial(compact, setup))]
    hand = [Step("hand_over", partial(hand_over, setup))]
    committers_compact = setup.committer_apart and not setup.dedicated_compactors
    return {
        "writer": (*write, *(hand if setup.committer_apart else commit)),
        "compactor": (*rewrite, *(hand if committers_compact else commit)),
        "committer": (Step("take_over", take_over), *commit),
    }
