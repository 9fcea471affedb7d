"""What can go wrong besides a conflict: lost answers, late requests, crashes, expired snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.model import Outcome
from lakeproof.commit.validation import Commit, CommitWith
from lakeproof.models.iceberg.committing import committed, ended
from lakeproof.models.iceberg.observing import observe
from lakeproof.models.iceberg.steps import answered
from lakeproof.models.iceberg.world import LOOK, METADATA, STOP, Event, Op, Own, Ready, Shared, Writer


def look(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer, which got no answer, refreshes the table and looks for its own commit."""
    if isinstance(own, Op) and own.phase == LOOK and not shared.violated:
        yield Outcome(shared, own._replace(phase=METADATA), marks=("looks for its own commit",))


def stop(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer cannot find out whether it committed: it stops, retries nothing and cleans up nothing."""
    if isinstance(own, Op) and own.phase == STOP and not shared.violated:
        yield Outcome(ended(writer, shared, own), writer.rested(own), marks=("outcome unknown",))


def arrive(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A commit request that was late arrives while the head is still the expected one."""
    if not isinstance(own, Op) or not own.sent or shared.violated:
        return
    answer = answered(writer, shared, own)
    if isinstance(answer, Commit | CommitWith):
        after, event = committed(writer, shared, own, answer)
        back = after._replace(under_way=shared.under_way, pending=shared.pending)
        yield Outcome(back, observe(writer, own, event, me=True), event, marks=("late request arrives",))


def crash(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer's process dies; what it wrote stays behind as files that nobody references."""
    if not isinstance(own, Ready) and shared.crashes < writer.setup.max_crashes and not shared.violated:
        after = ended(writer, shared, own)
        yield Outcome(after._replace(crashes=shared.crashes + 1), writer.rested(own), marks=("crash",))


def expire(writer: Writer, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Maintenance expires every snapshot but the head and removes the files that only those needed."""
    if (
        isinstance(own, Ready)
        and shared.expiries < writer.setup.max_expiries
        and shared.table.data_files
        and not shared.violated
    ):
        yield Outcome(shared._replace(expiries=shared.expiries + 1), own, Event(None), marks=("snapshots expired",))
